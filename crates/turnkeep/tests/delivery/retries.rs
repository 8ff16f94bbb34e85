//! The same request again: nothing that was paid for is asked for twice, and nobody else gets it.

use crate::asking::{Asking, Exit, Takes, Way};
use crate::scene::*;
use crate::support::dialects::{assert_refused, assert_said, saying};
use crate::support::*;
use futures_util::future::join_all;

/// A transport of each protocol, with every client dialect, streamed and not.
fn ways() -> Vec<(Way, Pair)> {
    matrix().into_iter().filter(|(way, _)| matches!(way, Way::Http1 | Way::H2Tls)).collect()
}

/// Sends the usual turn with more headers, and reads the reply.
async fn turn_with(place: &Place, way: Way, pair: Pair, headers: &[(&str, &str)], words: &str) -> Reply {
    let mut asking = Asking::connect(&place.served, way, Takes::Everything).await;
    asking.ask(pair, headers, &saying(pair, words).to_string()).await;
    asking.reply().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_was_lost_is_given_to_the_same_request_and_the_upstream_is_not_asked_again() {
    join_all(ways().into_iter().map(|(way, pair)| async move {
        for stream in [pair.stream, !pair.stream] {
            let case = format!("{way:?} {pair:?} {stream}");
            let place = Place::of(way, pair, large(IN_THE_KERNEL)).await;
            place.lose(way, pair, Exit::Reset).await;
            assert_undelivered(&place.closed(1).await, &case);
            let again = Pair { stream, ..pair };
            let reply = place.turn(way, again).await;
            assert_said(again, &reply, &"x".repeat(IN_THE_KERNEL));
            assert_eq!(reply.header("x-turnkeep-cache"), Some("held"), "{case}");
            assert_eq!(place.lab.requests().len(), 1, "{case}");
            let counters = place.closed(2).await;
            assert_eq!((ends(&counters), &counters["held"]["served"]), ([1, 1, 0, 0], &1.into()), "{case}");
            assert_eq!(counters["held"]["size"], 0, "{case}: it is spent");
            // The one attempt, and the answer given again.
            let entries = place.served.world.into_ledger().await;
            let ends: Vec<_> = entries.iter().map(|entry| entry.closed.as_ref().unwrap()).collect();
            let ends: Vec<_> = ends.iter().map(|end| (end.outcome.as_str(), end.exact, end.usage.output)).collect();
            assert_eq!(ends, [("completed", true, 40), ("held", true, 0)], "{case}");
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_no_other_callers() {
    join_all(ways().into_iter().map(|(way, pair)| async move {
        for secret in [OTHER, SHARED] {
            let place = Place::of(way, pair, large(IN_THE_KERNEL)).await;
            place.lose(way, pair, Exit::Reset).await;
            let bearer = format!("Bearer {secret}");
            let reply = turn_with(&place, way, pair, &[("authorization", &bearer)], "Hello there").await;
            assert_said(pair, &reply, &"x".repeat(IN_THE_KERNEL));
            assert_ne!(reply.header("x-turnkeep-cache"), Some("held"), "{way:?} {pair:?}");
            assert_eq!(place.lab.requests().len(), 2, "{way:?} {pair:?}");
            assert_eq!(place.closed(2).await["held"]["size"], 1, "{way:?} {pair:?}: it waits for its owner");
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_of_a_shared_key_is_not_held() {
    for (way, pair) in ways() {
        let place = Place::of(way, pair, large(IN_THE_KERNEL)).await;
        let bearer = format!("Bearer {SHARED}");
        let mut asking = Asking::connect(&place.served, way, Takes::Little).await;
        asking.ask(pair, &[("authorization", &bearer)], &request(pair).to_string()).await;
        place.answered(1).await;
        drop(asking.leave(Exit::Reset).await);
        let counters = place.closed(1).await;
        assert_undelivered(&counters, &format!("{way:?} {pair:?}"));
        assert_eq!(counters["held"]["size"], 0, "{way:?} {pair:?}");
    }
}

/// A place whose upstream finishes what it has begun, and whose first client has been noticed leaving in the middle.
async fn begun_alone(pair: Pair, rule: Rule, bounds: &str) -> Place {
    let lab = lab([Rule { usage: USAGE, ..rule }]).await;
    let lines = format!("on_client_gone = {{ finish = {{ {bounds} }} }}");
    let plan = plan(Up::at(pair.upstream, &lab).lines(&lines));
    let place = Place { served: crate::support::listen::served(plan, false).await, lab };
    let mut asking = place.ask(Way::Http1, pair, Takes::Everything).await;
    soon(place.lab.wait_at_gate("held", 1)).await;
    if pair.stream {
        asking.client().until("two ").await;
    }
    asking.fin();
    // The gateway closes its side, too, when it has seen that.
    asking.client().until_closed().await;
    place
}

const WIDE: &str = "max_tokens = 2000, max_seconds = 30";

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_goes_on_without_its_client_is_joined_by_the_same_request() {
    join_all(ways().into_iter().map(|(way, pair)| async move {
        if way.is_tls() {
            return;
        }
        for stream in [pair.stream, !pair.stream] {
            let place = begun_alone(pair, held_after_two_words(), WIDE).await;
            let again = Pair { stream, ..pair };
            let mut second = place.ask(way, again, Takes::Everything).await;
            place.world().until("the second turn", |counters| counters["now"]["turns_open"] == 2).await;
            place.lab.release("held");
            let reply = second.reply().await;
            assert_said(again, &reply, "one two three four");
            assert_eq!(reply.header("x-turnkeep-cache"), Some("joined"), "{pair:?} {stream}");
            let counters = place.closed(2).await;
            // It has arrived where it was asked for a second time, and may be used again; it binds and commits nothing.
            assert_eq!((ends(&counters), commits(&counters)), ([1, 1, 0, 0], [0, 1, 0]), "{pair:?} {stream}");
            assert_eq!((place.lab.requests().len(), place.lab.aborted()), (1, 0), "{pair:?} {stream}");
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_went_on_without_its_client_is_held() {
    join_all(ways().into_iter().filter(|(way, _)| !way.is_tls()).map(|(way, pair)| async move {
        let place = begun_alone(pair, held_after_two_words(), WIDE).await;
        place.lab.release("held");
        assert_undelivered(&place.closed(1).await, &format!("{pair:?}"));
        let reply = place.turn(way, pair).await;
        assert_said(pair, &reply, "one two three four");
        assert_eq!((reply.header("x-turnkeep-cache"), place.lab.requests().len()), (Some("held"), 1), "{pair:?}");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_without_its_client_is_cut_at_its_bounds() {
    let long = || Rule { text: Some(format!("one two {}", "three ".repeat(200_000))), ..held_after_two_words() };
    join_all(ways().into_iter().filter(|(way, pair)| !way.is_tls() && pair.stream).map(|(_, pair)| async move {
        for (bounds, released) in
            [("max_tokens = 20, max_seconds = 600", true), ("max_tokens = 2000, max_seconds = 1", false)]
        {
            let place = begun_alone(pair, long(), bounds).await;
            if released {
                place.lab.release("held");
            }
            soon(place.lab.wait_aborted(1)).await;
            let counters = place.closed(1).await;
            assert_eq!((ends(&counters), commits(&counters)), ([0, 0, 0, 1], [0, 0, 0]), "{pair:?} {bounds}");
            assert_eq!(counters["held"]["size"], 0, "{pair:?} {bounds}: half an answer is none");
            let entries = place.served.world.into_ledger().await;
            let closed = entries[0].closed.as_ref().unwrap();
            assert_eq!((closed.outcome.as_str(), closed.exact), ("interrupted", false), "{pair:?} {bounds}");
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_gives_the_same_answer_again_and_stands_for_one_request() {
    join_all(ways().into_iter().map(|(way, pair)| async move {
        let place = Place::of(way, pair, held_after_two_words()).await;
        let key = [("idempotency-key", "key-1"), ("x-turnkeep-cache", "bypass")];
        let mut first = Asking::connect(&place.served, way, Takes::Everything).await;
        first.ask(pair, &key, &request(pair).to_string()).await;
        soon(place.lab.wait_at_gate("held", 1)).await;
        // While it runs, and when it has ended.
        let refused = assert_refused(pair, &turn_with(&place, way, pair, &key, "Another").await, 422);
        assert!(refused.contains("idempotency-key"), "{refused}");
        place.lab.release("held");
        assert_said(pair, &first.reply().await, "one two three four");
        let again = turn_with(&place, way, pair, &key, "Hello there").await;
        assert_said(pair, &again, "one two three four");
        assert_refused(pair, &turn_with(&place, way, pair, &key, "Another").await, 422);
        assert_eq!(place.lab.requests().len(), 1, "{way:?} {pair:?}");
        let bearer = format!("Bearer {OTHER}");
        let theirs = [key[0], key[1], ("authorization", &bearer)];
        assert_eq!(turn_with(&place, way, pair, &theirs, "Another").await.status, 200, "a key is its caller's own");
        assert_eq!(place.lab.requests().len(), 2, "{way:?} {pair:?}");
    }))
    .await;
}
