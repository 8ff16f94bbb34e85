//! TLS with a certificate authority of the test's own, HTTP/1.1 and HTTP/2 over it.

use crate::peer::{self, OK};
use http::{Request, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, SupportedProtocolVersion};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use turnkeep_base::{Fault, FaultKind, Phase};
use turnkeep_upstream::{Endpoint, EndpointSpec};

/// A server's configuration, and the root that signed it.
pub fn server(alpn: &[&str], versions: &[&'static SupportedProtocolVersion]) -> (ServerConfig, Vec<u8>) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_key = KeyPair::generate().unwrap();
    let ca = params.self_signed(&ca_key).unwrap();
    let issuer = Issuer::new(params, ca_key);
    let key = KeyPair::generate().unwrap();
    let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
        .unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    (config, ca.pem().into_bytes())
}

pub fn endpoint(authority: &str, ca_pem: Option<Vec<u8>>) -> Arc<Endpoint> {
    let spec = EndpointSpec { ca_pem, ..peer::spec(format!("https://{authority}/v1")) };
    Arc::new(Endpoint::new(spec).unwrap())
}

async fn handshake_fault(listener: TcpListener, endpoint: &Arc<Endpoint>, config: ServerConfig) -> Fault {
    let call = peer::sending(endpoint);
    let (stream, _) = listener.accept().await.unwrap();
    // Whether the server notices is its affair.
    let _ = TlsAcceptor::from(Arc::new(config)).accept(stream).await;
    call.await.unwrap().err().unwrap()
}

#[tokio::test]
async fn a_call_goes_over_tls_to_a_server_of_the_extra_root() {
    for versions in [&[&rustls::version::TLS13], &[&rustls::version::TLS12]] {
        let (config, ca) = server(&["http/1.1"], versions);
        let (listener, authority) = peer::listen().await;
        let endpoint = endpoint(&authority, Some(ca));
        for round in 0..2 {
            let call = peer::sending(&endpoint);
            if round == 0 {
                let (stream, _) = listener.accept().await.unwrap();
                let mut stream = TlsAcceptor::from(Arc::new(config.clone())).accept(stream).await.unwrap();
                tokio::spawn(async move {
                    for _ in 0..2 {
                        peer::serve(&mut stream, OK).await;
                    }
                    let _ = stream.read(&mut [0; 1]).await;
                });
            }
            assert_eq!(peer::rest(&mut call.await.unwrap().unwrap()).await.unwrap(), b"{}");
        }
    }
}

#[tokio::test]
async fn a_certificate_of_an_unknown_root_is_a_tls_failure() {
    let (config, _) = server(&[], rustls::ALL_VERSIONS);
    let (_, other_ca) = server(&[], rustls::ALL_VERSIONS);
    let (listener, authority) = peer::listen().await;
    let fault = handshake_fault(listener, &endpoint(&authority, Some(other_ca)), config).await;
    assert_eq!((fault.kind, fault.phase), (FaultKind::TlsFailure, Phase::Unsent), "{fault}");
}

#[tokio::test]
async fn a_certificate_for_another_name_is_a_tls_failure() {
    let (config, ca) = server(&[], rustls::ALL_VERSIONS);
    let (listener, authority) = peer::listen().await;
    let elsewhere = authority.replace("127.0.0.1", "[::ffff:127.0.0.1]");
    let fault = handshake_fault(listener, &endpoint(&elsewhere, Some(ca)), config).await;
    assert_eq!((fault.kind, fault.phase), (FaultKind::TlsFailure, Phase::Unsent), "{fault}");
}

#[tokio::test]
async fn an_alert_or_an_old_version_or_no_tls_at_all_is_a_tls_failure() {
    // handshake_failure; protocol_version; a ServerHello of TLS 1.0; plain HTTP.
    let answers: [&[u8]; 4] = [
        &[21, 3, 3, 0, 2, 2, 40],
        &[21, 3, 1, 0, 2, 2, 70],
        &[
            22, 3, 1, 0, 42, 2, 0, 0, 38, 3, 1, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
            7, 7, 7, 7, 7, 7, 7, 7, 0, 0, 47, 0,
        ],
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
    ];
    for bytes in answers {
        let (listener, authority) = peer::listen().await;
        let endpoint = endpoint(&authority, None);
        let call = peer::sending(&endpoint);
        let (mut stream, _) = listener.accept().await.unwrap();
        assert_ne!(stream.read(&mut [0; 2048]).await.unwrap(), 0);
        stream.write_all(bytes).await.unwrap();
        let fault = call.await.unwrap().err().unwrap();
        assert_eq!((fault.kind, fault.phase), (FaultKind::TlsFailure, Phase::Unsent), "{fault}");
    }
}

#[tokio::test]
async fn a_reset_within_the_handshake_is_unsent() {
    let (listener, authority) = peer::listen().await;
    let endpoint = endpoint(&authority, None);
    let call = peer::sending(&endpoint);
    let (stream, _) = listener.accept().await.unwrap();
    peer::reset(stream);
    let fault = call.await.unwrap().err().unwrap();
    assert_eq!((fault.kind, fault.phase), (FaultKind::ConnectionReset, Phase::Unsent), "{fault}");
}

#[tokio::test]
async fn an_alert_after_the_handshake_is_a_tls_failure_that_may_have_been_sent() {
    let (config, ca) = server(&["http/1.1"], &[&rustls::version::TLS13]);
    let (listener, authority) = peer::listen().await;
    let endpoint = endpoint(&authority, Some(ca));
    let call = peer::sending(&endpoint);
    let (stream, _) = listener.accept().await.unwrap();
    let mut stream = TlsAcceptor::from(Arc::new(config)).accept(stream).await.unwrap();
    peer::request(&mut stream).await;
    // A record that no key has sealed: the client must give up.
    stream
        .get_mut()
        .0
        .write_all(&[23, 3, 3, 0, 20, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0])
        .await
        .unwrap();
    let fault = call.await.unwrap().err().unwrap();
    assert_eq!((fault.kind, fault.phase), (FaultKind::TlsFailure, Phase::MaybeSent), "{fault}");
}

type Answered = Response<http_body_util::combinators::BoxBody<bytes::Bytes, Infallible>>;

/// An HTTP/2 server whose answers a test writes: one channel of body chunks a call. Counts its connections.
async fn http2_server() -> (Arc<Endpoint>, mpsc::Receiver<mpsc::Sender<&'static str>>, Arc<AtomicUsize>) {
    let (config, ca) = server(&["h2", "http/1.1"], rustls::ALL_VERSIONS);
    let (listener, authority) = peer::listen().await;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let (calls, taken) = mpsc::channel(128);
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (acceptor, calls, counted) = (acceptor.clone(), calls.clone(), Arc::clone(&counted));
            tokio::spawn(async move {
                let stream = acceptor.accept(stream).await.unwrap();
                counted.fetch_add(1, Ordering::Relaxed);
                let service = service_fn(move |request: Request<Incoming>| {
                    let calls = calls.clone();
                    async move {
                        assert_eq!(request.uri().path(), "/v1/chat/completions");
                        assert!(request.uri().authority().is_some() && !request.headers().contains_key("host"));
                        assert_eq!(request.headers()["content-length"], "7");
                        let (chunks, mut sent) = mpsc::channel::<&'static str>(8);
                        calls.send(chunks).await.unwrap();
                        let body = futures_util::stream::poll_fn(move |cx| {
                            sent.poll_recv(cx).map(|chunk| chunk.map(|text| Ok(Frame::data(text.into()))))
                        });
                        Ok::<Answered, Infallible>(Response::new(BodyExt::boxed(StreamBody::new(body))))
                    }
                });
                let mut builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                let _ = builder.max_concurrent_streams(2).serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    (endpoint(&authority, Some(ca)), taken, connections)
}

#[tokio::test]
async fn calls_share_an_http2_connection_up_to_what_the_peer_allows() {
    let (endpoint, mut calls, connections) = http2_server().await;
    // The first call's answer has come, so the peer's limit of two streams is known.
    let first = peer::sending(&endpoint);
    let first_chunks = calls.recv().await.unwrap();
    let mut first = first.await.unwrap().unwrap();
    let second = peer::sending(&endpoint);
    let second_chunks = calls.recv().await.unwrap();
    assert_eq!(connections.load(Ordering::Relaxed), 1);
    let third = peer::sending(&endpoint);
    let third_chunks = calls.recv().await.unwrap();
    assert_eq!(connections.load(Ordering::Relaxed), 2);
    for chunks in [first_chunks, second_chunks, third_chunks] {
        chunks.send("hi").await.unwrap();
    }
    assert_eq!(peer::rest(&mut first).await.unwrap(), b"hi");
    for call in [second, third] {
        assert_eq!(peer::rest(&mut call.await.unwrap().unwrap()).await.unwrap(), b"hi");
    }
    assert_eq!((endpoint.open_connections(), endpoint.idle_connections()), (2, 2));
    endpoint.close_idle();
    assert_eq!(endpoint.idle_connections(), 0);
}

#[tokio::test]
async fn calls_that_arrive_together_do_not_each_open_an_http2_connection() {
    let (endpoint, mut calls, connections) = http2_server().await;
    let (one, two) = (peer::sending(&endpoint), peer::sending(&endpoint));
    drop((calls.recv().await.unwrap(), calls.recv().await.unwrap()));
    for call in [one, two] {
        assert_eq!(peer::rest(&mut call.await.unwrap().unwrap()).await.unwrap(), b"");
    }
    assert_eq!(connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_dropped_http2_answer_resets_its_stream_and_keeps_the_connection() {
    let (endpoint, mut calls, connections) = http2_server().await;
    let call = peer::sending(&endpoint);
    let chunks = calls.recv().await.unwrap();
    chunks.send("hi").await.unwrap();
    let mut answer = call.await.unwrap().unwrap();
    assert_eq!(peer::next(&mut answer).await.unwrap().unwrap(), "hi");
    drop(answer);
    // The server drops its side of the body when the stream is reset.
    chunks.closed().await;
    let call = peer::sending(&endpoint);
    drop(calls.recv().await.unwrap());
    call.await.unwrap().unwrap();
    assert_eq!(connections.load(Ordering::Relaxed), 1);
}

/// A server that speaks HTTP/2 in frames of the test's own.
async fn http2_by_hand(frames: &'static [u8]) -> (Fault, Arc<Endpoint>) {
    let (config, ca) = server(&["h2"], rustls::ALL_VERSIONS);
    let (listener, authority) = peer::listen().await;
    let endpoint = endpoint(&authority, Some(ca));
    let call = peer::sending(&endpoint);
    let (stream, _) = listener.accept().await.unwrap();
    let mut stream = TlsAcceptor::from(Arc::new(config)).accept(stream).await.unwrap();
    // Settings first; the rest once the whole request is here, which is when its seven bytes of body are.
    stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.unwrap();
    let mut seen = Vec::new();
    while !seen.windows(7).any(|window| window == b"{\"a\":1}") {
        assert_ne!(stream.read_buf(&mut seen).await.unwrap(), 0);
    }
    stream.write_all(frames).await.unwrap();
    let _ = stream.shutdown().await;
    let fault = call.await.unwrap().err().unwrap();
    (fault, endpoint)
}

#[tokio::test]
async fn a_refused_http2_stream_is_certainly_unsent() {
    // RST_STREAM 1 REFUSED_STREAM; GOAWAY with nothing processed.
    let refusals: [&[u8]; 2] =
        [&[0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 7], &[0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]];
    for frames in refusals {
        let (fault, _) = http2_by_hand(frames).await;
        assert_eq!((fault.kind, fault.phase), (FaultKind::ConnectionReset, Phase::Unsent), "{fault}");
    }
}

#[tokio::test]
async fn a_broken_http2_frame_is_an_http_protocol_error() {
    // DATA on stream 0; HEADERS with a broken block; RST_STREAM PROTOCOL_ERROR.
    let broken: [&[u8]; 3] = [
        &[0, 0, 1, 0, 0, 0, 0, 0, 0, 1],
        &[0, 0, 2, 1, 4, 0, 0, 0, 1, 0xff, 0xff],
        &[0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 1],
    ];
    for frames in broken {
        let (fault, _) = http2_by_hand(frames).await;
        assert_eq!((fault.kind, fault.phase), (FaultKind::HttpProtocolError, Phase::MaybeSent), "{fault}");
    }
}

#[tokio::test]
async fn an_http2_connection_that_ends_is_a_connection_reset() {
    let (fault, endpoint) = http2_by_hand(&[]).await;
    assert_eq!((fault.kind, fault.phase), (FaultKind::ConnectionReset, Phase::MaybeSent), "{fault}");
    assert_eq!(endpoint.idle_connections(), 0);
}
