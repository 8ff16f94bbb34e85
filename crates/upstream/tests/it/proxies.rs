//! Through proxies that a test plays by hand.

use crate::peer::{self, OK, SECRET};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use turnkeep_base::{FaultKind, Phase};
use turnkeep_upstream::{Endpoint, EndpointSpec};

fn through(proxy: String, base: &str) -> Arc<Endpoint> {
    Arc::new(Endpoint::new(EndpointSpec { proxy: Some(proxy), ..peer::spec(base) }).unwrap())
}

async fn exactly(stream: &mut TcpStream, bytes: &[u8]) {
    let mut got = vec![0; bytes.len()];
    stream.read_exact(&mut got).await.unwrap();
    assert_eq!(got, bytes);
}

/// Plays SOCKS 5 with a login up to the request.
async fn socks(listener: &TcpListener) -> TcpStream {
    let (mut stream, _) = listener.accept().await.unwrap();
    exactly(&mut stream, &[5, 2, 0, 2]).await;
    stream.write_all(&[5, 2]).await.unwrap();
    exactly(&mut stream, b"\x01\x02me\x02pw").await;
    stream.write_all(&[1, 0]).await.unwrap();
    stream
}

#[tokio::test]
async fn socks5h_lets_the_proxy_resolve_the_name() {
    let (listener, authority) = peer::listen().await;
    let endpoint = through(format!("socks5h://me:pw@{authority}"), "http://upstream.invalid:81/v1");
    let call = peer::sending(&endpoint);
    let mut stream = socks(&listener).await;
    exactly(&mut stream, b"\x05\x01\x00\x03\x10upstream.invalid\x00\x51").await;
    stream.write_all(&[5, 0, 0, 1, 127, 0, 0, 1, 0, 80]).await.unwrap();
    let head = peer::serve(&mut stream, OK).await;
    assert!(head.contains("host: upstream.invalid:81\r\n"), "{head}");
    assert_eq!(peer::rest(&mut call.await.unwrap().unwrap()).await.unwrap(), b"{}");
    assert_eq!(endpoint.idle_connections(), 1);
}

#[tokio::test]
async fn socks5_resolves_the_name_here() {
    let (listener, authority) = peer::listen().await;
    let endpoint = through(format!("socks5://me:pw@{authority}"), "http://127.0.0.2/v1");
    let call = peer::sending(&endpoint);
    let mut stream = socks(&listener).await;
    exactly(&mut stream, &[5, 1, 0, 1, 127, 0, 0, 2, 0, 80]).await;
    stream.write_all(&[5, 0, 0, 4]).await.unwrap();
    stream.write_all(&[0; 18]).await.unwrap();
    peer::serve(&mut stream, OK).await;
    call.await.unwrap().unwrap();
    let endpoint = through(format!("socks5://{authority}"), "http://nobody.invalid/v1");
    let call = peer::sending(&endpoint);
    let (_stream, _) = listener.accept().await.unwrap();
    let fault = call.await.unwrap().err().unwrap();
    assert_eq!((fault.kind, fault.phase), (FaultKind::DnsFailure, Phase::Unsent), "{fault}");
}

#[tokio::test]
async fn what_a_socks_proxy_refuses_has_its_fault() {
    let rows = [
        (3, FaultKind::Unreachable),
        (4, FaultKind::Unreachable),
        (5, FaultKind::ConnectRefused),
        (1, FaultKind::UpstreamUnavailable),
        (2, FaultKind::UpstreamUnavailable),
    ];
    for (code, kind) in rows {
        let (listener, authority) = peer::listen().await;
        let endpoint = through(format!("socks5h://me:pw@{authority}"), "http://a.invalid/v1");
        let call = peer::sending(&endpoint);
        let mut stream = socks(&listener).await;
        exactly(&mut stream, b"\x05\x01\x00\x03\x09a.invalid\x00\x50").await;
        stream.write_all(&[5, code, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
        let fault = call.await.unwrap().err().unwrap();
        assert_eq!((fault.kind, fault.phase), (kind, Phase::Unsent), "{fault}");
        peer::closed(&mut stream).await;
    }
}

#[tokio::test]
async fn an_http_proxy_gets_the_whole_url_of_a_plain_call() {
    let (listener, authority) = peer::listen().await;
    let endpoint = through(format!("http://me:pw@{authority}"), "http://upstream.invalid/v1");
    let call = peer::sending(&endpoint);
    let (mut stream, _) = listener.accept().await.unwrap();
    let head = peer::serve(&mut stream, OK).await;
    assert!(head.starts_with("POST http://upstream.invalid/v1/chat/completions HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("proxy-authorization: Basic bWU6cHc=\r\n"), "{head}");
    assert!(head.contains("host: upstream.invalid\r\n"), "{head}");
    call.await.unwrap().unwrap();
}

#[tokio::test]
async fn an_http_proxy_gives_a_tunnel_to_a_tls_call_and_sees_no_secret() {
    let (listener, authority) = peer::listen().await;
    let endpoint = through(format!("http://me:pw@{authority}"), "https://upstream.invalid/v1");
    let call = peer::sending(&endpoint);
    let (mut stream, _) = listener.accept().await.unwrap();
    let (head, _) = peer::request(&mut stream).await;
    assert!(head.starts_with("CONNECT upstream.invalid:443 HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("Proxy-Authorization: Basic bWU6cHc=\r\n") && !head.contains(SECRET), "{head}");
    stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
    // A TLS handshake record; the tunnel stands.
    assert_eq!(stream.read_u8().await.unwrap(), 22);
    call.abort();
}

#[tokio::test]
async fn a_proxy_that_gives_no_tunnel_has_its_fault() {
    let rows: [(&[u8], FaultKind); 4] = [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", FaultKind::UpstreamUnavailable),
        (b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 2\r\n\r\nno", FaultKind::UpstreamUnavailable),
        (b"SSH-2.0-OpenSSH\r\n\r\n", FaultKind::HttpProtocolError),
        (b"HTTP/1.1 200 OK\r\n\r\nsurplus", FaultKind::HttpProtocolError),
    ];
    for (answer, kind) in rows {
        let (listener, authority) = peer::listen().await;
        let endpoint = through(format!("http://{authority}"), "https://upstream.invalid/v1");
        let call = peer::sending(&endpoint);
        let (mut stream, _) = listener.accept().await.unwrap();
        peer::serve(&mut stream, answer).await;
        let fault = call.await.unwrap().err().unwrap();
        assert_eq!((fault.kind, fault.phase), (kind, Phase::Unsent), "{fault}");
        peer::closed(&mut stream).await;
    }
}
