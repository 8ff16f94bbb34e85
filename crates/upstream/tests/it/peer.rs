//! The other side: raw servers that a test plays by hand, and calls to make.

use http::HeaderMap;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use turnkeep_base::{AccountId, Fault, Secret};
use turnkeep_engine::ports::{Answer, Call, Upstream as _};
use turnkeep_upstream::{Egress, Endpoint, EndpointSpec, Kind};

pub const SECRET: &str = "sk-test-hunter2";
pub const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";

pub async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let authority = listener.local_addr().unwrap().to_string();
    (listener, authority)
}

pub fn spec(base_url: impl Into<String>) -> EndpointSpec {
    EndpointSpec { egress: Egress::Loopback, ..EndpointSpec::new("lab", Kind::OpenAi, base_url) }
}

pub fn plain(authority: &str) -> Arc<Endpoint> {
    Arc::new(Endpoint::new(spec(format!("http://{authority}/v1"))).unwrap())
}

pub fn call() -> Call {
    call_for("one")
}

pub fn call_for(account: &str) -> Call {
    Call {
        method: http::Method::POST,
        path: "/chat/completions".into(),
        headers: HeaderMap::new(),
        body: "{\"a\":1}".into(),
        account: AccountId { upstream: "lab".into(), account: account.into() },
        secret: Secret::new(SECRET.into()),
    }
}

/// A call on its way.
pub type Sending = tokio::task::JoinHandle<Result<Answer, Fault>>;

/// Sends one call in the background.
pub fn sending(endpoint: &Arc<Endpoint>) -> Sending {
    let endpoint = Arc::clone(endpoint);
    tokio::spawn(async move { endpoint.send(call()).await })
}

/// Sends one call and reads the answer to its end.
pub async fn whole(endpoint: &Endpoint) -> Result<Vec<u8>, Fault> {
    rest(&mut endpoint.send(call()).await?).await
}

pub async fn rest(answer: &mut Answer) -> Result<Vec<u8>, Fault> {
    let mut all = Vec::new();
    while let Some(chunk) = next(answer).await {
        all.extend_from_slice(&chunk?);
    }
    Ok(all)
}

pub async fn next(answer: &mut Answer) -> Option<Result<bytes::Bytes, Fault>> {
    std::future::poll_fn(|cx| answer.body.poll_chunk(cx)).await
}

/// Reads one request: its head as text, and its body.
pub async fn request(stream: &mut (impl AsyncRead + Unpin)) -> (String, Vec<u8>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |n| n.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    (head, body)
}

/// Answers one request.
pub async fn serve(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), answer: &[u8]) -> String {
    let (head, _) = request(stream).await;
    stream.write_all(answer).await.unwrap();
    stream.flush().await.unwrap();
    head
}

/// Waits until the other side has closed; true if it did so with a FIN or RST.
pub async fn closed(stream: &mut TcpStream) {
    let mut rest = [0; 64];
    while !matches!(stream.read(&mut rest).await, Ok(0) | Err(_)) {}
}

/// Closes with a RST.
pub fn reset(stream: TcpStream) {
    socket2::SockRef::from(&stream).set_linger(Some(std::time::Duration::ZERO)).unwrap();
    drop(stream);
}
