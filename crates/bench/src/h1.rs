//! The least HTTP/1.1 that the stub and the load generator need: one keep-alive connection, message heads, and bodies
//! framed by length, by chunks or by the connection's end. It shares a core with the thing it measures, so it copies
//! and allocates almost nothing. It is no general client: no trailers kept, no 1xx answers, no pipelining.

use bytes::{Buf, BytesMut};
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// No peer under test sends a head near this size; past it the other side is not speaking HTTP.
const MAX_HEAD: usize = 64 * 1024;
/// How much room each read offers.
const READ: usize = 32 * 1024;

/// How a message's body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// After this many bytes.
    Length(usize),
    /// With the empty chunk.
    Chunked,
    /// When the connection closes (answers without a length).
    UntilClose,
}

/// What a head says about its message; the head's own bytes are in `Conn::head_bytes` until the body is read.
#[derive(Debug, Clone, Copy)]
pub struct Head {
    /// Bytes of the head, the empty line included.
    pub len: usize,
    /// The status of an answer, 0 for a request.
    pub status: u16,
    /// How the body ends.
    pub framing: Framing,
    /// The sender closes after this message.
    pub close: bool,
}

/// One connection and what was read ahead from it.
pub struct Conn {
    stream: TcpStream,
    buf: BytesMut,
}

impl Conn {
    /// Takes over a connected stream; turns Nagle's delay off, or every small write would be measured with it.
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { stream, buf: BytesMut::with_capacity(READ) })
    }

    /// Writes all of `bytes` as they are.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// The next message's head; `None` when the other side closed between messages.
    pub async fn head(&mut self) -> io::Result<Option<Head>> {
        let mut searched = 0;
        loop {
            if let Some(at) = memchr::memmem::find(&self.buf[searched..], b"\r\n\r\n") {
                return parse_head(&self.buf, searched + at + 4).map(Some);
            }
            searched = self.buf.len().saturating_sub(3);
            if self.buf.len() > MAX_HEAD {
                return Err(bad("head too large"));
            }
            if self.fill().await? == 0 {
                return if self.buf.is_empty() { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
            }
        }
    }

    /// The bytes of a head just parsed, before its body is read.
    pub fn head_bytes(&self, head: &Head) -> &[u8] {
        self.buf.get(..head.len).unwrap_or_default()
    }

    /// Reads the body that follows `head`, handing its pieces to `piece` as they arrive. A piece is whatever one read
    /// held, so it may end in the middle of an event. `piece` returns false to stop early (the connection is then
    /// unusable and to be dropped); returns whether the body was read to its end.
    pub async fn body(&mut self, head: &Head, mut piece: impl FnMut(&[u8]) -> bool) -> io::Result<bool> {
        self.buf.advance(head.len);
        match head.framing {
            Framing::Length(mut left) => {
                while left > 0 {
                    if self.buf.is_empty() {
                        self.must_fill().await?;
                    }
                    let take = left.min(self.buf.len());
                    if !piece(&self.buf[..take]) {
                        return Ok(false);
                    }
                    self.buf.advance(take);
                    left -= take;
                }
                Ok(true)
            }
            Framing::Chunked => self.chunked(piece).await,
            Framing::UntilClose => loop {
                if !self.buf.is_empty() && !piece(&self.buf) {
                    return Ok(false);
                }
                self.buf.clear();
                if self.fill().await? == 0 {
                    return Ok(true);
                }
            },
        }
    }

    async fn chunked(&mut self, mut piece: impl FnMut(&[u8]) -> bool) -> io::Result<bool> {
        loop {
            let line = self.line_end().await?;
            let size = hex(&self.buf[..line])?;
            self.buf.advance(line + 2);
            if size == 0 {
                // Trailers, if any, end with an empty line.
                loop {
                    let end = self.line_end().await?;
                    self.buf.advance(end + 2);
                    if end == 0 {
                        return Ok(true);
                    }
                }
            }
            let mut left = size;
            while left > 0 {
                if self.buf.is_empty() {
                    self.must_fill().await?;
                }
                let take = left.min(self.buf.len());
                if !piece(&self.buf[..take]) {
                    return Ok(false);
                }
                self.buf.advance(take);
                left -= take;
            }
            while self.buf.len() < 2 {
                self.must_fill().await?;
            }
            self.buf.advance(2);
        }
    }

    /// The position of the next CRLF.
    async fn line_end(&mut self) -> io::Result<usize> {
        loop {
            if let Some(at) = memchr::memmem::find(&self.buf, b"\r\n") {
                return Ok(at);
            }
            if self.buf.len() > MAX_HEAD {
                return Err(bad("line too long"));
            }
            self.must_fill().await?;
        }
    }

    async fn must_fill(&mut self) -> io::Result<()> {
        if self.fill().await? == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    async fn fill(&mut self) -> io::Result<usize> {
        self.buf.reserve(READ);
        self.stream.read_buf(&mut self.buf).await
    }

    /// Gives back read-ahead room, for a connection that will be held open and idle among thousands.
    pub fn shrink(&mut self) {
        self.buf = BytesMut::from(&self.buf[..]);
    }

    /// Reads what is there, and no more than so much, without waiting; false when the other side has closed.
    pub fn sip(&mut self, most: usize) -> bool {
        let mut scrap = [0u8; 4096];
        match self.stream.try_read(&mut scrap[..most.min(4096)]) {
            Ok(0) => false,
            Ok(_) => true,
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        }
    }

    /// Resolves when the other side closes; whatever it still sends is thrown away.
    pub async fn closed(&mut self) {
        let mut scrap = [0u8; 512];
        loop {
            match self.stream.read(&mut scrap).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }
}

fn bad(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn hex(line: &[u8]) -> io::Result<usize> {
    let digits = line.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
    std::str::from_utf8(digits)
        .ok()
        .and_then(|text| usize::from_str_radix(text, 16).ok())
        .ok_or_else(|| bad("not a chunk size"))
}

fn parse_head(buf: &[u8], len: usize) -> io::Result<Head> {
    let mut lines = buf[..len - 4].split(|b| *b == b'\n').map(<[u8]>::trim_ascii);
    let first = lines.next().unwrap_or_default();
    let is_answer = first.starts_with(b"HTTP/1.");
    let status = if is_answer {
        first
            .get(9..12)
            .and_then(|d| std::str::from_utf8(d).ok())
            .and_then(|d| d.parse().ok())
            .ok_or(bad("no status"))?
    } else {
        0
    };
    let mut framing =
        if is_answer && status != 204 && status != 304 { Framing::UntilClose } else { Framing::Length(0) };
    let mut close = false;
    for line in lines {
        let Some(colon) = memchr::memchr(b':', line) else { continue };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = std::str::from_utf8(value).ok().and_then(|v| v.parse().ok()).ok_or(bad("bad length"))?;
            if framing != Framing::Chunked {
                framing = Framing::Length(length);
            }
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") && value.eq_ignore_ascii_case(b"chunked") {
            framing = Framing::Chunked;
        } else if name.eq_ignore_ascii_case(b"connection") && value.eq_ignore_ascii_case(b"close") {
            close = true;
        }
    }
    Ok(Head { len, status, framing, close: close || framing == Framing::UntilClose })
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read_back(raw: &'static [u8]) -> (Head, Vec<u8>) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            for byte in raw.chunks(3) {
                stream.write_all(byte).await.unwrap();
                tokio::task::yield_now().await;
            }
        });
        let mut conn = Conn::new(TcpStream::connect(addr).await.unwrap()).unwrap();
        let head = conn.head().await.unwrap().unwrap();
        let mut body = Vec::new();
        assert!(
            conn.body(&head, |piece| {
                body.extend_from_slice(piece);
                true
            })
            .await
            .unwrap()
        );
        server.await.unwrap();
        (head, body)
    }

    #[tokio::test]
    async fn bodies_of_every_framing_come_out_whole_however_they_are_split() {
        let (head, body) = read_back(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").await;
        assert_eq!((head.status, head.close, body.as_slice()), (200, false, b"hello".as_slice()));
        let (_, body) = read_back(
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n5;x=1\r\nhello\r\nA\r\n, it is me\r\n0\r\n\r\n",
        )
        .await;
        assert_eq!(body, b"hello, it is me");
        let (head, body) = read_back(b"HTTP/1.1 502 Bad\r\nconnection: close\r\n\r\ngone").await;
        assert_eq!((head.status, head.close, body.as_slice()), (502, true, b"gone".as_slice()));
    }
}
