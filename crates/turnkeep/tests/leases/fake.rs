//! An HTTP/1.1 server that is written by hand: it answers what it is told to, notices at once when its client leaves, and
//! shares no code with the gateway.

use futures_util::future::BoxFuture;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// A request, read whole.
#[derive(Clone, Debug)]
pub struct Asked {
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(have, _)| have == name).map(|(_, value)| value.as_str())
    }

    /// The account whose credential came with it: `a` for `secret-a`.
    pub fn account(&self) -> String {
        let bearer = self.header("authorization").and_then(|value| value.strip_prefix("Bearer secret-"));
        bearer.unwrap_or_default().to_owned()
    }
}

/// What is answered.
pub enum Answer {
    /// A document.
    Json(u16, Value),
    /// A message of 200, of this type.
    Bytes(&'static str, Vec<u8>),
    /// A body as long as its sender lives. The sender is told of a client that leaves: nobody receives any more.
    Stream(&'static str, mpsc::Receiver<Vec<u8>>),
    /// Nothing: the connection ends.
    Close,
}

/// What answers.
pub trait Answers: Send + Sync + 'static {
    /// Dropped when the client leaves.
    fn answer(self: Arc<Self>, asked: Asked) -> BoxFuture<'static, Answer>;
}

/// A server, until it is dropped.
pub struct Server {
    pub addr: SocketAddr,
    accepting: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Server {
    /// At a free port, or `HOST:PORT`.
    pub async fn start(at: &str, answers: Arc<impl Answers>) -> Server {
        let listener = TcpListener::bind(at).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let answers = answers.clone();
                tokio::spawn(async move { serve(stream, answers).await });
            }
        });
        Server { addr, accepting }
    }
}

/// Serves one connection, until either side has had enough.
async fn serve(mut stream: TcpStream, answers: Arc<impl Answers>) {
    let _ = stream.set_nodelay(true);
    let mut unread = Vec::new();
    while let Some(asked) = read(&mut stream, &mut unread).await {
        let answer = tokio::select! {
            answer = answers.clone().answer(asked) => answer,
            () = until_left(&mut stream, &mut unread) => return,
        };
        let written = match answer {
            Answer::Close => return,
            Answer::Bytes(kind, body) => {
                let length = body.len();
                let head = format!("HTTP/1.1 200 x\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n");
                stream.write_all(&[head.as_bytes(), &body].concat()).await
            }
            Answer::Json(status, body) => {
                let body = body.to_string();
                let length = body.len();
                let head = format!(
                    "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
                );
                stream.write_all((head + &body).as_bytes()).await
            }
            Answer::Stream(kind, frames) => write_stream(&mut stream, &mut unread, kind, frames).await,
        };
        if written.is_err() {
            return;
        }
    }
}

async fn write_stream(
    stream: &mut TcpStream,
    unread: &mut Vec<u8>,
    kind: &str,
    mut frames: mpsc::Receiver<Vec<u8>>,
) -> std::io::Result<()> {
    let head = format!("HTTP/1.1 200 x\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    loop {
        let frame = tokio::select! {
            frame = frames.recv() => frame,
            () = until_left(stream, unread) => return Err(std::io::ErrorKind::UnexpectedEof.into()),
        };
        let Some(frame) = frame else { return stream.write_all(b"0\r\n\r\n").await };
        let mut chunk = format!("{:x}\r\n", frame.len()).into_bytes();
        chunk.extend(frame);
        chunk.extend(b"\r\n");
        stream.write_all(&chunk).await?;
    }
}

/// Until the peer has closed or reset its side.
async fn until_left(stream: &mut TcpStream, unread: &mut Vec<u8>) {
    while more(stream, unread).await {}
}

async fn more(stream: &mut TcpStream, unread: &mut Vec<u8>) -> bool {
    let mut chunk = [0; 4096];
    match stream.read(&mut chunk).await {
        Ok(0) | Err(_) => false,
        Ok(read) => {
            unread.extend_from_slice(&chunk[..read]);
            true
        }
    }
}

async fn read(stream: &mut TcpStream, unread: &mut Vec<u8>) -> Option<Asked> {
    let end = loop {
        if let Some(end) = unread.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if !more(stream, unread).await {
            return None;
        }
    };
    let head: Vec<u8> = unread.drain(..end + 4).collect();
    let head = String::from_utf8(head).unwrap();
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    // The method says nothing that the path does not.
    let path = first.nth(1)?.to_owned();
    let headers = lines.filter_map(|line| line.split_once(':'));
    let headers: Vec<_> = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())).collect();
    let mut asked = Asked { path, headers, body: Vec::new() };
    if let Some(length) = asked.header("content-length").map(|length| length.parse::<usize>().unwrap()) {
        while unread.len() < length {
            if !more(stream, unread).await {
                return None;
            }
        }
        asked.body = unread.drain(..length).collect();
    } else if asked.header("transfer-encoding") == Some("chunked") {
        asked.body = read_chunks(stream, unread).await?;
    }
    Some(asked)
}

async fn read_chunks(stream: &mut TcpStream, unread: &mut Vec<u8>) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = loop {
            if let Some(end) = unread.windows(2).position(|two| two == b"\r\n") {
                break unread.drain(..end + 2).collect::<Vec<u8>>();
            }
            if !more(stream, unread).await {
                return None;
            }
        };
        let size = usize::from_str_radix(std::str::from_utf8(&line[..line.len() - 2]).unwrap(), 16).unwrap();
        while unread.len() < size + 2 {
            if !more(stream, unread).await {
                return None;
            }
        }
        let chunk: Vec<u8> = unread.drain(..size + 2).collect();
        body.extend_from_slice(&chunk[..size]);
        if size == 0 {
            return Some(body);
        }
    }
}
