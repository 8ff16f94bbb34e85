//! An HTTP/1.1 client that is written by hand, so that a test holds its socket: it can stop at any byte, close, or reset.

use super::dialects::Pair;
use super::world::{BOUND, KEY};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::Path;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::client::TlsStream;
use turnkeep_base::Dialect;

/// How a client leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// An orderly close (under TLS with its goodbye).
    Fin,
    /// A TCP reset.
    Reset,
}

impl Leave {
    pub const BOTH: [Leave; 2] = [Leave::Fin, Leave::Reset];
}

enum Socket {
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    Unix(UnixStream),
}

impl Socket {
    fn io(&mut self) -> &mut (dyn Stream + Unpin + Send) {
        match self {
            Socket::Tcp(stream) => stream,
            Socket::Tls(stream) => stream.as_mut(),
            Socket::Unix(stream) => stream,
        }
    }
}

trait Stream: AsyncRead + AsyncWrite {}
impl<T: AsyncRead + AsyncWrite> Stream for T {}

/// One connection.
pub struct Client {
    socket: Socket,
    /// What was read and not yet used.
    unread: Vec<u8>,
}

/// A reply, read to its end.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(have, _)| have == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }
}

/// A request's bytes, with the test's key unless the headers hold another or an empty one.
pub fn request_bytes(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: gateway\r\n");
    if !headers.iter().any(|(name, _)| *name == "authorization" || *name == "x-api-key") {
        head += &format!("authorization: Bearer {KEY}\r\n");
    }
    for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
        head += &format!("{name}: {value}\r\n");
    }
    if method == "POST" {
        head += &format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
    }
    let mut bytes = (head + "\r\n").into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// A turn's request in the client's dialect.
pub fn turn_bytes(pair: Pair, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut all = headers.to_vec();
    if pair.client == Dialect::Messages {
        all.push(("anthropic-version", "2023-06-01"));
    }
    // What says which model and that it streams stands in Gemini's path. A body that is none stays as it is.
    if pair.client == Dialect::Gemini
        && let Ok(Value::Object(mut fields)) = serde_json::from_slice(body)
    {
        let model = fields.remove("model");
        let stream = fields.remove("stream").and_then(|stream| stream.as_bool()).unwrap_or(pair.stream);
        let path = Pair { stream, ..pair }.path_of(model.as_ref().and_then(Value::as_str).unwrap_or("m"));
        return request_bytes("POST", &path, &all, Value::Object(fields).to_string().as_bytes());
    }
    request_bytes("POST", &pair.path(), &all, body)
}

impl Client {
    pub async fn tcp(addr: SocketAddr) -> Client {
        let stream = TcpStream::connect(addr).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Client::plain(stream)
    }

    pub fn plain(stream: TcpStream) -> Client {
        Client { socket: Socket::Tcp(stream), unread: Vec::new() }
    }

    pub async fn unix(path: &Path) -> Client {
        Client { socket: Socket::Unix(UnixStream::connect(path).await.unwrap()), unread: Vec::new() }
    }

    pub fn tls(stream: TlsStream<TcpStream>) -> Client {
        Client { socket: Socket::Tls(Box::new(stream)), unread: Vec::new() }
    }

    pub async fn write(&mut self, bytes: &[u8]) {
        let io = self.socket.io();
        io.write_all(bytes).await.unwrap();
        io.flush().await.unwrap();
    }

    /// Sends a turn of the usual words.
    pub async fn ask(&mut self, pair: Pair) {
        self.ask_with(pair, &[], super::request(pair).to_string().as_bytes()).await;
    }

    /// Sends a turn.
    pub async fn ask_with(&mut self, pair: Pair, headers: &[(&str, &str)], body: &[u8]) {
        self.write(&turn_bytes(pair, headers, body)).await;
    }

    /// Sends a turn of the usual words and reads the whole reply.
    pub async fn turn(&mut self, pair: Pair) -> Reply {
        self.ask(pair).await;
        self.reply().await
    }

    /// Sends a turn of a conversation of its own, which nothing binds to an account, and reads the whole reply.
    pub async fn turn_of(&mut self, pair: Pair, conversation: usize) -> Reply {
        let conversation = conversation.to_string();
        let body = super::request(pair).to_string();
        self.ask_with(pair, &[("x-turnkeep-conversation", &conversation)], body.as_bytes()).await;
        self.reply().await
    }

    /// Reads more; false at the end.
    async fn more(&mut self) -> bool {
        let mut chunk = [0; 16 << 10];
        let read = self.socket.io().read(&mut chunk);
        let read = tokio::time::timeout(BOUND, read).await.expect("the gateway says something").unwrap();
        self.unread.extend_from_slice(&chunk[..read]);
        read > 0
    }

    /// Reads until these words have come; what was read stays to be read again.
    pub async fn until(&mut self, words: &str) {
        while !String::from_utf8_lossy(&self.unread).contains(words) {
            assert!(self.more().await, "{words:?} never came: {:?}", String::from_utf8_lossy(&self.unread));
        }
    }

    /// Reads so many bytes at most, of what comes next; 0 at the end.
    pub async fn sip(&mut self, most: usize) -> usize {
        let mut chunk = vec![0; most];
        let read = self.socket.io().read(&mut chunk);
        let read = tokio::time::timeout(BOUND, read).await.expect("the gateway says something").unwrap();
        self.unread.extend_from_slice(&chunk[..read]);
        read
    }

    /// Reads until the gateway closes the connection; a reset will do, too.
    pub async fn until_closed(&mut self) {
        let mut chunk = [0; 16 << 10];
        loop {
            let read = self.socket.io().read(&mut chunk);
            match tokio::time::timeout(BOUND, read).await.expect("the gateway closes") {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }

    async fn line(&mut self) -> String {
        loop {
            if let Some(end) = self.unread.windows(2).position(|pair| pair == b"\r\n") {
                let line = self.unread.drain(..end + 2).collect::<Vec<u8>>();
                return String::from_utf8(line[..end].to_vec()).unwrap();
            }
            assert!(self.more().await, "the connection ended in a head: {:?}", String::from_utf8_lossy(&self.unread));
        }
    }

    async fn take(&mut self, count: usize) -> Vec<u8> {
        while self.unread.len() < count {
            assert!(self.more().await, "the connection ended inside of a body");
        }
        self.unread.drain(..count).collect()
    }

    /// Reads a reply to its end, which must be as HTTP wants it.
    pub async fn reply(&mut self) -> Reply {
        let status = self.line().await;
        let status = status.split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line().await;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut reply = Reply { status, headers, body: Vec::new() };
        if let Some(length) = reply.header("content-length") {
            let length = length.parse().unwrap();
            reply.body = self.take(length).await;
            return reply;
        }
        assert_eq!(reply.header("transfer-encoding"), Some("chunked"), "{reply:?}");
        loop {
            let size = usize::from_str_radix(&self.line().await, 16).unwrap();
            let chunk = self.take(size).await;
            reply.body.extend(chunk);
            assert_eq!(self.line().await, "", "a chunk ends");
            if size == 0 {
                return reply;
            }
        }
    }

    /// Closes this side and keeps the socket, so that the gateway's answer to it can be seen.
    pub async fn fin(&mut self) {
        self.socket.io().shutdown().await.unwrap();
    }

    /// Leaves.
    pub async fn leave(mut self, how: Leave) {
        match how {
            Leave::Fin => self.fin().await,
            Leave::Reset => {
                let tcp = match &self.socket {
                    Socket::Tcp(stream) => stream,
                    Socket::Tls(stream) => stream.get_ref().0,
                    Socket::Unix(_) => panic!("Unix sockets know no reset"),
                };
                socket2::SockRef::from(tcp).set_linger(Some(std::time::Duration::ZERO)).unwrap();
            }
        }
    }
}
