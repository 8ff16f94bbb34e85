//! Whose fault it was: what is not the account's must leave the account alone, however often it happens.
//!
//! Each client dialect meets each kind of upstream once, streamed and plain by turns.

use crate::support::dialects::{CHAT, assert_refused, assert_said, covering};
use crate::support::world::{account, assert_unblamed, nobodys};
use crate::support::*;
use futures_util::future::join_all;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use turnkeep_lab::Lab;

/// Four turns in a row meet the fault; the client is told, the counter rises, and the account stays as it was. Then the
/// upstream heals, and the account serves at once.
async fn four_in_a_row(pair: Pair, lab: &Lab, counter: &str, attempts_each: u64) {
    let world = World::simple(pair, lab).await;
    for _ in 0..4 {
        let reply = world.client().await.turn(pair).await;
        assert_refused(pair, &reply, 502);
    }
    let counters = world.until_at_rest().await;
    assert_unblamed(&counters, "a");
    assert_eq!(counters[counter], 4 * attempts_each, "{pair:?} {counter}: {counters:#}");
    let network = counter != "unclassified_fault";
    assert_eq!(counters["transport_fault"], if network { 4 * attempts_each } else { 0 });
    assert_eq!(counters["dead_credentials"], 0);
    lab.set_script(Script::of([Rule { text: Some("well again".into()), ..Rule::default() }]));
    assert_said(pair, &world.client().await.turn(pair).await, "well again");
}

fn faulty(fault: Fault) -> Script {
    Script::of([Rule { fault: Some(fault), ..Rule::default() }])
}

fn unacceptable(fault: AcceptFault) -> Script {
    Script { accept: vec![AcceptRule { fault, times: None }], ..Script::default() }
}

async fn for_all_pairs(counter: &'static str, attempts_each: u64, script: fn() -> Script, tls: bool) {
    join_all(covering().into_iter().map(|pair| async move {
        let lab = if tls { tls_lab(script()).await } else { plain_lab(script()).await };
        four_in_a_row(pair, &lab, counter, attempts_each).await;
    }))
    .await;
}

// A network fault is tried once more on a new connection, so each turn meets it twice.

#[tokio::test(flavor = "multi_thread")]
async fn four_header_overflows_in_a_row_leave_the_account_alone() {
    for_all_pairs("http_protocol_error", 2, || faulty(Fault::HeaderOverflow), false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn four_invalid_header_tokens_in_a_row_leave_the_account_alone() {
    for_all_pairs("http_protocol_error", 2, || faulty(Fault::BadHeader), false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn four_answers_in_a_wrong_tls_version_in_a_row_leave_the_account_alone() {
    for_all_pairs("tls_failure", 2, || unacceptable(AcceptFault::TlsWrongVersion), true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn four_tls_handshake_alerts_in_a_row_leave_the_account_alone() {
    for_all_pairs("tls_failure", 2, || unacceptable(AcceptFault::TlsAlert), true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn four_connection_resets_in_a_row_leave_the_account_alone() {
    for_all_pairs("connection_reset", 2, || faulty(Fault::ResetBeforeReply), false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn four_unknown_codes_in_a_row_leave_the_account_alone() {
    for_all_pairs("unclassified_fault", 1, || error_script(418), false).await;
    for_all_pairs("unclassified_fault", 1, || error_script(403), false).await;
}

fn error_script(status: u16) -> Script {
    let error = ErrorSpec {
        status: Some(status),
        kind: Some("flux_drift".into()),
        code: Some("flux_capacitor_drift".into()),
        message: Some("The flux has drifted.".into()),
        ..ErrorSpec::default()
    };
    Script::of([Rule { error: Some(error), ..Rule::default() }])
}

/// An upstream of bare bytes: answers whatever it reads first with these, and closes.
async fn answering(bytes: &'static [u8]) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let addr = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut hello = [0; 4096];
            if socket.read(&mut hello).await.is_ok_and(|read| read > 0) && socket.write_all(bytes).await.is_ok() {
                let _ = socket.shutdown().await;
                while socket.read(&mut hello).await.is_ok_and(|read| read > 0) {}
            }
        }
    });
    (addr, task)
}

#[tokio::test(flavor = "multi_thread")]
async fn four_handshakes_that_are_garbage_or_a_version_alert_in_a_row_leave_the_account_alone() {
    let authority = tls_lab(Script::default()).await;
    let answers: [&[u8]; 3] =
        [&[21, 3, 1, 0, 2, 2, 70], b"SSH-2.0-OpenSSH_9.9\r\n", &[0xff, 0x15, 0x03, 0x00, 0x00, 0x00, 0x01, 0x7f]];
    for bytes in answers {
        let (addr, serving) = answering(bytes).await;
        let up = Up { ca: authority.ca_pem().map(str::to_owned), ..Up::address(Dialect::Chat, addr) };
        let world = World::over([up]).await;
        for _ in 0..4 {
            assert_refused(CHAT, &world.client().await.turn(CHAT).await, 502);
        }
        let counters = world.until_at_rest().await;
        assert_unblamed(&counters, "a");
        assert_eq!((&counters["tls_failure"], &counters["transport_fault"]), (&8.into(), &8.into()), "{bytes:?}");
        serving.abort();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_an_unknown_authority_is_a_tls_failure_and_nothing_is_sent() {
    let lab = tls_lab(Script::default()).await;
    let stranger = tls_lab(Script::default()).await;
    let up = Up { ca: stranger.ca_pem().map(str::to_owned), ..Up::at(Dialect::Chat, &lab) };
    let world = World::over([up]).await;
    assert_refused(CHAT, &world.client().await.turn(CHAT).await, 502);
    let counters = world.until_at_rest().await;
    assert_unblamed(&counters, "a");
    assert_eq!(counters["tls_failure"], 2);
    assert_eq!(lab.requests().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_connection_is_not_the_accounts_fault() {
    let nobody = nobodys();
    let world = World::over([Up::address(Dialect::Messages, nobody.local_addr().unwrap())]).await;
    for _ in 0..4 {
        assert_refused(CHAT, &world.client().await.turn(CHAT).await, 502);
    }
    let counters = world.until_at_rest().await;
    assert_unblamed(&counters, "a");
    assert_eq!(counters["connect_refused"], 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn four_rejected_credentials_evict_the_account_and_the_caller_never_sees_a_401() {
    join_all(covering().into_iter().map(|pair| async move {
        let error = ErrorSpec { status: Some(401), ..ErrorSpec::default() };
        let lab = lab([Rule { error: Some(error), ..Rule::default() }]).await;
        let world = World::simple(pair, &lab).await;
        for turn in 1..=4 {
            assert_refused(pair, &world.client().await.turn(pair).await, 502);
            let counters = world.until_at_rest().await;
            let status = if turn < 3 { "active" } else { "errored" };
            assert_eq!(account(&counters, "a")["status"], status, "{pair:?}, turn {turn}");
        }
        let counters = world.counters().await;
        assert_eq!(counters["credential_rejected"], 3, "the fourth turn found no account");
        assert_eq!(counters["dead_credentials"], 1);
        assert_eq!(counters["pool_exhausted"], 1);
        assert_eq!(lab.requests().len(), 3);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_evicted_account_is_passed_over_while_another_serves() {
    let error = ErrorSpec { status: Some(401), ..ErrorSpec::default() };
    let lab = lab([Rule { account: Some("secret-a".into()), error: Some(error), ..Rule::default() }]).await;
    let world = World::two(CHAT, &lab).await;
    for turn in 0..12 {
        assert_eq!(world.client().await.turn_of(CHAT, turn).await.status, 200);
    }
    let counters = world.until_at_rest().await;
    assert_eq!(account(&counters, "a")["status"], "errored");
    assert_unblamed(&counters, "b");
    assert_eq!(counters["credential_rejected"], 3);
    assert_eq!(counters["failover_hops"], 3);
    assert_eq!(lab.requests().len(), 15);
}
