//! HTTP/1 connections: kept, shared by nobody, given back only when read to the end.

use crate::peer::{self, OK};
use tokio::io::AsyncWriteExt;
use turnkeep_base::{FaultKind, Phase};
use turnkeep_engine::ports::{Call, Upstream as _};

#[tokio::test]
async fn a_connection_whose_answer_was_read_serves_the_next_call() {
    let (listener, authority) = peer::listen().await;
    let endpoint = peer::plain(&authority);
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut heads = Vec::new();
        for _ in 0..3 {
            heads.push(peer::serve(&mut stream, OK).await);
        }
        (heads, stream)
    });
    for _ in 0..3 {
        assert_eq!(peer::whole(&endpoint).await.unwrap(), b"{}");
        assert_eq!((endpoint.open_connections(), endpoint.idle_connections()), (1, 1));
    }
    let (heads, _stream) = server.await.unwrap();
    assert!(heads[0].starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{}", heads[0]);
    for line in [
        format!("host: {authority}"),
        format!("authorization: Bearer {}", peer::SECRET),
        "content-type: application/json".into(),
        "content-length: 7".into(),
        "accept-encoding: gzip, br, zstd".into(),
        format!("user-agent: turnkeep/{}", env!("CARGO_PKG_VERSION")),
    ] {
        assert!(heads[0].lines().any(|had| had == line), "{line} is not in {}", heads[0]);
    }
}

#[tokio::test]
async fn accounts_do_not_share_connections() {
    let (listener, authority) = peer::listen().await;
    let endpoint = peer::plain(&authority);
    let server = tokio::spawn(async move {
        let mut streams = Vec::new();
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().await.unwrap();
            peer::serve(&mut stream, OK).await;
            streams.push(stream);
        }
        streams
    });
    for account in ["one", "two"] {
        let mut answer = endpoint.send(peer::call_for(account)).await.unwrap();
        peer::rest(&mut answer).await.unwrap();
    }
    assert_eq!(endpoint.open_connections(), 2);
    drop(server.await.unwrap());
}

#[tokio::test]
async fn a_body_dropped_midway_closes_its_connection() {
    let (listener, authority) = peer::listen().await;
    let endpoint = peer::plain(&authority);
    let call = peer::sending(&endpoint);
    let (mut stream, _) = listener.accept().await.unwrap();
    peer::serve(&mut stream, b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n").await;
    let mut answer = call.await.unwrap().unwrap();
    assert_eq!(peer::next(&mut answer).await.unwrap().unwrap(), "hi");
    drop(answer);
    peer::closed(&mut stream).await;
    assert_eq!(endpoint.idle_connections(), 0);
}

#[tokio::test]
async fn a_call_dropped_before_its_answer_closes_its_connection() {
    let (listener, authority) = peer::listen().await;
    let endpoint = peer::plain(&authority);
    let call = peer::sending(&endpoint);
    let (mut stream, _) = listener.accept().await.unwrap();
    peer::request(&mut stream).await;
    call.abort();
    peer::closed(&mut stream).await;
}

#[tokio::test]
async fn a_body_dropped_with_only_its_transports_end_unread_keeps_its_connection() {
    let (listener, authority) = peer::listen().await;
    let endpoint = peer::plain(&authority);
    let call = peer::sending(&endpoint);
    let (mut stream, _) = listener.accept().await.unwrap();
    peer::serve(&mut stream, OK).await;
    let mut answer = call.await.unwrap().unwrap();
    peer::next(&mut answer).await.unwrap().unwrap();
    drop(answer);
    assert_eq!(endpoint.idle_connections(), 1);
    let call = peer::sending(&endpoint);
    peer::serve(&mut stream, OK).await;
    call.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_call_on_a_connection_gone_stale_is_sent_again_on_a_fresh_one() {
    let (listener, authority) = peer::listen().await;
    let endpoint = peer::plain(&authority);
    let call = peer::sending(&endpoint);
    let (mut stale, _) = listener.accept().await.unwrap();
    peer::serve(&mut stale, OK).await;
    peer::rest(&mut call.await.unwrap().unwrap()).await.unwrap();
    let call = peer::sending(&endpoint);
    // It arrives, and no byte comes back.
    peer::request(&mut stale).await;
    peer::reset(stale);
    let (mut fresh, _) = listener.accept().await.unwrap();
    let (_, body) = {
        let request = peer::request(&mut fresh).await;
        fresh.write_all(OK).await.unwrap();
        request
    };
    assert_eq!(body, b"{\"a\":1}");
    assert_eq!(peer::rest(&mut call.await.unwrap().unwrap()).await.unwrap(), b"{}");
}

#[tokio::test]
async fn a_call_is_never_sent_a_third_time() {
    let (listener, authority) = peer::listen().await;
    let endpoint = peer::plain(&authority);
    // Two idle connections, both about to die.
    let (one, two) = (peer::sending(&endpoint), peer::sending(&endpoint));
    let (mut a, _) = listener.accept().await.unwrap();
    let (mut b, _) = listener.accept().await.unwrap();
    peer::serve(&mut a, OK).await;
    peer::serve(&mut b, OK).await;
    for call in [one, two] {
        peer::rest(&mut call.await.unwrap().unwrap()).await.unwrap();
    }
    assert_eq!(endpoint.idle_connections(), 2);
    let call = peer::sending(&endpoint);
    let mut streams = [a, b];
    // Whichever of the two was taken.
    let [a, b] = &mut streams;
    tokio::select! { _ = peer::request(a) => {}, _ = peer::request(b) => {} }
    drop(streams);
    let (mut fresh, _) = listener.accept().await.unwrap();
    peer::request(&mut fresh).await;
    drop(fresh);
    let fault = call.await.unwrap().err().unwrap();
    assert_eq!((fault.kind, fault.phase), (FaultKind::ConnectionReset, Phase::MaybeSent));
    assert_eq!(endpoint.open_connections(), 0);
}

#[tokio::test]
async fn a_fresh_connection_that_dies_without_an_answer_is_not_tried_again() {
    let (listener, authority) = peer::listen().await;
    let endpoint = peer::plain(&authority);
    let call = peer::sending(&endpoint);
    let (mut stream, _) = listener.accept().await.unwrap();
    peer::request(&mut stream).await;
    drop(stream);
    let fault = call.await.unwrap().err().unwrap();
    assert_eq!((fault.kind, fault.phase), (FaultKind::ConnectionReset, Phase::MaybeSent));
}

#[tokio::test]
async fn a_reused_connection_that_dies_within_an_answers_head_is_not_tried_again() {
    let (listener, authority) = peer::listen().await;
    let endpoint = peer::plain(&authority);
    let call = peer::sending(&endpoint);
    let (mut stream, _) = listener.accept().await.unwrap();
    peer::serve(&mut stream, OK).await;
    peer::rest(&mut call.await.unwrap().unwrap()).await.unwrap();
    let call = peer::sending(&endpoint);
    peer::serve(&mut stream, b"HTTP/1.1 200 O").await;
    drop(stream);
    let fault = call.await.unwrap().err().unwrap();
    assert_eq!((fault.kind, fault.phase), (FaultKind::ConnectionReset, Phase::Answered));
}

#[tokio::test]
async fn a_call_beyond_the_accounts_connections_is_refused_as_ours() {
    let (listener, authority) = peer::listen().await;
    let spec = turnkeep_upstream::EndpointSpec { max_connections: 1, ..peer::spec(format!("http://{authority}")) };
    let endpoint = std::sync::Arc::new(turnkeep_upstream::Endpoint::new(spec).unwrap());
    let first = peer::sending(&endpoint);
    let (mut stream, _) = listener.accept().await.unwrap();
    peer::request(&mut stream).await;
    let fault = endpoint.send(peer::call()).await.err().unwrap();
    assert_eq!((fault.kind, fault.phase), (FaultKind::GatewayExhausted, Phase::Unsent));
    stream.write_all(OK).await.unwrap();
    peer::rest(&mut first.await.unwrap().unwrap()).await.unwrap();
    let again = peer::sending(&endpoint);
    peer::serve(&mut stream, OK).await;
    again.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_get_has_no_body_and_says_nothing_of_one() {
    let (listener, authority) = peer::listen().await;
    let endpoint = peer::plain(&authority);
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        peer::serve(&mut stream, OK).await
    });
    let call = Call { method: http::Method::GET, path: "/models".into(), body: bytes::Bytes::new(), ..peer::call() };
    peer::rest(&mut endpoint.send(call).await.unwrap()).await.unwrap();
    let head = server.await.unwrap();
    assert!(head.starts_with("GET /v1/models HTTP/1.1\r\n"), "{head}");
    assert!(!head.contains("content-"), "{head}");
}
