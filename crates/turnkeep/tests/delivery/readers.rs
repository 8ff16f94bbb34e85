//! Readers of every pace: slow ones that finish, ones that close early or late, ones that end their side, and ones whose
//! next turn comes before their receipt.

use crate::asking::{Asking, Exit, Takes, Way};
use crate::scene::*;
use crate::support::dialects::{assert_said, say, saying};
use crate::support::world::Plan;
use crate::support::*;
use futures_util::future::join_all;
use std::time::{Duration, Instant};

/// How soon leaving is noticed.
const NOTICED: Duration = Duration::from_secs(1);

fn http1() -> Vec<(Way, Pair)> {
    matrix().into_iter().filter(|(way, _)| !way.is_http2()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_that_finishes_has_its_reply() {
    join_all(matrix().into_iter().map(|(way, pair)| async move {
        for bytes in [IN_THE_KERNEL, 3 * IN_THE_KERNEL] {
            let place = Place::of(way, pair, large(bytes)).await;
            let mut asking = place.ask(way, pair, Takes::Little).await;
            place.answered(1).await;
            let counters = place.closed_but(0, 1).await;
            assert_eq!(commits(&counters), [0, 0, 0], "{way:?} {pair:?}: nothing while it is under way");
            if !way.is_http2() {
                for _ in 0..20 {
                    assert!(asking.client().sip(1 << 10).await > 0);
                }
            }
            assert_said(pair, &asking.reply().await, &"x".repeat(bytes));
            let counters = place.closed(1).await;
            assert_eq!((ends(&counters), commits(&counters)), ([1, 0, 0, 0], [1, 1, 1]), "{way:?} {pair:?}");
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_the_end_and_closes_before_the_last_chunk_has_its_reply() {
    join_all(http1().into_iter().filter(|(_, pair)| pair.stream).map(|(way, pair)| async move {
        let place = Place::of(way, pair, Rule::default()).await;
        for turns in 1..=5 {
            let mut asking = Asking::connect(&place.served, way, Takes::Everything).await;
            asking.ask(pair, &[("x-turnkeep-cache", "bypass")], &request(pair).to_string()).await;
            let end =
                pair.each("data: [DONE]\n\n", "event: response.completed", "event: message_stop", "\"finishReason\"");
            asking.client().until(end).await;
            drop(asking.leave(Exit::Close).await);
            let counters = place.closed(turns).await;
            assert_eq!(ends(&counters), [turns, 0, 0, 0], "{way:?} {pair:?}");
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg(target_os = "linux")]
async fn a_reset_after_everything_was_acknowledged_takes_nothing_back() {
    join_all(matrix().into_iter().map(|(way, pair)| async move {
        let place = Place::of(way, pair, Rule { text: Some("short".into()), ..Rule::default() }).await;
        // Its host has the whole reply; the program reads none of it.
        let asking = place.ask(way, pair, Takes::Little).await;
        let counters = place.closed(1).await;
        assert_eq!(ends(&counters), [1, 0, 0, 0], "{way:?} {pair:?}");
        drop(asking.leave(Exit::Reset).await);
        // What is done on the next connection comes after it.
        assert_eq!(place.turn(way, pair).await.header("x-turnkeep-cache"), Some("hit"));
        let counters = place.closed(2).await;
        assert_eq!((ends(&counters), commits(&counters)), ([2, 0, 0, 0], [1, 1, 1]), "{way:?} {pair:?}");
        assert_eq!(counters["client_gone"], 0);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_ends_its_side_while_its_turn_is_open_has_left() {
    for pipelined in [false, true] {
        for (way, pair) in http1() {
            let place = Place::of(way, pair, held_after_two_words()).await;
            let mut asking = place.ask(way, pair, Takes::Everything).await;
            soon(place.lab.wait_at_gate("held", 1)).await;
            if pipelined {
                asking.client().write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\n").await;
            }
            let left = Instant::now();
            asking.fin();
            let counters = place.closed(1).await;
            assert!(left.elapsed() < NOTICED, "{way:?} {pair:?} {:?}", left.elapsed());
            let [delivered, undelivered, before, mid] = ends(&counters);
            assert_eq!((delivered, undelivered, before + mid), (0, 0, 1), "{way:?} {pair:?} {counters:#}");
            assert_eq!(commits(&counters), [0, 0, 0]);
            soon(place.lab.wait_aborted(1)).await;
        }
    }
}

/// The turn after the usual one, with this answer to it.
fn next_turn(pair: Pair, answer: &str) -> String {
    let mut body = saying(pair, "Hello there");
    say(pair, &mut body, "assistant", answer);
    say(pair, &mut body, "user", "And you?");
    body.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_turn_that_holds_the_answer_is_its_receipt_when_none_has_come_yet() {
    join_all(matrix().into_iter().map(|(way, pair)| async move {
        let place = Place::of(way, pair, Rule { times: Some(1), ..large(IN_THE_KERNEL) }).await;
        let asking = place.ask(way, pair, Takes::Little).await;
        place.answered(1).await;
        let answer = "x".repeat(IN_THE_KERNEL);
        // Another caller that says the same proves nothing.
        let mut other = Asking::connect(&place.served, way, Takes::Everything).await;
        let bearer = format!("Bearer {OTHER}");
        other.ask(pair, &[("authorization", &bearer)], &next_turn(pair, &answer)).await;
        assert_eq!(other.reply().await.status, 200);
        let counters = place.closed_but(1, 1).await;
        assert_eq!(counters["echoed"], 0, "{way:?} {pair:?}");

        let mut next = Asking::connect(&place.served, way, Takes::Everything).await;
        next.ask(pair, &[], &next_turn(pair, &answer)).await;
        assert_eq!(next.reply().await.status, 200);
        let counters = place.closed(3).await;
        assert_eq!((ends(&counters), &counters["echoed"]), ([3, 0, 0, 0], &1.into()), "{way:?} {pair:?}");
        assert_eq!(commits(&counters)[..2], [3, 3], "{way:?} {pair:?}");
        drop(asking.leave(Exit::Reset).await);
        assert_eq!(ends(&place.closed(3).await), [3, 0, 0, 0], "{way:?} {pair:?}: a receipt is not taken back");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg(target_os = "linux")]
async fn what_the_kernel_took_is_delivered_where_that_is_enough_and_not_where_the_peer_must_have_it() {
    join_all(matrix().into_iter().map(|(way, pair)| async move {
        // Responses says a text five times over: as it comes, and in four endings.
        let bytes = if pair.client == Dialect::Responses { IN_THE_KERNEL / 5 } else { IN_THE_KERNEL };
        for (level, delivered) in [("flushed", true), ("acked", false)] {
            let server = format!("delivery = {level:?}\n");
            let place = Place::changed(way, pair, large(bytes), |plan| Plan { server, ..plan }).await;
            let asking = place.ask(way, pair, Takes::Little).await;
            place.upstream_done(1).await;
            if delivered {
                let counters = place.closed(1).await;
                assert_eq!((ends(&counters), commits(&counters)), ([1, 0, 0, 0], [1, 1, 1]), "{way:?} {pair:?}");
            }
            drop(asking.leave(Exit::Close).await);
            let counters = place.closed(1).await;
            let (end, wrote) = if delivered { ([1, 0, 0, 0], [1, 1, 1]) } else { ([0, 1, 0, 0], [0, 0, 0]) };
            assert_eq!((ends(&counters), commits(&counters)), (end, wrote), "{level} {way:?} {pair:?}");
        }
    }))
    .await;
}
