//! The review's cases: what becomes of a conversation when its turn comes to nothing. Refused before anything of the turn
//! began it is kept (1); the same after the first event of the turn drops it (0).

use crate::cascade_scene::*;
use crate::cascade_server::Next;
use crate::scene::*;
use crate::support::dialects::{assert_broke_off, assert_refused};
use crate::support::*;

/// Asserts that the turn failed with this status and these words, before its answer if `before`, else within it.
async fn failed(place: &Place, talk: &Talk, before: bool, status: u16, part: &str) {
    let reply = talk.turn(&place.world).await;
    let message = if before || !talk.pair.stream {
        assert_refused(talk.pair, &reply, status)
    } else {
        assert_broke_off(talk.pair, &reply, "two")
    };
    assert!(message.contains(part), "{part:?}: {message}");
}

/// A turn in a conversation that ends for this reason, refused or after its first event; and what is left.
async fn ends_for(reason: &'static str, status: u16, part: &str) {
    for pair in streamed_and_plain() {
        for (before, kept) in [(true, 1), (false, 0)] {
            let place = Place::of(&["a"]).await;
            let talk = place.begun(pair).await;
            place.server.script([if before { Next::Refuse(reason, 600_000) } else { Next::Fail("two", reason) }]);
            failed(&place, &talk, before, status, part).await;
            let counters = place.assert_kept(kept, 1, &format!("{pair:?} {reason}, before {before}")).await;
            let (restored, dropped) = (count(&counters, "restored"), count(&counters, "dropped"));
            assert_eq!((restored, dropped), (kept, 1 - kept), "{counters:#}");
            assert_eq!(place.server.sent().len(), 2, "nothing is sent again");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_block_keeps_it_when_refused_and_drops_it_after_the_first_event() {
    ends_for("POLICY", 451, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_limit_keeps_it_when_refused_and_drops_it_after_the_first_event() {
    ends_for("RATE", 429, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_used_up_quota_keeps_it_when_refused_and_drops_it_after_the_first_event() {
    ends_for("QUOTA", 429, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_credential_keeps_it_when_refused_and_drops_it_after_the_first_event() {
    ends_for("CREDENTIAL", 502, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_egress_burst_keeps_it_when_refused_and_drops_it_after_the_first_event() {
    for pair in streamed_and_plain() {
        let place = Place::of(&["a", "b", "c", "d"]).await;
        let talk = place.begun(pair).await;
        place.server.script([Next::Refuse("RATE", 0), Next::Refuse("RATE", 0), Next::Refuse("RATE", 0)]);
        failed(&place, &talk, true, 429, "gateway's own network address").await;
        let counters = place.assert_kept(1, 1, &format!("{pair:?}")).await;
        assert_eq!(counters["egress_throttled"], 1, "{counters:#}");

        // Two others are limited by another turn; the owner, as the third, in the middle of the conversation's own.
        let place = Place::of(&["a", "b", "c", "d"]).await;
        let talk = place.begun(pair).await;
        let owner = place.server.sent()[0].account.clone();
        place.server.script([Next::Refuse("RATE", 0), Next::Refuse("RATE", 0), Next::Refuse("INVALID", 0)]);
        assert_refused(pair, &Talk::begin(pair, "something else").turn(&place.world).await, 400);
        assert!(place.server.sent()[1..].iter().all(|sent| sent.account != owner), "the owner was used last");
        place.server.script([Next::Fail("two", "RATE")]);
        failed(&place, &talk, false, 429, "").await;
        let counters = place.assert_kept(0, 1, &format!("{pair:?}, after its first event")).await;
        assert_eq!(count(&counters, "dropped"), 1, "{counters:#}");
        let closed = counters["upstreams"][0]["closed"].as_array().unwrap().len();
        assert_eq!(closed, 1, "a burst all the same: {counters:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fast_fail_of_an_exhausted_pool_keeps_it_and_counts_as_found() {
    for pair in streamed_and_plain() {
        let place = Place::of(&["a"]).await;
        let talk = place.begun(pair).await;
        place.server.script([Next::Refuse("RATE", 600_000)]);
        assert_refused(pair, &Talk::begin(pair, "something else").turn(&place.world).await, 429);
        place.at_rest().await;
        let message = assert_refused(pair, &talk.turn(&place.world).await, 429);
        assert!(message.contains("账号队列耗尽"), "{message}");
        let counters = place.assert_kept(1, 1, &format!("{pair:?}")).await;
        assert_eq!((count(&counters, "restored"), &counters["pool_exhausted"]), (1, &1.into()), "{counters:#}");
        assert_eq!(place.server.sent().len(), 2, "it was not sent");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_during_the_backoff_of_a_stream_keeps_it_after_exactly_one_call() {
    for leave in Leave::BOTH {
        let long = |plan: crate::support::world::Plan| plan.tuning("backoff = \"1m\"\nlongest_backoff = \"1m\"");
        let place = Place::with(&["a", "b"], "", long).await;
        let pair = streamed_and_plain()[0];
        let talk = place.begun(pair).await;
        place.server.script([Next::Refuse("UNAVAILABLE", 0)]);
        let client = talk.ask(&place.world).await;
        place.server.wait_for_turns(2).await;
        place
            .world
            .until("the slot's return", |counters| {
                counters["accounts"].as_array().unwrap().iter().all(|a| a["in_flight"] == 0)
            })
            .await;
        client.leave(leave).await;
        let counters = place.assert_kept(1, 1, &format!("{leave:?}")).await;
        assert_eq!(counters["client_gone_before_answer"], 1, "{counters:#}");
        assert_eq!(place.server.sent().len(), 2, "one call for it");
        // It is what it was.
        place.server.script([Next::Say("two".into())]);
        talk.clone().hears(&place.world, "two").await;
        place.assert_kept(1, 2, &format!("{leave:?}, again")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_after_the_upstreams_turn_completed_leaves_it_advanced() {
    for pair in streamed_and_plain() {
        for leave in Leave::BOTH {
            let place = Place::of(&["a"]).await;
            let talk = place.begun(pair).await;
            // More than a client takes that reads nothing, and less than the kernel holds for the gateway.
            place.server.script([Next::Say("x".repeat(1 << 20))]);
            let client = talk.ask(&place.world).await;
            place.server.wait_for_turns(2).await;
            let counters = place.world.until_at_rest().await;
            assert_eq!(counters["now"]["turns_open"], 1, "a reply is on its way: {counters:#}");
            client.leave(leave).await;
            let counters = place.assert_kept(1, 1, &format!("{pair:?} {leave:?}")).await;
            assert_eq!((count(&counters, "advanced"), &counters["undelivered"]), (1, &1.into()), "{counters:#}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_that_interrupts_its_turn_cancels_it_upstream_and_drops_it() {
    for pair in streamed_and_plain() {
        for leave in Leave::BOTH {
            let place = Place::of(&["a"]).await;
            let talk = place.begun(pair).await;
            place.server.script([Next::Hold("two", " and more")]);
            let mut client = talk.ask(&place.world).await;
            place.server.wait_for_turns(2).await;
            if pair.stream {
                client.until("two").await;
            }
            client.leave(leave).await;
            let counters = place.assert_kept(0, 1, &format!("{pair:?} {leave:?}")).await;
            assert_eq!((count(&counters, "dropped"), count(&counters, "restored")), (1, 0), "{counters:#}");
            place.server.wait_for_cancels(1).await;
            let now = talk.clone();
            place.server.script([Next::Say("anew".into())]);
            now.clone().hears(&place.world, "anew").await;
            assert_eq!(place.server.messages()[2].len(), 3, "its whole history");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_turn_is_dead_whether_or_not_its_client_leaves_at_the_same_moment() {
    for pair in streamed_and_plain() {
        for leaves in [false, true] {
            let lines = "timeouts = { first_content = \"2s\", between = \"2s\", total = \"2s\" }";
            let place = Place::with(&["a"], lines, |plan| plan).await;
            let talk = place.begun(pair).await;
            place.server.script([Next::Hold("two", " and more")]);
            let mut client = talk.ask(&place.world).await;
            place.server.wait_for_turns(2).await;
            if leaves {
                // The clock's end has come to the upstream, and may not have come to the client.
                place.server.wait_for_cancels(1).await;
                client.leave(Leave::Fin).await;
            } else if pair.stream {
                assert_broke_off(pair, &client.reply().await, "two");
            } else {
                assert_refused(pair, &client.reply().await, 504);
            }
            let counters = place.assert_kept(0, 1, &format!("{pair:?}, leaves {leaves}")).await;
            assert_eq!(count(&counters, "dropped"), 1, "{counters:#}");
            place.server.wait_for_cancels(1).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_that_is_gone_is_begun_anew_with_the_whole_history_and_no_client_sees_it() {
    for pair in clients() {
        for restarts in [false, true] {
            let place = Place::of(&["a"]).await;
            let mut talk = place.begun(pair).await;
            if restarts {
                place.server.restart()
            } else {
                place.server.forget_all()
            }
            place.server.script([Next::Say("two".into())]);
            talk.hears(&place.world, "two").await;
            let counters = place.assert_kept(1, 1, &format!("{pair:?}, restarts {restarts}")).await;
            assert_eq!((count(&counters, "dropped"), &counters["conversation_gone"]), (1, &1.into()), "{counters:#}");
            assert_eq!(place.server.messages()[2], ["user: first", "assistant: one", "user: second"]);
            // The new one is gone on with.
            place.server.script([Next::Say("three".into())]);
            talk.says("third").hears(&place.world, "three").await;
            place.assert_kept(1, 2, &format!("{pair:?}, restarts {restarts}, again")).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_limited_turn_whose_conversation_is_dead_is_not_restored() {
    for pair in streamed_and_plain() {
        let place = Place::of(&["a"]).await;
        let talk = place.begun(pair).await;
        place.server.forget_all();
        place.server.script([Next::Refuse("RATE", 600_000)]);
        assert_refused(pair, &talk.turn(&place.world).await, 429);
        let counters = place.assert_kept(0, 1, &format!("{pair:?}")).await;
        assert_eq!((count(&counters, "restored"), count(&counters, "dropped")), (0, 1), "{counters:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_send_whose_fate_is_unknown_never_puts_its_messages_into_a_conversation_twice() {
    for pair in streamed_and_plain() {
        for taken in [false, true] {
            let place = Place::of(&["a"]).await;
            let mut talk = place.begun(pair).await;
            place.server.script([if taken { Next::TakeAndLose } else { Next::Lose }, Next::Say("two".into())]);
            talk.hears(&place.world, "two").await;
            place.server.assert_transcripts_are_whole();
            let counters = place.at_rest().await;
            assert_eq!(count(&counters, "size"), 1, "{counters:#}");
            place.server.script([Next::Say("three".into())]);
            talk.says("third").hears(&place.world, "three").await;
            place.server.assert_transcripts_are_whole();
            assert_eq!(place.server.messages().last().unwrap(), &["user: third"], "taken {taken}");
        }
    }
}
