//! An upstream's Messages answer as canonical events, from well-behaved servers and from others.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]
// A fault is made at most once per answer, and ends it.
#![allow(clippy::result_large_err)]

use bytes::Bytes;
use proptest::prelude::*;
use turnkeep_base::{Dialect, FaultKind, Usage};
use turnkeep_dialect::event::{Block, Delta, Event, Finish};
use turnkeep_dialect::messages::reply_decode::{StreamDecoder, plain};
use turnkeep_dialect::reply::{Progress, ReplyFault, ReplyOptions};
use turnkeep_wire::sse;

fn options() -> ReplyOptions {
    ReplyOptions {
        client: Dialect::Chat,
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

/// Reads a stream in two chunks, split at `at`.
fn decode_split(stream: &[u8], at: usize) -> Result<(Vec<Event>, Progress), ReplyFault> {
    let (mut reader, mut decoder) = (sse::Reader::new(1 << 20), StreamDecoder::new(&options()));
    let (mut events, mut progress) = (Vec::new(), Progress::Open);
    for chunk in [&stream[..at], &stream[at..]] {
        reader.push(Bytes::copy_from_slice(chunk));
        while let Some(frame) = reader.next_frame().unwrap() {
            progress = decoder.frame(&frame, &mut events)?;
        }
    }
    Ok((events, progress))
}

fn decode(stream: &str) -> Result<(Vec<Event>, Progress), ReplyFault> {
    decode_split(stream.as_bytes(), 0)
}

fn sse_of(datas: &[&str]) -> String {
    let mut out = String::new();
    for data in datas {
        let value: serde_json::Value = serde_json::from_str(data).unwrap();
        out.push_str(&format!("event: {}\ndata: {data}\n\n", value["type"].as_str().unwrap()));
    }
    out
}

const FULL: &[&str] = &[
    r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[],"stop_reason":null,"usage":{"input_tokens":10,"cache_read_input_tokens":4,"cache_creation_input_tokens":2,"output_tokens":1}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
    r#"{"type":"ping"}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm\n"}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig"}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"blob"}}"#,
    r#"{"type":"content_block_stop","index":1}"#,
    r#"{"type":"content_block_start","index":2,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}}"#,
    r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
    r#"{"type":"content_block_stop","index":2}"#,
    r#"{"type":"content_block_start","index":3,"content_block":{"type":"text","text":""}}"#,
    r#"{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"Hé"}}"#,
    r#"{"type":"content_block_delta","index":3,"delta":{"type":"citations_delta","citation":{}}}"#,
    r#"{"type":"content_block_stop","index":3}"#,
    r#"{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{}}}"#,
    r#"{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":""}}"#,
    r#"{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}"#,
    r#"{"type":"content_block_stop","index":4}"#,
    r#"{"type":"news","x":1}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":20,"output_tokens_details":{"thinking_tokens":5}}}"#,
    r#"{"type":"message_stop"}"#,
];

fn full_events() -> Vec<Event> {
    let start = Usage { input: 10, cache_read: 4, cache_write: 2, output: 1, reasoning: 0 };
    let delta = |block, delta| Event::Delta { block, delta };
    let open = |block, kind| Event::BlockStart { block, kind };
    vec![
        Event::Start { id: Some("msg_1".into()), model: Some("claude-x".into()), usage: Some(start) },
        open(0, Block::Thinking),
        delta(0, Delta::Thinking("hm\n".into())),
        delta(0, Delta::Signature("sig".into())),
        Event::BlockStop { block: 0 },
        open(1, Block::RedactedThinking("blob".into())),
        Event::BlockStop { block: 1 },
        open(2, Block::Text),
        delta(2, Delta::Text("Hé".into())),
        Event::BlockStop { block: 2 },
        open(3, Block::ToolCall { id: "toolu_1".into(), name: "f".into() }),
        delta(3, Delta::Arguments("{\"a\":1}".into())),
        Event::BlockStop { block: 3 },
        Event::Finish { reason: Finish::ToolCalls, stop_sequence: None },
        Event::Usage(Usage { output: 20, reasoning: 5, ..start }),
        Event::End,
    ]
}

#[test]
fn a_full_stream_becomes_its_events_at_every_split() {
    let stream = sse_of(FULL);
    for at in 0..=stream.len() {
        assert_eq!(decode_split(stream.as_bytes(), at).unwrap(), (full_events(), Progress::Done), "split at {at}");
    }
}

#[test]
fn the_type_in_the_data_is_enough_without_event_lines() {
    let stream: String = FULL.iter().map(|data| format!("data: {data}\n\n")).collect();
    assert_eq!(decode(&stream).unwrap().0, full_events());
}

#[test]
fn a_plain_answer_becomes_the_same_events() {
    let body = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","stop_reason":"tool_use","stop_sequence":null,
        "content":[{"type":"thinking","thinking":"hm\n","signature":"sig"},{"type":"redacted_thinking","data":"blob"},
        {"type":"web_search_tool_result","content":[]},{"type":"text","text":"Hé"},{"type":"tool_use","id":"toolu_1","name":"f","input":{"a":1}}],
        "usage":{"input_tokens":10,"cache_read_input_tokens":4,"cache_creation_input_tokens":2,"output_tokens":20,"output_tokens_details":{"thinking_tokens":5}}}"#;
    let mut wanted = full_events();
    wanted[0] = Event::Start { id: Some("msg_1".into()), model: Some("claude-x".into()), usage: None };
    assert_eq!(plain(body.as_bytes(), &options()).unwrap(), wanted);
}

#[test]
fn a_call_whose_start_carries_its_whole_input_keeps_it() {
    let stream = sse_of(&[
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":{"x":[1]}}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_stop"}"#,
    ]);
    let events = decode(&stream).unwrap().0;
    assert!(events.contains(&Event::Delta { block: 0, delta: Delta::Arguments(r#"{"x":[1]}"#.into()) }));
    assert!(events.contains(&Event::Finish { reason: Finish::ToolCalls, stop_sequence: None }));
}

#[test]
fn a_lenient_server_s_stream_is_understood() {
    // No message fields, a call without id and input, no stop of the block, counts without input.
    let stream = sse_of(&[
        r#"{"type":"message_start","message":{}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","name":"f"}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3,"input_tokens":null}}"#,
        r#"{"type":"message_stop"}"#,
    ]);
    assert_eq!(
        decode(&stream).unwrap().0,
        [
            Event::Start { id: None, model: None, usage: None },
            Event::BlockStart { block: 0, kind: Block::ToolCall { id: "toolu_0001_0".into(), name: "f".into() } },
            Event::BlockStop { block: 0 },
            Event::Finish { reason: Finish::ToolCalls, stop_sequence: None },
            Event::Usage(Usage { output: 3, ..Usage::default() }),
            Event::End,
        ]
    );
}

#[test]
fn every_stop_reason_has_its_meaning() {
    for (reason, finish) in [
        ("end_turn", Finish::Stop),
        ("max_tokens", Finish::Length),
        ("stop_sequence", Finish::StopSequence),
        ("tool_use", Finish::Stop),
        ("refusal", Finish::Refusal),
        ("pause_turn", Finish::Pause),
        ("model_context_window_exceeded", Finish::ContextFull),
        ("compaction", Finish::Stop),
    ] {
        let stream = sse_of(&[&format!(
            r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}","stop_sequence":"X"}}}}"#
        )]);
        let wanted = Event::Finish { reason: finish, stop_sequence: Some("X".into()) };
        assert_eq!(decode(&stream).unwrap().0[1], wanted, "{reason}");
    }
}

#[test]
fn counts_alone_do_not_end_an_answer() {
    let stream = sse_of(&[r#"{"type":"message_delta","delta":{},"usage":{"output_tokens":2}}"#]);
    let (events, progress) = decode(&stream).unwrap();
    assert_eq!((events.len(), progress), (2, Progress::Open));
    assert!(matches!(events[1], Event::Usage(_)));
}

#[test]
fn an_error_event_is_the_fault_that_it_names() {
    for (kind, fault) in [
        ("overloaded_error", FaultKind::ModelOverloaded),
        ("rate_limit_error", FaultKind::RateLimited),
        ("api_error", FaultKind::UpstreamInternal),
        ("something_new", FaultKind::Unclassified),
    ] {
        let stream = sse_of(&[&format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"no"}}}}"#)]);
        let found = decode(&stream).unwrap_err();
        assert_eq!((found.kind, found.evidence.code.as_deref()), (fault, Some(kind)));
        assert_eq!((found.evidence.status, found.evidence.detail.as_str()), (None, "no"));
    }
    let plain_error = br#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    assert_eq!(plain(plain_error, &options()).unwrap_err().kind, FaultKind::ModelOverloaded);
}

#[test]
fn every_call_has_an_id_of_its_own() {
    let call = |index: u32| {
        format!(
            r#"{{"type":"content_block_start","index":{index},"content_block":{{"type":"tool_use","id":"t","name":"f","input":{{}}}}}}"#
        )
    };
    let (events, _) = decode(&sse_of(&[FULL[0], &call(0), &call(1)])).unwrap();
    let ids: Vec<_> = events
        .iter()
        .filter_map(|event| {
            let Event::BlockStart { kind: Block::ToolCall { id, .. }, .. } = event else { return None };
            Some(id.as_str())
        })
        .collect();
    assert_eq!(ids, ["t", "toolu_0001_1"]);
}

#[test]
fn what_is_not_the_protocol_is_malformed() {
    for stream in [
        "data: {\"type\":\"content_block_de\n\n".to_owned(),
        "data: oops\n\n".to_owned(),
        sse_of(&[r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}"#]),
        sse_of(&[FULL[1], r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}"#]),
        // Nobody can make a call without a name.
        sse_of(&[
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","input":{}}}"#,
        ]),
    ] {
        assert_eq!(decode(&stream).unwrap_err().kind, FaultKind::MalformedResponse, "{stream}");
    }
    for body in ["", "[]", "{}", r#"{"type":"message","content":[]}"#, r#"{"type":"message","stop_reason":"end_turn"}"#]
    {
        assert_eq!(plain(body.as_bytes(), &options()).unwrap_err().kind, FaultKind::MalformedResponse, "{body}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_decoder_panic(body: Vec<u8>) {
        let _ = plain(&body, &options());
        let _ = decode_split(&[b"data: ", &body[..], b"\n\n"].concat(), 0);
    }

    #[test]
    fn a_shuffled_damaged_stream_makes_no_panic_and_numbers_blocks_without_gaps(
        order in prop::collection::vec(0..FULL.len(), 0..30), at: usize, byte: u8,
    ) {
        let mut stream = sse_of(&order.iter().map(|&at| FULL[at]).collect::<Vec<_>>()).into_bytes();
        if !stream.is_empty() {
            let at = at % stream.len();
            stream[at] = byte;
        }
        if let Ok((events, _)) = decode_split(&stream, 0) {
            let mut next = 0;
            for event in events {
                if let Event::BlockStart { block, .. } = event {
                    prop_assert_eq!(block, next);
                    next += 1;
                }
            }
        }
    }
}
