//! Request bodies that do not come in one piece: broken framing, and a gateway that is stopped while one comes.

use crate::support::dialects::CHAT;
use crate::support::world::{BOUND, KEY};
use crate::support::*;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

fn head(pair: Pair, framing: &str) -> String {
    format!(
        "POST {} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer {KEY}\r\nanthropic-version: 2023-06-01\r\n\
         content-type: application/json\r\n{framing}\r\n\r\n",
        pair.path()
    )
}

async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    tokio::time::timeout(BOUND, stream.read_to_end(&mut bytes)).await.expect("the gateway closes").unwrap();
    String::from_utf8(bytes).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_chunk_is_answered_in_the_dialects_error_form() {
    let lab = lab([]).await;
    for pair in pairs() {
        let world = World::simple(pair, &lab).await;
        let mut stream = TcpStream::connect(world.addr()).await.unwrap();
        let text = head(pair, "transfer-encoding: chunked") + "5\r\n{\"mod\r\nzz\r\n";
        stream.write_all(text.as_bytes()).await.unwrap();
        let reply = rest(&mut stream).await;
        assert!(reply.starts_with("HTTP/1.1 400 ") && reply.contains("\"error\""), "{reply}");
        let word = pair.each("invalid_request", "invalid_request", "invalid_request", "INVALID_ARGUMENT");
        assert!(reply.contains(word) && reply.contains("could not be read"), "{reply}");
    }
    assert!(lab.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_comes_while_the_gateway_stops_starts_no_turn() {
    let lab = lab([]).await;
    let mut world = World::simple(CHAT, &lab).await;
    let addr = world.addr();
    let mut stream = TcpStream::connect(addr).await.unwrap();
    let body = request(CHAT).to_string();
    let framing = format!("content-length: {}\r\nexpect: 100-continue", body.len());
    stream.write_all(head(CHAT, &framing).as_bytes()).await.unwrap();
    // The gateway asks for the body: it has taken the request on.
    let mut go = [0; 25];
    tokio::time::timeout(BOUND, stream.read_exact(&mut go)).await.expect("it asks for the body").unwrap();
    assert_eq!(&go, b"HTTP/1.1 100 Continue\r\n\r\n");
    world.ask_to_stop();
    let refusing = async {
        let mut looks = tokio::time::interval(Duration::from_millis(5));
        while TcpStream::connect(addr).await.is_ok() {
            looks.tick().await;
        }
    };
    tokio::time::timeout(BOUND, refusing).await.expect("it stops listening");
    stream.write_all(body.as_bytes()).await.unwrap();
    let reply = rest(&mut stream).await;
    assert!(reply.starts_with("HTTP/1.1 503 ") && reply.contains("shutting down"), "{reply}");
    assert!(world.into_ledger().await.is_empty());
    assert!(lab.requests().is_empty());
}
