//! A small client on hyper's own connections, so that a test sees exactly what one socket carried.

#![allow(dead_code, reason = "each test file uses its part")]

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use turnkeep_lab::{Lab, LabOptions, LabTls, Rule, Script};

pub async fn lab(rules: impl IntoIterator<Item = Rule>) -> Lab {
    Lab::start(LabOptions { script: Script::of(rules), ..LabOptions::default() }).await.unwrap()
}

pub async fn lab_toml(script: &str) -> Lab {
    Lab::start(LabOptions { script: Script::parse(script).unwrap(), ..LabOptions::default() }).await.unwrap()
}

pub async fn tls_lab(script: &str) -> Lab {
    let options =
        LabOptions { script: Script::parse(script).unwrap(), tls: Some(LabTls::SelfSigned), ..LabOptions::default() };
    Lab::start(options).await.unwrap()
}

pub enum Client {
    H1(http1::SendRequest<Full<Bytes>>),
    H2(http2::SendRequest<Full<Bytes>>),
}

pub async fn h1(addr: SocketAddr) -> Client {
    let io = TokioIo::new(TcpStream::connect(addr).await.unwrap());
    let (sender, connection) = http1::handshake(io).await.unwrap();
    tokio::spawn(connection);
    Client::H1(sender)
}

pub async fn h2(addr: SocketAddr) -> Client {
    let io = TokioIo::new(TcpStream::connect(addr).await.unwrap());
    let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
    tokio::spawn(connection);
    Client::H2(sender)
}

pub async fn tls(lab: &Lab, protocol: &[u8]) -> std::io::Result<Client> {
    let mut roots = rustls::RootCertStore::empty();
    for cert in CertificateDer::pem_slice_iter(lab.ca_pem().unwrap().as_bytes()) {
        roots.add(cert.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let tcp = TcpStream::connect(lab.addr()).await?;
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, tcp).await?;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(protocol));
    let io = TokioIo::new(stream);
    if protocol == b"h2" {
        let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
        tokio::spawn(connection);
        return Ok(Client::H2(sender));
    }
    let (sender, connection) = http1::handshake(io).await.unwrap();
    tokio::spawn(connection);
    Ok(Client::H1(sender))
}

impl Client {
    pub async fn send(&mut self, request: Request<Full<Bytes>>) -> hyper::Result<Response<Incoming>> {
        match self {
            Self::H1(sender) => sender.send_request(request).await,
            Self::H2(sender) => sender.send_request(request).await,
        }
    }

    pub async fn get(&mut self, request: Request<Full<Bytes>>) -> Got {
        let response = self.send(request).await.unwrap();
        let (head, body) = response.into_parts();
        Got { status: head.status, headers: head.headers, body: body.collect().await.unwrap().to_bytes() }
    }
}

pub struct Got {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Got {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {:?}", self.body))
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn events(&self) -> Vec<Event> {
        events(self.text())
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub name: Option<String>,
    pub data: String,
}

impl Event {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap()
    }
}

pub fn events(text: &str) -> Vec<Event> {
    assert!(text.is_empty() || text.ends_with("\n\n"), "the last event is not complete: {text:?}");
    let event = |block: &str| {
        let mut event = Event { name: None, data: String::new() };
        for line in block.lines() {
            match line.split_once(": ") {
                Some(("event", name)) => event.name = Some(name.to_owned()),
                Some(("data", data)) => event.data.push_str(data),
                other => panic!("a line that is no field: {other:?}"),
            }
        }
        event
    };
    text.split_terminator("\n\n").map(event).collect()
}

pub fn post(path: &str, body: &Value) -> Request<Full<Bytes>> {
    Request::post(format!("http://localhost{path}"))
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("authorization", "Bearer key-a")
        .header("anthropic-version", "2023-06-01")
        .body(Full::from(body.to_string()))
        .unwrap()
}

pub fn chat(body: &Value) -> Request<Full<Bytes>> {
    let mut request = post("/v1/chat/completions", body);
    request.headers_mut().remove("anthropic-version");
    request
}

pub fn messages(body: &Value) -> Request<Full<Bytes>> {
    post("/v1/messages?beta=true", body)
}

pub fn with(base: &Value, extra: &Value) -> Value {
    let mut all = base.clone();
    for (key, value) in extra.as_object().unwrap() {
        all[key] = value.clone();
    }
    all
}

pub fn hello() -> Value {
    json!({"model": "lab-1", "messages": [{"role": "user", "content": "Hello there"}]})
}

pub fn hello_messages() -> Value {
    with(&hello(), &json!({"max_tokens": 100}))
}
