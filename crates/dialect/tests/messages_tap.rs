//! A Messages answer that passes unchanged: the tap's classes, facts and end.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]
// A fault is made at most once per answer, and ends it.
#![allow(clippy::result_large_err)]

use bytes::Bytes;
use proptest::prelude::*;
use turnkeep_base::{Dialect, FaultKind, Usage};
use turnkeep_dialect::event::{Class, Finish};
use turnkeep_dialect::messages::tap::plain;
use turnkeep_dialect::reply::{Facts, Piece, Progress, ReplyFault, ReplyOptions, StreamCodec};

fn options() -> ReplyOptions {
    ReplyOptions {
        client: Dialect::Messages,
        upstream: Dialect::Messages,
        model: "asked".into(),
        usage_wanted: false,
        choices: 1,
        id: "0001".into(),
        created: 0,
        max_event: 1 << 20,
        asked: Default::default(),
    }
}

fn codec() -> StreamCodec {
    StreamCodec::new(&options())
}

fn pass(codec: &mut StreamCodec, chunk: &str) -> Result<Vec<Piece>, ReplyFault> {
    let mut out = Vec::new();
    codec.feed(Bytes::copy_from_slice(chunk.as_bytes()), &mut out)?;
    Ok(out)
}

/// The event's name is the data's type.
fn event(data: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(data).unwrap();
    format!("event: {}\ndata: {data}\n\n", value["type"].as_str().unwrap())
}

fn class(codec: &mut StreamCodec, data: &str) -> Class {
    pass(codec, &event(data)).unwrap()[0].class
}

const STREAM: &[(&str, Class)] = &[
    (
        r#"{"type":"message_start","message":{"id":"msg_1","model":"claude-x","content":[],"usage":{"input_tokens":10,"output_tokens":1,"cache_read_input_tokens":null}}}"#,
        Class::Preamble,
    ),
    (r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#, Class::Preamble),
    (r#"{"type":"ping"}"#, Class::Preamble),
    (r#"{"type":"content_block_stop","index":0}"#, Class::Preamble),
    (
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}"#,
        Class::Preamble,
    ),
    (r#"{"type":"content_block_stop","index":1}"#, Class::Answer),
    (
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"redacted_thinking","data":"x"}}"#,
        Class::Answer,
    ),
    (r#"{"type":"content_block_stop","index":2}"#, Class::Answer),
    (
        r#"{"type":"content_block_start","index":3,"content_block":{"type":"web_search_tool_result","tool_use_id":"s","content":[]}}"#,
        Class::Answer,
    ),
    (r#"{"type":"content_block_stop","index":3}"#, Class::Answer),
    (
        r#"{"type":"content_block_start","index":4,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        Class::Preamble,
    ),
    (r#"{"type":"content_block_delta","index":4,"delta":{"type":"signature_delta","signature":"s"}}"#, Class::Answer),
    (r#"{"type":"content_block_stop","index":4}"#, Class::Answer),
    (r#"{"type":"news"}"#, Class::Preamble),
    (r#"{"type":"message_delta","delta":{"stop_reason":null},"usage":{"output_tokens":2}}"#, Class::Preamble),
    (
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9,"output_tokens_details":{"thinking_tokens":3}}}"#,
        Class::Terminal,
    ),
    (r#"{"type":"message_stop"}"#, Class::Terminal),
];

fn whole() -> String {
    STREAM.iter().map(|(data, _)| event(data)).collect()
}

#[test]
fn every_frame_has_its_class() {
    let mut codec = codec();
    for (data, wanted) in STREAM {
        assert_eq!(class(&mut codec, data), *wanted, "{data}");
    }
    assert_eq!(codec.progress(), Progress::Done);
}

#[test]
fn the_bytes_pass_unchanged_at_every_split_and_the_facts_are_kept() {
    let stream = whole();
    for at in 0..=stream.len() {
        let mut codec = codec();
        let mut pieces = pass(&mut codec, &stream[..at]).unwrap();
        pieces.extend(pass(&mut codec, &stream[at..]).unwrap());
        let bytes: Vec<u8> = pieces.iter().flat_map(|piece| piece.bytes.iter().copied()).collect();
        assert_eq!(bytes, stream.as_bytes(), "split at {at}");
        let facts = codec.facts();
        assert_eq!((facts.id.as_deref(), facts.model.as_deref()), (Some("msg_1"), Some("claude-x")));
        let usage = Usage { input: 10, output: 9, reasoning: 3, ..Usage::default() };
        assert_eq!((facts.usage, facts.finish), (Some(usage), Some(Finish::ToolCalls)));
    }
}

#[test]
fn content_is_counted_about() {
    let mut codec = codec();
    let data = format!(
        r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{}"}}}}"#,
        "x".repeat(500)
    );
    class(&mut codec, &data);
    assert!((400..=520).contains(&codec.facts().content_bytes), "{}", codec.facts().content_bytes);
}

#[test]
fn the_end_is_message_stop_and_nothing_else() {
    let mut stopped = codec();
    assert_eq!(class(&mut stopped, r#"{"type":"message_stop"}"#), Class::Terminal);
    assert_eq!(stopped.finish(&mut Vec::new()), Ok(()));
    let mut cut = codec();
    for (data, _) in &STREAM[..STREAM.len() - 1] {
        class(&mut cut, data);
    }
    assert_eq!(pass(&mut cut, "data: [DONE]\n\n").unwrap(), []);
    assert_eq!(cut.finish(&mut Vec::new()).unwrap_err().kind, FaultKind::StreamTruncated);
}

#[test]
fn an_error_event_and_data_that_are_no_json_are_faults() {
    let error = event(r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#);
    assert_eq!(pass(&mut codec(), &error).unwrap_err().kind, FaultKind::ModelOverloaded);
    for name in ["content_block_delta", "content_block_start", "message_start", "message_delta", "message_stop", "x"] {
        let frame = format!("event: {name}\ndata: {{\"type\":\n\n");
        assert_eq!(pass(&mut codec(), &frame).unwrap_err().kind, FaultKind::MalformedResponse, "{name}");
    }
}

#[test]
fn comments_and_empty_data_pass() {
    let mut codec = codec();
    for frame in [": hello\n\n", "data:\n\n"] {
        assert_eq!(pass(&mut codec, frame).unwrap()[0].class, Class::Preamble);
    }
}

#[test]
fn a_plain_answer_tells_its_facts_or_its_fault() {
    let mut facts = Facts::default();
    let body = br#"{"id":"msg_1","type":"message","model":"claude-x","content":[{"type":"text","text":"hi"}],"stop_reason":"max_tokens","usage":{"input_tokens":1,"output_tokens":2}}"#;
    plain(body, &mut facts).unwrap();
    assert_eq!((facts.finish, facts.id.as_deref()), (Some(Finish::Length), Some("msg_1")));
    assert_eq!(facts.usage, Some(Usage { input: 1, output: 2, ..Usage::default() }));
    for (body, kind) in [
        (r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}"#, FaultKind::RateLimited),
        (r#"{"type":"message","content":[]}"#, FaultKind::MalformedResponse),
        (r#"{"object":"chat.completion"}"#, FaultKind::MalformedResponse),
        ("<html>", FaultKind::MalformedResponse),
    ] {
        assert_eq!(plain(body.as_bytes(), &mut facts).unwrap_err().kind, kind, "{body}");
    }
}

proptest! {
    #[test]
    fn damage_never_makes_the_tap_panic_or_change_a_byte(at: usize, byte: u8) {
        let mut stream = whole().into_bytes();
        let at = at % stream.len();
        stream[at] = byte;
        let (mut codec, mut out) = (codec(), Vec::new());
        let _ = codec.feed(Bytes::from(stream.clone()), &mut out);
        let mut from = 0;
        for piece in out {
            let found = stream[from..].windows(piece.bytes.len()).position(|window| window == &piece.bytes[..]);
            prop_assert!(found.is_some());
            from += found.unwrap() + piece.bytes.len();
        }
        let _ = plain(&stream, &mut Facts::default());
    }
}

#[test]
fn an_event_that_is_not_called_by_one_of_the_protocols_names_is_what_its_data_says() {
    // A server in between that calls everything `message`, or nothing at all.
    for name in ["message", "", "response"] {
        let stream = whole().replace("event: ", &format!("event: {name}\nx-was: "));
        let mut codec = codec();
        pass(&mut codec, &stream).unwrap();
        assert_eq!(codec.progress(), Progress::Done, "event: {name}");
        assert_eq!(codec.facts().finish, Some(Finish::ToolCalls));
    }
}

#[test]
fn passed_on_or_translated_the_name_of_an_event_goes_before_its_datas_type() {
    for (frame, end) in [
        ("event: ping\ndata: {\"type\":\"message_stop\"}\n\n", Progress::Open),
        ("event: message_stop\ndata: {\"type\":\"ping\"}\n\n", Progress::Done),
        ("event:\ndata: {\"type\":\"message_stop\"}\n\n", Progress::Done),
    ] {
        for client in [Dialect::Messages, Dialect::Chat] {
            let options = ReplyOptions { client, ..options() };
            let mut codec = StreamCodec::new(&options);
            pass(&mut codec, frame).unwrap();
            assert_eq!(codec.progress(), end, "to {client}: {frame}");
        }
    }
}
