//! gRPC over HTTP/2 without TLS, by a server of frames that a test plays by hand; and what TLS must agree to.

use crate::peer;
use crate::rpc_peer::{Came, call, envelope, gzip, read, spec};
use crate::tls::server;
use bytes::Bytes;
use h2::Reason;
use h2::server::{Connection, SendResponse};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use turnkeep_base::{FaultKind, Phase};
use turnkeep_upstream::rpc::{Codec, Protocol, Rpc, RpcCall, RpcFault, RpcReply, RpcSpec, Told};

/// Headers or trailers.
type Lines<'a> = &'a [(&'static str, &'a str)];

struct Fake {
    listener: TcpListener,
    rpc: Arc<Rpc>,
}

type Peer = Connection<TcpStream, Bytes>;
type Asked = (Request<h2::RecvStream>, SendResponse<Bytes>);

/// Which call.
#[derive(Clone, Copy)]
enum Form {
    Stream,
    Unary,
}

impl Fake {
    async fn new() -> Fake {
        let (listener, authority) = peer::listen().await;
        let spec = RpcSpec { protocol: Protocol::Grpc, ..spec(format!("http://{authority}")) };
        Fake { listener, rpc: Arc::new(Rpc::new(&spec).unwrap()) }
    }

    async fn accept(&self) -> Peer {
        let (stream, _) = self.listener.accept().await.unwrap();
        h2::server::handshake(stream).await.unwrap()
    }

    /// One call, answered by a function; the connection is driven until the call has ended.
    async fn asked(&self, form: Form, call: RpcCall, serve: impl FnOnce(Asked)) -> Result<Came, RpcFault> {
        let rpc = Arc::clone(&self.rpc);
        let sending = tokio::spawn(async move {
            match form {
                Form::Stream => Ok(read(rpc.stream(call).await).await),
                Form::Unary => {
                    let RpcReply { message, trailers } = rpc.unary(call).await?;
                    Ok(Came { messages: vec![message], end: Ok(trailers) })
                }
            }
        });
        let mut peer = self.accept().await;
        serve(peer.accept().await.unwrap().unwrap());
        let driven = tokio::spawn(async move { while peer.accept().await.is_some() {} });
        let came = sending.await.unwrap();
        driven.abort();
        came
    }

    async fn streamed(&self, call: RpcCall, serve: impl FnOnce(Asked)) -> Came {
        self.asked(Form::Stream, call, serve).await.unwrap()
    }
}

fn headers(lines: Lines<'_>) -> HeaderMap {
    let parsed =
        lines.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::try_from(*value).unwrap()));
    parsed.collect()
}

/// Answers with 200, the type and more headers; bytes; and trailers, or none.
fn answer(mut respond: SendResponse<Bytes>, more: Lines<'_>, body: &[u8], trailers: Option<Lines<'_>>) {
    let mut response = Response::new(());
    *response.headers_mut() = headers(more);
    response.headers_mut().entry("content-type").or_insert(HeaderValue::from_static("application/grpc"));
    let mut stream = respond.send_response(response, false).unwrap();
    stream.send_data(Bytes::copy_from_slice(body), trailers.is_none()).unwrap();
    if let Some(trailers) = trailers {
        stream.send_trailers(headers(trailers)).unwrap();
    }
}

const OK: &[(&str, &str)] = &[("grpc-status", "0")];

#[tokio::test]
async fn a_call_has_grpcs_headers_and_its_answer_ends_by_trailers() {
    let fake = Fake::new().await;
    let call = RpcCall { time_left: Some(Duration::from_millis(1500)), ..call() };
    let came = fake.streamed(call, |(request, respond)| {
        let get = |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        assert_eq!((request.method().as_str(), request.uri().path()), ("POST", "/test.v1.TestService/Do"));
        assert_eq!(get("content-type").as_deref(), Some("application/grpc+proto"));
        assert_eq!(get("te").as_deref(), Some("trailers"));
        assert_eq!(get("grpc-timeout").as_deref(), Some("1500m"));
        assert_eq!(get("grpc-accept-encoding").as_deref(), Some("gzip, zstd"));
        assert_eq!(get("authorization"), Some(format!("Bearer {}", peer::SECRET)));
        let body = [envelope(0, b"one"), envelope(1, &gzip(b"two"))].concat();
        answer(respond, &[("grpc-encoding", "gzip")], &body, Some(&[("grpc-status", "0"), ("x-cost", "3")]));
    });
    let came = came.await;
    assert_eq!(came.texts(), ["one", "two"]);
    assert_eq!(came.end.unwrap()["x-cost"], "3");
    assert_eq!(fake.rpc.open_connections(), 1);
}

#[tokio::test]
async fn a_unary_call_has_exactly_one_message() {
    let twice = [envelope(0, b"a"), envelope(0, b"b")].concat();
    let malformed = Err(FaultKind::MalformedResponse);
    for (body, expected) in [(envelope(0, b"reply"), Ok("reply")), (Vec::new(), malformed), (twice, malformed)] {
        let came =
            Fake::new().await.asked(Form::Unary, call(), |(_, respond)| answer(respond, &[], &body, Some(OK))).await;
        let came = came.map(|came| came.texts()[0].to_owned()).map_err(|fault| fault.fault.kind);
        assert_eq!(came, expected.map(str::to_owned));
    }
}

#[tokio::test]
async fn a_status_before_any_message_is_a_refusal_by_trailers_alone_too() {
    let rows = [
        ("8", FaultKind::RateLimited, Told::Refused),
        ("16", FaultKind::CredentialRejected, Told::Refused),
        ("3", FaultKind::RequestInvalid, Told::Refused),
        ("14", FaultKind::UpstreamUnavailable, Told::Failed),
        ("10", FaultKind::UpstreamUnavailable, Told::Failed),
        ("13", FaultKind::UpstreamInternal, Told::Failed),
        ("77", FaultKind::Unclassified, Told::Failed),
        ("x", FaultKind::MalformedResponse, Told::Unknown),
    ];
    for (status, kind, told) in rows {
        let trailers = [("grpc-status", status), ("grpc-message", "caf%C3%A9"), ("grpc-retry-pushback-ms", "1500")];
        for (body, by_head) in [(Vec::new(), true), (Vec::new(), false), (envelope(0, b"x"), false)] {
            let fake = Fake::new().await;
            let came = fake.streamed(call(), |(_, mut respond)| {
                if by_head {
                    let mut response = Response::new(());
                    *response.headers_mut() = headers(&trailers);
                    response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
                    respond.send_response(response, true).unwrap();
                } else {
                    answer(respond, &[], &body, Some(&trailers));
                }
            });
            let came = came.await;
            let told = if body.is_empty() { told } else { Told::Unknown };
            assert_eq!(came.fault(), (kind, Phase::Answered, told), "{status} {by_head}");
            let fault = came.end.unwrap_err().fault;
            if kind != FaultKind::MalformedResponse {
                assert_eq!(fault.evidence.detail, "café");
                assert_eq!(fault.declared.wait, Some(Duration::from_millis(1500)));
            }
        }
    }
}

#[tokio::test]
async fn an_answer_without_a_status_is_truncated() {
    let rows: [(&[u8], Option<Lines<'_>>); 4] =
        [(b"", None), (b"\0\0\0\0\x01x", None), (b"\0\0\0\0\x02x", Some(OK)), (b"", Some(&[("x-cost", "3")]))];
    for (body, trailers) in rows {
        let came = Fake::new().await.streamed(call(), |(_, respond)| answer(respond, &[], body, trailers)).await;
        assert_eq!(came.fault(), (FaultKind::StreamTruncated, Phase::Answered, Told::Unknown), "{body:?}");
    }
}

#[tokio::test]
async fn what_is_not_grpc_is_malformed() {
    let rows: [(&str, Lines<'_>, &[u8]); 4] = [
        ("the other codec", &[("content-type", "application/grpc+json")], b""),
        ("a page", &[("content-type", "text/html")], b"<html>"),
        ("connect's end of stream", &[], b"\x02\0\0\0\x02{}"),
        ("a coding that was not offered", &[("grpc-encoding", "snappy")], b"\x01\0\0\0\x01x"),
    ];
    for (what, more, body) in rows {
        let came = Fake::new().await.streamed(call(), |(_, respond)| answer(respond, more, body, Some(OK))).await;
        assert_eq!(came.fault(), (FaultKind::MalformedResponse, Phase::Answered, Told::Unknown), "{what}");
    }
    let fake = Fake::new().await;
    let came = fake.streamed(call(), |(_, respond)| {
        answer(respond, &[("grpc-status", "0")], &envelope(0, b"x"), None);
    });
    assert_eq!(came.await.fault().0, FaultKind::MalformedResponse, "a message after the status");
}

#[tokio::test]
async fn without_grpc_the_http_status_speaks() {
    let rows = [
        (503, FaultKind::UpstreamUnavailable, Told::Failed),
        (401, FaultKind::CredentialRejected, Told::Refused),
        (429, FaultKind::RateLimited, Told::Refused),
        (404, FaultKind::RequestInvalid, Told::Refused),
        (418, FaultKind::Unclassified, Told::Refused),
    ];
    for (status, kind, told) in rows {
        let fake = Fake::new().await;
        let came = fake.streamed(call(), |(_, mut respond)| {
            let response = Response::builder().status(status).body(()).unwrap();
            respond.send_response(response, true).unwrap();
        });
        assert_eq!(came.await.fault(), (kind, Phase::Answered, told), "{status}");
    }
}

#[tokio::test]
async fn not_found_means_that_a_conversation_is_gone_only_where_one_goes_on() {
    for (continued, kind) in [(false, FaultKind::RequestInvalid), (true, FaultKind::ConversationGone)] {
        let trailers = [("grpc-status", "5"), ("grpc-message", "no such conversation")];
        let asked = RpcCall { continued, ..call() };
        let came = Fake::new().await.streamed(asked, |(_, respond)| answer(respond, &[], b"", Some(&trailers))).await;
        assert_eq!(came.fault().0, kind);
    }
}

#[tokio::test]
async fn a_refused_stream_is_a_refusal_with_proof_and_another_reset_is_not() {
    for (reason, told, phase) in [
        (Reason::REFUSED_STREAM, Told::Unsent, Phase::Unsent),
        (Reason::CANCEL, Told::Unknown, Phase::MaybeSent),
        (Reason::INTERNAL_ERROR, Told::Unknown, Phase::MaybeSent),
    ] {
        let came = Fake::new().await.streamed(call(), |(_, mut respond)| respond.send_reset(reason)).await;
        assert_eq!(came.fault(), (FaultKind::ConnectionReset, phase, told), "{reason}");
    }
}

#[tokio::test]
async fn a_goodbye_below_the_stream_is_a_refusal_with_proof() {
    let fake = Fake::new().await;
    let rpc = Arc::clone(&fake.rpc);
    let stateful = RpcCall { stateful: true, ..call() };
    let sending = tokio::spawn(async move { read(rpc.stream(stateful).await).await });
    let (mut stream, _) = fake.listener.accept().await.unwrap();
    // Settings of nothing, then the goodbye, of which stream 1 is no part.
    stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.unwrap();
    stream.write_all(&[0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).await.unwrap();
    let fault = sending.await.unwrap().fault();
    assert_eq!((fault.1, fault.2), (Phase::Unsent, Told::Unsent), "{fault:?}");
}

#[tokio::test]
async fn dropping_a_stream_resets_it_and_keeps_its_connection() {
    let fake = Fake::new().await;
    let rpc = Arc::clone(&fake.rpc);
    let sending = tokio::spawn(async move { rpc.stream(call()).await.unwrap().begun().await.unwrap() });
    let mut peer = fake.accept().await;
    let (_request, mut respond) = peer.accept().await.unwrap().unwrap();
    let response = Response::builder().header("content-type", "application/grpc").body(()).unwrap();
    let mut stream = respond.send_response(response, false).unwrap();
    stream.send_data(envelope(0, b"x").into(), false).unwrap();
    let driven = tokio::spawn(async move { while peer.accept().await.is_some() {} });
    drop(sending.await.unwrap());
    let reason = std::future::poll_fn(|cx| stream.poll_reset(cx)).await.unwrap();
    assert_eq!(reason, Reason::CANCEL);
    assert_eq!(fake.rpc.open_connections(), 1);
    driven.abort();
}

#[tokio::test]
async fn a_server_of_http1_is_an_http_protocol_error() {
    let fake = Fake::new().await;
    let rpc = Arc::clone(&fake.rpc);
    let sending = tokio::spawn(async move { read(rpc.stream(call()).await).await });
    let (mut stream, _) = fake.listener.accept().await.unwrap();
    stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await.unwrap();
    assert_eq!(sending.await.unwrap().fault(), (FaultKind::HttpProtocolError, Phase::MaybeSent, Told::Unknown));
}

#[tokio::test]
async fn over_tls_http2_is_agreed_on_or_nothing_is_sent() {
    for (offered, kind) in
        [(&["h2"][..], None), (&["http/1.1"], Some(FaultKind::TlsFailure)), (&[], Some(FaultKind::HttpProtocolError))]
    {
        let (config, ca) = server(offered, rustls::ALL_VERSIONS);
        let (listener, authority) = peer::listen().await;
        let base_url = format!("https://{authority}");
        let spec = RpcSpec { protocol: Protocol::Grpc, codec: Codec::Json, ca_pem: Some(ca), ..spec(base_url) };
        let rpc = Rpc::new(&spec).unwrap();
        let sending = tokio::spawn(async move { read(rpc.stream(call()).await).await });
        let (stream, _) = listener.accept().await.unwrap();
        let accepted = TlsAcceptor::from(Arc::new(config)).accept(stream).await;
        match kind {
            None => {
                let mut peer = h2::server::handshake(accepted.unwrap()).await.unwrap();
                let (request, respond) = peer.accept().await.unwrap().unwrap();
                assert_eq!(request.headers()["content-type"], "application/grpc+json");
                answer(respond, &[("content-type", "application/grpc+json")], &envelope(0, b"{}"), Some(OK));
                let driven = tokio::spawn(async move { while peer.accept().await.is_some() {} });
                assert_eq!(sending.await.unwrap().texts(), ["{}"]);
                driven.abort();
            }
            Some(kind) => {
                assert_eq!(sending.await.unwrap().fault(), (kind, Phase::Unsent, Told::Unsent), "{offered:?}");
            }
        }
    }
}

#[tokio::test]
async fn an_http_proxy_without_tls_is_refused_when_the_client_is_made() {
    let proxy = Some("http://127.0.0.1:1".to_owned());
    let spec = RpcSpec { protocol: Protocol::Grpc, proxy, ..spec("http://127.0.0.1:2") };
    assert_eq!(Rpc::new(&spec).unwrap_err().key, "proxy");
}
