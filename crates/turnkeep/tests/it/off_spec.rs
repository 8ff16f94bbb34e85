//! Upstreams that call themselves Responses and leave out what the official clients need: the answer is written anew.

use crate::support::dialects::assert_said;
use crate::support::*;
use futures_util::future::join_all;
use serde_json::Value;

const WORDS: &str = "one two";

/// Without numbers, and with bare responses.
fn frames() -> Vec<String> {
    let events = [
        r#"{"type":"response.created","response":{"id":"resp_1","model":"upstream-m","status":"in_progress"}}"#,
        r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","role":"assistant","content":[]}}"#,
        r#"{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"one "}"#,
        r#"{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"two"}"#,
        r#"{"type":"response.completed","response":{"id":"resp_1","model":"upstream-m","status":"completed","output":[{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"one two"}]}],"usage":{"input_tokens":7,"output_tokens":3,"total_tokens":10}}}"#,
    ];
    events.iter().map(|data| format!("data: {data}\n\n")).collect()
}

const BODY: &str = r#"{"id":"resp_1","model":"upstream-m","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"one two"}]}],"usage":{"input_tokens":7,"output_tokens":3}}"#;

fn ways() -> Vec<Pair> {
    dialects::pairs().into_iter().filter(|pair| pair.upstream == Dialect::Responses).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_what_clients_need_is_repaired_for_every_client() {
    join_all(ways().into_iter().map(|pair| async move {
        let rule = match pair.stream {
            true => Rule { raw_frames: frames(), ..Rule::default() },
            false => Rule { raw: Some(BODY.into()), ..Rule::default() },
        };
        let lab = lab([rule]).await;
        let world = World::simple(pair, &lab).await;
        let reply = world.client().await.turn(pair).await;
        assert_said(pair, &reply, WORDS);
        if pair.client == Dialect::Responses {
            assert_on_spec(pair, &reply);
        }
        world.until("delivery", |counters| counters["delivered"] == 1).await;
        let entries = world.into_ledger().await;
        let closed = entries[0].closed.as_ref().unwrap();
        assert_eq!((closed.exact, closed.usage.input, closed.usage.output), (true, 7, 3), "{pair:?}");
    }))
    .await;
}

fn assert_on_spec(pair: Pair, reply: &Reply) {
    let response = match pair.stream {
        false => reply.json(),
        true => {
            let data = reply.text().lines().filter_map(|line| line.strip_prefix("data: "));
            let events: Vec<Value> = data.map(|data| serde_json::from_str(data).unwrap()).collect();
            for (number, event) in events.iter().enumerate() {
                assert_eq!(event["sequence_number"], number, "{event}");
            }
            let kinds: Vec<_> = events.iter().filter_map(|event| event["type"].as_str()).collect();
            for kind in [
                "response.created",
                "response.output_item.added",
                "response.content_part.added",
                "response.output_text.done",
                "response.content_part.done",
                "response.output_item.done",
                "response.completed",
            ] {
                assert_eq!(kinds.iter().filter(|have| **have == kind).count(), 1, "{kind}: {kinds:?}");
            }
            events.last().unwrap()["response"].clone()
        }
    };
    assert_eq!((&response["object"], &response["status"]), (&"response".into(), &"completed".into()), "{response}");
    assert!(response["created_at"].is_number() && response["tools"].is_array(), "{response}");
    assert!(response["output"][0]["content"][0]["annotations"].is_array(), "{response}");
}
