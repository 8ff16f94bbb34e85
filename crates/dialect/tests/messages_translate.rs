//! A Messages client on a Chat upstream, end to end through the stream codec: legal at every split of the upstream's
//! bytes, and every recorded request can be carried.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]
// A fault is made at most once per answer, and ends it.
#![allow(clippy::result_large_err)]

use bytes::Bytes;
use serde_json::Value;
use turnkeep_base::{Dialect, FaultKind};
use turnkeep_dialect::event::Class;
use turnkeep_dialect::messages::order::Order;
use turnkeep_dialect::reply::{ReplyFault, ReplyOptions, StreamCodec, plain};
use turnkeep_dialect::request::{Operation, encode, read};
use turnkeep_wire::sse;

fn options() -> ReplyOptions {
    ReplyOptions {
        client: Dialect::Messages,
        upstream: Dialect::Chat,
        model: "asked".into(),
        usage_wanted: false,
        choices: 1,
        id: "0001".into(),
        created: 0,
        max_event: 1 << 20,
        asked: Default::default(),
    }
}

#[test]
fn a_conversation_without_any_content_is_refused_before_a_chat_upstream_is_asked() {
    for messages in
        [r#"{"role":"user","content":""}"#, r#"{"role":"user","content":[]},{"role":"assistant","content":""}"#]
    {
        let body = format!(r#"{{"model":"m","max_tokens":5,"messages":[{messages}]}}"#);
        let request = read(Dialect::Messages, Operation::Generate, body.into()).unwrap();
        let refused = encode(Dialect::Chat, &request.turn().unwrap(), "up").unwrap_err();
        assert_eq!(refused.path, "messages", "{messages}");
    }
}

/// Interleaved calls, the first delta before any text, no ids for the second, and counts after the finish reason.
const UPSTREAM: &str = concat!(
    r#"data: {"id":"c1","model":"up","choices":[{"index":0,"delta":{"role":"assistant","content":null,"reasoning_content":"hm"}}]}"#,
    "\n\n",
    r#"data: {"id":"c1","model":"up","choices":[{"index":0,"delta":{"content":"Hi"}}]}"#,
    "\n\n",
    r#"data: {"id":"c1","model":"up","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"functions.f:0","type":"function","function":{"name":"f","arguments":"{\"a\""}},{"index":1,"type":"function","function":{"name":"g","arguments":""}}]}}]}"#,
    "\n\n",
    r#"data: {"id":"c1","model":"up","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{\"b\":2}"}},{"index":0,"function":{"arguments":":1}"}}]}}]}"#,
    "\n\n",
    r#"data: {"id":"c1","model":"up","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
    "\n\n",
    r#"data: {"id":"c1","model":"up","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":3}}}"#,
    "\n\ndata: [DONE]\n\n",
);

/// The data of the written events, checked, and what a terminal piece holds.
fn run(upstream: &[u8], at: usize) -> Result<Vec<Value>, ReplyFault> {
    let mut codec = StreamCodec::new(&options());
    let mut pieces = Vec::new();
    codec.feed(Bytes::copy_from_slice(&upstream[..at]), &mut pieces)?;
    codec.feed(Bytes::copy_from_slice(&upstream[at..]), &mut pieces)?;
    codec.finish(&mut pieces)?;
    let (mut reader, mut order, mut datas) = (sse::Reader::new(1 << 20), Order::default(), Vec::new());
    for piece in pieces {
        let terminal = piece.class == Class::Terminal;
        reader.push(piece.bytes);
        while let Some(frame) = reader.next_frame().unwrap() {
            order.frame(&frame).unwrap();
            let data: Value = serde_json::from_slice(frame.data.as_ref().unwrap()).unwrap();
            let kind = data["type"].as_str().unwrap();
            assert_eq!(terminal, matches!(kind, "message_delta" | "message_stop"), "{kind}");
            datas.push(data);
        }
    }
    order.finish().unwrap();
    Ok(datas)
}

#[test]
fn a_chat_stream_is_a_legal_messages_stream_at_every_split() {
    let whole = run(UPSTREAM.as_bytes(), 0).unwrap();
    let calls: Vec<&Value> = whole.iter().filter(|data| data["content_block"]["type"] == "tool_use").collect();
    assert_eq!(calls.len(), 2);
    assert_eq!((&calls[0]["content_block"]["name"], &calls[1]["content_block"]["name"]), (&"f".into(), &"g".into()));
    for (name, wanted) in [("f", r#"{"a":1}"#), ("g", r#"{"b":2}"#)] {
        let index = calls.iter().find(|call| call["content_block"]["name"] == name).unwrap()["index"].clone();
        let of_call = whole.iter().filter(|data| data["index"] == index);
        let said: String = of_call.filter_map(|data| data["delta"]["partial_json"].as_str()).collect();
        assert_eq!(said, wanted);
    }
    let end = &whole[whole.len() - 2];
    assert_eq!(end["delta"]["stop_reason"], "tool_use");
    assert_eq!(end["usage"]["input_tokens"], 7);
    assert_eq!(end["usage"]["cache_read_input_tokens"], 3);
    assert_eq!(end["usage"]["output_tokens"], 4);
    for at in 1..=UPSTREAM.len() {
        assert_eq!(run(UPSTREAM.as_bytes(), at).unwrap(), whole, "split at {at}");
    }
}

#[test]
fn a_chat_stream_that_breaks_off_never_becomes_a_whole_answer() {
    let end = UPSTREAM.find(r#""finish_reason""#).unwrap();
    for at in 0..end {
        let fault = run(&UPSTREAM.as_bytes()[..at], 0).unwrap_err();
        assert_eq!(fault.kind, FaultKind::StreamTruncated, "cut at {at}");
    }
}

#[test]
fn a_plain_chat_answer_becomes_a_message() {
    let body = r#"{"id":"c1","object":"chat.completion","model":"up","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},
        "finish_reason":"length"}],"usage":{"prompt_tokens":10,"completion_tokens":4}}"#;
    let (bytes, facts) = plain(&options(), Bytes::from_static(body.as_bytes())).unwrap();
    let message: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!((&message["type"], &message["stop_reason"]), (&"message".into(), &"max_tokens".into()));
    assert_eq!(message["content"], serde_json::json!([{"type":"text","text":"Hi"}]));
    assert_eq!(facts.usage.map(|usage| usage.output), Some(4));
}

#[test]
fn every_recorded_request_can_be_carried_to_either_dialect() {
    let captures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/captures");
    for folder in std::fs::read_dir(captures).unwrap() {
        for file in std::fs::read_dir(folder.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let capture: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            let target = capture["target"].as_str().unwrap_or_default();
            if !target.starts_with("/v1/messages") || target.contains("count_tokens") || !capture["body"].is_object() {
                continue;
            }
            let body = Bytes::from(serde_json::to_vec(&capture["body"]).unwrap());
            let request = read(Dialect::Messages, Operation::Generate, body).unwrap();
            let turn = request.turn().unwrap();
            for dialect in [Dialect::Chat, Dialect::Messages] {
                let encoded =
                    encode(dialect, &turn, "up").unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                let again = read(dialect, Operation::Generate, encoded.body);
                assert!(again.is_ok(), "{} to {dialect}: {:?}", path.display(), again.err());
            }
        }
    }
}
