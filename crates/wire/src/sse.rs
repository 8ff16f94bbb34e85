//! Server-sent events, incrementally: any byte boundary, any of the three line endings, comments, several `data` lines.
//!
//! A frame keeps its raw bytes, so a pass-through can forward it untouched; the raw frames of a stream put together are
//! the stream. This file does not know what the data means.

use bytes::{Bytes, BytesMut};
use memchr::memchr2;

/// One event, or one run of comments, up to and including its blank line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Every byte of it.
    pub raw: Bytes,
    /// The last `event` field.
    pub event: Option<Bytes>,
    /// The `data` fields, joined by line feeds; `None` for a frame of comments only.
    pub data: Option<Bytes>,
}

/// An event is longer than the reader's limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of more than {limit} bytes, at byte {offset} of the stream")]
pub struct TooLong {
    /// The limit, in bytes.
    pub limit: usize,
    /// Where the event starts, in bytes from the start of the stream.
    pub offset: u64,
}

/// Reads events out of chunks. Memory is bounded by the limit and one chunk.
#[derive(Debug)]
pub struct Reader {
    /// The bytes from the current event's start on.
    held: Bytes,
    /// Start of the line being read, relative to `held`.
    line: usize,
    /// How far the line's end has been looked for, relative to `held`.
    looked: usize,
    event: Option<(usize, usize)>,
    data: Vec<(usize, usize)>,
    limit: usize,
    offset: u64,
    at_start: bool,
}

impl Reader {
    /// A reader that refuses events of more than `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Reader {
            held: Bytes::new(),
            line: 0,
            looked: 0,
            event: None,
            data: Vec::new(),
            limit,
            offset: 0,
            at_start: true,
        }
    }

    /// Adds bytes. Take all frames out with [`Reader::next_frame`] before the next push, to keep memory bounded.
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

    /// The next whole frame, if its blank line has come.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, TooLong> {
        while let Some(next) = self.take_line(false) {
            if let Some(frame) = next {
                return self.checked(frame).map(Some);
            }
        }
        if self.held.len() > self.limit { Err(self.too_long(self.offset)) } else { Ok(None) }
    }

    /// At the end of the stream: what is left, as if its blank line had come. `None` when nothing is.
    pub fn finish(&mut self) -> Result<Option<Frame>, TooLong> {
        while let Some(next) = self.take_line(true) {
            if let Some(frame) = next {
                return self.checked(frame).map(Some);
            }
        }
        if self.held.is_empty() {
            return Ok(None);
        }
        let end = self.held.len();
        self.field(self.line, end);
        let frame = self.cut(end);
        self.checked(frame).map(Some)
    }

    /// Bytes held back because their event is not whole yet.
    pub fn pending(&self) -> usize {
        self.held.len()
    }

    /// A frame that was cut off what is held: it begins where the offset was before.
    fn checked(&self, frame: Frame) -> Result<Frame, TooLong> {
        let length = frame.raw.len();
        if length > self.limit { Err(self.too_long(self.offset.saturating_sub(length as u64))) } else { Ok(frame) }
    }

    fn too_long(&self, offset: u64) -> TooLong {
        TooLong { limit: self.limit, offset }
    }

    /// Reads one line: `None` when it is not whole, `Some(None)` for a field, `Some(Some(frame))` for the blank line.
    fn take_line(&mut self, ended: bool) -> Option<Option<Frame>> {
        let found = memchr2(b'\n', b'\r', &self.held[self.looked..]);
        let Some(found) = found else {
            self.looked = self.held.len();
            return None;
        };
        let end = self.looked + found;
        let next = if self.held[end] == b'\n' {
            end + 1
        } else {
            match self.held.get(end + 1) {
                Some(b'\n') => end + 2,
                Some(_) => end + 1,
                None if ended => end + 1,
                None => {
                    // A carriage return at the end of what has come: a line feed may follow.
                    self.looked = end;
                    return None;
                }
            }
        };
        let start = self.line;
        self.line = next;
        self.looked = next;
        if start == end {
            return Some(Some(self.cut(next)));
        }
        self.field(start, end);
        Some(None)
    }

    fn field(&mut self, start: usize, end: usize) {
        let mut start = start;
        if self.at_start {
            self.at_start = false;
            if self.held[start..end].starts_with(b"\xef\xbb\xbf") {
                start += 3;
            }
        }
        let line = &self.held[start..end];
        let value_at = |name: usize| match line.get(name) {
            None => Some(end),
            Some(b':') => Some(start + name + 1 + usize::from(line.get(name + 1) == Some(&b' '))),
            Some(_) => None,
        };
        if line.starts_with(b"data") {
            if let Some(value) = value_at(4) {
                self.data.push((value.min(end), end));
            }
        } else if line.starts_with(b"event")
            && let Some(value) = value_at(5)
        {
            self.event = Some((value.min(end), end));
        }
    }

    fn cut(&mut self, end: usize) -> Frame {
        let raw = self.held.split_to(end);
        let event = self.event.take().map(|(from, to)| raw.slice(from..to));
        let data = match self.data.as_slice() {
            [] => None,
            [(from, to)] => Some(raw.slice(*from..*to)),
            several => {
                let mut joined = BytesMut::new();
                for (at, (from, to)) in several.iter().enumerate() {
                    if at > 0 {
                        joined.extend_from_slice(b"\n");
                    }
                    joined.extend_from_slice(&raw[*from..*to]);
                }
                Some(joined.freeze())
            }
        };
        self.data.clear();
        self.line = 0;
        self.looked = 0;
        self.at_start = false;
        self.offset += end as u64;
        Frame { raw, event, data }
    }
}

/// Appends one event; `data` must hold no line break (JSON text never does).
pub fn write(out: &mut Vec<u8>, event: Option<&str>, data: &[u8]) {
    if let Some(event) = event {
        out.extend_from_slice(b"event: ");
        out.extend_from_slice(event.as_bytes());
        out.push(b'\n');
    }
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(data);
    out.extend_from_slice(b"\n\n");
}

/// Appends a comment, which clients ignore; line breaks in it become spaces.
pub fn write_comment(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(b": ");
    out.extend(text.bytes().map(|byte| if byte == b'\n' || byte == b'\r' { b' ' } else { byte }));
    out.extend_from_slice(b"\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(chunks: &[&[u8]]) -> Vec<Frame> {
        let mut reader = Reader::new(1 << 20);
        let mut frames = Vec::new();
        for chunk in chunks {
            reader.push(Bytes::copy_from_slice(chunk));
            while let Some(frame) = reader.next_frame().unwrap() {
                frames.push(frame);
            }
        }
        while let Some(frame) = reader.finish().unwrap() {
            frames.push(frame);
        }
        frames
    }

    fn text(bytes: &Option<Bytes>) -> Option<&str> {
        bytes.as_ref().map(|bytes| std::str::from_utf8(bytes).unwrap())
    }

    const SAMPLE: &[u8] =
        b"\xef\xbb\xbf: hi\n\nevent: a\ndata: 1\ndata:2\r\n\r\ndata\rid: 7\r\r\ndata:  x\n\ndata: [DONE]";

    #[test]
    fn every_split_of_a_stream_gives_the_same_frames() {
        let whole = read(&[SAMPLE]);
        let datas: Vec<_> = whole.iter().map(|frame| text(&frame.data)).collect();
        assert_eq!(datas, [None, Some("1\n2"), Some(""), Some(" x"), Some("[DONE]")]);
        assert_eq!(text(&whole[1].event), Some("a"));
        for at in 0..=SAMPLE.len() {
            let (left, right) = SAMPLE.split_at(at);
            let frames = read(&[left, right]);
            assert_eq!(
                frames.iter().map(|f| (&f.event, &f.data)).collect::<Vec<_>>(),
                whole.iter().map(|f| (&f.event, &f.data)).collect::<Vec<_>>(),
                "split at {at}"
            );
        }
        let single: Vec<&[u8]> = SAMPLE.chunks(1).collect();
        assert_eq!(
            read(&single).iter().map(|f| &f.data).collect::<Vec<_>>(),
            whole.iter().map(|f| &f.data).collect::<Vec<_>>()
        );
    }

    #[test]
    fn an_event_over_the_limit_is_refused_with_its_place() {
        let mut reader = Reader::new(16);
        reader.push(Bytes::from_static(b"data: 1\n\ndata: 0123456789abcdef"));
        assert!(reader.next_frame().unwrap().is_some());
        assert_eq!(reader.next_frame(), Err(TooLong { limit: 16, offset: 9 }));
    }

    #[test]
    fn the_place_of_a_long_event_is_its_first_byte_however_much_of_it_has_come() {
        let stream = b"data: 1\n\ndata: 0123456789abcdef\n\ndata: 2\n\n";
        for cut in [17, 25, 26, stream.len()] {
            let mut reader = Reader::new(16);
            let mut refused = None;
            for chunk in stream.chunks(cut) {
                reader.push(Bytes::copy_from_slice(chunk));
                while refused.is_none() {
                    match reader.next_frame() {
                        Ok(Some(_)) => {}
                        Ok(None) => break,
                        Err(long) => refused = Some(long),
                    }
                }
            }
            assert_eq!(refused, Some(TooLong { limit: 16, offset: 9 }), "in chunks of {cut}");
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        let mut out = Vec::new();
        write_comment(&mut out, "a\nb");
        write(&mut out, Some("message_stop"), b"{}");
        let frames = read(&[&out]);
        assert_eq!(
            (frames.len(), text(&frames[1].event), text(&frames[1].data)),
            (2, Some("message_stop"), Some("{}"))
        );
    }

    proptest! {
        #[test]
        fn the_raw_frames_put_together_are_the_stream(bytes in prop::collection::vec(
            prop::sample::select(vec![b'a', b'd', b':', b' ', b'\n', b'\r', b'e', 0xff]), 0..200), cut in 1usize..9) {
            let chunks: Vec<&[u8]> = bytes.chunks(cut).collect();
            let joined: Vec<u8> = read(&chunks).iter().flat_map(|frame| frame.raw.to_vec()).collect();
            prop_assert_eq!(joined, bytes);
        }
    }
}
