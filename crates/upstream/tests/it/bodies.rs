//! Bodies as they come: this crate hands bytes up and judges none of them, whatever their size, text or end.

use crate::peer;
use std::io::Write as _;
use tokio::io::AsyncWriteExt;
use turnkeep_base::FaultKind;
use turnkeep_base::limit::MAX_EVENT;

/// Serves one answer, and gives its status and as much of the body as came, with how it ended.
async fn answered(answer: Vec<u8>) -> (u16, Vec<u8>, Option<FaultKind>) {
    let (listener, authority) = peer::listen().await;
    let endpoint = peer::plain(&authority);
    let call = peer::sending(&endpoint);
    let (mut stream, _) = listener.accept().await.unwrap();
    let server = tokio::spawn(async move {
        peer::request(&mut stream).await;
        let _ = stream.write_all(&answer).await;
        let _ = stream.shutdown().await;
        peer::closed(&mut stream).await;
    });
    let mut answer = call.await.unwrap().unwrap();
    let (mut body, mut ended) = (Vec::new(), None);
    while let Some(chunk) = peer::next(&mut answer).await {
        match chunk {
            Ok(chunk) => {
                assert!(chunk.len() <= MAX_EVENT);
                body.extend_from_slice(&chunk);
            }
            Err(fault) => ended = Some(fault.kind),
        }
    }
    let status = answer.status.as_u16();
    drop((answer, endpoint));
    server.await.unwrap();
    (status, body, ended)
}

fn reply(head: &str, body: &[u8]) -> Vec<u8> {
    [format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
}

#[tokio::test]
async fn an_error_body_in_any_encoding_comes_as_its_bytes() {
    let utf16: Vec<u8> = "\u{feff}{\"error\":\"déjà\"}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let rows: [(&str, &[u8]); 4] = [
        ("429 Slow\r\ncontent-type: application/json; charset=utf-16", &utf16),
        ("400 Bad\r\ncontent-type: text/plain; charset=iso-8859-1", b"d\xe9j\xe0 vu"),
        ("502 Bad Gateway\r\ncontent-type: text/html", b"<html><body>502</body></html>"),
        ("500 Oops", b"\0\xff\xfe\x80"),
    ];
    for (head, body) in rows {
        let (status, got, ended) = answered(reply(head, body)).await;
        assert_eq!((status.to_string().as_str(), &got[..], ended), (&head[..3], body, None));
    }
}

#[tokio::test]
async fn an_error_body_of_ten_mebibytes_comes_in_pieces_and_can_be_left_unread() {
    let body = vec![b'e'; 10 << 20];
    let (status, got, ended) = answered(reply("500 Oops", &body)).await;
    assert!(status == 500 && got == body && ended.is_none());
    let (listener, authority) = peer::listen().await;
    let endpoint = peer::plain(&authority);
    let call = peer::sending(&endpoint);
    let (mut stream, _) = listener.accept().await.unwrap();
    let answer = reply("500 Oops", &body);
    peer::request(&mut stream).await;
    let writing = tokio::spawn(async move { stream.write_all(&answer).await });
    let mut answer = call.await.unwrap().unwrap();
    assert!(peer::next(&mut answer).await.unwrap().unwrap().len() < 1 << 20, "no more than what has come");
    drop(answer);
    assert!(writing.await.unwrap().is_err(), "the rest was not taken");
    assert_eq!(endpoint.idle_connections(), 0);
}

#[tokio::test]
async fn without_a_length_the_end_of_the_connection_is_the_end_of_the_body() {
    let (status, got, ended) = answered(b"HTTP/1.1 200 OK\r\n\r\ndata: {}\n\n".to_vec()).await;
    assert_eq!(
        (status, &got[..], ended),
        (200, &b"data: {}\n\n"[..], None),
        "whether it is whole is the dialect's to say"
    );
    let (_, got, ended) = answered(b"HTTP/1.0 200 OK\r\n\r\nold".to_vec()).await;
    assert_eq!((&got[..], ended), (&b"old"[..], None));
}

#[tokio::test]
async fn a_bomb_never_becomes_more_than_one_event_at_a_time() {
    // 32 MiB of zeros.
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..32 {
        gzip.write_all(&vec![0; 1 << 20]).unwrap();
    }
    let bomb = gzip.finish().unwrap();
    assert!(bomb.len() < 40_000);
    // In one chunk of its own it is found out; in pieces each stays within the bound, which `answered` checks.
    let (_, got, ended) = answered(reply("200 OK\r\ncontent-encoding: gzip", &bomb)).await;
    assert!(ended == Some(FaultKind::MalformedResponse) || got.len() == 32 << 20, "{ended:?} after {}", got.len());
}

#[tokio::test]
async fn an_informational_answer_is_not_the_answer() {
    let early =
        b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}".to_vec();
    assert_eq!(answered(early).await, (200, b"{}".to_vec(), None));
}

#[tokio::test]
async fn an_answer_that_must_not_have_a_body_has_none() {
    for head in ["204 No Content", "304 Not Modified"] {
        let (_, got, ended) = answered(format!("HTTP/1.1 {head}\r\n\r\n").into_bytes()).await;
        assert_eq!((&got[..], ended), (&b""[..], None), "{head}");
    }
}
