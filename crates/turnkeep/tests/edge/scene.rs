//! A gateway in this process over an upstream that answers by its paths, and a client that reads whole replies.

use serde_json::Value;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use turnkeep::config::Config;
use turnkeep::wiring;
use turnkeep_http::Bound;

/// The caller's key.
pub const KEY: &str = "a-key-for-everything";

/// What an upstream was asked: the path with its query, and the body.
pub type Asked = Arc<Mutex<Vec<(String, String)>>>;

/// A server that answers a path that ends so (its query aside) with this type and body, and any other with 404.
pub async fn server(answers: &[(&'static str, &'static str, Vec<u8>)]) -> (SocketAddr, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let asked = Asked::default();
    let (seen, answers) = (asked.clone(), answers.to_vec());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, seen.clone(), answers.clone()));
        }
    });
    (addr, asked)
}

async fn answer(mut stream: TcpStream, seen: Asked, answers: Vec<(&'static str, &'static str, Vec<u8>)>) {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return;
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok()).unwrap_or(0);
    while bytes.len() < head + length {
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let first = String::from_utf8_lossy(&bytes[..head]).lines().next().unwrap_or_default().to_owned();
    let target = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let body = String::from_utf8_lossy(&bytes[head..]).into_owned();
    let path = target.split('?').next().unwrap_or_default().to_owned();
    seen.lock().unwrap().push((target, body));
    let found = answers.iter().find(|(end, _, _)| path.ends_with(end));
    let (status, kind, body) = match found {
        Some((_, kind, body)) => ("200 OK", *kind, body.clone()),
        None => ("404 Not Found", "application/json", b"{\"error\":{\"message\":\"no such path\"}}".to_vec()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(&body).await;
}

/// A gateway; it ends when it is dropped.
pub struct Gateway {
    pub addr: SocketAddr,
    _folder: tempfile::TempDir,
    _end: oneshot::Sender<()>,
}

/// An upstream's entry, named as its kind.
pub fn upstream(kind: &str, addr: SocketAddr) -> String {
    let path = if kind.starts_with("openai") { "/v1" } else { "" };
    format!(
        "[[upstreams]]\nname = \"{kind}\"\nkind = \"{kind}\"\nbase_url = \"http://{addr}{path}\"\n\
         [[upstreams.accounts]]\nname = \"a\"\nsecret = \"secret-a\"\n"
    )
}

/// A model with routes to these upstreams, by the name `upstream-m`.
pub fn model(name: &str, upstreams: &[&str]) -> String {
    let route = |name: &&str| format!("{{ upstream = \"{name}\", model = \"upstream-m\" }}");
    let routes: Vec<String> = upstreams.iter().map(route).collect();
    format!("[[models]]\nname = \"{name}\"\nroutes = [{}]\n", routes.join(", "))
}

impl Gateway {
    /// With these lines beside the key and the listener.
    pub async fn with(more: &str) -> Gateway {
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            "allow_plain_secrets = true\n[server]\nlisten = \"127.0.0.1:0\"\nmax_body = \"64KiB\"\n[store]\nurl = \"memory:\"\n\
             [[keys]]\nname = \"tester\"\nsecret = {KEY:?}\nscopes = [\"chat\", \"viewer\"]\n{more}"
        );
        let file = folder.path().join("turnkeep.toml");
        let config = Config::parse(&text, Path::new(&file), std::iter::empty()).unwrap();
        let wired = wiring::wire(config).await.unwrap();
        let Some(Bound::Tcp(addr)) = wired.bound.first().cloned() else { panic!("it listens nowhere") };
        let (end, ended) = oneshot::channel::<()>();
        tokio::spawn(wired.serve(async {
            let _ = ended.await;
        }));
        Gateway { addr, _folder: folder, _end: end }
    }

    /// Asks with the key.
    pub async fn ask(&self, method: &str, path: &str, body: &str) -> Reply {
        let bearer = format!("Bearer {KEY}");
        self.send(method, path, &[("authorization", &bearer), ("content-type", "application/json")], body).await
    }

    /// Asks with these headers and no others that matter.
    pub async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: gateway\r\nconnection: close\r\n");
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        if method == "POST" {
            head += &format!("content-length: {}\r\n", body.len());
        }
        let mut stream = TcpStream::connect(self.addr).await.unwrap();
        // A refusal may come, and the connection go, before all of a long body was taken.
        let _ = stream.write_all(format!("{head}\r\n{body}").as_bytes()).await;
        let mut bytes = Vec::new();
        let read = stream.read_to_end(&mut bytes);
        let _ = tokio::time::timeout(std::time::Duration::from_secs(30), read).await.expect("a reply comes");
        Reply::parse(&bytes)
    }
}

/// A reply.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    head: String,
    body: Vec<u8>,
}

impl Reply {
    fn parse(bytes: &[u8]) -> Reply {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").expect("a whole head");
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut body = bytes[end + 4..].to_vec();
        if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
            body = unchunked(&body);
        }
        Reply { status, head, body }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(have, _)| have.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {}", self.text()))
    }

    pub fn text(&self) -> String {
        format!("{}\n{}", self.head, String::from_utf8_lossy(&self.body))
    }
}

fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some(line) = bytes.windows(2).position(|window| window == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&bytes[..line]).unwrap(), 16).unwrap();
        let from = line + 2;
        out.extend_from_slice(&bytes[from..from + size]);
        if size == 0 {
            break;
        }
        bytes = &bytes[from + size + 2..];
    }
    out
}
