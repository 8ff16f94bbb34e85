//! Each fault as the socket's other end sees it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

mod client;

use std::io::ErrorKind;

use bytes::Bytes;
use client::{chat, events, h1, h2, hello, hello_messages, lab_toml, messages, tls, tls_lab, with};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use turnkeep_lab::Lab;

fn streamed(body: &Value) -> Value {
    with(body, &json!({"stream": true}))
}

/// All bytes of a reply over a bare socket, and how the socket ended.
async fn bare(lab: &Lab) -> (String, Result<(), ErrorKind>) {
    let body = streamed(&with(&hello(), &json!({})));
    let body = body.to_string();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: lab\r\nauthorization: Bearer k\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut socket = TcpStream::connect(lab.addr()).await.unwrap();
    socket.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    let mut chunk = vec![0; 65536];
    loop {
        match socket.read(&mut chunk).await {
            Ok(0) => return (String::from_utf8_lossy(&bytes).into_owned(), Ok(())),
            Ok(read) => bytes.extend_from_slice(&chunk[..read]),
            Err(error) => return (String::from_utf8_lossy(&bytes).into_owned(), Err(error.kind())),
        }
    }
}

#[tokio::test]
async fn before_the_reply_the_socket_is_reset_or_closed_without_a_byte() {
    let lab =
        lab_toml("[[rule]]\ntimes = 1\nfault = \"reset_before_reply\"\n[[rule]]\nfault = \"close_before_reply\"\n")
            .await;
    assert_eq!(bare(&lab).await, (String::new(), Err(ErrorKind::ConnectionReset)));
    assert_eq!(bare(&lab).await, (String::new(), Ok(())));
    lab.wait_idle().await;
    assert_eq!(lab.aborted(), 0, "the lab ended these itself");
}

#[tokio::test]
async fn mid_stream_the_words_before_the_fault_arrive_and_no_more() {
    for (fault, end) in [("reset_mid_stream", Err(ErrorKind::ConnectionReset)), ("close_mid_stream", Ok(()))] {
        let script = format!("[[rule]]\ntext = \"one two three\"\nfault = \"{fault}\"\nfault_at = \"after_words 2\"\n");
        let lab = lab_toml(&script).await;
        let (text, ended) = bare(&lab).await;
        assert!(text.contains("one ") && text.contains("two ") && !text.contains("three"), "{text}");
        assert_eq!(ended, end, "{fault}");
        let body = h1(lab.addr()).await.send(chat(&hello())).await.unwrap().into_body();
        assert!(body.collect().await.is_err(), "a body that is not streamed breaks off too");
        let body = h2(lab.addr()).await.send(chat(&streamed(&hello()))).await.unwrap().into_body();
        assert!(body.collect().await.is_err(), "and so does HTTP/2");
    }
}

#[tokio::test]
async fn over_tls_the_faults_reach_the_socket_too() {
    for fault in ["reset_mid_stream", "close_mid_stream", "bad_chunk"] {
        let lab = tls_lab(&format!("[[rule]]\ntext = \"one two three\"\nfault = \"{fault}\"\n")).await;
        let mut peer = tls(&lab, b"http/1.1").await.unwrap();
        let mut body = peer.send(chat(&streamed(&hello()))).await.unwrap().into_body();
        let mut text = String::new();
        let broke = loop {
            match body.frame().await {
                Some(Ok(frame)) => text.push_str(std::str::from_utf8(&frame.into_data().unwrap()).unwrap()),
                Some(Err(_)) => break true,
                None => break false,
            }
        };
        assert!(broke && text.contains("one ") && !text.contains("two "), "{fault}: {text}");
    }
}

#[tokio::test]
async fn a_stream_can_end_cleanly_without_its_end() {
    let lab = lab_toml("[[rule]]\nfault = \"no_terminal\"\n").await;
    let mut peer = h1(lab.addr()).await;
    let text = peer.get(chat(&streamed(&hello()))).await.text().to_owned();
    assert!(text.contains("answering.") && !text.contains("[DONE]") && !text.contains("finish_reason\":\"stop"));
    let events = peer.get(messages(&streamed(&hello_messages()))).await.events();
    assert_eq!(events.last().unwrap().name.as_deref(), Some("content_block_stop"));
    let half = peer.get(chat(&hello())).await;
    assert!(serde_json::from_slice::<Value>(&half.body).is_err());
}

#[tokio::test]
async fn done_can_come_without_a_finish() {
    let lab = lab_toml("[[rule]]\nfault = \"done_without_finish\"\n").await;
    let mut peer = h1(lab.addr()).await;
    let text = peer.get(chat(&streamed(&hello()))).await.text().to_owned();
    assert!(text.ends_with("data: [DONE]\n\n") && !text.contains("finish_reason\":\"stop"));
    let events = peer.get(messages(&streamed(&hello_messages()))).await.events();
    assert!(events.iter().all(|event| event.name.as_deref() != Some("message_delta")));
    assert_eq!(events.last().unwrap().name.as_deref(), Some("message_stop"));
}

#[tokio::test]
async fn a_hanging_reply_ends_when_the_peer_leaves_and_counts_as_abandoned() {
    let at = ["before_headers", "after_preamble", "after_words 2", "before_terminal"];
    for (nth, at) in at.iter().enumerate() {
        let lab = lab_toml(&format!("[[rule]]\nfault = \"hang\"\nfault_at = \"{at}\"\n")).await;
        for (count, two) in [(1, false), (2, true)] {
            let mut peer = if two { h2(lab.addr()).await } else { h1(lab.addr()).await };
            let request = chat(&streamed(&hello()));
            if nth == 0 {
                let mut reply = Box::pin(peer.send(request));
                tokio::select! {
                    biased;
                    _ = &mut reply => panic!("a hanging reply came"),
                    () = lab.wait_for_requests(count) => {}
                }
                drop(reply);
                drop(peer);
            } else {
                let mut body = peer.send(request).await.unwrap().into_body();
                assert!(body.frame().await.unwrap().is_ok());
                drop(body);
                drop(peer);
            }
            lab.wait_aborted(count).await;
        }
        lab.wait_idle().await;
        assert!(lab.requests().iter().all(|request| request.client_closed_after), "{at}");
        lab.wait_no_connections().await;
    }
}

#[tokio::test]
async fn an_http2_stream_cancelled_alone_is_abandoned_while_its_connection_lives() {
    let lab = lab_toml("[[rule]]\ntimes = 1\nfault = \"hang\"\nfault_at = \"after_words 1\"\n").await;
    let mut peer = h2(lab.addr()).await;
    let mut body = peer.send(chat(&streamed(&hello()))).await.unwrap().into_body();
    assert!(body.frame().await.unwrap().is_ok());
    drop(body);
    lab.wait_aborted(1).await;
    assert_eq!(peer.get(chat(&hello())).await.status, 200);
    assert_eq!((lab.open_connections(), lab.requests()[1].connection), (1, 1));
}

#[tokio::test]
async fn broken_events_stand_in_the_middle_of_a_stream_that_goes_on() {
    let lab = lab_toml("[[rule]]\ntimes = 3\nfault = \"bad_json\"\n[[rule]]\nfault = \"bad_sse\"\n").await;
    let mut peer = h1(lab.addr()).await;
    let all = events(peer.get(chat(&streamed(&hello()))).await.text());
    let broken = all.iter().filter(|event| event.data != "[DONE]");
    let broken = broken.filter(|event| serde_json::from_str::<Value>(&event.data).is_err()).count();
    assert_eq!((broken, all.last().unwrap().data.as_str()), (1, "[DONE]"));
    let all = events(peer.get(messages(&streamed(&hello_messages()))).await.text());
    assert_eq!(all.iter().filter(|event| serde_json::from_str::<Value>(&event.data).is_err()).count(), 1);
    assert!(serde_json::from_slice::<Value>(&peer.get(chat(&hello())).await.body).is_err());
    let got = peer.get(messages(&streamed(&hello_messages()))).await;
    assert!(std::str::from_utf8(&got.body).is_err() && got.body.ends_with(b"\"message_stop\"}\n\n"));
}

#[tokio::test]
async fn html_comes_as_a_502() {
    let lab = lab_toml("[[rule]]\nfault = \"html\"\n").await;
    let got = h1(lab.addr()).await.get(chat(&hello())).await;
    assert_eq!((got.status.as_u16(), got.headers["content-type"].to_str().unwrap()), (502, "text/html"));
    assert!(got.text().starts_with("<html>"));
}

#[tokio::test]
async fn illegal_http_is_sent_byte_for_byte() {
    let lab = lab_toml(
        "[[rule]]\ntimes = 2\nfault = \"bad_header\"\n[[rule]]\ntimes = 2\nfault = \"bad_chunk\"\n\
         [[rule]]\nfault = \"header_overflow\"\nfault_bytes = 2000000\n",
    )
    .await;
    assert!(bare(&lab).await.0.contains("\r\na name with spaces: \u{1}\r\n"));
    assert!(h1(lab.addr()).await.send(chat(&hello())).await.is_err());
    assert!(bare(&lab).await.0.ends_with("this is no chunk size\r\n\r\n"));
    let body = h1(lab.addr()).await.send(chat(&streamed(&hello()))).await.unwrap().into_body();
    assert!(body.collect().await.is_err());
    assert!(bare(&lab).await.0.len() > 2_000_000);
    assert!(h1(lab.addr()).await.send(chat(&hello())).await.is_err());
}

#[tokio::test]
async fn an_error_event_ends_a_stream_in_the_words_of_the_dialect() {
    let lab = lab_toml(
        "[[rule]]\nfault = \"error_in_stream\"\nfault_at = \"after_words 2\"\n\
         error = { status = 529, message = \"Overloaded\", code = \"busy\" }\n",
    )
    .await;
    let mut peer = h1(lab.addr()).await;
    let got = peer.get(messages(&streamed(&hello_messages()))).await;
    assert_eq!(got.status, 200);
    let last = got.events().pop().unwrap();
    assert_eq!(last.name.as_deref(), Some("error"));
    assert_eq!(last.json()["error"]["type"], "overloaded_error");
    let last = peer.get(chat(&streamed(&hello()))).await.events().pop().unwrap().json();
    assert_eq!((&last["error"]["message"], &last["error"]["code"]), (&json!("Overloaded"), &json!("busy")));
    assert_eq!(peer.get(chat(&hello())).await.status, 529, "without a stream it is the reply");
    lab.wait_idle().await;
    assert_eq!(lab.aborted(), 0);
}

#[tokio::test]
async fn one_event_can_be_larger_than_anyone_should_take() {
    let lab = lab_toml("[[rule]]\nfault = \"oversized_event\"\nfault_bytes = 300000\n").await;
    let all = h1(lab.addr()).await.get(messages(&streamed(&hello_messages()))).await.events();
    assert_eq!(all.iter().filter(|event| event.data.len() > 300_000).count(), 1);
    assert_eq!(all.last().unwrap().name.as_deref(), Some("message_stop"));
}

#[tokio::test]
async fn http2_can_reset_one_stream_or_say_goodbye() {
    let lab =
        lab_toml("[[rule]]\ntimes = 1\nfault = \"rst_stream\"\n[[rule]]\ntimes = 1\nfault = \"http2_goaway\"\n").await;
    let mut peer = h2(lab.addr()).await;
    let body = peer.send(chat(&streamed(&hello()))).await.unwrap().into_body();
    assert!(body.collect().await.is_err());
    let got = peer.get(chat(&streamed(&hello()))).await;
    assert!(got.text().ends_with("[DONE]\n\n"), "the reply outlives the goodbye");
    lab.wait_no_connections().await;
    assert!(peer.send(chat(&hello())).await.is_err());
}

#[tokio::test]
async fn a_handshake_can_fail_by_alert_or_by_another_protocol() {
    let lab = tls_lab(
        "[[accept]]\nfault = \"tls_alert\"\ntimes = 1\n[[accept]]\nfault = \"tls_wrong_version\"\ntimes = 1\n\
         [[accept]]\nfault = \"reset_on_accept\"\ntimes = 1\n[[accept]]\nfault = \"close_on_accept\"\ntimes = 1\n",
    )
    .await;
    let error = tls(&lab, b"h2").await.err().unwrap().to_string();
    assert!(error.to_lowercase().contains("alert"), "{error}");
    let error = tls(&lab, b"h2").await.err().unwrap().to_string();
    assert!(error.to_lowercase().contains("corrupt message"), "{error}");
    assert!(tls(&lab, b"h2").await.is_err());
    assert!(tls(&lab, b"h2").await.is_err());
    assert_eq!(tls(&lab, b"h2").await.unwrap().get(chat(&hello())).await.status, 200);
}

#[tokio::test]
async fn a_rule_can_take_requests_the_lab_would_refuse() {
    let lab = lab_toml("[[rule]]\nskip_checks = true\npath = \"/anything\"\nraw = \"{}\"\n").await;
    let request = http::Request::post("http://localhost/anything").header("host", "x").body(Full::<Bytes>::default());
    assert_eq!(h1(lab.addr()).await.get(request.unwrap()).await.text(), "{}");
}

#[tokio::test]
async fn stopping_drops_every_connection() {
    let lab = lab_toml("[[rule]]\nfault = \"hang\"\nfault_at = \"after_preamble\"\n").await;
    let mut body = h1(lab.addr()).await.send(chat(&streamed(&hello()))).await.unwrap().into_body();
    assert!(body.frame().await.unwrap().is_ok());
    let addr = lab.addr();
    lab.stop().await;
    assert!(body.frame().await.is_none_or(|frame| frame.is_err()));
    assert!(TcpStream::connect(addr).await.is_err());
}
