//! Replies over HTTP/1.1: plain, TLS and Unix sockets.

use super::support::*;
use crate::connection::Socket;
use crate::connection::socket::SocketIo;
use crate::receipts::Delivery;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use turnkeep_base::limit::RECEIPT_WAIT;
use turnkeep_base::receipt::Level;

const ASK: &[u8] = b"POST /turn HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}";
const TERMINAL: &[u8] = b"data: [DONE]\n\n";
const LAST_CHUNK: &[u8] = b"\r\n0\r\n\r\n";

#[tokio::test]
async fn replies_that_are_read_are_delivered_on_one_connection_and_nothing_watches_it_then() {
    let (mut server, mut client) = plain(Buffers::default()).await;
    for length in [None, Some(TERMINAL.len() as u64), None] {
        assert!(!server.deliveries.is_watched());
        client.write_all(ASK).await.unwrap();
        let mut turn = server.turn().await;
        turn.head(length);
        turn.push(TERMINAL);
        let end = if length.is_some() { TERMINAL.to_vec() } else { [TERMINAL, LAST_CHUNK].concat() };
        if length.is_none() {
            read_to(&mut client, TERMINAL).await;
            turn.writer.end();
            read_to(&mut client, LAST_CHUNK).await;
        } else {
            turn.writer.end();
            read_to(&mut client, &end).await;
        }
        assert_eq!(turn.outcome().await, Ok(Level::Acked));
        until(|| !server.deliveries.is_watched()).await;
    }
    client.write_all(b"GET /whole HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    read_to(&mut client, b"whole").await;
    server.stop.send_replace(true);
    soon(server.served).await.unwrap();
    assert_eq!(client.read(&mut [0]).await.unwrap(), 0, "a stop ends an idle connection");
}

#[tokio::test]
async fn a_reply_of_known_length_is_whole_only_when_its_turn_has_ended() {
    let (mut server, mut client) = plain(Buffers::default()).await;
    client.write_all(ASK).await.unwrap();
    let mut turn = server.turn().await;
    turn.head(Some(4));
    turn.push(b"ab");
    read_to(&mut client, b"ab").await;
    turn.push(b"cd");
    until(|| turn.writer.pace().read() == 4).await;
    assert!(!turn.writer.is_gone());
    turn.writer.end();
    read_to(&mut client, b"cd").await;
    assert_eq!(turn.outcome().await, Ok(Level::Acked));
}

#[tokio::test]
async fn megabytes_that_nobody_reads_are_undelivered_after_a_reset() {
    let (mut server, mut client) = plain(SMALL).await;
    client.write_all(ASK).await.unwrap();
    let mut turn = server.turn().await;
    turn.reply(&vec![b'x'; 4 << 20]);
    turn.taken().await;
    assert_eq!(server.deliveries.waiting(), 0, "the kernel has not taken it");
    reset(client);
    assert!(turn.outcome().await.is_err());
}

#[tokio::test]
async fn a_reply_that_the_kernel_has_and_the_client_has_not_is_undelivered_after_a_reset() {
    let (mut server, mut client) = plain(HELD).await;
    client.write_all(ASK).await.unwrap();
    let mut turn = server.turn().await;
    turn.reply(&vec![b'x'; 256 << 10]);
    server.held(1).await;
    assert!(server.deliveries.is_watched());
    reset(client);
    assert!(turn.outcome().await.is_err());
    until(|| !server.deliveries.is_watched()).await;
}

#[tokio::test]
async fn a_reply_that_is_never_acknowledged_is_undelivered_after_the_wait_for_receipts() {
    for buffers in [HELD, SMALL] {
        let (mut server, mut client) = plain(buffers).await;
        client.write_all(ASK).await.unwrap();
        let mut turn = server.turn().await;
        turn.reply(&vec![b'x'; 256 << 10]);
        turn.taken().await;
        until(|| server.deliveries.is_watched()).await;
        tokio::time::pause();
        let began = tokio::time::Instant::now();
        let outcome = std::future::poll_fn(|cx| turn.writer.poll_receipt(cx)).await;
        assert!(outcome.is_err());
        let waited = began.elapsed();
        assert!(waited <= RECEIPT_WAIT + Duration::from_secs(1), "{waited:?}");
        assert!(waited >= RECEIPT_WAIT - Duration::from_secs(5), "{waited:?}");
        tokio::time::resume();
        until(|| !server.deliveries.is_watched()).await;
    }
}

#[tokio::test]
async fn flushed_takes_the_kernels_word_and_forced_takes_none() {
    for (rule, buffers, bytes) in [(Delivery::Flushed, HELD, 256 << 10), (Delivery::Forced, SMALL, 4 << 20)] {
        let (mut server, mut client) = plain_under(rule, buffers).await;
        client.write_all(ASK).await.unwrap();
        let mut turn = server.turn().await;
        turn.reply(&vec![b'x'; bytes]);
        assert_eq!(turn.outcome().await, Ok(Level::Flushed));
        reset(client);
    }
}

#[tokio::test]
async fn a_slow_reader_that_finishes_has_the_reply_also_when_it_has_closed_its_side() {
    for closes in [false, true] {
        let (mut server, mut client) = plain(SMALL).await;
        client.write_all(ASK).await.unwrap();
        let mut turn = server.turn().await;
        turn.open();
        turn.push(&vec![b'x'; 1 << 20]);
        turn.push(TERMINAL);
        turn.writer.end();
        let mut read = vec![0; 1 << 10];
        let mut got = 0;
        while !turn.writer.is_taken() {
            got += soon(client.read(&mut read)).await.unwrap();
        }
        assert!(got < 1 << 20, "much is still to come when all was handed over");
        if closes {
            client.shutdown().await.unwrap();
        }
        let mut rest = Vec::new();
        loop {
            let more = soon(client.read(&mut read)).await.unwrap();
            rest.extend_from_slice(&read[..more]);
            if rest.ends_with(LAST_CHUNK) {
                break;
            }
            assert!(more > 0, "the reply breaks off");
        }
        assert_eq!(turn.outcome().await, Ok(Level::Acked));
    }
}

#[tokio::test]
async fn a_client_that_closes_before_the_last_chunk_has_the_reply() {
    let (mut server, mut client) = plain(Buffers::default()).await;
    client.write_all(ASK).await.unwrap();
    let mut turn = server.turn().await;
    turn.reply(TERMINAL);
    read_to(&mut client, TERMINAL).await;
    drop(client);
    assert_eq!(turn.outcome().await, Ok(Level::Acked));
}

#[tokio::test]
async fn a_reply_is_looked_after_when_its_connection_is_over_for_the_protocol() {
    for reads in [true, false] {
        let (mut server, mut client) = plain(HELD).await;
        let ask = b"POST /turn HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
        client.write_all(ask).await.unwrap();
        let mut turn = server.turn().await;
        turn.reply(&vec![b'x'; 256 << 10]);
        soon(server.served).await.unwrap();
        assert_eq!(server.deliveries.waiting(), 1);
        if reads {
            let mut all = Vec::new();
            soon(client.read_to_end(&mut all)).await.unwrap();
            assert!(all.ends_with(LAST_CHUNK), "and then the end");
        } else {
            reset(client);
        }
        assert_eq!(turn.outcome().await.is_ok(), reads);
    }
}

#[tokio::test]
async fn what_was_acknowledged_before_a_reset_has_arrived_and_what_was_not_has_not() {
    for (buffers, bytes, read) in [(Buffers::default(), 1000, true), (HELD, 256 << 10, false)] {
        let (server, mut client) = pair(buffers).await;
        let socket = Socket::tcp(server, None);
        let mut io = SocketIo::new(socket.clone());
        io.write_all(&vec![1; bytes]).await.unwrap();
        if read {
            soon(client.read_exact(&mut vec![0; bytes])).await.unwrap();
        }
        assert_eq!(socket.written(), bytes as u64);
        reset(client);
        soon(socket.failed()).await;
        let arrival = socket.arrival().unwrap();
        assert!(arrival.over);
        assert_eq!(arrival.acked == bytes as u64, read, "{arrival:?}");
        drop(io);
        assert_eq!(socket.arrival().unwrap(), arrival, "it stays told when the protocol is done");
    }
}

#[tokio::test]
async fn a_client_that_leaves_is_noticed_behind_bytes_that_nobody_reads() {
    for opened in [false, true] {
        let (mut server, mut client) = plain(Buffers::default()).await;
        client.write_all(ASK).await.unwrap();
        let mut turn = server.turn().await;
        if opened {
            turn.open();
            turn.push(b"begins");
            read_to(&mut client, b"begins\r\n").await;
        }
        client.write_all(&ASK.repeat(500)).await.unwrap();
        client.shutdown().await.unwrap();
        let left = std::time::Instant::now();
        turn.gone().await;
        assert!(left.elapsed() < Duration::from_secs(1), "{:?}", left.elapsed());
        soon(server.served).await.unwrap();
    }
}

#[tokio::test]
async fn under_tls_what_counts_is_what_left_the_socket() {
    let (mut server, mut client) = tls(Buffers::default(), b"http/1.1").await;
    for _ in 0..2 {
        client.write_all(ASK).await.unwrap();
        let mut turn = server.turn().await;
        turn.reply(TERMINAL);
        read_to(&mut client, LAST_CHUNK).await;
        assert_eq!(turn.outcome().await, Ok(Level::Acked));
    }

    let (mut server, mut client) = tls(HELD, b"http/1.1").await;
    client.write_all(ASK).await.unwrap();
    let mut turn = server.turn().await;
    turn.reply(&vec![b'x'; 256 << 10]);
    server.held(1).await;
    assert!(server.deliveries.socket().written() > 256 << 10);
    reset(client.into_inner().0);
    assert!(turn.outcome().await.is_err());
}

#[tokio::test]
async fn over_a_unix_socket_the_kernels_word_has_to_do() {
    let (server, mut client) = tokio::net::UnixStream::pair().unwrap();
    let mut server = Server::over(Socket::unix(server, None), None, Delivery::Acked);
    client.write_all(ASK).await.unwrap();
    let mut turn = server.turn().await;
    turn.reply(TERMINAL);
    read_to(&mut client, LAST_CHUNK).await;
    assert_eq!(turn.outcome().await, Ok(Level::Flushed));

    client.write_all(ASK).await.unwrap();
    let mut turn = server.turn().await;
    turn.reply(&vec![b'x'; 4 << 20]);
    turn.taken().await;
    drop(client);
    assert!(turn.outcome().await.is_err());
}
