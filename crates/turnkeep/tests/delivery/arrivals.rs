//! The review cases of delivery: a turn that has arrived binds its account, commits its history and fills the cache; one
//! that has not does nothing of the kind, and is paid for all the same. Over every transport, in every dialect, streamed
//! and not. Windows are held open on purpose: by a gate in the upstream, or by a client that takes less than the reply.

use crate::asking::{Exit, Takes, Way};
use crate::scene::*;
use crate::support::dialects::{assert_said, saying};
use crate::support::listen::served;
use crate::support::world::{Plan, assert_unblamed};
use crate::support::*;
use futures_util::future::join_all;
use serde_json::Value;

#[tokio::test(flavor = "multi_thread")]
async fn a_delivered_turn_binds_commits_and_is_stored() {
    join_all(matrix().into_iter().map(|(way, pair)| async move {
        let place = Place::of(way, pair, Rule { text: Some("one two three".into()), ..Rule::default() }).await;
        assert_said(pair, &place.turn(way, pair).await, "one two three");
        let counters = place.closed(1).await;
        assert_eq!((ends(&counters), commits(&counters)), ([1, 0, 0, 0], [1, 1, 1]), "{way:?} {pair:?}");
        assert_paid(place.served, &format!("{way:?} {pair:?}")).await;
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_before_the_end_is_written_leaves_nothing_behind() {
    let cases = matrix().into_iter().flat_map(|(way, pair)| way.exits().into_iter().map(move |exit| (way, pair, exit)));
    join_all(cases.map(|(way, pair, exit)| async move {
        let case = format!("{way:?} {pair:?} {exit:?}");
        let place = Place::of(way, pair, Rule { gate_at: Some(Point::BeforeTerminal), ..held_after_two_words() }).await;
        let asking = place.ask(way, pair, Takes::Everything).await;
        soon(place.lab.wait_at_gate("held", 1)).await;
        let kept = asking.leave(exit).await;
        soon(place.lab.wait_aborted(1)).await;
        let counters = place.closed(1).await;
        let [delivered, undelivered, before, mid] = ends(&counters);
        assert_eq!((delivered, undelivered, before + mid), (0, 0, 1), "{case}: {counters:#}");
        assert_eq!((commits(&counters), &counters["client_gone"]), ([0, 0, 0], &1.into()), "{case}");
        assert_unblamed(&counters, "a");
        drop(kept);
        let entries = place.served.world.into_ledger().await;
        let closed = entries[0].closed.as_ref().unwrap();
        assert_eq!((entries.len(), closed.outcome.as_str(), closed.exact), (1, "interrupted", false), "{case}");
    }))
    .await;
}

/// A turn whose upstream has answered whole, and whose client leaves with most of the reply still to come.
async fn lost_at_the_end(way: Way, pair: Pair, exit: Exit, bytes: usize, forced: bool) -> (Place, Value) {
    let place = Place::changed(way, pair, large(pair, bytes), |plan| Plan { forced, ..plan }).await;
    if forced {
        let asking = place.ask(way, pair, Takes::Little).await;
        let counters = place.closed(1).await;
        drop(asking);
        return (place, counters);
    }
    place.lose(way, pair, exit).await;
    let counters = place.closed(1).await;
    (place, counters)
}

/// Whether the upstream can end its answer when the client takes none of it. A Responses stream has its text in five events:
/// the first of them fill what is held for the client, and the upstream waits with the others.
fn is_read_whole(pair: Pair) -> bool {
    !(pair.client == Dialect::Responses && pair.stream)
}

async fn each_lost_at_the_end(bytes: usize, applies: impl Fn(Pair) -> bool) {
    for exit in [Exit::Close, Exit::Reset, Exit::Stream] {
        let cases = matrix().into_iter().filter(|(way, pair)| way.exits().contains(&exit) && applies(*pair));
        join_all(cases.map(|(way, pair)| async move {
            let case = format!("{way:?} {pair:?} {exit:?}");
            let (place, counters) = lost_at_the_end(way, pair, exit, bytes, false).await;
            assert_undelivered(&counters, &case);
            assert_paid(place.served, &case).await;
        }))
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_lies_unread_when_its_client_leaves_is_undelivered_and_paid_for() {
    each_lost_at_the_end(IN_THE_KERNEL, |_| true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_no_window_takes_is_undelivered_and_paid_for_when_its_client_leaves() {
    each_lost_at_the_end(BEYOND_IT, is_read_whole).await;
}

/// What the tests above rest on: were there no proof of arrival, they would see commits.
#[tokio::test(flavor = "multi_thread")]
async fn with_the_gate_forced_open_replies_that_lie_unread_count_as_delivered() {
    join_all(matrix().into_iter().map(|(way, pair)| async move {
        let (_place, counters) = lost_at_the_end(way, pair, Exit::Reset, IN_THE_KERNEL, true).await;
        assert_eq!((ends(&counters), commits(&counters)), ([1, 0, 0, 0], [1, 1, 1]), "{way:?} {pair:?}");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_http2_stream_that_is_reset_loses_its_reply_and_its_neighbour_gets_its_own() {
    let cases = matrix().into_iter().filter(|(way, pair)| way.is_http2() && is_read_whole(*pair));
    join_all(cases.map(|(way, pair)| async move {
        let first = Rule { body_contains: Some("Hello there".into()), ..large(pair, BEYOND_IT) };
        let rules = [first, Rule { text: Some("another".into()), ..Rule::default() }];
        let lab = lab(rules.map(|rule| Rule { usage: USAGE, ..rule })).await;
        let place = Place { served: served(plan(Up::at(pair.upstream, &lab)), way.is_tls()).await, lab };
        // Its connection reads; the window of the stream is what the reply exceeds.
        let mut asking = place.ask(way, pair, Takes::Everything).await;
        place.answered(1).await;
        let unread = asking.aside().await;
        asking.ask(pair, &[], &saying(pair, "And you?").to_string()).await;
        assert_said(pair, &asking.reply().await, "another");
        let counters = place.closed_but(1, 1).await;
        assert_eq!((ends(&counters), commits(&counters)), ([1, 0, 0, 0], [1, 1, 1]), "{way:?} {pair:?}");
        drop(unread);
        let counters = place.closed(2).await;
        assert_eq!((ends(&counters), commits(&counters)), ([1, 1, 0, 0], [1, 1, 1]), "{way:?} {pair:?}");
        asking.ask(pair, &[], &saying(pair, "And then?").to_string()).await;
        assert_said(pair, &asking.reply().await, "another");
    }))
    .await;
}
