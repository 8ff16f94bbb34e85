//! Compressing a reply piece by piece, each piece readable as soon as it arrives.

use std::io::{self, Write};

use crate::script::ContentEncoding;

/// A compressor that can be flushed between events.
pub(crate) enum Encoder {
    Gzip(flate2::write::GzEncoder<Vec<u8>>),
    Deflate(flate2::write::ZlibEncoder<Vec<u8>>),
    Br(Box<brotli::CompressorWriter<Vec<u8>>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Encoder {
    pub(crate) fn new(encoding: ContentEncoding) -> io::Result<Self> {
        let level = flate2::Compression::fast();
        Ok(match encoding {
            ContentEncoding::Gzip => Self::Gzip(flate2::write::GzEncoder::new(Vec::new(), level)),
            ContentEncoding::Deflate => Self::Deflate(flate2::write::ZlibEncoder::new(Vec::new(), level)),
            ContentEncoding::Br => Self::Br(Box::new(brotli::CompressorWriter::new(Vec::new(), 4096, 3, 18))),
            ContentEncoding::Zstd => Self::Zstd(zstd::stream::write::Encoder::new(Vec::new(), 1)?),
        })
    }

    /// Compresses these bytes and gives all that is needed to read them.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        fn through(writer: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
            writer.write_all(bytes)?;
            writer.flush()
        }
        Ok(match self {
            Self::Gzip(inner) => {
                through(inner, bytes)?;
                std::mem::take(inner.get_mut())
            }
            Self::Deflate(inner) => {
                through(inner, bytes)?;
                std::mem::take(inner.get_mut())
            }
            Self::Br(inner) => {
                through(inner, bytes)?;
                std::mem::take(inner.get_mut())
            }
            Self::Zstd(inner) => {
                through(inner, bytes)?;
                std::mem::take(inner.get_mut())
            }
        })
    }

    /// The bytes that close the compressed stream.
    pub(crate) fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            Self::Gzip(inner) => inner.finish(),
            Self::Deflate(inner) => inner.finish(),
            Self::Br(inner) => Ok(inner.into_inner()),
            Self::Zstd(inner) => inner.finish(),
        }
    }
}
