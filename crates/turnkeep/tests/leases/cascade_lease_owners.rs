//! A conversation's owner: an account that is busy, refreshed, replaced or removed; and a gateway that dies.

use crate::cascade_scene::*;
use crate::cascade_server::{Cascade, Next};
use crate::scene::*;
use crate::support::binary::serve;
use crate::support::dialects::{assert_broke_off, assert_refused, assert_said, say};

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_owner_is_passed_over_with_prefer_and_waited_for_with_strict() {
    for pair in streamed_and_plain() {
        for (reuse, waits) in [("prefer", false), ("strict", true)] {
            let place = Place::of(&["a"]).await;
            let talk = place.begun(pair).await;
            // Another account, and a model that only the owner serves: both have one slot.
            let text = place.other(&["a", "b"], &format!("reuse = {reuse:?}")).models.unwrap();
            let text = text
                .replace("name = \"a\"\n", "name = \"a\"\nmax_in_flight = 1\n")
                .replace("name = \"b\"\n", "name = \"b\"\nmax_in_flight = 1\nmodels = [\"upstream-m\"]\n");
            let text = text + "[[models]]\nname = \"n\"\nroutes = [{ upstream = \"up\", model = \"only-a\" }]\n";
            place.world.take_up(&place.other(&[], "").models(&text)).await;
            place.server.script([Next::Hold("held", " words"), Next::Say("free".into())]);
            let mut held = Talk::begin(pair, "something else");
            held.body["model"] = "n".into();
            let mut held = held.ask(&place.world).await;
            place.server.wait_for_turns(2).await;
            let mut second = talk.ask(&place.world).await;
            if waits {
                place.world.until("a turn that waits", |counters| counters["waiting"] == 1).await;
                place.server.release();
            }
            assert_said(pair, &second.reply().await, "free");
            place.server.release();
            assert_said(pair, &held.reply().await, "held words");
            let sent = place.server.sent();
            let found = (sent[2].account.as_str(), sent[2].messages.len());
            assert_eq!(found, if waits { ("a", 1) } else { ("b", 3) }, "{reuse}: {sent:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_account_ends_its_turn_whole_and_its_conversation_is_gone_on_with_by_nobody() {
    for pair in streamed_and_plain() {
        let place = Place::of(&["a"]).await;
        let mut talk = place.begun(pair).await;
        place.server.script([Next::Hold("two", " and more")]);
        let mut client = talk.ask(&place.world).await;
        place.server.wait_for_turns(2).await;
        place.world.take_up(&place.other(&["b"], "")).await;
        place.server.release();
        assert_said(pair, &client.reply().await, "two and more");
        let counters = place.at_rest().await;
        assert_eq!(count(&counters, "size"), 0, "a late check-in of an older epoch: {counters:#}");
        say(pair, &mut talk.body, "assistant", "two and more");
        talk.says("third").hears(&place.world, "answer 3").await;
        let sent = place.server.sent();
        assert_eq!((sent[2].account.as_str(), sent[2].messages.len()), ("b", 5), "{sent:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_is_removed_and_comes_again_under_its_name_does_not_have_it() {
    for pair in streamed_and_plain() {
        let place = Place::of(&["a"]).await;
        let talk = place.begun(pair).await;
        place.world.take_up(&place.other(&["b"], "")).await;
        place.world.take_up(&place.other(&["a"], "")).await;
        talk.clone().hears(&place.world, "answer 2").await;
        let counters = place.at_rest().await;
        assert_eq!(count(&counters, "hits"), 0, "{counters:#}");
        assert_eq!(place.server.messages()[1].len(), 3);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_rules_of_an_upstream_leave_its_conversations() {
    let pair = streamed_and_plain()[0];
    let place = Place::of(&["a"]).await;
    let talk = place.begun(pair).await;
    let lines =
        "timeouts = { connect = \"9s\", between = \"50s\" }\nreuse = \"strict\"\nheaders = { x-more = \"words\" }";
    place.world.take_up(&place.other(&["a"], lines)).await;
    talk.clone().hears(&place.world, "answer 2").await;
    place.assert_kept(1, 1, "other clocks and headers").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn strict_waits_no_longer_than_the_queue_and_then_gives_it_back() {
    let pair = streamed_and_plain()[0];
    let place = Place::of(&["a"]).await;
    let slots = place.other(&["a"], "reuse = \"strict\"").models.unwrap();
    let slots = slots.replace("secret = ", "max_in_flight = 1\nsecret = ");
    place.world.take_up(&place.other(&[], "").models(&slots).tuning("max_queue_wait = \"100ms\"")).await;
    let talk = place.begun(pair).await;
    place.server.script([Next::Hold("held", " words")]);
    let mut held = Talk::begin(pair, "something else").ask(&place.world).await;
    place.server.wait_for_turns(2).await;
    assert_refused(pair, &talk.turn(&place.world).await, 429);
    place.server.release();
    assert_said(pair, &held.reply().await, "held words");
    let counters = place.assert_kept(2, 1, "given back").await;
    assert_eq!(count(&counters, "restored"), 1, "{counters:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_is_killed_between_turns_or_within_one_repeats_nothing_and_goes_on_with_nothing_in_doubt() {
    for pair in streamed_and_plain() {
        for within in [false, true] {
            let server = Cascade::start().await;
            let folder = tempfile::tempdir().unwrap();
            let plan = plan(&[("up", upstream("up", server.addr(), &["a"], ""))]);
            let (mut child, addr) = serve(&plan, folder.path(), None).await;
            let mut talk = Talk::begin(pair, "first");
            server.script([Next::Say("one".into())]);
            assert_said(pair, &talk.ask_at(addr).await.reply().await, "one");
            say(pair, &mut talk.body, "assistant", "one");
            talk.says("second");
            if within {
                server.script([Next::Hold("two", " and more")]);
                let _cut = talk.ask_at(addr).await;
                server.wait_for_turns(2).await;
                child.kill().await.unwrap();
            } else {
                child.kill().await.unwrap();
            }
            let (_again, addr) = serve(&plan, folder.path(), None).await;
            server.script([Next::Say("anew".into())]);
            assert_said(pair, &talk.ask_at(addr).await.reply().await, "anew");
            let sent = server.sent();
            let last = sent.last().unwrap();
            // Without a master key the store has none of them: it is begun anew, in a turn or not.
            assert_ne!(last.conversation, sent[0].conversation, "within {within}: {sent:?}");
            assert_eq!(last.messages, ["user: first", "assistant: one", "user: second"], "within {within}");
            server.assert_transcripts_are_whole();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_stops_ends_the_turn_in_its_form_and_cancels_it_upstream() {
    let pair = streamed_and_plain()[0];
    let mut place = Place::with(&["a"], "", |mut plan| {
        plan.server = "shutdown_grace = \"100ms\"".into();
        plan
    })
    .await;
    let talk = place.begun(pair).await;
    place.server.script([Next::Hold("two", " and more")]);
    let mut client = talk.ask(&place.world).await;
    client.until("two").await;
    place.world.ask_to_stop();
    assert_broke_off(pair, &client.reply().await, "two");
    place.server.wait_for_cancels(1).await;
}
