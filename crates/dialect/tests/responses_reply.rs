//! Canonical events as a Responses answer; the order validator watches every stream.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};
use turnkeep_base::{Dialect, Usage};
use turnkeep_dialect::event::{Block, Class, Delta, Event, Finish};
use turnkeep_dialect::reply::{Asked, Piece, ReplyOptions, StreamCodec};
use turnkeep_dialect::responses::order::Order;
use turnkeep_dialect::responses::reply_decode;
use turnkeep_dialect::responses::reply_encode::{self, StreamEncoder};
use turnkeep_wire::sse;

const BODY: &str = r#"{"model":"asked","stream":true,"instructions":"be brief","metadata":{"k":"v"},
    "temperature":0.5,"tools":[{"type":"function","name":"f","parameters":{}},{"type":"custom","name":"patch"},
    {"type":"namespace","name":"fs","tools":[{"type":"function","name":"read"}]}],"input":"hello"}"#;

fn options() -> ReplyOptions {
    ReplyOptions {
        client: Dialect::Responses,
        upstream: Dialect::Chat,
        model: "asked".into(),
        usage_wanted: false,
        choices: 1,
        id: "0001".into(),
        created: 7,
        max_event: 1 << 20,
        asked: Asked { body: Bytes::from_static(BODY.as_bytes()), ..Asked::default() },
    }
}

fn write(events: &[Event], mut encoder: StreamEncoder) -> Vec<u8> {
    let mut out = Vec::new();
    for event in events {
        assert_eq!(encoder.event(event, &mut out), event.class());
    }
    out
}

/// The data of each event of a checked stream.
#[track_caller]
fn checked(bytes: &[u8]) -> Vec<Value> {
    let (mut reader, mut order, mut datas) = (sse::Reader::new(1 << 24), Order::default(), Vec::new());
    reader.push(Bytes::copy_from_slice(bytes));
    while let Some(frame) = reader.next_frame().unwrap() {
        order.frame(&frame).unwrap_or_else(|error| panic!("{error}: {frame:?}"));
        datas.push(serde_json::from_slice(frame.data.as_ref().unwrap()).unwrap());
    }
    order.finish().unwrap();
    datas
}

#[track_caller]
fn stream(events: &[Event]) -> Vec<Value> {
    checked(&write(events, StreamEncoder::new(&options())))
}

fn plain(events: &[Event]) -> Value {
    serde_json::from_slice(&reply_encode::plain(events, &options())).unwrap()
}

fn start() -> Event {
    Event::Start { id: Some("chatcmpl-9".into()), model: Some("up".into()), usage: None }
}

fn open(block: u32, kind: Block) -> Event {
    Event::BlockStart { block, kind }
}

fn call(block: u32, id: &str, name: &str) -> Event {
    open(block, Block::ToolCall { id: id.into(), name: name.into() })
}

fn text(block: u32, text: &str) -> Event {
    Event::Delta { block, delta: Delta::Text(text.into()) }
}

fn thinking(block: u32, text: &str) -> Event {
    Event::Delta { block, delta: Delta::Thinking(text.into()) }
}

fn signed(block: u32, text: &str) -> Event {
    Event::Delta { block, delta: Delta::Signature(text.into()) }
}

fn arguments(block: u32, text: &str) -> Event {
    Event::Delta { block, delta: Delta::Arguments(text.into()) }
}

fn stop(block: u32) -> Event {
    Event::BlockStop { block }
}

fn finish(reason: Finish) -> Event {
    Event::Finish { reason, stop_sequence: None }
}

fn whole(inside: Vec<Event>, reason: Finish) -> Vec<Event> {
    [vec![start()], inside, vec![finish(reason), Event::End]].concat()
}

/// The types of the events with their places.
fn outline(datas: &[Value]) -> Vec<String> {
    let name = |data: &Value| {
        let kind = data["type"].as_str().unwrap().trim_start_matches("response.");
        data["output_index"].as_u64().map_or_else(|| kind.to_owned(), |index| format!("{index} {kind}"))
    };
    datas.iter().map(name).collect()
}

#[test]
fn a_text_answer_is_written_as_the_protocol_has_it() {
    let usage = Usage { input: 7, cache_read: 3, cache_write: 2, output: 5, reasoning: 1 };
    let events = [
        start(),
        open(0, Block::Text),
        text(0, "Hi\n"),
        text(0, "there"),
        stop(0),
        Event::Usage(usage),
        finish(Finish::Stop),
        Event::End,
    ];
    let datas = stream(&events);
    let part = |text: &str| json!({"type":"output_text","annotations":[],"logprobs":[],"text":text});
    let done = json!({"id":"msg_0001_0","type":"message","status":"completed","role":"assistant","content":[part("Hi\nthere")]});
    assert_eq!(
        datas[2..9],
        [
            json!({"type":"response.output_item.added","sequence_number":2,"output_index":0,
                "item":{"id":"msg_0001_0","type":"message","status":"in_progress","role":"assistant","content":[]}}),
            json!({"type":"response.content_part.added","sequence_number":3,"item_id":"msg_0001_0","output_index":0,
                "content_index":0,"part":part("")}),
            json!({"type":"response.output_text.delta","sequence_number":4,"item_id":"msg_0001_0","output_index":0,
                "content_index":0,"delta":"Hi\n","logprobs":[]}),
            json!({"type":"response.output_text.delta","sequence_number":5,"item_id":"msg_0001_0","output_index":0,
                "content_index":0,"delta":"there","logprobs":[]}),
            json!({"type":"response.output_text.done","sequence_number":6,"item_id":"msg_0001_0","output_index":0,
                "content_index":0,"text":"Hi\nthere","logprobs":[]}),
            json!({"type":"response.content_part.done","sequence_number":7,"item_id":"msg_0001_0","output_index":0,
                "content_index":0,"part":part("Hi\nthere")}),
            json!({"type":"response.output_item.done","sequence_number":8,"output_index":0,"item":done.clone()}),
        ]
    );
    let end = &datas[9]["response"];
    assert_eq!(datas[9]["type"], "response.completed");
    assert_eq!(end["output"], json!([done]));
    assert_eq!(
        end["usage"],
        json!({"input_tokens":12,"input_tokens_details":{"cached_tokens":3,"cache_write_tokens":2},
            "output_tokens":5,"output_tokens_details":{"reasoning_tokens":1},"total_tokens":17})
    );
    assert_eq!((&end["id"], &end["model"], &end["created_at"]), (&json!("resp_0001"), &json!("up"), &json!(7)));
    assert_eq!(
        (&end["completed_at"], &end["error"], &end["incomplete_details"]),
        (&json!(7), &Value::Null, &Value::Null)
    );
    // The whole answer is what the stream ends with.
    assert_eq!(&plain(&events), end);
}

#[test]
fn every_response_object_repeats_the_request() {
    let datas = stream(&whole(vec![open(0, Block::Text), text(0, "a"), stop(0)], Finish::Stop));
    for data in [&datas[0], &datas[1], datas.last().unwrap()] {
        let response = &data["response"];
        assert_eq!((&response["instructions"], &response["temperature"]), (&json!("be brief"), &json!(0.5)));
        assert_eq!(response["metadata"], json!({"k":"v"}));
        assert_eq!(response["tools"][2]["tools"][0]["name"], "read");
        assert_eq!((&response["tool_choice"], &response["top_p"]), (&json!("auto"), &json!(1.0)));
        assert_eq!(response["text"], json!({"format":{"type":"text"}}));
        assert_eq!(response.get("input"), None);
    }
}

#[test]
fn parallel_calls_whose_pieces_come_interleaved_grow_in_their_own_items() {
    let events = whole(
        vec![
            call(0, "a", "f"),
            call(1, "b", "g"),
            arguments(1, "{\"x"),
            arguments(0, "{\"y\":"),
            arguments(1, "\":1}"),
            arguments(0, "[]}"),
            stop(1),
            stop(0),
        ],
        Finish::ToolCalls,
    );
    let datas = stream(&events);
    assert_eq!(
        outline(&datas)[2..],
        [
            "0 output_item.added",
            "1 output_item.added",
            "1 function_call_arguments.delta",
            "0 function_call_arguments.delta",
            "1 function_call_arguments.delta",
            "0 function_call_arguments.delta",
            "1 function_call_arguments.done",
            "1 output_item.done",
            "0 function_call_arguments.done",
            "0 output_item.done",
            "completed",
        ]
    );
    let output = &datas.last().unwrap()["response"]["output"];
    assert_eq!(
        output[0],
        json!({"id":"fc_0001_0","type":"function_call","status":"completed","arguments":"{\"y\":[]}","call_id":"a","name":"f"})
    );
    assert_eq!((&output[1]["call_id"], &output[1]["arguments"]), (&json!("b"), &json!("{\"x\":1}")));
}

#[test]
fn a_call_without_arguments_has_an_empty_object_and_its_end() {
    for inside in
        [vec![call(0, "a", "f"), stop(0)], vec![call(0, "a", "f"), arguments(0, ""), arguments(0, " "), stop(0)]]
    {
        let datas = stream(&whole(inside, Finish::ToolCalls));
        let said = datas.iter().find(|data| data["type"] == "response.function_call_arguments.done").unwrap();
        assert_eq!((said["arguments"].as_str().unwrap().trim(), &said["name"]), ("{}", &json!("f")));
    }
}

#[test]
fn a_call_that_was_cut_is_not_told_as_complete() {
    let datas = stream(&whole(vec![call(0, "a", "f"), arguments(0, "{\"pa"), stop(0)], Finish::Length));
    let end = datas.last().unwrap();
    assert_eq!(end["type"], "response.incomplete");
    assert_eq!(end["response"]["output"][0]["status"], "incomplete");
    assert_eq!(end["response"]["incomplete_details"], json!({"reason":"max_output_tokens"}));
    assert_eq!(end["response"]["completed_at"], Value::Null);
}

#[test]
fn the_end_says_how_the_answer_ended() {
    for (reason, refusal, kind, details) in [
        (Finish::Stop, false, "response.completed", Value::Null),
        (Finish::StopSequence, false, "response.completed", Value::Null),
        (Finish::Pause, false, "response.completed", Value::Null),
        (Finish::Length, false, "response.incomplete", json!("max_output_tokens")),
        (Finish::ContextFull, false, "response.incomplete", json!("max_output_tokens")),
        (Finish::Refusal, false, "response.incomplete", json!("content_filter")),
        (Finish::Refusal, true, "response.completed", Value::Null),
    ] {
        let block = if refusal { Block::Refusal } else { Block::Text };
        let events = whole(vec![open(0, block), text(0, "a"), stop(0)], reason);
        let datas = stream(&events);
        let end = datas.last().unwrap();
        assert_eq!(
            (&end["type"], &end["response"]["incomplete_details"]["reason"]),
            (&json!(kind), &details),
            "{reason:?}"
        );
        assert_eq!(plain(&events), end["response"]);
    }
}

#[test]
fn free_text_and_namespaces_come_back_as_the_client_knows_them() {
    let datas = stream(&whole(
        vec![
            call(0, "a", "patch"),
            arguments(0, "{\"inp"),
            arguments(0, "ut\":\"x\\n\\\"y\\\"\"}"),
            stop(0),
            call(1, "b", "fs__read"),
            arguments(1, "{}"),
            stop(1),
            call(2, "c", "patch"),
            stop(2),
        ],
        Finish::ToolCalls,
    ));
    assert_eq!(
        outline(&datas)[2..6],
        [
            "0 output_item.added",
            "0 custom_tool_call_input.delta",
            "0 custom_tool_call_input.done",
            "0 output_item.done"
        ]
    );
    let output = &datas.last().unwrap()["response"]["output"];
    assert_eq!(
        output[0],
        json!({"id":"ctc_0001_0","type":"custom_tool_call","status":"completed","input":"x\n\"y\"","call_id":"a","name":"patch"})
    );
    assert_eq!((&output[1]["name"], &output[1]["namespace"]), (&json!("read"), &json!("fs")));
    assert_eq!((&output[2]["input"], &output[2]["status"]), (&json!(""), &json!("completed")));
}

#[test]
fn free_text_that_is_not_in_its_json_is_given_as_it_is() {
    let datas = stream(&whole(vec![call(0, "a", "patch"), arguments(0, "{\"input\":\"ha"), stop(0)], Finish::Length));
    let output = &datas.last().unwrap()["response"]["output"];
    assert_eq!((&output[0]["input"], &output[0]["status"]), (&json!("{\"input\":\"ha"), &json!("incomplete")));
}

#[test]
fn reasoning_keeps_its_proof_in_the_form_of_its_origin() {
    let datas = stream(&whole(
        vec![
            open(0, Block::Thinking),
            thinking(0, "hm"),
            thinking(0, ", so"),
            signed(0, "turnkeep.responses.abc"),
            stop(0),
            open(1, Block::Thinking),
            thinking(1, "unsigned"),
            stop(1),
            open(2, Block::Thinking),
            signed(2, "turnkeep.gemini."),
            signed(2, "xyz"),
            stop(2),
            open(3, Block::Thinking),
            thinking(3, "nobody's"),
            signed(3, "turnkeep.unsigned"),
            stop(3),
            open(4, Block::RedactedThinking("secret".into())),
            stop(4),
        ],
        Finish::Stop,
    ));
    assert_eq!(
        outline(&datas)[2..9],
        [
            "0 output_item.added",
            "0 reasoning_summary_part.added",
            "0 reasoning_summary_text.delta",
            "0 reasoning_summary_text.delta",
            "0 reasoning_summary_text.done",
            "0 reasoning_summary_part.done",
            "0 output_item.done",
        ]
    );
    let output = datas.last().unwrap()["response"]["output"].clone();
    assert_eq!(
        output[0],
        json!({"id":"rs_0001_0","type":"reasoning","summary":[{"type":"summary_text","text":"hm, so"}],"encrypted_content":"abc"})
    );
    assert_eq!(output[1].get("encrypted_content"), None);
    assert_eq!((&output[2]["summary"], &output[2]["encrypted_content"]), (&json!([]), &json!("turnkeep.gemini.xyz")));
    assert_eq!(output[3].get("encrypted_content"), None);
    assert_eq!(output[4]["encrypted_content"], "turnkeep.redacted.secret");
}

#[test]
fn the_ids_of_an_upstream_stay_where_they_are_of_this_dialect_and_fit() {
    let id = |given: &str, encoder: StreamEncoder| {
        let event = Event::Start { id: Some(given.into()), model: None, usage: None };
        checked(&write(&[event, open(0, Block::Text), stop(0), finish(Finish::Stop), Event::End], encoder))[2..3][0]["item"]
            ["id"]
            .clone()
    };
    assert_eq!(id("resp_up", StreamEncoder::new(&options())), "msg_up_0");
    assert_eq!(id("msg_up", StreamEncoder::new(&options())), "msg_0001_0");
    assert_eq!(id(&format!("resp_{}", "x".repeat(5000)), StreamEncoder::new(&options())), "msg_0001_0");
    assert_eq!(id("resp_a\nb", StreamEncoder::again(&options())), "msg_0001_0");
}

#[test]
fn an_answer_that_ends_with_blocks_open_is_whole_all_the_same() {
    let datas = stream(&[open(0, Block::Text), text(0, "a"), call(1, "c", "f"), finish(Finish::Stop), Event::End]);
    assert_eq!(datas.last().unwrap()["response"]["output"].as_array().unwrap().len(), 2);
    assert_eq!(datas[0]["response"]["model"], "asked");
}

#[test]
fn the_preamble_can_be_thrown_away_and_the_end_is_one_piece() {
    let mut encoder = StreamEncoder::new(&options());
    let mut classes = Vec::new();
    for event in whole(vec![open(0, Block::Text), text(0, "a"), stop(0)], Finish::Stop) {
        let mut out = Vec::new();
        let class = encoder.event(&event, &mut out);
        if !out.is_empty() {
            classes.push(class);
        }
    }
    assert_eq!(classes, [Class::Preamble, Class::Preamble, Class::Answer, Class::Answer, Class::Terminal]);
}

/// A piece costs what it holds, however much came before it.
#[test]
fn the_cost_of_a_piece_does_not_grow_with_the_answer() {
    let mut encoder = StreamEncoder::new(&options());
    let mut out = Vec::new();
    encoder.event(&start(), &mut out);
    encoder.event(&open(0, Block::Text), &mut out);
    let mut lengths = Vec::new();
    for _ in 0..20_000 {
        out.clear();
        encoder.event(&text(0, "0123456789"), &mut out);
        lengths.push(out.len());
    }
    let (first, last) = (lengths[0], lengths[lengths.len() - 1]);
    assert!(last <= first + 6, "{first} {last}");
}

fn translated(upstream: &str, chunk: usize) -> (Vec<u8>, Vec<Piece>) {
    let options = ReplyOptions { upstream: Dialect::Responses, ..options() };
    let mut codec = StreamCodec::new(&options);
    let mut pieces = Vec::new();
    for part in upstream.as_bytes().chunks(chunk) {
        codec.feed(Bytes::copy_from_slice(part), &mut pieces).unwrap();
    }
    codec.finish(&mut pieces).unwrap();
    (pieces.iter().flat_map(|piece| piece.bytes.to_vec()).collect(), pieces)
}

/// As llama.cpp writes it: no numbers, no log probabilities, three fields in the first response, no
/// `function_call_arguments.done`.
const BARE: &str = concat!(
    "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_b\",\"object\":\"response\",\"status\":\"in_progress\"}}\n\n",
    "event: response.in_progress\ndata: {\"type\":\"response.in_progress\",\"response\":{\"id\":\"resp_b\",\"object\":\"response\",\"status\":\"in_progress\"}}\n\n",
    "event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"item\":{\"id\":\"rs_b\",\"summary\":[],\"type\":\"reasoning\",\"content\":[],\"encrypted_content\":\"\",\"status\":\"in_progress\"}}\n\n",
    "event: response.reasoning_text.delta\ndata: {\"type\":\"response.reasoning_text.delta\",\"delta\":\"hm\",\"item_id\":\"rs_b\"}\n\n",
    "event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"item\":{\"content\":[],\"id\":\"msg_b\",\"role\":\"assistant\",\"status\":\"in_progress\",\"type\":\"message\"}}\n\n",
    "event: response.content_part.added\ndata: {\"type\":\"response.content_part.added\",\"item_id\":\"msg_b\",\"part\":{\"type\":\"output_text\",\"text\":\"\"}}\n\n",
    "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"item_id\":\"msg_b\",\"delta\":\"look\"}\n\n",
    "event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"item\":{\"arguments\":\"\",\"call_id\":\"fc_b\",\"name\":\"f\",\"type\":\"function_call\",\"status\":\"in_progress\"}}\n\n",
    "event: response.function_call_arguments.delta\ndata: {\"type\":\"response.function_call_arguments.delta\",\"delta\":\"{\\\"a\\\":1}\",\"item_id\":\"fc_b\"}\n\n",
    "event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"item\":{\"id\":\"rs_b\",\"summary\":[],\"type\":\"reasoning\",\"content\":[{\"text\":\"hm\",\"type\":\"reasoning_text\"}],\"encrypted_content\":\"\",\"status\":\"completed\"}}\n\n",
    "event: response.output_text.done\ndata: {\"type\":\"response.output_text.done\",\"item_id\":\"msg_b\",\"text\":\"look\"}\n\n",
    "event: response.content_part.done\ndata: {\"type\":\"response.content_part.done\",\"item_id\":\"msg_b\",\"part\":{\"type\":\"output_text\",\"text\":\"look\",\"annotations\":[],\"logprobs\":[]}}\n\n",
    "event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"message\",\"status\":\"completed\",\"id\":\"msg_b\",\"content\":[{\"type\":\"output_text\",\"text\":\"look\"}],\"role\":\"assistant\"}}\n\n",
    "event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"function_call\",\"status\":\"completed\",\"arguments\":\"{\\\"a\\\":1}\",\"call_id\":\"fc_b\",\"name\":\"f\"}}\n\n",
    "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"resp_b\",\"object\":\"response\",\"created_at\":1,\"status\":\"completed\",\"model\":\"m\",\"output\":[{\"type\":\"message\",\"id\":\"msg_b\",\"content\":[{\"type\":\"output_text\",\"text\":\"look\"}],\"role\":\"assistant\"}],\"usage\":{\"input_tokens\":4,\"output_tokens\":2,\"total_tokens\":6}}}\n\n",
);

#[test]
fn a_stream_without_numbers_is_repaired() {
    let (whole, _) = translated(BARE, BARE.len());
    let datas = checked(&whole);
    let response = &datas.last().unwrap()["response"];
    let output = response["output"].as_array().unwrap();
    let kinds: Vec<&Value> = output.iter().map(|item| &item["type"]).collect();
    assert_eq!(kinds, ["reasoning", "message", "function_call"]);
    assert_eq!(output[0]["summary"][0]["text"], "hm");
    assert_eq!((&output[2]["call_id"], &output[2]["arguments"]), (&json!("fc_b"), &json!("{\"a\":1}")));
    assert_eq!(response["usage"]["input_tokens_details"]["cached_tokens"], 0);
    assert_eq!(response["id"], "resp_b");
    for chunk in [1, 7, 100] {
        assert_eq!(translated(BARE, chunk).0, whole, "{chunk}");
    }
}

/// As a mock server writes it: whole events and a whole first response, but for the number.
#[test]
fn a_stream_that_lacks_only_its_sequence_is_repaired() {
    let (bytes, _) = translated(BARE, BARE.len());
    let unnumbered: String = String::from_utf8(bytes.clone())
        .unwrap()
        .lines()
        .map(|line| match line.split_once("\"sequence_number\":") {
            Some((before, rest)) => format!("{before}{}\n", rest.split_once(',').unwrap().1),
            None => format!("{line}\n"),
        })
        .collect();
    let (repaired, _) = translated(&unnumbered, 50);
    assert_eq!(checked(&repaired).len(), checked(&bytes).len());
    assert_eq!(repaired, bytes);
}

#[test]
fn what_was_a_responses_answer_is_read_and_written_as_itself() {
    let events = whole(
        vec![
            open(0, Block::Thinking),
            thinking(0, "hm"),
            signed(0, "turnkeep.responses.abc"),
            stop(0),
            open(1, Block::Text),
            text(1, "a"),
            stop(1),
            call(2, "c.1:x", "patch"),
            arguments(2, "{\"input\":\"t\"}"),
            stop(2),
            call(3, "d", "fs__read"),
            arguments(3, "{ \"a\": 1 }"),
            stop(3),
        ],
        Finish::ToolCalls,
    );
    let options = options();
    let body = reply_encode::plain(&events, &options);
    let (read, created) = reply_decode::plain_strict(&body, &options).unwrap();
    assert_eq!(created, Some(7));
    assert_eq!(
        String::from_utf8(reply_encode::plain_again(&read, &options)).unwrap(),
        String::from_utf8(body.clone()).unwrap()
    );
    // Streamed, it ends with the same response.
    let datas = checked(&write(&read, StreamEncoder::again(&options)));
    assert_eq!(datas.last().unwrap()["response"], serde_json::from_slice::<Value>(&body).unwrap());
}

/// A block: what it holds, and its pieces.
fn any_block() -> impl Strategy<Value = (u8, Vec<String>)> {
    (0u8..6, prop::collection::vec("[a-c\"\\\\\n\u{e9}\u{1f600} ]{0,4}", 0..4))
}

/// Blocks whose pieces are interleaved as `order` says.
fn interleaved(blocks: &[(u8, Vec<String>)], order: &[usize]) -> Vec<Event> {
    let mut queues: Vec<std::collections::VecDeque<Event>> = Vec::new();
    for (number, (kind, pieces)) in blocks.iter().enumerate() {
        let block = u32::try_from(number).unwrap();
        let json = |pieces: &[String]| serde_json::to_string(&json!({"input": pieces.concat()})).unwrap();
        let (kind, deltas): (Block, Vec<Event>) = match kind {
            0 => (Block::Text, pieces.iter().map(|piece| text(block, piece)).collect()),
            1 => (Block::Refusal, pieces.iter().map(|piece| text(block, piece)).collect()),
            2 => (
                Block::Thinking,
                pieces
                    .iter()
                    .map(|piece| thinking(block, piece))
                    .chain([signed(block, "turnkeep.responses.p")])
                    .collect(),
            ),
            3 => (Block::RedactedThinking("d".into()), Vec::new()),
            kind => {
                let name = if *kind == 4 { "f" } else { "patch" };
                let whole = json(pieces);
                let (a, b) = whole.split_at(5);
                (
                    Block::ToolCall { id: format!("c{block}"), name: name.into() },
                    vec![arguments(block, a), arguments(block, b)],
                )
            }
        };
        queues.push([vec![open(block, kind)], deltas, vec![stop(block)]].concat().into());
    }
    let mut out = vec![start()];
    let mut begun = 0;
    let mut turns = order.iter().copied().cycle();
    while queues.iter().any(|queue| !queue.is_empty()) {
        // A block begins only after those before it have begun.
        let at = turns.next().unwrap_or(0) % queues.len();
        let at = if queues[at].is_empty() || at > begun {
            queues.iter().position(|queue| !queue.is_empty()).unwrap()
        } else {
            at
        };
        begun = begun.max(at + 1);
        out.extend(queues[at].pop_front());
    }
    out.extend([finish(Finish::Stop), Event::End]);
    out
}

/// Each block's kind and content, in the order of blocks; empty texts are nothing.
fn content(events: &[Event]) -> Vec<(String, String, String)> {
    let mut blocks = std::collections::BTreeMap::new();
    for event in events {
        match event {
            Event::BlockStart { block, kind } => {
                blocks.insert(*block, (format!("{kind:?}"), String::new(), String::new()));
            }
            Event::Delta { block, delta } => {
                let known = blocks.get_mut(block).unwrap();
                match delta {
                    Delta::Text(text) | Delta::Thinking(text) | Delta::Arguments(text) => known.1.push_str(text),
                    Delta::Signature(text) => known.2.push_str(text),
                }
            }
            Event::Start { .. } | Event::BlockStop { .. } | Event::Finish { .. } | Event::Usage(_) | Event::End => {}
        }
    }
    let said =
        |block: &(String, String, String)| !matches!(block.0.as_str(), "Text" | "Refusal") || !block.1.is_empty();
    let mut out: Vec<_> = blocks.into_values().filter(said).collect();
    // Blocks are numbered as they begin to hold something; a block that waits may be overtaken.
    out.sort();
    out
}

proptest! {
    #[test]
    fn every_stream_is_lawful_and_reads_back_as_what_it_was(
        blocks in prop::collection::vec(any_block(), 1..6), order in prop::collection::vec(0usize..6, 1..40),
    ) {
        let events = interleaved(&blocks, &order);
        let bytes = write(&events, StreamEncoder::new(&options()));
        let datas = checked(&bytes);
        for strict in [false, true] {
            let mut decoder = if strict { reply_decode::StreamDecoder::strict(&options()) } else { reply_decode::StreamDecoder::new(&options()) };
            let mut reader = sse::Reader::new(1 << 20);
            reader.push(Bytes::copy_from_slice(&bytes));
            let mut read = Vec::new();
            while let Some(frame) = reader.next_frame().unwrap() {
                decoder.frame(&frame, &mut read).unwrap();
            }
            prop_assert_eq!(content(&read), content(&events));
        }
        // The whole answer is what the stream ends with, and reads back as the same.
        let body = reply_encode::plain(&events, &options());
        prop_assert_eq!(&serde_json::from_slice::<Value>(&body).unwrap(), &datas.last().unwrap()["response"]);
        prop_assert_eq!(content(&reply_decode::plain(&body, &options()).unwrap()), content(&events));
    }
}
