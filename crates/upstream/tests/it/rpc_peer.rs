//! Calls over Connect and gRPC, and what servers say in them.

use crate::peer;
use bytes::Bytes;
use http::HeaderMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use turnkeep_base::{AccountId, FaultKind, Phase, Secret};
use turnkeep_upstream::Egress;
use turnkeep_upstream::rpc::{Codec, Protocol, Rpc, RpcCall, RpcFault, RpcReply, RpcSpec, RpcStream, Told};
use turnkeep_wire::envelope;

pub const CONNECT_PROTO: &str = "application/connect+proto";

pub fn spec(base_url: impl Into<String>) -> RpcSpec {
    RpcSpec { egress: Egress::Loopback, ..RpcSpec::new("lab", base_url) }
}

pub fn call() -> RpcCall {
    RpcCall {
        method: "/test.v1.TestService/Do",
        message: Bytes::from_static(b"ask"),
        account: AccountId { upstream: "lab".into(), account: "one".into() },
        secret: Secret::new(peer::SECRET.into()),
        time_left: Some(Duration::from_secs(600)),
        metadata: HeaderMap::new(),
        stateful: false,
        continued: false,
    }
}

/// An envelope of any flags.
pub fn envelope(flags: u8, payload: &[u8]) -> Vec<u8> {
    envelope::write(flags, payload, usize::MAX).unwrap().to_vec()
}

pub fn end(json: &str) -> Vec<u8> {
    envelope(envelope::END_STREAM, json.as_bytes())
}

/// A whole HTTP/1.1 answer.
pub fn answer(status: u16, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// The answer of a stream.
pub fn stream(envelopes: &[Vec<u8>]) -> Vec<u8> {
    answer(200, &format!("content-type: {CONNECT_PROTO}\r\n"), &envelopes.concat())
}

/// What came of a stream: its messages, and how it ended.
pub struct Came {
    pub messages: Vec<Bytes>,
    pub end: Result<HeaderMap, RpcFault>,
}

impl Came {
    pub fn fault(&self) -> (FaultKind, Phase, Told) {
        let error = self.end.as_ref().unwrap_err();
        (error.fault.kind, error.fault.phase, error.told)
    }

    pub fn texts(&self) -> Vec<&str> {
        self.messages.iter().map(|message| std::str::from_utf8(message).unwrap()).collect()
    }
}

pub async fn read(opened: Result<RpcStream, RpcFault>) -> Came {
    let mut messages = Vec::new();
    let mut stream = match opened {
        Ok(stream) => stream,
        Err(fault) => return Came { messages, end: Err(fault) },
    };
    loop {
        match stream.next().await {
            Some(Ok(message)) => messages.push(message),
            Some(Err(fault)) => return Came { messages, end: Err(fault) },
            None => return Came { messages, end: Ok(stream.trailers().clone()) },
        }
    }
}

/// A server that a test plays by hand over HTTP/1.1, and its client.
pub struct Fake {
    pub listener: TcpListener,
    pub rpc: Arc<Rpc>,
}

impl Fake {
    pub async fn new() -> Fake {
        Fake::of(Codec::Proto).await
    }

    pub async fn of(codec: Codec) -> Fake {
        let (listener, authority) = peer::listen().await;
        let spec = RpcSpec { codec, protocol: Protocol::Connect, ..spec(format!("http://{authority}")) };
        Fake { listener, rpc: Arc::new(Rpc::new(&spec).unwrap()) }
    }

    pub async fn accept(&self) -> TcpStream {
        self.listener.accept().await.unwrap().0
    }

    /// One streaming call that is answered by these bytes, after which the connection is closed.
    pub async fn streamed(&self, call: RpcCall, answer: &[u8]) -> Came {
        let rpc = Arc::clone(&self.rpc);
        let sending = tokio::spawn(async move { read(rpc.stream(call).await).await });
        let mut stream = self.accept().await;
        peer::request(&mut stream).await;
        // The client may have closed by then.
        let _ = stream.write_all(answer).await;
        drop(stream);
        sending.await.unwrap()
    }

    /// One unary call, likewise.
    pub async fn unary(&self, call: RpcCall, answer: &[u8]) -> Result<RpcReply, RpcFault> {
        let rpc = Arc::clone(&self.rpc);
        let sending = tokio::spawn(async move { rpc.unary(call).await });
        let mut stream = self.accept().await;
        peer::request(&mut stream).await;
        let _ = stream.write_all(answer).await;
        drop(stream);
        sending.await.unwrap()
    }
}

/// Waits until a connection has come back.
pub async fn idle(rpc: &Rpc) {
    while rpc.idle_connections() == 0 {
        tokio::task::yield_now().await;
    }
}

/// The fault of a streaming call that is answered so.
pub async fn fault_of(answer: &[u8]) -> (FaultKind, Phase, Told) {
    Fake::new().await.streamed(call(), answer).await.fault()
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}
