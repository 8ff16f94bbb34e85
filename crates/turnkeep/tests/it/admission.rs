//! Who gets a slot, who waits for one, and what those are told who get none.

use crate::support::dialects::{CHAT, assert_refused, assert_said, saying};
use crate::support::world::{Plan, account};
use crate::support::*;
use futures_util::future::join_all;

const HELD: &str = "held";

#[tokio::test(flavor = "multi_thread")]
async fn with_one_slot_the_second_turn_waits_and_is_served_when_the_first_ends() {
    join_all(pairs().into_iter().map(|pair| async move {
        let first = Rule { times: Some(1), gate: Some(HELD.into()), text: Some("first".into()), ..Rule::default() };
        let lab = lab([first, Rule { text: Some("second".into()), ..Rule::default() }]).await;
        let world = World::over([Up::at(pair.upstream, &lab).slots(1)]).await;
        let [mut one, mut two] = [world.client().await, world.client().await];
        one.ask(pair).await;
        soon(lab.wait_at_gate(HELD, 1)).await;
        two.ask(pair).await;
        let counters = world.until("one that waits", |counters| counters["waiting"] == 1).await;
        assert_eq!(account(&counters, "a")["in_flight"], 1);
        assert_eq!(lab.requests().len(), 1);
        lab.release(HELD);
        assert_said(pair, &one.reply().await, "first");
        assert_said(pair, &two.reply().await, "second");
        world.until_at_rest().await;
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_every_account_cools_the_next_turn_is_refused_at_once_with_the_true_wait() {
    join_all(pairs().into_iter().map(|pair| async move {
        let error = ErrorSpec { status: Some(429), retry_after: Some(500), ..ErrorSpec::default() };
        let lab = lab([Rule { error: Some(error), ..Rule::default() }]).await;
        let world = World::two(pair, &lab).await;
        assert_refused(pair, &world.client().await.turn(pair).await, 429);
        assert_eq!(lab.requests().len(), 2);
        let reply = world.client().await.turn(pair).await;
        let message = assert_refused(pair, &reply, 429);
        assert!(message.contains("account queue exhausted (账号队列耗尽)"), "{message}");
        let wait: u64 = reply.header("retry-after").unwrap().parse().unwrap();
        assert!((400..=500).contains(&wait), "{wait}");
        assert_eq!(reply.header("x-turnkeep-attempts"), Some("0"));
        assert_eq!(lab.requests().len(), 2, "nobody was asked");
        let counters = world.until_at_rest().await;
        assert_eq!((&counters["pool_exhausted"], &counters["rate_limited"]), (&1.into(), &2.into()));
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_freed_slot_goes_round_the_callers_and_not_to_who_waits_most() {
    let first = Rule { times: Some(1), gate: Some(HELD.into()), ..Rule::default() };
    let lab = lab([first]).await;
    let mut plan = Plan::over([Up::at(Dialect::Chat, &lab).slots(1)]);
    plan.more = "[[keys]]\nname = \"other\"\nsecret = \"the-other-callers-key\"\n".into();
    let world = World::of(&plan).await;
    let ask = async |words: &str, key: &str| {
        let mut client = world.client().await;
        let bearer = format!("Bearer {key}");
        client.ask_with(CHAT, &[("authorization", &bearer)], saying(CHAT, words).to_string().as_bytes()).await;
        client
    };
    let mut clients = vec![ask("held", KEY).await];
    soon(lab.wait_at_gate(HELD, 1)).await;
    let turns = [("greedy 1", KEY), ("greedy 2", KEY), ("greedy 3", KEY), ("modest", "the-other-callers-key")];
    for (at, (words, key)) in turns.into_iter().enumerate() {
        clients.push(ask(words, key).await);
        world.until("one more that waits", |counters| counters["waiting"] == at + 1).await;
    }
    lab.release(HELD);
    for client in &mut clients {
        assert_eq!(client.reply().await.status, 200);
    }
    let order: Vec<String> = lab
        .requests()
        .iter()
        .map(|request| {
            let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
            body["messages"][0]["content"].as_str().unwrap().to_owned()
        })
        .collect();
    let modest = order.iter().position(|words| words == "modest").unwrap();
    assert!(modest <= 2, "two callers wait: at most one grant to the other comes first, but: {order:?}");
    let greedy: Vec<&String> = order.iter().filter(|words| words.starts_with("greedy")).collect();
    assert_eq!(greedy, ["greedy 1", "greedy 2", "greedy 3"], "first come, first served within a caller");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_turns_at_once_never_exceed_the_slots_and_all_are_served() {
    let lab = lab([]).await;
    let world = World::over([Up::at(Dialect::Messages, &lab).accounts(&["a", "b"]).slots(2)]).await;
    let turns = (0..12).flat_map(|_| pairs()).filter(|pair| pair.upstream == Dialect::Messages);
    let world = &world;
    let replies = join_all(turns.map(|pair| async move { world.client().await.turn(pair).await.status })).await;
    assert!(replies.iter().all(|status| *status == 200), "{replies:?}");
    world.until_at_rest().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_may_hold_only_its_share_of_the_queue_and_the_rest_is_refused() {
    let lab = lab([Rule { times: Some(1), gate: Some(HELD.into()), ..Rule::default() }]).await;
    let world = World::over([Up::at(Dialect::Chat, &lab).slots(1)]).await;
    let mut holder = world.client().await;
    holder.ask(CHAT).await;
    soon(lab.wait_at_gate(HELD, 1)).await;
    let mut waiting = Vec::new();
    for number in 1..=256 {
        let mut client = world.client().await;
        client.ask(CHAT).await;
        waiting.push(client);
        if number % 64 == 0 {
            world.until("those that wait", |counters| counters["waiting"] == number).await;
        }
    }
    let refused = world.client().await.turn(CHAT).await;
    assert_refused(CHAT, &refused, 429);
    lab.release(HELD);
    for client in waiting.iter_mut().chain([&mut holder]) {
        assert_eq!(client.reply().await.status, 200);
    }
    assert_eq!(world.until_at_rest().await["pool_exhausted"], 1);
}
