//! Turns that wait for a slot: whose turn it is, and what a stream's client sees meanwhile.

use crate::scene::*;
use crate::support::dialects::{CHAT, assert_broke_off, streamed};
use crate::support::world::Plan;
use crate::support::*;
use futures_util::future::join_all;
use serde_json::Value;

const HELD: &str = "held";

#[tokio::test(flavor = "multi_thread")]
async fn one_caller_with_128_queued_turns_delays_anothers_first_by_one_slot_at_most() {
    let lab = lab([times(1, held(HELD, Rule::default()))]).await;
    let mut plan = Plan::over([Up::at(Dialect::Chat, &lab).slots(1)]);
    plan.more = "[[keys]]\nname = \"other\"\nsecret = \"the-other-callers-key\"\n".into();
    let world = World::of(&plan).await;
    let mut clients = vec![send(&world, CHAT, "m", "held", KEY).await];
    soon(lab.wait_at_gate(HELD, 1)).await;
    for _ in 0..128 {
        clients.push(send(&world, CHAT, "m", "greedy", KEY).await);
    }
    world.until("the greedy ones wait", |counters| counters["waiting"] == 128).await;
    clients.push(send(&world, CHAT, "m", "modest", "the-other-callers-key").await);
    world.until("all wait", |counters| counters["waiting"] == 129).await;
    lab.release(HELD);
    for client in &mut clients {
        served(&client.reply().await);
    }
    let asked = lab.requests();
    let words = |body: &[u8]| serde_json::from_slice::<Value>(body).unwrap()["messages"][0]["content"].clone();
    let modest = asked.iter().position(|request| words(&request.body) == "modest").unwrap();
    assert!(modest <= 2, "the one that runs and one greedy turn may come before it, but {} did", modest);
}

/// A streamed turn waits behind one that holds the only slot; `waits` is how long it may.
async fn behind_a_held_one(pair: Pair, waits: &str) -> (World, turnkeep_lab::Lab, Vec<crate::support::client::Client>) {
    let rule = Rule { text: Some("here".into()), ..Rule::default() };
    let lab = lab([times(1, held(HELD, Rule::default())), rule]).await;
    let tuning = format!("stream_open_after = \"100ms\"\nheartbeat = \"1s\"\nmax_queue_wait = \"{waits}\"");
    let world = World::of(&Plan::over([Up::at(pair.upstream, &lab).slots(1)]).tuning(&tuning)).await;
    let mut first = world.client().await;
    first.ask(pair).await;
    soon(lab.wait_at_gate(HELD, 1)).await;
    let mut second = world.client().await;
    second.ask(pair).await;
    (world, lab, vec![first, second])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_waits_for_a_slot_is_opened_kept_alive_and_then_served() {
    join_all(streamed().into_iter().map(|pair| async move {
        let (world, lab, mut clients) = behind_a_held_one(pair, "30s").await;
        // Gemini's clients take nothing for a sign of life but an empty line: here a chunk of its own.
        let comment = ": keepalive\n\n";
        let heartbeat = pair.each(comment, comment, "event: ping\ndata: {\"type\":\"ping\"}\n\n", "\r\n1\r\n\n\r\n");
        clients[1].until(heartbeat).await;
        assert_eq!(lab.requests().len(), 1, "it has no slot yet");
        lab.release(HELD);
        for client in &mut clients {
            let reply = client.reply().await;
            served(&reply);
            assert!(!reply.text().contains("\"error\""), "{}", reply.text());
        }
        assert_eq!(lab.requests().len(), 2);
        world.until_at_rest().await;
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_waited_in_vain_is_told_in_band_that_the_pool_is_exhausted() {
    join_all(streamed().into_iter().map(|pair| async move {
        let (world, lab, mut clients) = behind_a_held_one(pair, "1500ms").await;
        let reply = clients[1].reply().await;
        assert!(reply.header("x-turnkeep-model").is_none(), "the head went out before anybody had answered");
        let message = assert_broke_off(pair, &reply, "");
        assert!(message.contains("account queue exhausted (账号队列耗尽)"), "{message}");
        let text = reply.text();
        // Messages has no codes, and Gemini's are few; there the type says 429.
        let named = pair.each("pool_exhausted", "pool_exhausted", "rate_limit_error", "RESOURCE_EXHAUSTED");
        let wait = pair.each("retry_after", "retry_after", "retry_after", "retryDelay");
        assert!(text.contains(named) && text.contains(wait), "{text}");
        let heartbeat = pair.each(": keepalive", ": keepalive", "event: ping", "\ndata: ");
        assert!(text.contains(heartbeat), "{text}");
        assert_eq!(lab.requests().len(), 1);
        lab.release(HELD);
        served(&clients[0].reply().await);
        assert_eq!(world.until_at_rest().await["pool_exhausted"], 1);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_is_not_streamed_waits_in_silence_and_is_refused_with_429() {
    let pairs = pairs().into_iter().filter(|pair| !pair.stream);
    join_all(pairs.map(|pair| async move {
        let (_world, lab, mut clients) = behind_a_held_one(pair, "300ms").await;
        let message = crate::support::dialects::assert_refused(pair, &clients[1].reply().await, 429);
        assert!(message.contains("busy"), "{message}");
        lab.release(HELD);
        served(&clients[0].reply().await);
    }))
    .await;
}
