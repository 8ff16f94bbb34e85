//! Silence in each part of connecting: the connect clock ends it, names the part, and nothing was sent.

use crate::peer;
use socket2::{Domain, SockAddr, Socket, Type};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use turnkeep_base::{ClockKind, Fault, FaultKind, Phase};
use turnkeep_upstream::{Endpoint, EndpointSpec};

fn endpoint(base: String, proxy: Option<String>) -> Arc<Endpoint> {
    let connect_timeout = Duration::from_millis(300);
    Arc::new(Endpoint::new(EndpointSpec { connect_timeout, proxy, ..peer::spec(base) }).unwrap())
}

fn is_the_connect_clocks(fault: &Fault, part: &str) {
    assert_eq!((fault.kind, fault.phase), (FaultKind::ConnectTimeout, Phase::Unsent), "{fault}");
    assert_eq!(fault.clock.map(|clock| (clock.kind, clock.set_by_caller)), Some((ClockKind::Connect, false)));
    assert!(fault.evidence.detail.contains(part), "{fault}");
}

#[tokio::test]
async fn in_the_tcp_handshake() {
    // A listener whose queue is full answers no further SYN.
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SockAddr::from(SocketAddr::from(([127, 0, 0, 1], 0)))).unwrap();
    socket.listen(0).unwrap();
    let address = socket.local_addr().unwrap();
    let fillers: Vec<Socket> = (0..4)
        .map(|_| {
            let filler = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            filler.set_nonblocking(true).unwrap();
            // In progress, or queued already.
            let _ = filler.connect(&address);
            filler
        })
        .collect();
    let endpoint = endpoint(format!("http://{}", address.as_socket().unwrap()), None);
    is_the_connect_clocks(&peer::whole(&endpoint).await.unwrap_err(), "connecting to");
    assert_eq!(endpoint.open_connections(), 0);
    drop(fillers);
}

#[tokio::test]
async fn in_the_tls_handshake_at_its_start_and_in_its_middle() {
    // The header of a record of 90 bytes, and the first of them.
    for begun in [&b""[..], &[22, 3, 3, 0, 90, 2, 0, 0]] {
        let (listener, authority) = peer::listen().await;
        let endpoint = endpoint(format!("https://{authority}"), None);
        let call = peer::sending(&endpoint);
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(begun).await.unwrap();
        is_the_connect_clocks(&call.await.unwrap().err().unwrap(), "TLS handshake");
    }
}

#[tokio::test]
async fn of_a_proxy_of_each_kind() {
    for scheme in ["http", "socks5", "socks5h"] {
        let (listener, authority) = peer::listen().await;
        let endpoint = endpoint("https://127.0.0.1:9".into(), Some(format!("{scheme}://me:hunter2@{authority}")));
        let call = peer::sending(&endpoint);
        let _silent = listener.accept().await.unwrap();
        let fault = call.await.unwrap().err().unwrap();
        is_the_connect_clocks(&fault, "waiting for the proxy");
        assert!(!format!("{fault:?}").contains("hunter2"));
    }
}

#[tokio::test]
async fn of_the_one_who_opens_the_connection_that_others_wait_to_share() {
    let (listener, authority) = peer::listen().await;
    let endpoint = endpoint(format!("https://{authority}"), None);
    let calls = [peer::sending(&endpoint), peer::sending(&endpoint)];
    let _silent = listener.accept().await.unwrap();
    for call in calls {
        let fault = call.await.unwrap().err().unwrap();
        assert_eq!((fault.kind, fault.phase), (FaultKind::ConnectTimeout, Phase::Unsent), "{fault}");
    }
}
