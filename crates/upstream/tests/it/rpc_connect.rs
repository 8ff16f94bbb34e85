//! The Connect protocol over HTTP/1.1, its answers written byte by byte.

use crate::peer;
use crate::rpc_peer::{Fake, answer, call, end, envelope, fault_of, gzip, idle, read, stream, zstd};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use turnkeep_base::limit::MAX_EVENT;
use turnkeep_base::{FaultKind, Phase, Secret};
use turnkeep_upstream::rpc::{Codec, RpcCall, Told};

const MALFORMED: (FaultKind, Phase, Told) = (FaultKind::MalformedResponse, Phase::Answered, Told::Unknown);
const TRUNCATED: (FaultKind, Phase, Told) = (FaultKind::StreamTruncated, Phase::Answered, Told::Unknown);

#[tokio::test]
async fn a_streaming_call_has_the_protocols_headers_and_one_envelope() {
    for (codec, name) in [(Codec::Proto, "proto"), (Codec::Json, "json")] {
        let fake = Fake::of(codec).await;
        let rpc = Arc::clone(&fake.rpc);
        let sending = tokio::spawn(async move {
            let mut call = RpcCall { time_left: Some(Duration::from_millis(1500)), ..call() };
            call.metadata.insert("traceparent", "00-1-1-01".parse().unwrap());
            call.metadata.insert("connect-timeout-ms", "7".parse().unwrap());
            read(rpc.stream(call).await).await
        });
        let mut server = fake.accept().await;
        let (head, body) = peer::request(&mut server).await;
        assert_eq!(body, envelope(0, b"ask"));
        let head = head.to_ascii_lowercase();
        for line in [
            "post /test.v1.testservice/do http/1.1",
            &format!("content-type: application/connect+{name}"),
            "connect-protocol-version: 1",
            "connect-timeout-ms: 1500",
            "connect-accept-encoding: gzip, zstd",
            &format!("authorization: bearer {}", peer::SECRET),
            "traceparent: 00-1-1-01",
        ] {
            assert!(head.lines().any(|found| found == line), "{line} is missing in {head}");
        }
        assert_eq!(head.matches("connect-timeout-ms").count(), 1);
        let body = [envelope(0, b"hello"), end("{}")].concat();
        let head = format!("content-type: application/connect+{name}; charset=utf-8\r\n");
        server.write_all(&answer(200, &head, &body)).await.unwrap();
        let came = sending.await.unwrap();
        assert_eq!(came.texts(), ["hello"]);
        came.end.unwrap();
    }
}

#[tokio::test]
async fn a_call_without_a_secret_has_no_authorization() {
    let fake = Fake::new().await;
    let rpc = Arc::clone(&fake.rpc);
    let call = RpcCall { secret: Secret::new(String::new()), time_left: None, ..call() };
    let sending = tokio::spawn(async move { read(rpc.stream(call).await).await });
    let mut server = fake.accept().await;
    let (head, _) = peer::request(&mut server).await;
    assert!(!head.contains("authorization") && !head.contains("timeout"), "{head}");
    server.write_all(&stream(&[end("{}")])).await.unwrap();
    assert!(sending.await.unwrap().messages.is_empty());
}

#[tokio::test]
async fn messages_that_come_byte_by_byte_are_whole_and_the_connection_serves_again() {
    let fake = Fake::new().await;
    let mut server = None;
    for _ in 0..2 {
        let rpc = Arc::clone(&fake.rpc);
        let sending = tokio::spawn(async move { read(rpc.stream(call()).await).await });
        let server = match &mut server {
            Some(server) => server,
            none => none.insert(fake.accept().await),
        };
        server.set_nodelay(true).unwrap();
        peer::request(server).await;
        let metadata = r#"{"metadata":{"x-cost":["1","2"]}}"#;
        for byte in stream(&[envelope(0, b"one"), envelope(0, b""), envelope(0, b"three"), end(metadata)]) {
            server.write_all(&[byte]).await.unwrap();
        }
        let came = sending.await.unwrap();
        assert_eq!(came.texts(), ["one", "", "three"]);
        let costs: Vec<_> = came.end.as_ref().unwrap().get_all("x-cost").iter().cloned().collect();
        assert_eq!(costs, ["1", "2"]);
        idle(&fake.rpc).await;
    }
    assert_eq!(fake.rpc.open_connections(), 1);
}

#[tokio::test]
async fn a_connection_whose_last_bytes_come_after_the_end_serves_again() {
    let fake = Fake::new().await;
    let rpc = Arc::clone(&fake.rpc);
    let sending = tokio::spawn(async move { read(rpc.stream(call()).await).await });
    let mut server = fake.accept().await;
    peer::request(&mut server).await;
    let head = "HTTP/1.1 200 X\r\ncontent-type: application/connect+proto\r\ntransfer-encoding: chunked\r\n\r\n";
    let bytes = [head.as_bytes(), b"7\r\n", &end("{}"), b"\r\n"].concat();
    server.write_all(&bytes).await.unwrap();
    sending.await.unwrap().end.unwrap();
    server.write_all(b"0\r\n\r\n").await.unwrap();
    idle(&fake.rpc).await;
}

#[tokio::test]
async fn messages_are_inflated_each_for_itself() {
    for (name, compress) in [("gzip", gzip as fn(&[u8]) -> Vec<u8>), ("zstd", zstd)] {
        let envelopes = [
            envelope(1, &compress(b"one")),
            envelope(0, b"two"),
            envelope(1, b""),
            envelope(1, &compress(b"four")),
            envelope(3, &compress(b"{}")),
        ];
        let head = format!("content-type: application/connect+proto\r\nconnect-content-encoding: {name}\r\n");
        let came = Fake::new().await.streamed(call(), &answer(200, &head, &envelopes.concat())).await;
        assert_eq!(came.texts(), ["one", "two", "", "four"], "{name}");
        came.end.unwrap();
    }
}

#[tokio::test]
async fn a_compressed_message_that_cannot_be_inflated_is_malformed() {
    let bomb = vec![0; MAX_EVENT + 1];
    let mut broken = gzip(b"hello");
    broken[12] ^= 0xff;
    let short = &gzip(b"hello")[..15];
    let rows: [(&str, &str, &[u8]); 8] = [
        ("by no coding", "", &gzip(b"x")),
        ("by identity", "identity", &gzip(b"x")),
        ("by a coding that was not offered", "br", b"x"),
        ("not gzip", "gzip", b"hello"),
        ("broken", "gzip", &broken),
        ("cut", "gzip", short),
        ("a bomb of gzip", "gzip", &gzip(&bomb)),
        ("a bomb of zstd", "zstd", &zstd(&bomb)),
    ];
    for (what, name, payload) in rows {
        let coding = if name.is_empty() { String::new() } else { format!("connect-content-encoding: {name}\r\n") };
        let head = format!("content-type: application/connect+proto\r\n{coding}");
        let body = [envelope(1, payload), end("{}")].concat();
        assert_eq!(fault_of(&answer(200, &head, &body)).await, MALFORMED, "{what}");
    }
}

#[tokio::test]
async fn a_message_of_16_mib_comes_and_one_byte_more_is_malformed() {
    let fits = envelope(0, &vec![7; MAX_EVENT]);
    let came = Fake::new().await.streamed(call(), &stream(&[fits, end("{}")])).await;
    assert_eq!(came.messages[0].len(), MAX_EVENT);
    came.end.unwrap();
    let length = u32::try_from(MAX_EVENT + 1).unwrap().to_be_bytes();
    let head = [&[0][..], &length].concat();
    assert_eq!(fault_of(&stream(&[head])).await, MALFORMED);
    let long = RpcCall { message: vec![7; MAX_EVENT + 1].into(), ..call() };
    let fake = Fake::new().await;
    let fault = fake.rpc.stream(long).await.unwrap_err();
    assert_eq!((fault.fault.kind, fault.told), (FaultKind::RequestInvalid, Told::Unsent));
}

#[tokio::test]
async fn an_answer_that_stops_without_its_end_is_truncated() {
    let whole = stream(&[envelope(0, b"hello")]);
    assert_eq!(fault_of(&whole).await, TRUNCATED, "after a message");
    assert_eq!(fault_of(&stream(&[])).await, TRUNCATED, "without a byte");
    assert_eq!(fault_of(&stream(&[b"\0\0\0\0\x05hel".to_vec()])).await, TRUNCATED, "within a message");
    assert_eq!(fault_of(&stream(&[b"\x02\0".to_vec()])).await, TRUNCATED, "within the end's head");
    let longer = answer(200, "content-type: application/connect+proto\r\n", &[b' '; 50]);
    let cut = &longer[..longer.len() - 50];
    assert_eq!(fault_of(cut).await, TRUNCATED, "the transport's end is missing too");
}

#[tokio::test]
async fn what_is_not_the_protocol_is_malformed() {
    let html = answer(200, "content-type: text/html\r\n", b"<html>");
    let rows: [(&str, Vec<u8>); 10] = [
        ("another content type", html),
        ("no content type", answer(200, "", b"")),
        ("the other codec", answer(200, "content-type: application/connect+json\r\n", &end("{}"))),
        ("the unary content type", answer(200, "content-type: application/proto\r\n", b"")),
        ("an unknown flag", stream(&[envelope(4, b"x"), end("{}")])),
        ("an end that is no JSON", stream(&[end("")])),
        ("an end that is no object", stream(&[end("[]")])),
        ("a null error", stream(&[end(r#"{"error":null}"#)])),
        ("an error that is a string", stream(&[end(r#"{"error":"no"}"#)])),
        ("bytes after the end", stream(&[end("{}"), envelope(0, b"more")])),
    ];
    for (what, bytes) in rows {
        assert_eq!(fault_of(&bytes).await, MALFORMED, "{what}");
    }
}

#[tokio::test]
async fn an_error_instead_of_a_message_is_a_refusal_and_one_after_it_is_not() {
    let rows = [
        ("resource_exhausted", FaultKind::RateLimited, Told::Refused),
        ("unauthenticated", FaultKind::CredentialRejected, Told::Refused),
        ("invalid_argument", FaultKind::RequestInvalid, Told::Refused),
        ("permission_denied", FaultKind::Unclassified, Told::Refused),
        ("unavailable", FaultKind::UpstreamUnavailable, Told::Failed),
        ("aborted", FaultKind::UpstreamUnavailable, Told::Failed),
        ("internal", FaultKind::UpstreamInternal, Told::Failed),
        ("deadline_exceeded", FaultKind::DeadlineExceeded, Told::Failed),
        ("a_word_of_its_own", FaultKind::Unclassified, Told::Failed),
    ];
    for (code, kind, told) in rows {
        let error =
            end(&format!(r#"{{"error":{{"code":"{code}","message":"m"}},"metadata":{{"retry-after":["7"]}}}}"#));
        let came = Fake::new().await.streamed(call(), &stream(std::slice::from_ref(&error))).await;
        assert_eq!(came.fault(), (kind, Phase::Answered, told), "{code}");
        let fault = came.end.unwrap_err().fault;
        assert_eq!(fault.declared.wait, Some(Duration::from_secs(7)), "{code}");
        assert_eq!(fault.evidence.code.as_deref(), Some(code));
        let came = Fake::new().await.streamed(call(), &stream(&[envelope(0, b"x"), error])).await;
        assert_eq!(came.fault(), (kind, Phase::Answered, Told::Unknown), "{code} after a message");
    }
}

#[tokio::test]
async fn not_found_means_that_a_conversation_is_gone_only_where_one_goes_on() {
    let error = r#"{"code":"not_found","message":"no such conversation"}"#;
    let in_stream = stream(&[end(&format!(r#"{{"error":{error}}}"#))]);
    let document = answer(404, "content-type: application/json\r\n", error.as_bytes());
    for (continued, kind) in [(false, FaultKind::RequestInvalid), (true, FaultKind::ConversationGone)] {
        let asked = || RpcCall { continued, ..call() };
        assert_eq!(Fake::new().await.streamed(asked(), &in_stream).await.fault().0, kind);
        assert_eq!(Fake::new().await.unary(asked(), &document).await.unwrap_err().fault.kind, kind);
    }
}

#[tokio::test]
async fn begun_waits_for_the_first_message_and_loses_none() {
    let fake = Fake::new().await;
    let rpc = Arc::clone(&fake.rpc);
    let sending = tokio::spawn(async move {
        let opened = rpc.stream(call()).await.unwrap().begun().await;
        read(opened).await
    });
    let mut server = fake.accept().await;
    peer::request(&mut server).await;
    server.write_all(&stream(&[envelope(0, b"one"), envelope(0, b"two"), end("{}")])).await.unwrap();
    assert_eq!(sending.await.unwrap().texts(), ["one", "two"]);
}

#[tokio::test]
async fn dropping_a_stream_closes_its_connection() {
    let fake = Fake::new().await;
    let rpc = Arc::clone(&fake.rpc);
    let sending = tokio::spawn(async move { rpc.stream(call()).await.unwrap().begun().await.unwrap() });
    let mut server = fake.accept().await;
    peer::request(&mut server).await;
    let head = b"HTTP/1.1 200 X\r\ncontent-type: application/connect+proto\r\ncontent-length: 1000\r\n\r\n";
    server.write_all(&[&head[..], &envelope(0, b"x")].concat()).await.unwrap();
    let stream = sending.await.unwrap();
    drop(stream);
    peer::closed(&mut server).await;
}

#[tokio::test]
async fn a_unary_call_has_its_message_bare_and_its_trailers_among_the_headers() {
    let fake = Fake::new().await;
    let rpc = Arc::clone(&fake.rpc);
    let sending = tokio::spawn(async move { rpc.unary(call()).await });
    let mut server = fake.accept().await;
    let (head, body) = peer::request(&mut server).await;
    assert_eq!(body, b"ask");
    let head = head.to_ascii_lowercase();
    for line in ["content-type: application/proto", "accept-encoding: gzip, zstd", "connect-timeout-ms: 600000"] {
        assert!(head.lines().any(|found| found == line), "{line} is missing in {head}");
    }
    let headers = "content-type: application/proto\r\ncontent-encoding: gzip\r\ntrailer-x-cost: 3\r\nx-id: 9\r\n";
    server.write_all(&answer(200, headers, &gzip(b"reply"))).await.unwrap();
    let reply = sending.await.unwrap().unwrap();
    assert_eq!((&reply.message[..], &reply.trailers["x-cost"]), (&b"reply"[..], &"3".parse().unwrap()));
    assert_eq!(reply.trailers.len(), 1, "the other headers are none");
    let empty = answer(200, "content-type: application/proto\r\ncontent-encoding: gzip\r\n", b"");
    assert_eq!(Fake::new().await.unary(call(), &empty).await.unwrap().message.len(), 0, "nothing is not inflated");
}

#[tokio::test]
async fn a_unary_error_is_named_by_its_code_and_without_one_by_its_status() {
    use FaultKind::{
        CredentialRejected, DeadlineExceeded, RateLimited, RequestInvalid, Unclassified, UpstreamInternal,
        UpstreamUnavailable,
    };
    let json = "content-type: application/json\r\n";
    let html = "content-type: text/html\r\n";
    let rows: [(u16, &str, &str, FaultKind, Told); 11] = [
        (429, json, r#"{"code":"resource_exhausted"}"#, RateLimited, Told::Refused),
        (401, json, r#"{"code":"unauthenticated","message":"no"}"#, CredentialRejected, Told::Refused),
        (400, json, r#"{"code":"failed_precondition"}"#, RequestInvalid, Told::Refused),
        (501, json, r#"{"code":"unimplemented"}"#, RequestInvalid, Told::Refused),
        (503, json, r#"{"code":"unavailable"}"#, UpstreamUnavailable, Told::Failed),
        (500, json, r#"{"code":"internal"}"#, UpstreamInternal, Told::Failed),
        (504, json, r#"{"code":"deadline_exceeded"}"#, DeadlineExceeded, Told::Failed),
        (415, "", "", RequestInvalid, Told::Refused),
        (403, "", "", Unclassified, Told::Refused),
        (502, html, "<html>bad gateway</html>", UpstreamUnavailable, Told::Failed),
        (302, "location: /login\r\n", "", Unclassified, Told::Failed),
    ];
    for (status, headers, body, kind, told) in rows {
        let bytes = answer(status, headers, body.as_bytes());
        let fault = Fake::new().await.unary(call(), &bytes).await.unwrap_err();
        assert_eq!((fault.fault.kind, fault.told), (kind, told), "{status} {body}: {}", fault.fault);
        assert_eq!(fault.fault.evidence.status, Some(status));
        // A proxy may answer a stream so too.
        let came = Fake::new().await.streamed(call(), &bytes).await;
        assert_eq!(came.fault(), (kind, Phase::Answered, told), "{status} {body} of a stream");
    }
}

#[tokio::test]
async fn a_unary_answer_that_is_none_is_malformed_or_truncated() {
    let too_long = answer(200, "content-type: application/proto\r\n", &vec![7; MAX_EVENT + 1]);
    let rows = [
        (too_long, FaultKind::MalformedResponse),
        (answer(200, "content-type: text/html\r\n", b"<html>"), FaultKind::MalformedResponse),
        (answer(200, "content-type: application/json\r\n", b"{}"), FaultKind::MalformedResponse),
        (
            b"HTTP/1.1 200 X\r\ncontent-type: application/proto\r\ncontent-length: 9\r\n\r\nabc".to_vec(),
            FaultKind::StreamTruncated,
        ),
    ];
    for (bytes, kind) in rows {
        let fault = Fake::new().await.unary(call(), &bytes).await.unwrap_err();
        assert_eq!((fault.fault.kind, fault.told), (kind, Told::Unknown));
    }
}

#[tokio::test]
async fn an_error_reply_that_breaks_off_proves_nothing() {
    let document = r#"{"code":"resource_exhausted","message":"a long one"}"#;
    let whole = answer(429, "content-type: application/json\r\n", document.as_bytes());
    let fault = Fake::new().await.unary(call(), &whole[..whole.len() - 3]).await.unwrap_err();
    assert_eq!((fault.fault.kind, fault.told), (FaultKind::RateLimited, Told::Unknown));
}

/// A connection that has served one call and is closed by its server as soon as the next request is there.
async fn on_a_stale_connection(next: RpcCall) -> (Fake, tokio::task::JoinHandle<crate::rpc_peer::Came>) {
    let fake = Fake::new().await;
    let rpc = Arc::clone(&fake.rpc);
    let first = tokio::spawn(async move { read(rpc.stream(call()).await).await });
    let mut server = fake.accept().await;
    peer::request(&mut server).await;
    server.write_all(&stream(&[end("{}")])).await.unwrap();
    first.await.unwrap().end.unwrap();
    idle(&fake.rpc).await;
    let rpc = Arc::clone(&fake.rpc);
    let second = tokio::spawn(async move { read(rpc.stream(next).await).await });
    peer::request(&mut server).await;
    peer::reset(server);
    (fake, second)
}

#[tokio::test]
async fn on_a_stale_connection_a_replay_safe_call_goes_again_and_a_stateful_one_does_not() {
    let (fake, second) = on_a_stale_connection(call()).await;
    let mut server = fake.accept().await;
    peer::request(&mut server).await;
    server.write_all(&stream(&[envelope(0, b"again"), end("{}")])).await.unwrap();
    assert_eq!(second.await.unwrap().texts(), ["again"]);
    let (_fake, second) = on_a_stale_connection(RpcCall { stateful: true, ..call() }).await;
    assert_eq!(second.await.unwrap().fault(), (FaultKind::ConnectionReset, Phase::MaybeSent, Told::Unknown));
}

#[tokio::test]
async fn a_stateful_call_uses_no_connection_that_has_waited_5_seconds() {
    for (waited, connections) in [(4, 1), (6, 2)] {
        let fake = Fake::new().await;
        let mut servers = Vec::new();
        for turn in 0..2 {
            let rpc = Arc::clone(&fake.rpc);
            let sending =
                tokio::spawn(async move { read(rpc.stream(RpcCall { stateful: true, ..call() }).await).await });
            if turn == 0 || connections == 2 {
                servers.push(fake.accept().await);
            }
            let server = servers.last_mut().unwrap();
            peer::request(server).await;
            server.write_all(&stream(&[end("{}")])).await.unwrap();
            sending.await.unwrap().end.unwrap();
            idle(&fake.rpc).await;
            tokio::time::pause();
            tokio::time::advance(Duration::from_secs(waited)).await;
            tokio::time::resume();
        }
        assert_eq!(fake.rpc.open_connections(), connections, "after {waited} s");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_certainly_unsent() {
    let fake = Fake::new().await;
    let rpc = Arc::clone(&fake.rpc);
    drop(fake);
    let fault = rpc.stream(call()).await.unwrap_err();
    assert_eq!((fault.fault.kind, fault.told), (FaultKind::ConnectRefused, Told::Unsent));
}
