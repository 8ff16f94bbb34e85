//! Replies over HTTP/2: by ALPN and with prior knowledge.

use super::support::*;
use crate::connection::frames::PREFACE;
use bytes::Bytes;
use http::Request;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use turnkeep_base::receipt::Level;

const TERMINAL: &[u8] = b"data: [DONE]\n\n";
const MUCH: usize = 256 << 10;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}

/// The preface, and windows that never close.
fn hello() -> Vec<u8> {
    let window = (1_u32 << 30).to_be_bytes();
    let settings = frame(4, 0, 0, &[&[0, 4], &window[..]].concat());
    [PREFACE, &settings, &frame(8, 0, 0, &window)].concat()
}

/// `GET /`, whole.
fn ask(stream: u32) -> Vec<u8> {
    frame(1, 5, stream, &[0x82, 0x86, 0x84, 0x41, 1, b'a'])
}

fn rst(stream: u32) -> Vec<u8> {
    frame(3, 0, stream, &8_u32.to_be_bytes())
}

async fn exchange<I>(mut server: Server, io: I)
where
    I: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (mut send, connection) = soon(h2::client::handshake(io)).await.unwrap();
    let connection = tokio::spawn(connection);
    for number in 0..3 {
        let request = Request::post("http://localhost/turn").body(()).unwrap();
        let (response, mut body) = send.send_request(request, false).unwrap();
        body.send_data(Bytes::from_static(b"{}"), true).unwrap();
        let mut turn = server.turn().await;
        assert_eq!(turn.path, "/turn");
        turn.head((number == 1).then_some(TERMINAL.len() as u64));
        let response = soon(response).await.unwrap();
        assert!(response.headers().contains_key("date"));
        assert_eq!(response.headers().contains_key("content-length"), number == 1);
        turn.push(TERMINAL);
        let mut body = response.into_body();
        if number == 2 {
            assert_eq!(soon(body.data()).await.unwrap().unwrap(), TERMINAL, "before the end is known");
        }
        turn.writer.end();
        if number != 2 {
            assert_eq!(soon(body.data()).await.unwrap().unwrap(), TERMINAL);
        }
        while let Some(rest) = soon(body.data()).await {
            assert!(rest.unwrap().is_empty());
        }
        assert_eq!(turn.outcome().await, Ok(Level::Acked));
        until(|| !server.deliveries.is_watched()).await;
    }
    server.stop.send_replace(true);
    soon(server.served).await.unwrap();
    soon(connection).await.unwrap().unwrap();
}

#[tokio::test]
async fn replies_that_are_read_are_delivered_by_alpn() {
    let (server, client) = tls(Buffers::default(), b"h2").await;
    exchange(server, client).await;
}

#[tokio::test]
async fn replies_that_are_read_are_delivered_with_prior_knowledge() {
    let (server, client) = plain(Buffers::default()).await;
    exchange(server, client).await;
}

#[tokio::test]
async fn a_preface_in_two_pieces_is_still_a_preface() {
    let (server, mut client) = plain(Buffers::default()).await;
    let hello = hello();
    client.write_all(&hello[..5]).await.unwrap();
    until(|| server.deliveries.last_heard().is_none()).await;
    client.write_all(&hello[5..]).await.unwrap();
    let mut head = [0; 9];
    soon(client.read_exact(&mut head)).await.unwrap();
    assert_eq!(head[3], 4, "SETTINGS");
}

#[tokio::test]
async fn a_stream_that_is_reset_before_it_was_acknowledged_is_undelivered_and_the_others_are_not() {
    let (mut server, mut client) = plain(HELD).await;
    client.write_all(&[hello(), ask(1), ask(3)].concat()).await.unwrap();
    let (mut first, mut second) = (server.turn().await, server.turn().await);
    first.reply(&vec![b'x'; MUCH]);
    second.reply(&vec![b'y'; MUCH]);
    server.held(2).await;
    client.write_all(&rst(1)).await.unwrap();
    assert!(first.outcome().await.is_err());
    assert_eq!(server.deliveries.waiting(), 1);
    let mut buffer = vec![0; 64 << 10];
    let mut got = 0;
    while got < 2 * MUCH {
        got += soon(client.read(&mut buffer)).await.unwrap();
    }
    let drain = tokio::spawn(async move { while client.read(&mut buffer).await.is_ok_and(|read| read > 0) {} });
    assert_eq!(second.outcome().await, Ok(Level::Acked));
    drain.abort();
}

#[tokio::test]
async fn what_a_reset_connection_had_not_acknowledged_is_undelivered_on_each_of_its_streams() {
    let (mut server, mut client) = plain(HELD).await;
    client.write_all(&[hello(), ask(1), ask(3), ask(5)].concat()).await.unwrap();
    let (mut first, mut second, mut third) = (server.turn().await, server.turn().await, server.turn().await);
    first.reply(&vec![b'x'; MUCH]);
    server.held(1).await;
    second.reply(&vec![b'x'; 32 << 20]);
    second.taken().await;
    third.open();
    reset(client);
    for turn in [&mut first, &mut second, &mut third] {
        assert!(turn.outcome().await.is_err());
    }
    soon(server.served).await.unwrap();
    until(|| !server.deliveries.is_watched()).await;
}

#[tokio::test]
async fn a_client_that_answers_no_ping_is_given_up() {
    let (mut server, mut client) = plain(Buffers::default()).await;
    client.write_all(&[hello(), ask(1)].concat()).await.unwrap();
    let mut turn = server.turn().await;
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    std::future::poll_fn(|cx| turn.writer.poll_gone(cx)).await;
    let waited = began.elapsed();
    assert!(waited <= Duration::from_secs(31), "{waited:?}");
    tokio::time::resume();
    let mut all = Vec::new();
    soon(client.read_to_end(&mut all)).await.unwrap();
    let ping = frame(6, 0, 0, b"")[3..].to_vec();
    assert!(all.windows(6).any(|window| window == ping), "it was asked");
}

#[tokio::test]
async fn a_stream_that_is_reset_after_it_was_acknowledged_stays_delivered() {
    let (mut server, mut client) = plain(Buffers::default()).await;
    client.write_all(&[hello(), ask(1)].concat()).await.unwrap();
    let mut turn = server.turn().await;
    turn.reply(TERMINAL);
    read_to(&mut client, TERMINAL).await;
    client.write_all(&rst(1)).await.unwrap();
    assert_eq!(turn.outcome().await, Ok(Level::Acked));
}

#[tokio::test]
async fn a_reply_that_the_windows_hold_back_is_gone_with_its_stream_or_its_connection() {
    for whole in [true, false] {
        let (mut server, mut client) = plain(Buffers::default()).await;
        let settings = frame(4, 0, 0, &[0, 4, 0, 0, 0, 10]);
        client.write_all(&[PREFACE, &settings, &ask(1)].concat()).await.unwrap();
        let mut turn = server.turn().await;
        turn.open();
        turn.push(&[b'x'; 100]);
        read_to(&mut client, &[b'x'; 10]).await;
        turn.push(TERMINAL);
        if whole {
            turn.writer.end();
        }
        assert!(!turn.writer.is_taken(), "the rest waits in the pipe");
        if whole {
            client.write_all(&rst(1)).await.unwrap();
            turn.gone().await;
        } else {
            client.shutdown().await.unwrap();
            let left = std::time::Instant::now();
            turn.gone().await;
            assert!(left.elapsed() < Duration::from_secs(1));
            soon(server.served).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_reset_before_the_head_drops_the_turn() {
    let (mut server, mut client) = plain(Buffers::default()).await;
    client.write_all(&[hello(), ask(1)].concat()).await.unwrap();
    let mut turn = server.turn().await;
    client.write_all(&rst(1)).await.unwrap();
    turn.gone().await;
}

#[tokio::test]
async fn a_whole_answer_comes_with_its_length_and_an_unread_body_is_not_waited_for() {
    let (server, client) = plain(Buffers::default()).await;
    let (mut send, connection) = soon(h2::client::handshake(client)).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = Request::post("http://localhost/whole").body(()).unwrap();
    let (response, mut up) = send.send_request(request, false).unwrap();
    let response = soon(response).await.unwrap();
    assert_eq!(response.headers()["content-length"], "5");
    let mut body = response.into_body();
    assert_eq!(soon(body.data()).await.unwrap().unwrap(), "whole");
    let reason = soon(std::future::poll_fn(|cx| up.poll_reset(cx))).await.unwrap();
    assert_eq!(reason, h2::Reason::NO_ERROR);
    drop((send, body, up));
    soon(connection).await.unwrap().unwrap();
    soon(server.served).await.unwrap();
}
