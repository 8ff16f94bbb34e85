//! HTTP/2 in frames of the test's own: what the peer's goodbyes, resets and nonsense become.

use crate::peer;
use crate::tls::{endpoint, server};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use turnkeep_base::{Fault, FaultKind, Phase};
use turnkeep_upstream::Endpoint;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// `:status: 200` by its place in the static table.
const STATUS_200: &[u8] = &[0x88];

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

fn goaway(last: u32, code: u32) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat())
}

fn rst(stream: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &code.to_be_bytes())
}

struct Peer {
    listener: TcpListener,
    acceptor: TlsAcceptor,
    endpoint: Arc<Endpoint>,
}

impl Peer {
    async fn new() -> Peer {
        let (config, ca) = server(&["h2"], rustls::ALL_VERSIONS);
        let (listener, authority) = peer::listen().await;
        let endpoint = endpoint(&authority, Some(ca));
        Peer { listener, acceptor: TlsAcceptor::from(Arc::new(config)), endpoint }
    }

    async fn accept(&self) -> TlsStream<TcpStream> {
        let (stream, _) = self.listener.accept().await.unwrap();
        let mut stream = self.acceptor.accept(stream).await.unwrap();
        stream.write_all(&frame(SETTINGS, 0, 0, &[])).await.unwrap();
        stream
    }

    /// A connection that has served one call, on stream 1.
    async fn used(&self) -> TlsStream<TcpStream> {
        let call = peer::sending(&self.endpoint);
        let mut stream = self.accept().await;
        request(&mut stream).await;
        answer(&mut stream, 1).await;
        assert_eq!(peer::rest(&mut call.await.unwrap().unwrap()).await.unwrap(), b"");
        stream
    }

    /// The fault of one call on a fresh connection, which is answered by these frames and then closed.
    async fn fault(&self, frames: &[u8]) -> Fault {
        let call = peer::sending(&self.endpoint);
        let mut stream = self.accept().await;
        request(&mut stream).await;
        // The client may have closed by then.
        let _ = stream.write_all(frames).await;
        let _ = stream.shutdown().await;
        match call.await.unwrap() {
            Err(fault) => fault,
            Ok(mut answer) => peer::rest(&mut answer).await.unwrap_err(),
        }
    }
}

/// Reads until the seven bytes of a request's body are here.
async fn request(stream: &mut TlsStream<TcpStream>) {
    let mut seen = Vec::new();
    while !seen.windows(7).any(|window| window == b"{\"a\":1}") {
        assert_ne!(stream.read_buf(&mut seen).await.unwrap(), 0);
    }
}

async fn answer(stream: &mut TlsStream<TcpStream>, number: u32) {
    stream.write_all(&frame(HEADERS, END_HEADERS | END_STREAM, number, STATUS_200)).await.unwrap();
}

#[tokio::test]
async fn each_code_of_a_reset_stream_has_its_name_and_only_a_refused_one_is_certainly_unsent() {
    use FaultKind::{ConnectionReset, HttpProtocolError, TlsFailure};
    let rows = [
        (0, ConnectionReset),
        (1, HttpProtocolError),
        (2, ConnectionReset),
        (3, HttpProtocolError),
        (4, HttpProtocolError),
        (5, HttpProtocolError),
        (6, HttpProtocolError),
        (7, ConnectionReset),
        (8, ConnectionReset),
        (9, HttpProtocolError),
        (10, HttpProtocolError),
        (11, ConnectionReset),
        (12, TlsFailure),
        (13, HttpProtocolError),
        (77, HttpProtocolError),
    ];
    for (code, kind) in rows {
        let phase = if code == 7 { Phase::Unsent } else { Phase::MaybeSent };
        let fault = Peer::new().await.fault(&rst(1, code)).await;
        assert_eq!((fault.kind, fault.phase), (kind, phase), "{code}: {fault}");
        let head = frame(HEADERS, END_HEADERS, 1, STATUS_200);
        let fault = Peer::new().await.fault(&[head, frame(DATA, 0, 1, b"hi"), rst(1, code)].concat()).await;
        let kind = if code == 0 { FaultKind::StreamTruncated } else { kind };
        assert_eq!((fault.kind, fault.phase), (kind, Phase::Answered), "{code} within a body: {fault}");
    }
}

#[tokio::test]
async fn a_goodbye_below_the_stream_is_certainly_unsent_and_one_above_it_is_not() {
    for code in [0, 1, 2, 11, 12] {
        let fault = Peer::new().await.fault(&goaway(0, code)).await;
        assert_eq!(fault.phase, Phase::Unsent, "{code}: {fault}");
        // It says that it will answer, and then it is gone.
        let fault = Peer::new().await.fault(&goaway(1, code)).await;
        assert_eq!((fault.kind, fault.phase), (FaultKind::ConnectionReset, Phase::MaybeSent), "{code}: {fault}");
    }
}

#[tokio::test]
async fn a_goodbye_above_the_stream_lets_its_answer_come() {
    let peer = Peer::new().await;
    let call = peer::sending(&peer.endpoint);
    let mut stream = peer.accept().await;
    request(&mut stream).await;
    stream.write_all(&goaway(1, 0)).await.unwrap();
    answer(&mut stream, 1).await;
    assert_eq!(peer::rest(&mut call.await.unwrap().unwrap()).await.unwrap(), b"");
    assert_eq!(peer.endpoint.idle_connections(), 0, "it takes no more requests");
    let call = peer::sending(&peer.endpoint);
    let mut stream = peer.accept().await;
    request(&mut stream).await;
    answer(&mut stream, 1).await;
    call.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_kept_connection_that_takes_no_more_requests_costs_nothing() {
    let refusals: [fn(u32) -> Vec<u8>; 3] = [|stream| goaway(stream - 2, 0), |stream| rst(stream, 7), |_| Vec::new()];
    for refuse in refusals {
        let peer = Peer::new().await;
        let mut stale = peer.used().await;
        let call = peer::sending(&peer.endpoint);
        request(&mut stale).await;
        let refusal = refuse(3);
        stale.write_all(&refusal).await.unwrap();
        if refusal.is_empty() {
            drop(stale);
        }
        let mut fresh = peer.accept().await;
        request(&mut fresh).await;
        answer(&mut fresh, 1).await;
        assert_eq!(peer::rest(&mut call.await.unwrap().unwrap()).await.unwrap(), b"");
    }
}

#[tokio::test]
async fn a_stream_that_the_peer_gave_up_is_not_sent_again_by_itself() {
    for code in [2, 8, 11] {
        let peer = Peer::new().await;
        let mut kept = peer.used().await;
        let call = peer::sending(&peer.endpoint);
        request(&mut kept).await;
        kept.write_all(&rst(3, code)).await.unwrap();
        let fault = call.await.unwrap().err().unwrap();
        assert_eq!((fault.kind, fault.phase), (FaultKind::ConnectionReset, Phase::MaybeSent), "{code}: {fault}");
        assert_eq!(peer.endpoint.open_connections(), 1, "its connection lives");
    }
}

#[tokio::test]
async fn frames_that_are_not_http2_are_http_protocol_errors() {
    let huge = frame(HEADERS, END_HEADERS, 1, &[STATUS_200, &[0, 1, b'x', 0x7f, 0x80, 0x80, 0x40]].concat());
    let rows = [
        ("data before headers", frame(DATA, 0, 1, b"hi")),
        ("a window of 0", frame(8, 0, 0, &[0; 4])),
        ("settings of 5 bytes", frame(SETTINGS, 0, 0, &[0; 5])),
        ("a frame of 16 MiB", [0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1].to_vec()),
        ("a push that was not asked for", frame(5, END_HEADERS, 1, &[0, 0, 0, 2, 0x82])),
        ("a string longer than its block", huge),
        ("a continuation of nothing", frame(CONTINUATION, END_HEADERS, 1, STATUS_200)),
        ("plain HTTP/1", b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n".to_vec()),
        ("headers without a status", frame(HEADERS, END_HEADERS, 1, &[0x40, 1, b'a', 1, b'b'])),
    ];
    for (what, frames) in rows {
        let fault = Peer::new().await.fault(&frames).await;
        assert_eq!((fault.kind, fault.phase), (FaultKind::HttpProtocolError, Phase::MaybeSent), "{what}: {fault}");
    }
}

/// A header of so many bytes, which is put into no table.
fn header(size: usize) -> Vec<u8> {
    let mut length = vec![0x7f];
    let mut rest = size - 127;
    while rest >= 128 {
        length.push(u8::try_from(rest % 128).unwrap() | 0x80);
        rest /= 128;
    }
    length.push(u8::try_from(rest).unwrap());
    [&[0, 1, b'x'], &length[..], &vec![b'a'; size]].concat()
}

#[tokio::test]
async fn a_bomb_of_headers_is_an_http_protocol_error_and_is_not_kept() {
    let mut frames = frame(HEADERS, 0, 1, STATUS_200);
    for _ in 0..64 {
        frames.extend(frame(CONTINUATION, 0, 1, &header(16_000)));
    }
    frames.extend(frame(CONTINUATION, END_HEADERS, 1, &[]));
    let fault = Peer::new().await.fault(&frames).await;
    assert_eq!((fault.kind, fault.phase), (FaultKind::HttpProtocolError, Phase::MaybeSent), "{fault}");
    let mut empty = frame(HEADERS, 0, 1, STATUS_200);
    for _ in 0..10_000 {
        empty.extend(frame(CONTINUATION, 0, 1, &[]));
    }
    let fault = Peer::new().await.fault(&empty).await;
    assert_eq!(fault.kind, FaultKind::HttpProtocolError, "{fault}");
}

#[tokio::test]
async fn an_end_within_a_body_is_truncated() {
    let frames = [frame(HEADERS, END_HEADERS, 1, STATUS_200), frame(DATA, 0, 1, b"hi")].concat();
    let fault = Peer::new().await.fault(&frames).await;
    assert_eq!((fault.kind, fault.phase), (FaultKind::StreamTruncated, Phase::Answered), "{fault}");
}

#[tokio::test]
async fn a_peer_that_vanished_is_noticed_by_its_unanswered_ping() {
    let peer = Peer::new().await;
    let call = peer::sending(&peer.endpoint);
    let mut stream = peer.accept().await;
    request(&mut stream).await;
    // From here on nothing comes; the clock runs on by itself.
    tokio::time::pause();
    let fault = call.await.unwrap().err().unwrap();
    assert_eq!((fault.kind, fault.phase), (FaultKind::ConnectionReset, Phase::MaybeSent), "{fault}");
    assert_eq!(peer.endpoint.open_connections(), 0);
}
