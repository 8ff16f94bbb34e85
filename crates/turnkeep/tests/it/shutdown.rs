//! Stopping: new turns are told, running ones may finish, and what does not finish in time is ended in its dialect.

use crate::support::client::request_bytes;
use crate::support::dialects::{CHAT, assert_broke_off, assert_refused, assert_said, streamed};
use crate::support::world::{BOUND, Plan, ledger};
use crate::support::*;
use futures_util::future::join_all;

fn held() -> Rule {
    let text = Some("one two three".into());
    Rule { text, gate: Some("held".into()), gate_at: Some(Point::AfterWords(2)), ..Rule::default() }
}

/// Asks for readiness until it ends: the first answers may come before the gateway has heard that it is to stop.
async fn until_draining(world: &World) {
    loop {
        let mut probe = world.client().await;
        probe.write(&request_bytes("GET", "/readyz", &[], b"")).await;
        let reply = probe.reply().await;
        if reply.status == 503 {
            assert!(reply.text().contains("draining"), "{}", reply.text());
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_runs_when_the_gateway_is_asked_to_stop_is_finished() {
    join_all(pairs().into_iter().map(|pair| async move {
        let lab = lab([held()]).await;
        let mut world = World::simple(pair, &lab).await;
        let mut client = world.client().await;
        client.ask(pair).await;
        soon(lab.wait_at_gate("held", 1)).await;
        world.ask_to_stop();
        tokio::time::timeout(BOUND, until_draining(&world)).await.expect("readiness ends");
        assert_refused(pair, &world.client().await.turn(pair).await, 503);
        lab.release("held");
        assert_said(pair, &client.reply().await, "one two three");
        let entries = world.into_ledger().await;
        assert_eq!(entries.len(), 1);
        assert_eq!(entries[0].closed.as_ref().unwrap().outcome, "completed");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_outlasts_the_grace_ends_in_the_dialects_error_form() {
    join_all(streamed().into_iter().map(|pair| async move {
        let lab = lab([held()]).await;
        let mut plan = Plan::over([Up::at(pair.upstream, &lab)]);
        plan.server = "shutdown_grace = \"200ms\"".into();
        let mut world = World::of(&plan).await;
        let mut client = world.client().await;
        client.ask(pair).await;
        client.until("two ").await;
        world.ask_to_stop();
        let message = assert_broke_off(pair, &client.reply().await, "one two ");
        assert!(message.contains("shutting down"), "{message}");
        soon(lab.wait_aborted(1)).await;
        let folder = world.stopped().await;
        let entries = ledger(folder.path()).await;
        let closed = entries[0].closed.as_ref().unwrap();
        assert_eq!((entries.len(), closed.outcome.as_str(), closed.exact), (1, "interrupted", false));
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_without_an_answer_yet_is_told_that_the_gateway_stops() {
    join_all(pairs().into_iter().map(|pair| async move {
        let lab = lab([Rule { gate_at: None, ..held() }]).await;
        let mut plan = Plan::over([Up::at(pair.upstream, &lab)]);
        plan.server = "shutdown_grace = \"0s\"".into();
        let mut world = World::of(&plan).await;
        let mut client = world.client().await;
        client.ask(pair).await;
        soon(lab.wait_at_gate("held", 1)).await;
        world.ask_to_stop();
        let reply = client.reply().await;
        assert!(assert_refused(pair, &reply, 503).contains("shutting down"));
        let entries = world.into_ledger().await;
        assert_eq!(entries[0].closed.as_ref().unwrap().outcome, "interrupted");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_gateway_stops_at_once_though_connections_are_open() {
    let lab = lab([]).await;
    let world = World::simple(CHAT, &lab).await;
    let mut used = world.client().await;
    assert_eq!(used.turn(CHAT).await.status, 200);
    world.stopped().await;
    used.until_closed().await;
    soon(lab.wait_no_connections()).await;
}
