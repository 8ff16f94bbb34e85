//! Decompression of an answer while it streams: whatever can be decoded of a chunk is handed up with that chunk, so that
//! a compressed event stream is no later than a plain one. Memory is bounded: by each coding's window, and by what one
//! chunk may become.

use brotli::DecompressorWriter;
use bytes::Bytes;
use flate2::write::GzDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use std::io::{self, Write};
use turnkeep_base::limit::MAX_EVENT;
use zstd::stream::raw::{self, DParameter, InBuffer, Operation, OutBuffer};

/// Room that output buffers grow by.
const STEP: usize = 16 << 10;
/// RFC 9659: 8 MiB are the most that a zstd stream on the web may ask for.
const ZSTD_WINDOW_LOG: u32 = 23;

/// The coding is none of ours.
pub(crate) struct Unknown;

/// A decoder in the middle of its stream.
pub(crate) struct Inflate {
    coding: Coding,
    /// Nothing has come yet: an empty body needs no ending.
    untouched: bool,
}

enum Coding {
    Gzip(Box<GzDecoder<Sink>>),
    Deflate(Option<Box<Decompress>>, bool),
    Brotli(Box<DecompressorWriter<Sink>>),
    Zstd(Box<raw::Decoder<'static>>, bool),
}

/// Collects output up to the bound.
#[derive(Default)]
struct Sink(Vec<u8>);

impl Write for Sink {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if self.0.len() + data.len() > MAX_EVENT {
            return Err(too_much());
        }
        self.0.extend_from_slice(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn too_much() -> io::Error {
    io::Error::other(format!("one chunk becomes more than {MAX_EVENT} bytes"))
}

fn trailing() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "bytes follow the end of the compressed stream")
}

impl Inflate {
    /// The decoder of a content-encoding; `None` for `identity`.
    pub(crate) fn named(name: &str) -> Result<Option<Inflate>, Unknown> {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        let coding = if name.is_empty() || is("identity") {
            return Ok(None);
        } else if is("gzip") || is("x-gzip") {
            Coding::Gzip(Box::new(GzDecoder::new(Sink::default())))
        } else if is("deflate") {
            Coding::Deflate(None, false)
        } else if is("br") {
            Coding::Brotli(Box::new(DecompressorWriter::new(Sink::default(), STEP)))
        } else if is("zstd") {
            let mut decoder = raw::Decoder::new().map_err(|_| Unknown)?;
            decoder.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG)).map_err(|_| Unknown)?;
            Coding::Zstd(Box::new(decoder), false)
        } else {
            return Err(Unknown);
        };
        Ok(Some(Inflate { coding, untouched: true }))
    }

    /// Decodes one chunk as far as it goes. The error's text says what is wrong with the bytes.
    pub(crate) fn feed(&mut self, chunk: &[u8]) -> Result<Bytes, String> {
        self.untouched &= chunk.is_empty();
        match &mut self.coding {
            Coding::Gzip(decoder) => feed_gzip(decoder, chunk).map_err(|error| format!("gzip: {error}")),
            Coding::Deflate(decoder, ended) => {
                feed_deflate(decoder, ended, chunk).map_err(|error| format!("deflate: {error}"))
            }
            Coding::Brotli(decoder) => feed_brotli(decoder, chunk).map_err(|error| format!("br: {error}")),
            Coding::Zstd(decoder, ended) => feed_zstd(decoder, ended, chunk).map_err(|error| format!("zstd: {error}")),
        }
    }

    /// The transport's end has come: it must be the coding's end too.
    pub(crate) fn finish(&mut self) -> Result<(), String> {
        if self.untouched {
            return Ok(());
        }
        let (name, ended) = match &mut self.coding {
            Coding::Gzip(decoder) => ("gzip", decoder.try_finish().is_ok()),
            Coding::Deflate(_, ended) => ("deflate", *ended),
            Coding::Brotli(decoder) => ("br", decoder.close().is_ok()),
            Coding::Zstd(_, ended) => ("zstd", *ended),
        };
        if ended { Ok(()) } else { Err(format!("the {name} stream breaks off")) }
    }
}

fn feed_gzip(decoder: &mut Box<GzDecoder<Sink>>, mut chunk: &[u8]) -> io::Result<Bytes> {
    while !chunk.is_empty() {
        let taken = decoder.write(chunk)?;
        chunk = chunk.get(taken..).unwrap_or_default();
        if taken == 0 {
            // A member ended, and another begins: a legal, rare form.
            decoder.try_finish()?;
            let sink = std::mem::take(decoder.get_mut());
            **decoder = GzDecoder::new(sink);
        }
    }
    decoder.flush()?;
    Ok(std::mem::take(&mut decoder.get_mut().0).into())
}

fn feed_brotli(decoder: &mut DecompressorWriter<Sink>, mut chunk: &[u8]) -> io::Result<Bytes> {
    while !chunk.is_empty() {
        let taken = decoder.write(chunk)?;
        if taken == 0 {
            return Err(trailing());
        }
        chunk = chunk.get(taken..).unwrap_or_default();
    }
    Ok(std::mem::take(&mut decoder.get_mut().0).into())
}

fn feed_deflate(decoder: &mut Option<Box<Decompress>>, ended: &mut bool, chunk: &[u8]) -> io::Result<Bytes> {
    let Some(first) = chunk.first() else { return Ok(Bytes::new()) };
    // By the letter "deflate" means the zlib form, but servers send the bare one too. Its first byte tells: 8 in the low
    // half is zlib's method, and no sane beginning of a bare stream.
    let decoder = decoder.get_or_insert_with(|| Box::new(Decompress::new(first & 0x0f == 8)));
    let mut out = Vec::new();
    let mut rest = chunk;
    loop {
        if *ended && !rest.is_empty() {
            return Err(trailing());
        }
        if out.len() > MAX_EVENT {
            return Err(too_much());
        }
        out.reserve(STEP);
        let (before_in, before_out) = (decoder.total_in(), out.len());
        let status = decoder.decompress_vec(rest, &mut out, FlushDecompress::Sync).map_err(io::Error::other)?;
        let taken = usize::try_from(decoder.total_in() - before_in).unwrap_or(rest.len());
        rest = rest.get(taken..).unwrap_or_default();
        *ended |= status == Status::StreamEnd;
        if rest.is_empty() && (*ended || out.len() < out.capacity()) {
            return if out.len() > MAX_EVENT { Err(too_much()) } else { Ok(out.into()) };
        }
        if taken == 0 && out.len() == before_out && !*ended {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the stream makes no progress"));
        }
    }
}

fn feed_zstd(decoder: &mut raw::Decoder<'static>, ended: &mut bool, chunk: &[u8]) -> io::Result<Bytes> {
    let mut out: Vec<u8> = Vec::new();
    let mut input = InBuffer::around(chunk);
    loop {
        if out.len() > MAX_EVENT {
            return Err(too_much());
        }
        out.reserve(STEP);
        let at = out.len();
        let mut output = OutBuffer::around_pos(&mut out, at);
        let full = output.capacity();
        let hint = decoder.run(&mut input, &mut output)?;
        let filled = output.pos();
        *ended = hint == 0;
        if input.pos() == chunk.len() && filled < full {
            return if out.len() > MAX_EVENT { Err(too_much()) } else { Ok(out.into()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_that_becomes_too_large_is_refused() {
        let zeros = vec![0; MAX_EVENT + 1];
        let level = flate2::Compression::default();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), level);
        gzip.write_all(&zeros).unwrap();
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), level);
        zlib.write_all(&zeros).unwrap();
        let mut br = brotli::CompressorWriter::new(Vec::new(), 4096, 1, 22);
        br.write_all(&zeros).unwrap();
        let zstd = zstd::encode_all(&zeros[..], 1).unwrap();
        let rows = [
            ("gzip", gzip.finish().unwrap()),
            ("deflate", zlib.finish().unwrap()),
            ("br", br.into_inner()),
            ("zstd", zstd),
        ];
        for (name, bytes) in rows {
            let mut inflate = Inflate::named(name).ok().flatten().unwrap();
            let error = inflate.feed(&bytes).unwrap_err();
            assert!(error.contains("more than"), "{name}: {error}");
        }
    }

    #[test]
    fn gzip_in_two_members_is_one_text() {
        let member = |text: &str| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(text.as_bytes()).unwrap();
            encoder.finish().unwrap()
        };
        let whole = [member("one "), member("two")].concat();
        let mut inflate = Inflate::named("gzip").ok().flatten().unwrap();
        let mut out = Vec::new();
        for byte in whole {
            out.extend_from_slice(&inflate.feed(&[byte]).unwrap());
        }
        assert_eq!(out, b"one two");
        inflate.finish().unwrap();
    }

    #[test]
    fn bytes_after_the_end_are_refused() {
        let zstd = zstd::encode_all(&b"hi"[..], 1).unwrap();
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        zlib.write_all(b"hi").unwrap();
        for (name, bytes) in [("zstd", zstd), ("deflate", zlib.finish().unwrap())] {
            let mut inflate = Inflate::named(name).ok().flatten().unwrap();
            assert_eq!(inflate.feed(&bytes).unwrap(), "hi");
            assert!(inflate.feed(b"more than that").is_err(), "{name}");
        }
    }
}
