//! The heads of HTTP/2 frames in one direction of a connection, read as the bytes pass: where a stream ends, and which
//! one is reset. It checks nothing and keeps no payload; `h2` does the protocol.

/// The client's first bytes.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const HEAD: usize = 9;

/// What a frame did to its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The last byte of the frame that ends this side of the stream has passed.
    Ended(u32),
    /// The stream was reset.
    Reset(u32),
}

/// One direction's reader.
#[derive(Debug)]
pub struct Frames {
    /// Bytes to pass over before the next head: the preface, or the rest of a payload.
    skip: usize,
    head: [u8; HEAD],
    have: usize,
    /// What the frame whose payload is passing does at its end.
    then: Option<Seen>,
    /// The stream whose headers end it, while they go on in further frames.
    ends_with_headers: Option<u32>,
}

impl Frames {
    /// What a server sends: frames from the first byte.
    pub fn of_server() -> Self {
        Frames { skip: 0, head: [0; HEAD], have: 0, then: None, ends_with_headers: None }
    }

    /// What a client sends: the preface, then frames.
    pub fn of_client() -> Self {
        Frames { skip: PREFACE.len(), ..Frames::of_server() }
    }

    /// The next bytes, in pieces of any size.
    pub fn pass(&mut self, mut bytes: &[u8], mut seen: impl FnMut(Seen)) {
        while !bytes.is_empty() {
            if self.skip > 0 {
                let step = self.skip.min(bytes.len());
                self.skip -= step;
                bytes = &bytes[step..];
            } else {
                let step = (HEAD - self.have).min(bytes.len());
                self.head[self.have..self.have + step].copy_from_slice(&bytes[..step]);
                self.have += step;
                bytes = &bytes[step..];
                if self.have == HEAD {
                    self.have = 0;
                    self.begin();
                }
            }
            if self.skip == 0
                && let Some(done) = self.then.take()
            {
                seen(done);
            }
        }
    }

    fn begin(&mut self) {
        let [l0, l1, l2, kind, flags, s0, s1, s2, s3] = self.head;
        self.skip = u32::from_be_bytes([0, l0, l1, l2]) as usize;
        let stream = u32::from_be_bytes([s0 & 0x7f, s1, s2, s3]);
        let (ends, headers_end) = (flags & END_STREAM != 0, flags & END_HEADERS != 0);
        match kind {
            DATA if ends => self.then = Some(Seen::Ended(stream)),
            HEADERS if ends && headers_end => self.then = Some(Seen::Ended(stream)),
            HEADERS if ends => self.ends_with_headers = Some(stream),
            CONTINUATION if headers_end => self.then = self.ends_with_headers.take().map(Seen::Ended),
            RST_STREAM => self.then = Some(Seen::Reset(stream)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let mut out = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        out.extend([kind, flags]);
        out.extend(stream.to_be_bytes());
        out.extend(payload);
        out
    }

    fn conversation() -> (Vec<u8>, Vec<(usize, Seen)>) {
        let parts: [(Vec<u8>, Option<Seen>); 11] = [
            (frame(4, 0, 0, &[0; 12]), None),
            (frame(HEADERS, END_HEADERS, 1, b"head"), None),
            (frame(DATA, 0, 1, &[END_STREAM; 300]), None),
            (frame(DATA, END_STREAM, 1, b"last"), Some(Seen::Ended(1))),
            (frame(DATA, END_STREAM, 3, b""), Some(Seen::Ended(3))),
            (frame(HEADERS, END_STREAM | END_HEADERS, 0x8000_0005, b"h"), Some(Seen::Ended(5))),
            (frame(HEADERS, END_STREAM, 7, b"begins"), None),
            (frame(CONTINUATION, 0, 7, b"goes on"), None),
            (frame(CONTINUATION, END_HEADERS, 7, b""), Some(Seen::Ended(7))),
            (frame(RST_STREAM, 0, 9, &[0, 0, 0, 8]), Some(Seen::Reset(9))),
            (frame(CONTINUATION, END_HEADERS, 11, b"of other headers"), None),
        ];
        let (mut bytes, mut events) = (Vec::new(), Vec::new());
        for (part, seen) in parts {
            bytes.extend(part);
            events.extend(seen.map(|seen| (bytes.len(), seen)));
        }
        (bytes, events)
    }

    #[test]
    fn ends_and_resets_are_seen_at_their_last_byte_at_every_split() {
        let (bytes, expected) = conversation();
        for client in [false, true] {
            let preface = if client { PREFACE } else { b"" };
            let all = [preface, &bytes].concat();
            let expected: Vec<_> = expected.iter().map(|(at, seen)| (at + preface.len(), *seen)).collect();
            for split in 0..=all.len() {
                let mut frames = if client { Frames::of_client() } else { Frames::of_server() };
                let (first, second) = all.split_at(split);
                let (mut early, mut late) = (Vec::new(), Vec::new());
                frames.pass(first, |seen| early.push(seen));
                frames.pass(second, |seen| late.push(seen));
                let due = expected.iter().filter(|(at, _)| *at <= split).count();
                assert_eq!(early, expected[..due].iter().map(|(_, seen)| *seen).collect::<Vec<_>>(), "split {split}");
                assert_eq!(late, expected[due..].iter().map(|(_, seen)| *seen).collect::<Vec<_>>(), "split {split}");
            }
            let mut frames = if client { Frames::of_client() } else { Frames::of_server() };
            let mut single = Vec::new();
            for (at, byte) in all.iter().enumerate() {
                frames.pass(&[*byte], |seen| single.push((at + 1, seen)));
            }
            assert_eq!(single, expected, "byte by byte");
        }
    }
}
