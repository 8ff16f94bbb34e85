//! Clients that leave: what was made for them until then is paid for, once, and what they held is free at once.

use crate::kit::*;
use crate::support::client::Client;
use crate::support::dialects::{assert_refused, assert_said};
use crate::support::{Dialect, Leave, Pair, Point, Rule, UsageSpec, World, lab, soon};
use turnkeep_lab::Lab;

/// Two words, and then nothing until a gate is released; the whole answer would cost far more than two words.
fn held_after_two_words() -> Rule {
    let usage = UsageSpec { prompt: Some(40), completion: Some(50_000), ..UsageSpec::default() };
    Rule { gate_at: Some(Point::AfterWords(2)), usage, ..held("held") }
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_mid_answer_ends_the_call_and_is_billed_as_an_estimate_of_what_came_and_no_more() {
    each_streamed(async |pair| {
        for how in Leave::BOTH {
            let lab = lab([held_after_two_words()]).await;
            let world = World::of(&priced(pair, &lab, "budget = { usd = 1000, per = \"day\" }")).await;
            let mut client = send(&world, pair, &[]).await;
            client.until("two ").await;
            soon(lab.wait_at_gate("held", 1)).await;
            client.leave(how).await;
            soon(lab.wait_aborted(1)).await;
            let used = limited_at_rest(&world).await;
            let entries = world.into_ledger().await;
            assert_eq!(entries.len(), 1, "{pair:?}");
            let closed = entries[0].closed.as_ref().unwrap();
            assert_eq!((closed.outcome.as_str(), closed.exact), ("interrupted", false), "{pair:?}");
            assert!(closed.usage.total_input() > 0, "{pair:?} {closed:?}");
            assert!((1..10).contains(&closed.usage.output), "two words, not the whole: {pair:?} {closed:?}");
            assert_eq!(closed.cost, Some(PRICES.cost(&closed.usage)), "{pair:?}");
            assert_eq!(nano(&used["spent"]["usd"]), closed.cost.unwrap(), "{pair:?} {used}");
            assert_eq!((&used["reserved"]["tokens"], nano(&used["reserved"]["usd"])), (&0.into(), 0), "{pair:?}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_before_the_answer_is_billed_the_input_that_the_upstream_was_at_work_on() {
    each(async |pair| {
        let lab = lab([held("held")]).await;
        let world = World::of(&priced(pair, &lab, "budget = { usd = 1000, per = \"day\" }")).await;
        let client = send(&world, pair, &[]).await;
        soon(lab.wait_at_gate("held", 1)).await;
        client.leave(Leave::Reset).await;
        soon(lab.wait_aborted(1)).await;
        let used = limited_at_rest(&world).await;
        let entries = world.into_ledger().await;
        let closed = entries[0].closed.as_ref().unwrap();
        assert_eq!((entries.len(), closed.outcome.as_str(), closed.exact), (1, "interrupted", false), "{pair:?}");
        assert!(closed.usage.total_input() > 0 && closed.usage.output == 0, "{pair:?} {closed:?}");
        assert_eq!(Some(nano(&used["spent"]["usd"])), closed.cost, "{pair:?}");
        assert_eq!(nano(&used["reserved"]["usd"]), 0, "{pair:?}");
    })
    .await;
}

/// A key and an account that serve one turn at a time, at an upstream whose first turns do not end by themselves.
async fn one_at_a_time(pair: Pair, rule: Rule, turns: u32) -> (World, Lab) {
    let lab = lab([times(turns, rule), good()]).await;
    let mut plan = priced(pair, &lab, "max_in_flight = 1");
    plan.ups[0].max_in_flight = 1;
    (World::of(&plan).await, lab)
}

async fn served_at_once(world: &World, pair: Pair) {
    assert_said(pair, &send(world, pair, &[]).await.reply().await, WORDS);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_whose_client_leaves_mid_answer_may_ask_again_at_once() {
    each_streamed(async |pair| {
        let (world, lab) = one_at_a_time(pair, held_after_two_words(), 4).await;
        for turn in 1..=4 {
            let mut client: Client = send(&world, pair, &[]).await;
            client.until("two ").await;
            client.leave(Leave::BOTH[turn % 2]).await;
            soon(lab.wait_aborted(turn)).await;
            limited_at_rest(&world).await;
        }
        served_at_once(&world, pair).await;
        assert_eq!(world.until_at_rest().await["caller_rate_limited"], 0, "{pair:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_ran_out_of_time_gives_its_places_back() {
    each(async |pair| {
        let (world, _lab) = one_at_a_time(pair, fault(crate::support::Fault::Hang, None), 3).await;
        for _ in 0..3 {
            let reply = send(&world, pair, &[("x-turnkeep-timeout", "60ms")]).await.reply().await;
            assert_refused(pair, &reply, 504);
            limited_at_rest(&world).await;
        }
        served_at_once(&world, pair).await;
        assert_unblamed(&world.until_at_rest().await, "up0/a");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_is_free_when_the_upstream_is_done_and_not_when_the_client_has_read() {
    each(async |pair| {
        // More than the client takes up, and no more than the way there can hold.
        let lab = lab([times(1, Rule { words: Some(500), ..Rule::default() }), good()]).await;
        let mut plan = priced(pair, &lab, "");
        plan.ups[0].max_in_flight = 1;
        let world = World::of(&plan).await;
        let mut idle = world.client().await;
        idle.ask(pair).await;
        soon(lab.wait_for_requests(1)).await;
        world.until_at_rest().await;
        served_at_once(&world, pair).await;
        let reply = idle.reply().await;
        assert!(crate::support::said(pair, &reply).ends_with("word500"), "{pair:?}");
    })
    .await;
}

/// Every client dialect at the upstream that each is at home at.
#[tokio::test(flavor = "multi_thread")]
async fn of_many_turns_at_once_no_more_are_admitted_than_the_key_may_have() {
    for pair in Dialect::ALL.map(|at| Pair { client: at, upstream: at, stream: true }) {
        let lab = lab([held("door")]).await;
        let world = World::of(&priced(pair, &lab, "max_in_flight = 3\nrequests_per_minute = 1000")).await;
        let clients = futures_util::future::join_all((0..40).map(|_| send(&world, pair, &[]))).await;
        soon(lab.wait_at_gate("door", 3)).await;
        world.until("the refusals", |counters| counters["caller_rate_limited"] == 37).await;
        assert_eq!(lab.requests().len(), 3, "{pair:?}");
        lab.release("door");
        let replies =
            futures_util::future::join_all(clients.into_iter().map(async |mut client| client.reply().await)).await;
        assert_eq!(replies.iter().filter(|reply| reply.status == 200).count(), 3, "{pair:?}");

        let world = World::of(&priced(pair, &lab, "requests_per_minute = 5")).await;
        let turns = (0..40).map(|_| async { send(&world, pair, &[]).await.reply().await.status });
        let statuses = futures_util::future::join_all(turns).await;
        assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 5, "{pair:?} {statuses:?}");
    }
}
