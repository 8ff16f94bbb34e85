//! Connections that break while a call is on them, before and after the first byte of the answer, and what is sent again.

use crate::peer::{self, OK};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use turnkeep_base::{FaultKind, Phase};
use turnkeep_engine::ports::{Call, Upstream as _};
use turnkeep_upstream::Endpoint;

/// A body that no socket takes at once.
const LARGE: usize = 24 << 20;

fn sending_large(endpoint: &Arc<Endpoint>) -> peer::Sending {
    let endpoint = Arc::clone(endpoint);
    let call = Call { body: vec![b'x'; LARGE].into(), ..peer::call() };
    tokio::spawn(async move { endpoint.send(call).await })
}

/// A connection that has served one call.
async fn used(endpoint: &Arc<Endpoint>, listener: &TcpListener) -> TcpStream {
    let call = peer::sending(endpoint);
    let (mut stream, _) = listener.accept().await.unwrap();
    peer::serve(&mut stream, OK).await;
    peer::rest(&mut call.await.unwrap().unwrap()).await.unwrap();
    stream
}

#[tokio::test]
async fn a_reset_before_the_first_byte_may_have_been_sent() {
    let (listener, authority) = peer::listen().await;
    let call = peer::sending(&peer::plain(&authority));
    let (mut stream, _) = listener.accept().await.unwrap();
    peer::request(&mut stream).await;
    peer::reset(stream);
    let fault = call.await.unwrap().err().unwrap();
    assert_eq!((fault.kind, fault.phase), (FaultKind::ConnectionReset, Phase::MaybeSent), "{fault}");
}

#[tokio::test]
async fn a_reset_within_the_answers_head_was_answered() {
    let (listener, authority) = peer::listen().await;
    let call = peer::sending(&peer::plain(&authority));
    let (mut stream, _) = listener.accept().await.unwrap();
    peer::serve(&mut stream, b"HTTP/1.1 200 OK\r\nx-half: ").await;
    // An end, since a reset might overtake the bytes before it.
    stream.shutdown().await.unwrap();
    let fault = call.await.unwrap().err().unwrap();
    assert_eq!((fault.kind, fault.phase), (FaultKind::ConnectionReset, Phase::Answered), "{fault}");
}

#[tokio::test]
async fn a_connection_closed_while_idle_is_not_used_again() {
    for by_reset in [false, true] {
        let (listener, authority) = peer::listen().await;
        let endpoint = peer::plain(&authority);
        let stale = used(&endpoint, &listener).await;
        if by_reset {
            peer::reset(stale)
        } else {
            drop(stale)
        }
        // Whether the close was seen before the call or by it: one call, one answer.
        let call = peer::sending(&endpoint);
        let (mut fresh, _) = listener.accept().await.unwrap();
        peer::serve(&mut fresh, OK).await;
        assert_eq!(peer::rest(&mut call.await.unwrap().unwrap()).await.unwrap(), b"{}");
    }
}

#[tokio::test]
async fn a_body_half_written_to_a_stale_connection_is_sent_again_whole_on_a_fresh_one() {
    let (listener, authority) = peer::listen().await;
    let endpoint = peer::plain(&authority);
    let mut stale = used(&endpoint, &listener).await;
    let call = sending_large(&endpoint);
    stale.read_exact(&mut vec![0; 1 << 20]).await.unwrap();
    peer::reset(stale);
    let (mut fresh, _) = listener.accept().await.unwrap();
    let (head, body) = peer::request(&mut fresh).await;
    assert!(head.starts_with("POST "), "{head}");
    assert!(body.len() == LARGE && body.iter().all(|byte| *byte == b'x'));
    fresh.write_all(OK).await.unwrap();
    assert_eq!(peer::rest(&mut call.await.unwrap().unwrap()).await.unwrap(), b"{}");
}

#[tokio::test]
async fn a_body_half_written_to_a_fresh_connection_is_not_sent_again() {
    let (listener, authority) = peer::listen().await;
    let endpoint = peer::plain(&authority);
    let call = sending_large(&endpoint);
    let (mut stream, _) = listener.accept().await.unwrap();
    stream.read_exact(&mut vec![0; 1 << 20]).await.unwrap();
    peer::reset(stream);
    let fault = call.await.unwrap().err().unwrap();
    assert_eq!((fault.kind, fault.phase), (FaultKind::ConnectionReset, Phase::MaybeSent), "{fault}");
}

#[tokio::test]
async fn an_answer_that_comes_before_the_body_is_written_is_an_answer() {
    let early: &[u8] = b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
    for fresh in [true, false] {
        let (listener, authority) = peer::listen().await;
        let endpoint = peer::plain(&authority);
        let kept = if fresh { None } else { Some(used(&endpoint, &listener).await) };
        let call = sending_large(&endpoint);
        let mut stream = match kept {
            Some(stream) => stream,
            None => listener.accept().await.unwrap().0,
        };
        stream.read_exact(&mut vec![0; 1 << 20]).await.unwrap();
        stream.write_all(early).await.unwrap();
        let mut answer = call.await.unwrap().unwrap();
        assert_eq!(answer.status, 413);
        assert_eq!(peer::rest(&mut answer).await.unwrap(), b"{}");
        drop(stream);
        // Its connection, which still had a body to write, serves nobody else.
        let call = peer::sending(&endpoint);
        let (mut next, _) = listener.accept().await.unwrap();
        peer::serve(&mut next, OK).await;
        call.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_connection_that_speaks_unasked_while_idle_is_not_used_again() {
    let (listener, authority) = peer::listen().await;
    let endpoint = peer::plain(&authority);
    let mut stale = used(&endpoint, &listener).await;
    stale.write_all(b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await.unwrap();
    peer::closed(&mut stale).await;
    let call = peer::sending(&endpoint);
    let (mut fresh, _) = listener.accept().await.unwrap();
    peer::serve(&mut fresh, OK).await;
    assert_eq!(call.await.unwrap().unwrap().status, 200);
}
