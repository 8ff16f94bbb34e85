//! What can go wrong on a plain connection, and the name it gets.

use crate::peer::{self, OK};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use turnkeep_base::{ClockKind, Fault, FaultKind, Phase};
use turnkeep_engine::ports::Upstream as _;
use turnkeep_upstream::{Endpoint, EndpointSpec};

/// Answers a call with these bytes, closes, and gives the fault that came of it.
async fn fault_of(what: &str, answer: Vec<u8>) -> Fault {
    let (listener, authority) = peer::listen().await;
    let endpoint = peer::plain(&authority);
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        peer::request(&mut stream).await;
        // The client may close before it has taken everything.
        let _ = stream.write_all(&answer).await;
        let _ = stream.shutdown().await;
        peer::closed(&mut stream).await;
    });
    let fault = peer::whole(&endpoint).await.err().unwrap_or_else(|| panic!("{what}: no fault"));
    server.await.unwrap();
    assert!(!format!("{fault:?}").contains("hunter2"));
    fault
}

#[tokio::test]
async fn bytes_that_are_not_http_are_http_protocol_errors() {
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let many: String = (0..200).map(|n| format!("x-{n}: 1\r\n")).collect();
    let cases = [
        ("a bad token", "HTTP/1.1 200 OK\r\nbad header\u{1}: 1\r\n\r\n".to_owned(), Phase::Answered),
        ("no HTTP at all", "SSH-2.0-OpenSSH_9.6\r\n\r\n".to_owned(), Phase::Answered),
        ("too many headers", format!("HTTP/1.1 200 OK\r\n{many}\r\n"), Phase::Answered),
        ("a long header", format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "a".repeat(1 << 20)), Phase::Answered),
        (
            "two lengths",
            "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n{}".to_owned(),
            Phase::Answered,
        ),
        ("a bad chunk size", format!("{chunked}zz\r\nhi\r\n"), Phase::Answered),
        ("a chunk without its end", format!("{chunked}2\r\nhixx2\r\nhi\r\n"), Phase::Answered),
    ];
    for (what, answer, phase) in cases {
        let fault = fault_of(what, answer.into_bytes()).await;
        assert_eq!((fault.kind, fault.phase), (FaultKind::HttpProtocolError, phase), "{what}: {fault}");
    }
}

#[tokio::test]
async fn a_body_that_ends_before_its_end_is_truncated() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12345",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n12345\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n12",
    ] {
        let fault = fault_of(answer, answer.into()).await;
        assert_eq!((fault.kind, fault.phase), (FaultKind::StreamTruncated, Phase::Answered), "{fault}");
    }
}

#[tokio::test]
async fn a_reset_within_a_body_is_a_connection_reset() {
    let (listener, authority) = peer::listen().await;
    let endpoint = peer::plain(&authority);
    let call = peer::sending(&endpoint);
    let (mut stream, _) = listener.accept().await.unwrap();
    peer::serve(&mut stream, b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12345").await;
    let mut answer = call.await.unwrap().unwrap();
    assert_eq!(peer::next(&mut answer).await.unwrap().unwrap(), "12345");
    peer::reset(stream);
    let fault = peer::next(&mut answer).await.unwrap().unwrap_err();
    assert_eq!((fault.kind, fault.phase), (FaultKind::ConnectionReset, Phase::Answered), "{fault}");
    assert!(peer::next(&mut answer).await.is_none(), "a fault ends the body");
}

#[tokio::test]
async fn a_refused_connection_is_unsent() {
    let (listener, authority) = peer::listen().await;
    drop(listener);
    let fault = peer::whole(&peer::plain(&authority)).await.unwrap_err();
    assert_eq!((fault.kind, fault.phase), (FaultKind::ConnectRefused, Phase::Unsent));
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_a_dns_failure() {
    let fault = peer::whole(&peer::plain("nobody.invalid:1")).await.unwrap_err();
    assert_eq!((fault.kind, fault.phase), (FaultKind::DnsFailure, Phase::Unsent), "{fault}");
    assert!(fault.evidence.detail.contains("nobody.invalid"));
}

#[tokio::test]
async fn a_call_goes_to_the_next_address_of_a_name() {
    // `localhost` is ::1 and 127.0.0.1 where there is IPv6; only the latter listens.
    let (listener, authority) = peer::listen().await;
    let endpoint = peer::plain(&authority.replace("127.0.0.1", "localhost"));
    let call = peer::sending(&endpoint);
    let (mut stream, _) = listener.accept().await.unwrap();
    peer::serve(&mut stream, OK).await;
    call.await.unwrap().unwrap();
}

#[tokio::test]
async fn under_loopback_only_no_other_address_is_dialled() {
    for base in ["http://192.0.2.1/v1", "https://[2001:db8::1]/v1", "http://[::ffff:192.0.2.1]/v1"] {
        let endpoint = Endpoint::new(peer::spec(base)).unwrap();
        let fault = peer::whole(&endpoint).await.unwrap_err();
        // A packet to these addresses would end as a timeout, or as another text.
        assert_eq!((fault.kind, fault.phase), (FaultKind::Unreachable, Phase::Unsent));
        assert!(fault.evidence.detail.contains("only loopback addresses are allowed here"), "{fault}");
        assert_eq!(endpoint.open_connections(), 0);
    }
    let (_listener, authority) = peer::listen().await;
    let spec =
        EndpointSpec { proxy: Some("http://192.0.2.1:3128".into()), ..peer::spec(format!("http://{authority}/v1")) };
    let fault = peer::whole(&Endpoint::new(spec).unwrap()).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Unreachable);
}

#[tokio::test]
async fn silence_in_the_tls_handshake_is_the_connect_clocks() {
    let (listener, authority) = peer::listen().await;
    let connect_timeout = Duration::from_millis(300);
    let spec = EndpointSpec { connect_timeout, ..peer::spec(format!("https://{authority}")) };
    let endpoint = Arc::new(Endpoint::new(spec).unwrap());
    let call = peer::sending(&endpoint);
    let _silent = listener.accept().await.unwrap();
    let fault = call.await.unwrap().err().unwrap();
    assert_eq!((fault.kind, fault.phase), (FaultKind::ConnectTimeout, Phase::Unsent));
    assert_eq!(fault.clock.map(|clock| (clock.kind, clock.set_by_caller)), Some((ClockKind::Connect, false)));
    assert!(fault.evidence.detail.contains("TLS handshake"), "{fault}");
}

#[tokio::test]
async fn a_secret_shows_in_no_text() {
    let (listener, authority) = peer::listen().await;
    drop(listener);
    let spec = EndpointSpec {
        headers: vec![("x-extra".into(), "hunter2".into())],
        proxy: Some(format!("http://me:hunter2@{authority}")),
        ..peer::spec("http://127.0.0.1:9/v1")
    };
    assert!(!format!("{spec:?}").contains("hunter2"));
    let endpoint = Endpoint::new(spec.clone()).unwrap();
    let fault = endpoint.send(peer::call()).await.err().unwrap();
    assert!(fault.evidence.detail.starts_with("the proxy: "), "{fault}");
    assert!(!format!("{endpoint:?}{fault:?}{:?}", peer::call()).contains("hunter2"));
    let bad = |spec| Endpoint::new(spec).err().unwrap();
    let error = bad(EndpointSpec { headers: vec![("x-extra".into(), "hunter2\n".into())], ..spec.clone() });
    assert_eq!(error.key, "headers");
    assert!(!format!("{error:?}").contains("hunter2"));
    let error = bad(EndpointSpec { proxy: Some("ftp://me:hunter2@a".into()), ..spec });
    assert_eq!(error.key, "proxy");
    assert!(!format!("{error:?}").contains("hunter2"));
}

#[tokio::test]
async fn a_spec_that_cannot_work_names_its_key() {
    let bad = |spec| Endpoint::new(spec).err().unwrap();
    assert_eq!(bad(peer::spec("nonsense")).key, "base_url");
    let spec = EndpointSpec { ca_pem: Some(b"not a pem".to_vec()), ..peer::spec("https://127.0.0.1") };
    let error = bad(spec);
    assert_eq!(error.to_string(), "upstream lab: ca: there is no certificate in it");
    let spec = EndpointSpec { headers: vec![("Authorization".into(), "x".into())], ..peer::spec("http://127.0.0.1") };
    assert_eq!(bad(spec).key, "headers");
}

#[tokio::test]
async fn an_account_without_a_usable_secret_sends_nothing() {
    let endpoint = peer::plain("127.0.0.1:9");
    let call = turnkeep_engine::ports::Call { secret: turnkeep_base::Secret::new(String::new()), ..peer::call() };
    let fault = endpoint.send(call).await.err().unwrap();
    assert_eq!((fault.kind, fault.phase), (FaultKind::NoCredential, Phase::Unsent));
}
