//! When a turn goes on with the conversation that its history has at a Cascade server, and when it does not.

use crate::cascade_scene::*;
use crate::cascade_server::Next;
use crate::scene::*;
use crate::support::dialects::{assert_refused, assert_said, say};
use crate::support::*;
use futures_util::future::join_all;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn each_turn_goes_on_in_its_conversation_and_brings_only_what_is_new() {
    join_all(clients().into_iter().map(|pair| async move {
        let place = Place::of(&["a", "b"]).await;
        let mut talk = Talk::begin(pair, "first");
        for (at, words) in ["second", "third", "fourth"].into_iter().enumerate() {
            talk.hears(&place.world, &format!("answer {}", at + 1)).await;
            talk.says(words);
        }
        talk.hears(&place.world, "answer 4").await;
        let counters = place.assert_kept(1, 3, &format!("{pair:?}")).await;
        assert_eq!((count(&counters, "advanced"), count(&counters, "dropped")), (3, 0), "{pair:?}");
        let words = ["user: first", "user: second", "user: third", "user: fourth"];
        assert_eq!(place.server.messages(), words.map(|words| vec![words.to_owned()]), "{pair:?}");
        assert_eq!(place.server.known(), 1, "{pair:?}");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn results_of_parallel_tools_go_on_in_it_with_the_words_beside_them() {
    for stream in [true, false] {
        let place = Place::of(&["a"]).await;
        place.server.script([Next::Call(vec!["c1", "c2"])]);
        let pair = Pair { stream, ..streamed_and_plain()[0] };
        let mut talk = Talk::begin(pair, "first");
        talk.body["tools"] =
            json!([{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]);
        let reply = talk.turn(&place.world).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        place.at_rest().await;
        let call =
            |id: &str| json!({"id": id, "type": "function", "function": {"name": "look", "arguments": "{\"at\":1}"}});
        let messages = talk.body["messages"].as_array_mut().unwrap();
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call("c1"), call("c2")]}));
        for id in ["c1", "c2"] {
            messages.push(json!({"role": "tool", "tool_call_id": id, "content": format!("found by {id}")}));
        }
        talk.says("and hurry");
        talk.hears(&place.world, "answer 2").await;
        place.assert_kept(1, 1, &format!("stream {stream}")).await;
        let sent = place.server.messages();
        let flat = sent[1].join(", ");
        for part in ["result of c1", "result of c2", "and hurry"] {
            assert!(flat.contains(part), "{flat}");
        }
        assert!(!flat.contains("first") && !flat.contains("call c1"), "only what is new: {flat}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_history_and_another_system_prompt_begin_a_conversation_of_their_own() {
    for pair in streamed_and_plain() {
        let place = Place::of(&["a"]).await;
        let talk = place.begun(pair).await;
        let mut edited = talk.clone();
        edited.body["messages"][0]["content"] = json!("another first");
        let mut told = talk.clone();
        told.body["messages"].as_array_mut().unwrap().insert(0, json!({"role": "system", "content": "Be brief"}));
        for (mut other, answer) in [(edited, "answer 2"), (told, "answer 3")] {
            other.hears(&place.world, answer).await;
        }
        place.assert_kept(3, 0, &format!("{pair:?}")).await;
        // The one that was left is still there.
        talk.clone().hears(&place.world, "answer 4").await;
        place.assert_kept(3, 1, &format!("{pair:?}")).await;
        assert_eq!(place.server.messages()[3], ["user: second"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_branch_and_a_regenerated_answer_never_meet_the_conversation_that_went_on() {
    for pair in streamed_and_plain() {
        let place = Place::of(&["a"]).await;
        let talk = place.begun(pair).await;
        let mut branch = talk.clone();
        branch.body["messages"][2]["content"] = json!("a second question");
        let mut on = talk.clone();
        on.hears(&place.world, "answer 2").await;
        // The conversation stands after the second answer: the branch from the first has none.
        branch.hears(&place.world, "answer 3").await;
        // Regenerated: the same request anew.
        talk.clone().header("x-turnkeep-cache", "bypass").hears(&place.world, "answer 4").await;
        let counters = place.assert_kept(3, 1, &format!("{pair:?}")).await;
        assert_eq!(count(&counters, "dropped"), 0, "{counters:#}");
        let sent = place.server.messages();
        assert_eq!((sent[1].len(), sent[2].len(), sent[3].len()), (1, 3, 3), "{sent:?}");
        on.says("third").hears(&place.world, "answer 5").await;
        place.assert_kept(3, 2, &format!("{pair:?}")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_identical_turns_at_once_one_goes_on_in_it_and_the_other_begins_anew() {
    for pair in streamed_and_plain() {
        let place = Place::of(&["a"]).await;
        let talk = place.begun(pair).await;
        place.server.script([Next::Hold("two", " and more"), Next::Hold("two", " and more")]);
        let mut first = talk.ask(&place.world).await;
        place.server.wait_for_turns(2).await;
        let mut second = talk.ask(&place.world).await;
        place.server.wait_for_turns(3).await;
        place.server.release();
        for client in [&mut first, &mut second] {
            assert_said(pair, &client.reply().await, "two and more");
        }
        // Both stand under the same history; the newer one has taken the older one's place.
        let counters = place.at_rest().await;
        assert_eq!((count(&counters, "size"), count(&counters, "hits")), (1, 1), "{counters:#}");
        let sent = place.server.sent();
        assert_ne!(sent[1].conversation, sent[2].conversation, "never two turns in one");
        assert_eq!((sent[1].messages.len(), sent[2].messages.len()), (1, 3));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_caller_with_the_identical_history_never_gets_it_and_a_shared_key_has_none() {
    join_all(clients().into_iter().map(|pair| async move {
        let place = Place::of(&["a"]).await;
        let talk = place.begun(pair).await;
        talk.clone().by(OTHER).hears(&place.world, "answer 2").await;
        place.assert_kept(2, 0, &format!("{pair:?} another caller")).await;
        for answer in ["answer 3", "answer 4"] {
            talk.clone().by(SHARED).hears(&place.world, answer).await;
        }
        let counters = place.assert_kept(2, 0, &format!("{pair:?} a shared key")).await;
        assert_eq!(count(&counters, "misses"), 1, "one with nobody behind it does not even ask: {counters:#}");
        let conversations: std::collections::BTreeSet<String> =
            place.server.sent().into_iter().map(|sent| sent.conversation).collect();
        assert_eq!(conversations.len(), 4, "{pair:?}");
        talk.clone().hears(&place.world, "answer 5").await;
        place.assert_kept(2, 1, &format!("{pair:?} its own")).await;
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_reuse_off_each_turn_brings_its_whole_history_and_nothing_is_kept() {
    for pair in streamed_and_plain() {
        let place = Place::with(&["a"], "reuse = \"off\"", |plan| plan).await;
        let mut talk = Talk::begin(pair, "first");
        talk.hears(&place.world, "answer 1").await;
        talk.says("second").hears(&place.world, "answer 2").await;
        place.assert_kept(0, 0, "off").await;
        assert_eq!(place.server.messages()[1], ["user: first", "assistant: answer 1", "user: second"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_are_named_apart_have_conversations_apart() {
    let pair = streamed_and_plain()[0];
    let place = Place::of(&["a"]).await;
    for (at, session) in ["one", "two"].into_iter().enumerate() {
        let mut talk = Talk::begin(pair, "first").header("x-turnkeep-conversation", session);
        // The same words, so that only the session tells them apart.
        place.server.script([Next::Say("the same".into())]);
        talk.hears(&place.world, "the same").await;
        place.assert_kept(at as u64 + 1, 0, session).await;
    }
    let mut lost = Talk::begin(pair, "first").header("x-turnkeep-conversation", "three");
    say(pair, &mut lost.body, "assistant", "the same");
    lost.says("second").hears(&place.world, "answer 3").await;
    place.assert_kept(3, 0, "a third session").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_carried_is_refused_and_leaves_it_as_it_was() {
    for pair in streamed_and_plain() {
        let place = Place::of(&["a"]).await;
        let talk = place.begun(pair).await;
        place.server.script([Next::Refuse("INVALID", 0)]);
        assert_refused(pair, &talk.turn(&place.world).await, 400);
        place.assert_kept(1, 1, &format!("{pair:?}")).await;
        talk.clone().hears(&place.world, "answer 2").await;
        place.assert_kept(1, 2, &format!("{pair:?}")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_turns_of_a_long_conversation_send_less_than_a_twentieth_of_what_they_would_send_whole() {
    let place = Place::of(&["a"]).await;
    let pair = streamed_and_plain()[0];
    let words = |turn: usize| format!("turn {turn}: {}", "some words of the user ".repeat(150));
    let mut talk = Talk::begin(pair, &words(1));
    // What each turn would have brought with its whole history.
    let (mut history, mut whole) = (words(1).len(), 0);
    for turn in 1..=60 {
        whole += history;
        let answer = format!("answer {turn}");
        talk.hears(&place.world, &answer).await;
        talk.says(&words(turn + 1));
        history += answer.len() + words(turn + 1).len();
    }
    place.assert_kept(1, 59, "sixty turns").await;
    let sent: usize = place.server.messages().iter().flatten().map(String::len).sum();
    assert!(history > 200 << 10, "{history}");
    assert!(sent * 20 < whole, "{sent} bytes of words were sent, and {whole} would have been");
}
