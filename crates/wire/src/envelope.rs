//! The envelopes of Connect and gRPC, incrementally: a byte of flags, four bytes of length (big-endian), the payload. Any
//! byte boundary; nothing is inflated and no message is understood here.
//!
//! A length above the limit is refused when it is read, before a byte of its payload is kept.

use bytes::{BufMut, Bytes, BytesMut};

/// The payload is compressed, each by itself, by the coding that the headers name.
pub const COMPRESSED: u8 = 0x01;
/// Connect: the payload is the end of the stream as JSON, and the last envelope.
pub const END_STREAM: u8 = 0x02;
/// Bytes before the payload.
pub const HEAD: usize = 5;

/// Which bits a protocol knows; another one is an error, for whoever sets it means something else by what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// [`COMPRESSED`] and [`END_STREAM`].
    Connect,
    /// [`COMPRESSED`] alone.
    Grpc,
}

impl Known {
    fn bits(self) -> u8 {
        match self {
            Known::Connect => COMPRESSED | END_STREAM,
            Known::Grpc => COMPRESSED,
        }
    }
}

/// One envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Its flags, of those that the protocol knows.
    pub flags: u8,
    /// Its payload, as it came.
    pub payload: Bytes,
}

impl Envelope {
    /// The payload is compressed.
    pub fn is_compressed(&self) -> bool {
        self.flags & COMPRESSED != 0
    }

    /// The payload is Connect's end of the stream.
    pub fn is_end(&self) -> bool {
        self.flags & END_STREAM != 0
    }
}

/// What cannot be an envelope. Offsets are of the envelope's first byte, in bytes from the start of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// It says to be longer than the limit.
    #[error("an envelope of {length} bytes, over the limit of {limit}, at byte {offset} of the stream")]
    TooLong {
        /// As it says.
        length: u32,
        /// In bytes.
        limit: usize,
        /// Where.
        offset: u64,
    },
    /// A flag that the protocol does not have.
    #[error(
        "an envelope with the flags {flags:#04x}, which the protocol does not have, at byte {offset} of the stream"
    )]
    Flags {
        /// The byte.
        flags: u8,
        /// Where.
        offset: u64,
    },
    /// The stream ended within it.
    #[error("the stream ended within the envelope at byte {offset}, {missing} bytes short")]
    Cut {
        /// Bytes that are missing, of the head if that is not whole.
        missing: usize,
        /// Where.
        offset: u64,
    },
}

/// Reads envelopes out of chunks. Memory is bounded by the limit and one chunk.
#[derive(Debug)]
pub struct Reader {
    /// The bytes from the current envelope's first on.
    held: Bytes,
    known: Known,
    limit: usize,
    offset: u64,
}

impl Reader {
    /// A reader that refuses payloads of more than `limit` bytes.
    pub fn new(known: Known, limit: usize) -> Self {
        Reader { held: Bytes::new(), known, limit, offset: 0 }
    }

    /// Adds bytes. Take all envelopes out with [`Reader::next_envelope`] before the next push, to keep memory bounded.
    pub fn push(&mut self, chunk: Bytes) {
        if self.held.is_empty() {
            self.held = chunk;
        } else if !chunk.is_empty() {
            let held = std::mem::take(&mut self.held);
            let mut joined = held.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
            joined.extend_from_slice(&chunk);
            self.held = joined.freeze();
        }
    }

    /// The next whole envelope, if its last byte has come. After an error the stream is of no more use.
    pub fn next_envelope(&mut self) -> Result<Option<Envelope>, Broken> {
        let Some((flags, length)) = self.head()? else { return Ok(None) };
        let end = HEAD + length;
        if self.held.len() < end {
            return Ok(None);
        }
        let mut payload = self.held.split_to(end);
        let _head = payload.split_to(HEAD);
        self.offset = self.offset.saturating_add(u64::try_from(end).unwrap_or(u64::MAX));
        Ok(Some(Envelope { flags, payload }))
    }

    /// At the end of the stream: nothing may be left.
    pub fn finish(&self) -> Result<(), Broken> {
        if self.held.is_empty() {
            return Ok(());
        }
        let whole = self.head()?.map_or(HEAD, |(_, length)| HEAD + length);
        Err(Broken::Cut { missing: whole.saturating_sub(self.held.len()), offset: self.offset })
    }

    /// Bytes held back because their envelope is not whole yet.
    pub fn pending(&self) -> usize {
        self.held.len()
    }

    /// Bytes of whole envelopes that were taken out.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Flags and length of the envelope at the start, checked as far as they have come.
    fn head(&self) -> Result<Option<(u8, usize)>, Broken> {
        let Some(&flags) = self.held.first() else { return Ok(None) };
        if flags & !self.known.bits() != 0 {
            return Err(Broken::Flags { flags, offset: self.offset });
        }
        let Some([_, length @ ..]) = self.held.first_chunk::<HEAD>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length);
        match usize::try_from(length) {
            Ok(bytes) if bytes <= self.limit => Ok(Some((flags, bytes))),
            Ok(_) | Err(_) => Err(Broken::TooLong { length, limit: self.limit, offset: self.offset }),
        }
    }
}

/// A payload in its envelope; `None` if it is longer than `limit` bytes, or than a length can say.
pub fn write(flags: u8, payload: &[u8], limit: usize) -> Option<Bytes> {
    let length = u32::try_from(payload.len()).ok().filter(|_| payload.len() <= limit)?;
    let mut out = BytesMut::with_capacity(HEAD + payload.len());
    out.put_u8(flags);
    out.put_u32(length);
    out.extend_from_slice(payload);
    Some(out.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMIT: usize = 1000;

    fn read(reader: &mut Reader, chunk: &[u8]) -> Result<Vec<Envelope>, Broken> {
        reader.push(Bytes::copy_from_slice(chunk));
        std::iter::from_fn(|| reader.next_envelope().transpose()).collect()
    }

    fn whole(known: Known, stream: &[u8]) -> Result<Vec<Envelope>, Broken> {
        let mut reader = Reader::new(known, LIMIT);
        let envelopes = read(&mut reader, stream)?;
        reader.finish()?;
        Ok(envelopes)
    }

    #[test]
    fn every_byte_split_gives_the_same_envelopes() {
        let stream = [&[0, 0, 0, 0, 2][..], b"hi", &[1, 0, 0, 0, 0], &[2, 0, 0, 0, 2], b"{}"].concat();
        let expected = whole(Known::Connect, &stream).unwrap();
        assert_eq!(expected.len(), 3);
        assert!(expected[1].is_compressed() && expected[1].payload.is_empty() && expected[2].is_end());
        for split in 0..=stream.len() {
            let mut reader = Reader::new(Known::Connect, LIMIT);
            let (before, after) = stream.split_at(split);
            let mut seen = read(&mut reader, before).unwrap();
            seen.extend(read(&mut reader, after).unwrap());
            assert_eq!((seen, reader.finish()), (expected.clone(), Ok(())), "split at {split}");
        }
    }

    #[test]
    fn a_length_over_the_limit_is_refused_before_its_payload_comes() {
        let head = [0, 0, 0, 0x03, 0xe9];
        let error = Broken::TooLong { length: 1001, limit: LIMIT, offset: 0 };
        assert_eq!(whole(Known::Grpc, &head), Err(error));
        let at_limit = write(0, &[7; LIMIT], LIMIT).unwrap();
        assert_eq!(whole(Known::Grpc, &at_limit).unwrap()[0].payload.len(), LIMIT);
        assert_eq!(write(0, &[7; LIMIT + 1], LIMIT), None);
    }

    #[test]
    fn a_flag_that_the_protocol_does_not_have_is_refused_with_the_first_byte() {
        assert_eq!(whole(Known::Connect, b"<html>"), Err(Broken::Flags { flags: b'<', offset: 0 }));
        let twice = [&[0, 0, 0, 0, 0][..], &[2]].concat();
        assert_eq!(whole(Known::Grpc, &twice), Err(Broken::Flags { flags: 2, offset: 5 }));
        assert_eq!(whole(Known::Connect, &twice), Err(Broken::Cut { missing: 4, offset: 5 }));
    }

    #[test]
    fn a_stream_that_ends_within_an_envelope_is_cut() {
        let stream = write(0, b"hello", LIMIT).unwrap();
        for kept in 1..stream.len() {
            let missing = if kept < HEAD { HEAD - kept } else { stream.len() - kept };
            assert_eq!(whole(Known::Connect, &stream[..kept]), Err(Broken::Cut { missing, offset: 0 }), "{kept} bytes");
        }
        assert_eq!(whole(Known::Connect, b""), Ok(Vec::new()));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_whatever_the_chunks(
            payloads in proptest::collection::vec((0..4u8, proptest::collection::vec(any::<u8>(), 0..200)), 0..12),
            cuts in proptest::collection::vec(1..64usize, 1..40),
        ) {
            let mut stream = Vec::new();
            for (flags, payload) in &payloads {
                stream.extend_from_slice(&write(*flags, payload, LIMIT).unwrap());
            }
            let mut reader = Reader::new(Known::Connect, LIMIT);
            let (mut rest, mut seen) = (&stream[..], Vec::new());
            let mut cuts = cuts.iter().cycle();
            while !rest.is_empty() {
                let (chunk, after) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
                seen.extend(read(&mut reader, chunk).unwrap());
                prop_assert!(reader.pending() < HEAD + LIMIT);
                rest = after;
            }
            prop_assert_eq!(reader.finish(), Ok(()));
            prop_assert_eq!(reader.offset(), u64::try_from(stream.len()).unwrap());
            let seen: Vec<_> = seen.into_iter().map(|one| (one.flags, one.payload.to_vec())).collect();
            prop_assert_eq!(seen, payloads);
        }

        #[test]
        fn no_bytes_whatever_break_the_reader(chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..20)) {
            let mut reader = Reader::new(Known::Connect, LIMIT);
            for chunk in chunks {
                if read(&mut reader, &chunk).is_err() {
                    break;
                }
                prop_assert!(reader.pending() < HEAD + LIMIT);
            }
            let _ = reader.finish();
        }
    }
}
