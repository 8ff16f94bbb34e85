//! Connections on which no request comes: they are closed, however much of one was begun; a long turn is not.

use crate::support::client::{Client, request_bytes};
use crate::support::dialects::{CHAT, assert_said};
use crate::support::world::Plan;
use crate::support::*;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::sync::oneshot;
use turnkeep::config::Config;
use turnkeep::wiring;
use turnkeep_http::{Bound, Limits};

/// What a client says before it falls silent: nothing, a piece of a head, a piece of HTTP/2's preface, and all of it.
const BEGUN: [&[u8]; 4] = [
    b"",
    b"GET /healthz HTTP/1.1\r\nhost: ga",
    b"PRI * HTT",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
];

/// A gateway that waits a moment for a request; it stops when the sender is dropped.
async fn impatient(plan: &Plan, connections: usize) -> (SocketAddr, oneshot::Sender<()>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let text = plan.toml(folder.path());
    let config = Config::parse(&text, &folder.path().join("turnkeep.toml"), std::iter::empty()).unwrap();
    let limits = Limits { header_wait: Duration::from_millis(200), connections, ..Limits::default() };
    let wired = wiring::wire_within(config, limits).await.map_err(|failure| failure.to_string()).unwrap();
    let Bound::Tcp(addr) = wired.bound[0] else { panic!("no TCP") };
    let (stop, stopped) = oneshot::channel();
    tokio::spawn(wired.serve(async {
        let _ = stopped.await;
    }));
    (addr, stop, folder)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_without_a_request_is_closed_and_a_long_turn_is_not() {
    let rule = Rule { text: Some("one two".into()), gate: Some("held".into()), ..Rule::default() };
    let lab = lab([rule]).await;
    let plan = Plan::over([Up::at(CHAT.upstream, &lab)]);
    let (addr, _stop, _folder) = impatient(&plan, 100).await;
    let mut long = Client::tcp(addr).await;
    long.ask(CHAT).await;
    soon(lab.wait_at_gate("held", 1)).await;
    for begun in BEGUN {
        let mut client = Client::tcp(addr).await;
        client.write(begun).await;
        client.until_closed().await;
    }
    lab.release("held");
    assert_said(CHAT, &long.reply().await, "one two");
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_at_the_bound_give_way_to_one_that_asks() {
    let lab = lab([]).await;
    let plan = Plan::over([Up::at(CHAT.upstream, &lab)]);
    let (addr, _stop, _folder) = impatient(&plan, 2).await;
    let _silent = [Client::tcp(addr).await, Client::tcp(addr).await];
    let mut asking = Client::tcp(addr).await;
    asking.write(&request_bytes("GET", "/healthz", &[], b"")).await;
    assert_eq!(asking.reply().await.status, 200);
}
