//! The leases of a chain's links: immutable, lent to any number of turns.

use crate::support::dialects::{assert_said, said};
use crate::support::world::Plan;
use crate::support::*;
use crate::talk::{asked, begin, counts, keeping, kept_id, texts, ways};
use futures_util::future::join_all;
use serde_json::{Value, json};
use turnkeep_base::Dialect;
use turnkeep_lab::{ErrorSpec, Fault};

#[tokio::test(flavor = "multi_thread")]
async fn every_turn_after_the_first_brings_only_what_is_new_whatever_dialect_its_client_speaks() {
    join_all(ways().into_iter().map(|pair| async move {
        let lab = keeping().await;
        let world = World::simple(pair, &lab).await;
        let mut talk = begin(pair, "My name is Ann");
        for more in ["And I am ten", "What is my name?", "Bye"] {
            talk.answered(&world, "noted so far", more).await;
        }
        let asked = asked(&lab);
        assert_eq!(asked.len(), 3, "{pair:?}");
        assert_eq!(texts(&asked[0]["input"]), ["My name is Ann"], "{pair:?}");
        assert!(asked[0]["previous_response_id"].is_null() && asked[0]["store"] != json!(false), "{pair:?}");
        for (at, new) in [(1, "And I am ten"), (2, "What is my name?")] {
            assert_eq!(asked[at]["previous_response_id"], kept_id(&lab, at - 1), "{pair:?}");
            assert_eq!(texts(&asked[at]["input"]), [new], "{pair:?}");
        }
        let whole = json!(lab.kept_answers()[2].items);
        let all =
            ["My name is Ann", "noted so far", "And I am ten", "noted so far", "What is my name?", "noted so far"];
        assert_eq!(texts(&whole), all, "{pair:?}: nothing stands there twice");
        let counters = world.until_at_rest().await;
        assert_eq!(counts(&counters), [2, 0, 0, 2, 0], "{pair:?}");
        assert_eq!(counters["conversations"]["size"], 3, "{pair:?}: each answer can be branched");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_gone_is_made_up_for_by_the_whole_history_and_nobody_sees_it() {
    join_all(ways().into_iter().map(|pair| async move {
        let lab = keeping().await;
        let world = World::simple(pair, &lab).await;
        let mut talk = begin(pair, "one");
        talk.answered(&world, "noted so far", "two").await;
        lab.forget_kept_answers();
        let reply = talk.turn(&world).await;
        assert_said(pair, &reply, "noted so far");
        let asked = asked(&lab);
        assert_eq!(asked.len(), 3, "{pair:?}");
        assert!(asked[1]["previous_response_id"].is_string() && asked[2]["previous_response_id"].is_null(), "{pair:?}");
        assert_eq!(texts(&asked[2]["input"]), ["one", "noted so far", "two"], "{pair:?}");
        let counters = world.until_at_rest().await;
        assert_eq!((counts(&counters), &counters["conversation_gone"]), ([1, 0, 0, 0, 1], &json!(1)), "{pair:?}");
        assert_eq!(counters["accounts"][0]["budget_used"], 0);
        let again = talk.clone();
        assert_said(pair, &again.turn(&world).await, "noted so far");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_is_never_named_at_another_address_of_its_upstream() {
    join_all(ways().into_iter().map(|pair| async move {
        let (here, there) = (keeping().await, keeping().await);
        let world = World::simple(pair, &here).await;
        let mut talk = begin(pair, "one");
        talk.answered(&world, "noted so far", "two").await;
        world.take_up(&Plan::over([Up::at(pair.upstream, &there)])).await;
        assert_said(pair, &talk.turn(&world).await, "noted so far");
        let asked = asked(&there);
        assert_eq!(asked.len(), 1, "{pair:?}");
        assert!(asked[0]["previous_response_id"].is_null(), "{pair:?}");
        assert_eq!(texts(&asked[0]["input"]), ["one", "noted so far", "two"], "{pair:?}");
        assert_eq!(counts(&world.until_at_rest().await)[0], 0, "{pair:?}");
    }))
    .await;
}

/// A whole answer of an upstream that does not know `previous_response_id`, and says of it what it is told to.
fn passing_over(stream: bool, echo: &str) -> Rule {
    let response = |status: &str, output: &str| {
        format!(
            r#"{{"id":"resp_x","object":"response","created_at":1,"status":"{status}","model":"up","output":[{output}],"parallel_tool_calls":true,"tool_choice":"auto","tools":[],"error":null,"incomplete_details":null{echo},"usage":{{"input_tokens":7,"input_tokens_details":{{"cached_tokens":0}},"output_tokens":3,"output_tokens_details":{{"reasoning_tokens":0}},"total_tokens":10}}}}"#
        )
    };
    let item = r#"{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"who are you?","annotations":[]}]}"#;
    if !stream {
        return Rule { raw: Some(response("completed", item)), times: Some(1), ..Rule::default() };
    }
    let event = |number: u32, kind: &str, rest: &str| {
        format!("event: {kind}\ndata: {{\"type\":\"{kind}\",\"sequence_number\":{number},{rest}}}\n\n")
    };
    let frames = vec![
        event(0, "response.created", &format!("\"response\":{}", response("in_progress", ""))),
        event(
            1,
            "response.output_text.delta",
            "\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"delta\":\"who are you?\"",
        ),
        event(2, "response.completed", &format!("\"response\":{}", response("completed", item))),
    ];
    Rule { raw_frames: frames, times: Some(1), ..Rule::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_answers_without_the_conversation_is_asked_again_with_all_of_it() {
    for echo in ["", r#","previous_response_id":null"#, r#","previous_response_id":"resp_other""#] {
        join_all(ways().into_iter().map(|pair| async move {
            let first = Rule { text: Some("noted so far".into()), times: Some(1), ..Rule::default() };
            let last = Rule { text: Some("noted so far".into()), ..Rule::default() };
            let lab = lab([first, passing_over(pair.stream, echo), last]).await;
            let world = World::simple(pair, &lab).await;
            let mut talk = begin(pair, "one");
            talk.answered(&world, "noted so far", "two").await;
            assert_eq!(said(pair, &talk.turn(&world).await), "noted so far", "{pair:?} {echo}");
            let asked = asked(&lab);
            assert_eq!(asked.len(), 3, "{pair:?} {echo}");
            assert_eq!(texts(&asked[2]["input"]), ["one", "noted so far", "two"], "{pair:?} {echo}");
        }))
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_is_branched_and_each_branch_goes_on() {
    join_all(ways().into_iter().map(|pair| async move {
        let lab = keeping().await;
        let world = World::simple(pair, &lab).await;
        let mut talk = begin(pair, "one");
        talk.answered(&world, "noted so far", "left").await;
        let mut other = talk.clone();
        let last = |body: &mut Value, words: &str| {
            let text = body.to_string().replace("\"left\"", &format!("\"{words}\""));
            *body = serde_json::from_str(&text).unwrap();
        };
        last(&mut other.body, "right");
        talk.answered(&world, "noted so far", "more").await;
        other.answered(&world, "noted so far", "more").await;
        let asked = asked(&lab);
        for (at, words) in [(1, "left"), (2, "right")] {
            assert_eq!(
                (texts(&asked[at]["input"]), &asked[at]["previous_response_id"]),
                (vec![words.into()], &kept_id(&lab, 0))
            );
        }
        assert_eq!(counts(&world.until_at_rest().await), [2, 0, 0, 2, 0], "{pair:?}");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_wants_nothing_stored_is_never_part_of_a_chain() {
    for (client, stream) in
        [Dialect::Responses, Dialect::Chat].into_iter().flat_map(|client| [(client, true), (client, false)])
    {
        let pair = Pair { client, upstream: Dialect::Responses, stream };
        let lab = keeping().await;
        let world = World::simple(pair, &lab).await;
        let mut talk = begin(pair, "one");
        talk.body["store"] = json!(false);
        talk.answered(&world, "noted so far", "two").await;
        let mut sent = talk.body.clone();
        sent["model"] = json!("upstream-m");
        talk.answered(&world, "noted so far", "three").await;
        assert_eq!(asked(&lab)[1]["store"], json!(false), "{pair:?}");
        if client == Dialect::Responses {
            assert_eq!(asked(&lab)[1], sent);
        }
        let counters = world.until_at_rest().await;
        assert_eq!((counts(&counters)[0], &counters["conversations"]["size"]), (0, &json!(0)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_turn_and_a_broken_one_leave_the_link_they_went_on_from() {
    let refused = Rule {
        error: Some(ErrorSpec { status: Some(500), ..ErrorSpec::default() }),
        times: Some(1),
        ..Rule::default()
    };
    let broken = Rule {
        text: Some("one two three".into()),
        fault: Some(Fault::ResetMidStream),
        fault_at: Some(Point::AfterWords(2)),
        times: Some(1),
        ..Rule::default()
    };
    for (name, second) in [("refused", refused), ("broken after its first event", broken)] {
        for pair in ways().into_iter().filter(|pair| pair.stream) {
            let text = || Rule { text: Some("noted so far".into()), ..Rule::default() };
            let lab = lab([Rule { times: Some(1), ..text() }, second.clone(), text()]).await;
            let world = World::simple(pair, &lab).await;
            let mut talk = begin(pair, "one");
            talk.answered(&world, "noted so far", "two").await;
            talk.turn(&world).await;
            let counters = world.until_at_rest().await;
            assert_eq!(counts(&counters), [1, 0, 1, 0, 0], "{name} {pair:?}");
            talk.answered(&world, "noted so far", "three").await;
            let asked = asked(&lab);
            let links: Vec<bool> = asked.iter().map(|body| body["previous_response_id"].is_string()).collect();
            assert_eq!(links, [false, true, true], "{name} {pair:?}");
            assert_eq!(counts(&world.until_at_rest().await), [2, 0, 1, 1, 0], "{name} {pair:?}");
        }
    }
}

/// An id of a call that differs, a server that takes no such field: only the whole history tells.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_to_be_wrong_with_a_turn_that_goes_on_is_asked_again_with_all_of_it() {
    join_all(ways().into_iter().map(|pair| async move {
        let text = || Rule { text: Some("noted so far".into()), ..Rule::default() };
        let said = ErrorSpec { status: Some(400), message: Some("No tool call found.".into()), ..ErrorSpec::default() };
        let refused = Rule { error: Some(said), times: Some(1), ..Rule::default() };
        let lab = lab([Rule { times: Some(1), ..text() }, refused, text()]).await;
        let world = World::simple(pair, &lab).await;
        let mut talk = begin(pair, "one");
        talk.answered(&world, "noted so far", "two").await;
        talk.answered(&world, "noted so far", "three").await;
        let asked = asked(&lab);
        assert_eq!(texts(&asked[2]["input"]), ["one", "noted so far", "two"], "{pair:?}");
        assert_eq!(counts(&world.until_at_rest().await), [1, 0, 0, 0, 1], "{pair:?}");
        talk.answered(&world, "noted so far", "four").await;
        assert_eq!(counts(&world.until_at_rest().await), [2, 0, 0, 1, 1], "{pair:?}: the new one goes on");
    }))
    .await;
}
