//! Lines out of bytes that come in any pieces. Sans-IO.

use bytes::{Bytes, BytesMut};

/// Bytes of one line.
pub const MAX_LINE: usize = 4 << 20;

/// A line of more than [`MAX_LINE`] bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// What has been read and is not a line yet.
#[derive(Debug, Default)]
pub(super) struct Lines {
    buffer: BytesMut,
    /// How far no end of a line was found.
    searched: usize,
}

impl Lines {
    /// Takes what was read.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole line that is not empty, without its end.
    pub(super) fn next(&mut self) -> Result<Option<Bytes>, TooLong> {
        loop {
            let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
            let Some(end) = memchr::memchr(b'\n', unsearched).map(|at| at + self.searched) else {
                self.searched = self.buffer.len();
                return if self.buffer.len() > MAX_LINE { Err(TooLong) } else { Ok(None) };
            };
            if end > MAX_LINE {
                return Err(TooLong);
            }
            let mut line = self.buffer.split_to(end + 1);
            self.searched = 0;
            line.truncate(line.trim_ascii_end().len());
            if !line.is_empty() {
                return Ok(Some(line.freeze()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(lines: &mut Lines) -> Vec<String> {
        std::iter::from_fn(|| lines.next().expect("short lines"))
            .map(|line| String::from_utf8(line.to_vec()).expect("text"))
            .collect()
    }

    #[test]
    fn lines_are_the_same_however_their_bytes_are_cut_even_within_a_character() {
        let text = "{\"a\":\"é\u{1f600}\"}\r\n\n  \n{\"b\":1}\nrest".as_bytes();
        for cut in 0..=text.len() {
            let mut lines = Lines::default();
            let mut got = Vec::new();
            for piece in [&text[..cut], &text[cut..]] {
                lines.push(piece);
                got.extend(all(&mut lines));
            }
            assert_eq!(got, ["{\"a\":\"é\u{1f600}\"}", "{\"b\":1}"], "cut at {cut}");
        }
    }

    #[test]
    fn a_line_above_the_bound_is_refused_with_and_without_its_end() {
        let long = vec![b'x'; MAX_LINE + 1];
        for end in [&b""[..], b"\n"] {
            let mut lines = Lines::default();
            lines.push(&long);
            lines.push(end);
            assert_eq!(lines.next(), Err(TooLong));
        }
        let mut lines = Lines::default();
        lines.push(&long[1..]);
        assert_eq!(lines.next(), Ok(None));
        lines.push(b"\n");
        assert_eq!(lines.next().map(|line| line.map(|line| line.len())), Ok(Some(MAX_LINE)));
    }
}
