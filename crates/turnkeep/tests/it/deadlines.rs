//! Each clock ends what it bounds, says so in the client's dialect, and blames no account.
//!
//! Each client dialect meets each kind of upstream once, streamed and plain by turns.

use crate::support::dialects::{assert_broke_off, assert_refused, covering, streamed};
use crate::support::world::assert_unblamed;
use crate::support::*;
use futures_util::future::join_all;

fn hanging(at: Option<Point>) -> Rule {
    Rule { text: Some("one two three four".into()), fault: Some(Fault::Hang), fault_at: at, ..Rule::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_callers_own_time_ends_a_turn_with_a_504() {
    join_all(covering().into_iter().map(|pair| async move {
        for at in [None, Some(Point::AfterPreamble)] {
            let lab = lab([hanging(at)]).await;
            let world = World::two(pair, &lab).await;
            let mut client = world.client().await;
            client.ask_with(pair, &[("x-turnkeep-timeout", "200ms")], request(pair).to_string().as_bytes()).await;
            assert_refused(pair, &client.reply().await, 504);
            soon(lab.wait_aborted(1)).await;
            let counters = world.until_at_rest().await;
            assert_eq!(counters["deadline_exceeded"], 1, "{counters:#}");
            assert_eq!(lab.requests().len(), 1, "a turn whose time is over is not tried again");
            assert_unblamed(&counters, "a");
            assert_unblamed(&counters, "b");
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_callers_own_time_ends_the_wait_for_a_slot_too() {
    join_all(covering().into_iter().map(|pair| async move {
        let lab = lab([Rule { gate: Some("held".into()), ..Rule::default() }]).await;
        let world = World::over([Up::at(pair.upstream, &lab).slots(1)]).await;
        let mut holder = world.client().await;
        holder.ask(pair).await;
        soon(lab.wait_at_gate("held", 1)).await;
        let mut client = world.client().await;
        client.ask_with(pair, &[("x-turnkeep-timeout", "150ms")], request(pair).to_string().as_bytes()).await;
        assert_refused(pair, &client.reply().await, 504);
        assert_eq!(world.counters().await["waiting"], 0);
        lab.release("held");
        assert_eq!(holder.reply().await.status, 200);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_whose_content_does_not_begin_is_stalled_and_another_is_asked() {
    join_all(streamed().into_iter().map(|pair| async move {
        for at in [None, Some(Point::AfterPreamble)] {
            let lab = lab([hanging(at)]).await;
            let up = Up::at(pair.upstream, &lab).accounts(&["a", "b"]).timeouts("first_content = \"200ms\"");
            let world = World::over([up]).await;
            assert_refused(pair, &world.client().await.turn(pair).await, 504);
            soon(lab.wait_aborted(2)).await;
            let counters = world.until_at_rest().await;
            assert_eq!(counters["upstream_stalled"], 2, "once elsewhere");
            assert_unblamed(&counters, "a");
            assert_unblamed(&counters, "b");
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_falls_silent_ends_in_the_dialects_error_form() {
    join_all(streamed().into_iter().map(|pair| async move {
        let lab = lab([hanging(Some(Point::AfterWords(2)))]).await;
        let world = World::over([Up::at(pair.upstream, &lab).timeouts("between = \"200ms\"")]).await;
        let reply = world.client().await.turn(pair).await;
        assert_broke_off(pair, &reply, "one two ");
        soon(lab.wait_aborted(1)).await;
        let counters = world.until_at_rest().await;
        assert_eq!(counters["upstream_stalled"], 1);
        assert_unblamed(&counters, "a");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_takes_longer_than_the_whole_time_ends_with_a_504() {
    join_all(covering().into_iter().map(|pair| async move {
        let lab = lab([hanging(None)]).await;
        let world = World::over([Up::at(pair.upstream, &lab).timeouts("total = \"200ms\"")]).await;
        assert_refused(pair, &world.client().await.turn(pair).await, 504);
        soon(lab.wait_aborted(1)).await;
        let counters = world.until_at_rest().await;
        assert_eq!(counters["deadline_exceeded"], 1);
        assert_unblamed(&counters, "a");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_goes_on_outlives_the_whole_time_that_bounds_its_beginning() {
    join_all(streamed().into_iter().map(|pair| async move {
        let rule = Rule { words: Some(12), word_delay_ms: 50, ..Rule::default() };
        let lab = lab([rule]).await;
        let world = World::over([Up::at(pair.upstream, &lab).timeouts("total = \"400ms\"")]).await;
        let reply = world.client().await.turn(pair).await;
        assert!(said(pair, &reply).contains("word12"), "{pair:?} {}", reply.text());
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_that_is_none_is_refused_and_names_the_header() {
    join_all(covering().into_iter().map(|pair| async move {
        let lab = lab([]).await;
        let world = World::simple(pair, &lab).await;
        let mut client = world.client().await;
        client.ask_with(pair, &[("x-turnkeep-timeout", "soon")], request(pair).to_string().as_bytes()).await;
        assert!(assert_refused(pair, &client.reply().await, 400).contains("x-turnkeep-timeout"));
        assert_eq!(lab.requests().len(), 0);
    }))
    .await;
}
