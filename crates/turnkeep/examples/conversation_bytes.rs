//! What a long conversation brings to an upstream that keeps it: `cargo run --release -p turnkeep --example
//! conversation_bytes`.
//!
//! A client that sends its whole history with each turn talks through a whole gateway to the lab's Cascade server, once with
//! `reuse = "prefer"` and once with `"off"`. Between gateway and server stands a relay that counts every byte to the server:
//! heads, framing and all calls of a turn. A line is a protocol and its figures between tabs: turns, bytes of the history's
//! texts at its end, bytes with the whole history in each turn, bytes with the conversation gone on with.
//! `turnkeep-bench conversations` reads them.

#![allow(clippy::print_stdout)] // its output is what it is for

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use turnkeep::config::Config;
use turnkeep::wiring;
use turnkeep_http::Bound;
use turnkeep_lab::{Lab, LabOptions};

const TURNS: u64 = 60;
/// Bytes of all texts at the end, at least.
const HISTORY: usize = 200 << 10;
const KEY: &str = "the-key-of-the-measurement";

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// What one conversation came to.
struct Carried {
    /// Bytes to the server.
    sent: u64,
    /// Bytes of all texts.
    history: usize,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    for protocol in ["connect", "grpc"] {
        let replayed = carried(protocol, "off", TURNS).await?;
        let gone_on_with = carried(protocol, "prefer", 1).await?;
        if replayed.history != gone_on_with.history {
            return Err("the two conversations are not the same".into());
        }
        println!("bytes\t{protocol}\t{TURNS}\t{}\t{}\t{}", replayed.history, replayed.sent, gone_on_with.sent);
    }
    Ok(())
}

/// Holds the conversation, for which the server must have begun so many of its own.
async fn carried(protocol: &str, reuse: &str, begun: u64) -> Outcome<Carried> {
    let lab = Lab::start(LabOptions::default()).await?;
    let (relay, sent) = relay(lab.addr()).await?;
    let folder = tempfile::tempdir()?;
    let text = config(relay, protocol, reuse);
    let config = Config::parse(&text, &folder.path().join("turnkeep.toml"), std::iter::empty())
        .map_err(|errors| errors.to_string())?;
    let wired = wiring::wire(config).await.map_err(|failure| failure.to_string())?;
    let Some(Bound::Tcp(gateway)) = wired.bound.first().cloned() else {
        return Err("the gateway listens nowhere".into());
    };
    let (end, ended) = oneshot::channel::<()>();
    let serving = tokio::spawn(wired.serve(async {
        let _ = ended.await;
    }));
    let history = talk(gateway).await?;
    let sent = sent.load(Ordering::Relaxed);
    let starts = lab.cascade().starts as u64;
    drop(end);
    serving.await?.map_err(|failure| failure.to_string())?;
    if starts != begun {
        return Err(format!("{starts} conversations were begun with reuse {reuse}, not {begun}").into());
    }
    if history < HISTORY {
        return Err(format!("the history has {history} bytes only").into());
    }
    Ok(Carried { sent, history })
}

fn config(server: SocketAddr, protocol: &str, reuse: &str) -> String {
    format!(
        r#"allow_plain_secrets = true
[server]
listen = "127.0.0.1:0"
shutdown_grace = "5s"
[store]
url = "sqlite:measured.db"
[telemetry]
log = "warn"
[[keys]]
name = "client"
secret = "{KEY}"
scopes = ["chat"]
[[upstreams]]
name = "cascade"
kind = "cascade"
base_url = "http://{server}"
protocol = "{protocol}"
reuse = "{reuse}"
[[upstreams.accounts]]
name = "main"
secret = "the-key-of-the-server"
[[models]]
name = "m"
routes = [{{ upstream = "cascade" }}]
"#
    )
}

/// All turns, one after the other; gives the bytes of all that was said.
async fn talk(gateway: SocketAddr) -> Outcome<usize> {
    let stream = TcpStream::connect(gateway).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let (mut messages, mut said) = (Vec::new(), 0);
    for turn in 1..=TURNS {
        // No two turns say the same, and no text is short enough for a head to matter much.
        let words: String =
            format!("line {turn} of the file that was read; ").chars().cycle().take(HISTORY / 60).collect();
        said += words.len();
        messages.push(json!({"role": "user", "content": words}));
        let body = json!({"model": "m", "messages": messages}).to_string();
        let request = http::Request::post("/v1/chat/completions")
            .header("host", gateway.to_string())
            .header("authorization", format!("Bearer {KEY}"))
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body)))?;
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        let answer: Value = serde_json::from_slice(&body)?;
        let Some(text) = answer["choices"][0]["message"]["content"].as_str() else {
            return Err(format!("turn {turn} was answered by {status}: {}", String::from_utf8_lossy(&body)).into());
        };
        said += text.len();
        messages.push(json!({"role": "assistant", "content": text}));
    }
    Ok(said)
}

/// A way to the server that counts what goes to it.
async fn relay(server: SocketAddr) -> Outcome<(SocketAddr, Arc<AtomicU64>)> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let addr = listener.local_addr()?;
    let sent = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&sent);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let Ok(server) = TcpStream::connect(server).await else { continue };
            let _no_option = (client.set_nodelay(true), server.set_nodelay(true));
            let ((from, back), (answers, to)) = (client.into_split(), server.into_split());
            tokio::spawn(copied(from, to, Some(Arc::clone(&counted))));
            tokio::spawn(copied(answers, back, None));
        }
    });
    Ok((addr, sent))
}

/// Copies to the end of what comes, or of whoever takes it.
async fn copied(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, count: Option<Arc<AtomicU64>>) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        if let Some(count) = &count {
            count.fetch_add(read as u64, Ordering::Relaxed);
        }
        let Some(bytes) = buffer.get(..read) else { return };
        if to.write_all(bytes).await.is_err() {
            return;
        }
    }
}
