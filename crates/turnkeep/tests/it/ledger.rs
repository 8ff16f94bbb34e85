//! The usage ledger: one entry for each attempt, exact where the provider said so.

use crate::support::dialects::{CHAT, assert_said, streamed};
use crate::support::*;
use futures_util::future::join_all;
use turnkeep_base::Usage;

const USAGE: UsageSpec =
    UsageSpec { prompt: Some(1200), completion: Some(80), cached: Some(1000), cache_write: None, reasoning: Some(20) };

fn counted() -> Rule {
    Rule { text: Some("one two three four".into()), usage: USAGE, ..Rule::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_completed_attempt_has_the_providers_exact_numbers() {
    join_all(pairs().into_iter().map(|pair| async move {
        let lab = lab([counted()]).await;
        let world = World::simple(pair, &lab).await;
        assert_said(pair, &world.client().await.turn(pair).await, "one two three four");
        let entries = world.into_ledger().await;
        assert_eq!(entries.len(), 1);
        let entry = &entries[0];
        let words =
            (entry.caller.as_str(), entry.model.as_str(), entry.upstream_model.as_str(), entry.dialect.as_str());
        assert_eq!(words, ("tester", "m", "upstream-m", pair.client.name()));
        assert_eq!(entry.account.to_string(), "up0/a");
        let closed = entry.closed.as_ref().unwrap();
        assert_eq!((closed.outcome.as_str(), closed.exact), ("completed", true), "{pair:?}");
        let want = Usage { input: 200, cache_read: 1000, cache_write: 0, output: 80, reasoning: 20 };
        // Messages tells how much of the output was thinking only where there was thinking.
        let got =
            Usage { reasoning: if closed.usage.reasoning == 0 { 20 } else { closed.usage.reasoning }, ..closed.usage };
        assert_eq!(got, want, "{pair:?}");
        if pair.upstream == Dialect::Chat {
            assert_eq!(closed.usage, want, "{pair:?}");
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_written_to_a_cache_is_counted_apart() {
    join_all(pairs().into_iter().filter(|pair| pair.upstream == Dialect::Messages).map(|pair| async move {
        let usage = UsageSpec { cache_write: Some(150), ..USAGE };
        let lab = lab([Rule { usage, ..counted() }]).await;
        let world = World::simple(pair, &lab).await;
        assert_eq!(world.client().await.turn(pair).await.status, 200);
        let entries = world.into_ledger().await;
        let usage = entries[0].closed.as_ref().unwrap().usage;
        assert_eq!((usage.input, usage.cache_read, usage.cache_write, usage.output), (50, 1000, 150, 80), "{pair:?}");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_attempt_of_a_turn_has_its_own_entry() {
    join_all(pairs().into_iter().map(|pair| async move {
        let error = ErrorSpec { status: Some(429), retry_after: Some(60), ..ErrorSpec::default() };
        let lab = lab([Rule { times: Some(1), error: Some(error), ..Rule::default() }, counted()]).await;
        let world = World::two(pair, &lab).await;
        assert_eq!(world.client().await.turn(pair).await.status, 200);
        let entries = world.into_ledger().await;
        let [first, second] = &entries[..] else { panic!("{entries:?}") };
        assert_eq!(first.attempt.turn, second.attempt.turn);
        assert_eq!((first.attempt.number, second.attempt.number), (1, 2));
        assert_ne!(first.account, second.account);
        let [first, second] = [first, second].map(|entry| entry.closed.clone().unwrap());
        assert_eq!((first.outcome.as_str(), first.usage, first.exact), ("rate_limited", Usage::default(), true));
        assert_eq!((second.outcome.as_str(), second.usage.output, second.exact), ("completed", 80, true));
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_or_broken_stream_is_estimated_and_says_so() {
    join_all(streamed().into_iter().map(|pair| async move {
        for broken in [false, true] {
            let rule = Rule { gate: Some("held".into()), gate_at: Some(Point::AfterWords(2)), ..counted() };
            let fault = broken.then_some(Fault::CloseMidStream);
            let lab = lab([Rule { fault, fault_at: fault.map(|_| Point::AfterWords(2)), ..rule }]).await;
            let world = World::simple(pair, &lab).await;
            let mut client = world.client().await;
            client.ask(pair).await;
            client.until("two ").await;
            if broken {
                lab.release("held");
                client.reply().await;
            } else {
                client.leave(Leave::Fin).await;
                soon(lab.wait_aborted(1)).await;
            }
            world.until_at_rest().await;
            let entries = world.into_ledger().await;
            assert_eq!(entries.len(), 1);
            let closed = entries[0].closed.as_ref().unwrap();
            assert_eq!(closed.outcome, if broken { "stream_truncated" } else { "interrupted" }, "{pair:?}");
            assert!(!closed.exact, "{pair:?} {closed:?}");
            assert!(closed.usage.total_input() > 0 && closed.usage.output > 0, "{pair:?} {closed:?}");
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_never_was_sent_has_no_entry() {
    let lab = lab([]).await;
    let world = World::simple(CHAT, &lab).await;
    let mut client = world.client().await;
    client.ask_with(CHAT, &[], b"{\"model\":\"unknown\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}").await;
    assert_eq!(client.reply().await.status, 404);
    assert_eq!(world.into_ledger().await, []);
}
