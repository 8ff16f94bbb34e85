//! A Chat upstream's stream as canonical events, and canonical events as a Chat stream.

#![allow(clippy::unwrap_used, reason = "a helper of a test may fail the test")]
// A fault is made at most once per answer, and ends it.
#![allow(clippy::result_large_err)]

#[path = "support/events.rs"]
mod events;

use bytes::Bytes;
use events::lawful;
use proptest::prelude::*;
use serde_json::Value;
use turnkeep_base::{Dialect, FaultKind, Usage};
use turnkeep_dialect::chat::order::Order;
use turnkeep_dialect::chat::reply_decode::{self, StreamDecoder};
use turnkeep_dialect::chat::reply_encode::{self, StreamEncoder};
use turnkeep_dialect::chat::{SIGNATURE, error};
use turnkeep_dialect::event::{Block, Class, Delta, Event, Finish};
use turnkeep_dialect::reply::{Progress, ReplyFault, ReplyOptions};
use turnkeep_wire::sse;

fn options() -> ReplyOptions {
    ReplyOptions {
        client: Dialect::Chat,
        upstream: Dialect::Chat,
        model: "asked".into(),
        usage_wanted: true,
        choices: 1,
        id: "own".into(),
        created: 7,
        max_event: 1 << 20,
        asked: Default::default(),
    }
}

fn frames(chunks: &[&[u8]]) -> Vec<sse::Frame> {
    let mut reader = sse::Reader::new(1 << 20);
    let mut out = Vec::new();
    for chunk in chunks {
        reader.push(Bytes::copy_from_slice(chunk));
        while let Some(frame) = reader.next_frame().unwrap() {
            out.push(frame);
        }
    }
    out
}

/// Decodes a stream; at its end what is finishing is settled.
fn decode(chunks: &[&[u8]]) -> Result<Vec<Event>, ReplyFault> {
    let mut decoder = StreamDecoder::new(&options());
    let mut events = Vec::new();
    let mut progress = Progress::Open;
    for frame in frames(chunks) {
        progress = decoder.frame(&frame, &mut events)?;
        if progress == Progress::Done {
            return Ok(events);
        }
    }
    if progress == Progress::Open {
        return Err(ReplyFault::truncated());
    }
    decoder.settle(&mut events);
    decoder.settle(&mut events);
    Ok(events)
}

/// A stream of one choice: each item is the inside of `choices[0]`.
fn stream(choices: &[&str]) -> String {
    let chunk = |choice: &&str| {
        format!(
            "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"up\",\"choices\":[{{\"index\":0,{choice}}}]}}\n\n"
        )
    };
    choices.iter().map(chunk).collect::<String>() + "data: [DONE]\n\n"
}

fn short(events: &[Event]) -> Vec<String> {
    events::short(events, events::in_and_out)
}

#[track_caller]
fn golden(choices: &[&str], expected: &[&str]) {
    let stream = stream(choices);
    let events = decode(&[stream.as_bytes()]).unwrap();
    assert_eq!(short(&events), [&["start chatcmpl-1 up"], expected, &["end"]].concat());
    lawful(&events);
    // The events, written as a Chat stream, are lawful and read back as themselves.
    let written = encode(&events);
    assert_eq!(short(&decode(&[&written]).unwrap()), short(&events));
}

/// Writes a Chat stream and holds it against the legal order.
#[track_caller]
fn encode(events: &[Event]) -> Vec<u8> {
    let mut encoder = StreamEncoder::new(&options());
    let mut out = Vec::new();
    for event in events {
        assert_eq!(encoder.event(event, &mut out), event.class());
    }
    let mut order = Order::default();
    for frame in frames(&[&out]) {
        order.frame(&frame).unwrap();
    }
    order.finish().unwrap();
    out
}

#[test]
fn a_plain_stream_of_text() {
    golden(
        &[
            r#""delta":{"role":"assistant","content":""}"#,
            r#""delta":{"content":"a"}"#,
            r#""delta":{"content":"b"}"#,
            r#""delta":{},"finish_reason":"stop""#,
        ],
        &["+0 text", "0 a", "0 b", "-0", "finish Stop"],
    );
}

#[test]
fn parallel_calls_whose_pieces_come_interleaved_stay_apart() {
    golden(
        &[
            r#""delta":{"role":"assistant","content":null}"#,
            r#""delta":{"content":"let me"}"#,
            r#""delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}"#,
            r#""delta":{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":"{\"x"}}]}"#,
            r#""delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"y\":"}}]}"#,
            r#""delta":{"tool_calls":[{"index":1,"function":{"arguments":"\":1}"}},{"index":0,"function":{"arguments":"[]}"}}]}"#,
            r#""delta":{},"finish_reason":"tool_calls""#,
        ],
        &[
            "+0 text",
            "0 let me",
            "-0",
            "+1 call a f",
            "+2 call b g",
            "2 {\"x",
            "1 {\"y\":",
            "2 \":1}",
            "1 []}",
            "-1",
            "-2",
            "finish ToolCalls",
        ],
    );
}

#[test]
fn a_call_whose_arguments_are_whole_is_closed_when_something_else_begins() {
    golden(
        &[
            r#""delta":{"role":"assistant","tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"}\":1}"}}]}"#,
            r#""delta":{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]}"#,
            r#""delta":{"content":"after"}"#,
            r#""delta":{},"finish_reason":"stop""#,
        ],
        &[
            "+0 call a f",
            "0 {\"}\":1}",
            "-0",
            "+1 call b g",
            "1 {}",
            "-1",
            "+2 text",
            "2 after",
            "-2",
            "finish ToolCalls",
        ],
    );
}

#[test]
fn llama_cpp_sends_null_content_bare_ids_timings_and_stop() {
    let body = concat!(
        "data: {\"choices\":[{\"finish_reason\":null,\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":null}}],\"created\":1,\"id\":\"chatcmpl-L\",\"model\":\"up\",\"object\":\"chat.completion.chunk\"}\n\n",
        "data: {\"choices\":[{\"finish_reason\":null,\"index\":0,\"delta\":{\"reasoning_content\":\"hm\"}}],\"id\":\"chatcmpl-L\",\"model\":\"up\"}\n\n",
        "data: {\"choices\":[{\"finish_reason\":null,\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"aB3\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}]}}],\"id\":\"chatcmpl-L\"}\n\n",
        "data: {\"choices\":[{\"finish_reason\":null,\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"}\"}}]}}],\"id\":\"chatcmpl-L\"}\n\n",
        "data: {\"choices\":[{\"finish_reason\":\"stop\",\"index\":0,\"delta\":{}}],\"id\":\"chatcmpl-L\",\"timings\":{\"prompt_n\":1}}\n\n",
        "data: {\"choices\":[],\"id\":\"chatcmpl-L\",\"usage\":{\"completion_tokens\":5,\"prompt_tokens\":9,\"total_tokens\":14},\"timings\":{}}\n\n",
        "data: [DONE]\n\n",
    );
    let whole = decode(&[body.as_bytes()]).unwrap();
    let signed = format!("0 signed {SIGNATURE}");
    assert_eq!(
        short(&whole),
        [
            "start chatcmpl-L up",
            "+0 thinking",
            "0 hm",
            &signed,
            "-0",
            "+1 call aB3 f",
            "1 {",
            "1 }",
            "-1",
            "usage 9+5",
            "finish ToolCalls",
            "end"
        ]
    );
    lawful(&whole);
    encode(&whole);
    for at in 0..body.len() {
        let (first, second) = body.as_bytes().split_at(at);
        assert_eq!(decode(&[first, second]).as_ref(), Ok(&whole), "split at {at}");
    }
}

#[test]
fn a_call_without_an_id_gets_one_that_is_the_same_every_time() {
    let call = r#""delta":{"role":"assistant","tool_calls":[{"index":0,"type":"function","function":{"name":"f","arguments":"{}"}},{"index":1,"function":{"name":"f","arguments":"{}"}}]}"#;
    let finish = r#""delta":{},"finish_reason":"stop""#;
    golden(
        &[call, finish],
        &["+0 call call_1_0 f", "0 {}", "-0", "+1 call call_1_1 f", "1 {}", "-1", "finish ToolCalls"],
    );
}

#[test]
fn a_repeated_name_opens_no_second_call_and_repeated_arguments_are_not_taken_twice() {
    golden(
        &[
            r#""delta":{"role":"assistant","tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"a\""}}]}"#,
            r#""delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}]}"#,
            r#""delta":{"tool_calls":[{"index":0,"id":"","function":{"name":"","arguments":"{\"a\":1}"}}]}"#,
            r#""delta":{},"finish_reason":"tool_calls""#,
        ],
        &["+0 call a f", "0 {\"a\"", "0 :1}", "-0", "finish ToolCalls"],
    );
}

#[test]
fn whole_calls_under_one_index_or_without_index_are_calls_of_their_own() {
    for index in ["\"index\":0,", ""] {
        let call = |id: &str| {
            format!(
                r#""delta":{{"tool_calls":[{{{index}"id":"{id}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}]}}"#
            )
        };
        golden(
            &[&call("a"), &call("b"), r#""delta":{},"finish_reason":"stop""#],
            &["+0 call a f", "0 {}", "-0", "+1 call b f", "1 {}", "-1", "finish ToolCalls"],
        );
    }
}

#[test]
fn pieces_without_index_or_id_belong_to_the_last_call_and_early_arguments_wait_for_the_name() {
    golden(
        &[
            r#""delta":{"tool_calls":[{"id":"a","function":{"arguments":"{"}}]}"#,
            r#""delta":{"tool_calls":[{"id":"a","function":{"name":"f"}}]}"#,
            r#""delta":{"tool_calls":[{"function":{"arguments":"}"}}]}"#,
            r#""delta":{},"finish_reason":"stop""#,
        ],
        &["+0 call a f", "0 {", "0 }", "-0", "finish ToolCalls"],
    );
}

#[test]
fn the_old_function_call_is_a_call() {
    golden(
        &[
            r#""delta":{"function_call":{"name":"f","arguments":"{"}}"#,
            r#""delta":{"function_call":{"arguments":"}"}}"#,
            r#""delta":{},"finish_reason":"function_call""#,
        ],
        &["+0 call call_1_0 f", "0 {", "0 }", "-0", "finish ToolCalls"],
    );
}

#[test]
fn finish_reasons_mean_what_was_done_rather_than_what_was_said() {
    for (delta, reason, finish) in [
        ("\"content\":\"x\"", "stop", Finish::Stop),
        ("\"content\":\"x\"", "length", Finish::Length),
        ("\"content\":\"x\"", "tool_calls", Finish::Stop),
        ("\"content\":\"x\"", "content_filter", Finish::Refusal),
        ("\"content\":\"x\"", "eos", Finish::Stop),
        ("\"refusal\":\"no\"", "stop", Finish::Refusal),
        ("\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"f\"}}]", "length", Finish::Length),
        ("\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"f\"}}]", "stop", Finish::ToolCalls),
    ] {
        let body = stream(&[&format!("\"delta\":{{{delta}}},\"finish_reason\":\"{reason}\"")]);
        let events = decode(&[body.as_bytes()]).unwrap();
        assert!(
            events.contains(&Event::Finish { reason: finish, stop_sequence: None }),
            "{delta} {reason}: {events:?}"
        );
        encode(&events);
    }
}

#[test]
fn an_answer_without_content_is_an_answer_and_one_without_finish_is_none() {
    golden(&[r#""delta":{"role":"assistant","content":""}"#, r#""delta":{},"finish_reason":"stop""#], &["finish Stop"]);
    let cut = stream(&[r#""delta":{"content":"a"}"#]);
    assert_eq!(decode(&[cut.as_bytes()]).unwrap_err().kind, FaultKind::StreamTruncated);
    let nameless = stream(&[
        r#""delta":{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{}"}}]},"finish_reason":"stop""#,
    ]);
    assert_eq!(decode(&[nameless.as_bytes()]).unwrap_err().kind, FaultKind::MalformedResponse);
}

#[test]
fn an_error_in_the_stream_is_a_fault_before_and_after_content() {
    let error = "data: {\"error\":{\"message\":\"x\",\"type\":\"server_error\",\"code\":\"server_is_overloaded\"}}\n\n";
    let said = stream(&[r#""delta":{"content":"a"}"#]).replace("data: [DONE]\n\n", "");
    for body in [error.to_owned(), said + error] {
        assert_eq!(decode(&[body.as_bytes()]).unwrap_err().kind, FaultKind::ModelOverloaded);
    }
}

#[test]
fn of_several_choices_the_first_is_the_answer() {
    let body = "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"b\"}},{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n";
    assert_eq!(
        short(&decode(&[body.as_bytes()]).unwrap()),
        ["start - -", "+0 text", "0 a", "-0", "finish Stop", "end"]
    );
}

fn messages_answer() -> Vec<Event> {
    let delta = |block, delta| Event::Delta { block, delta };
    vec![
        Event::Start { id: Some("msg_1".into()), model: Some("up".into()), usage: None },
        Event::BlockStart { block: 0, kind: Block::Thinking },
        delta(0, Delta::Thinking("hm".into())),
        delta(0, Delta::Signature("sig".into())),
        Event::BlockStop { block: 0 },
        Event::BlockStart { block: 1, kind: Block::RedactedThinking("zz".into()) },
        Event::BlockStop { block: 1 },
        Event::BlockStart { block: 2, kind: Block::Text },
        delta(2, Delta::Text("hi".into())),
        Event::BlockStop { block: 2 },
        Event::BlockStart { block: 3, kind: Block::ToolCall { id: "toolu_1".into(), name: "f".into() } },
        Event::BlockStop { block: 3 },
        Event::Finish { reason: Finish::ToolCalls, stop_sequence: None },
        Event::Usage(Usage { input: 3, cache_read: 4, cache_write: 5, output: 6, reasoning: 2 }),
        Event::End,
    ]
}

#[test]
fn a_stream_written_for_a_chat_client_is_what_openai_would_write() {
    let out = String::from_utf8(encode(&messages_answer())).unwrap();
    let chunk = |inside: &str| {
        format!(
            "data: {{\"id\":\"chatcmpl-own\",\"object\":\"chat.completion.chunk\",\"created\":7,\"model\":\"up\",{inside}}}\n\n"
        )
    };
    let delta = |delta: &str| {
        chunk(&format!("\"choices\":[{{\"index\":0,\"delta\":{{{delta}}},\"finish_reason\":null}}],\"usage\":null"))
    };
    let expected = [
        delta(r#""role":"assistant","content":"""#),
        delta(r#""reasoning_content":"hm""#),
        delta(r#""thinking_blocks":[{"index":0,"type":"thinking","thinking":"","signature":"sig"}]"#),
        delta(r#""thinking_blocks":[{"index":1,"type":"redacted_thinking","data":"zz"}]"#),
        delta(r#""content":"hi""#),
        delta(r#""tool_calls":[{"index":0,"id":"toolu_1","type":"function","function":{"name":"f","arguments":""}}]"#),
        delta(r#""tool_calls":[{"index":0,"function":{"arguments":"{}"}}]"#),
        chunk(r#""choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":null"#),
        chunk(
            r#""choices":[],"usage":{"prompt_tokens":12,"completion_tokens":6,"total_tokens":18,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":5},"completion_tokens_details":{"reasoning_tokens":2}}"#,
        ),
        "data: [DONE]\n\n".into(),
    ];
    assert_eq!(out, expected.concat());
}

#[test]
fn without_the_wish_for_usage_there_is_no_word_of_it() {
    let mut encoder = StreamEncoder::new(&ReplyOptions { usage_wanted: false, ..options() });
    let mut out = Vec::new();
    for event in messages_answer() {
        encoder.event(&event, &mut out);
    }
    assert!(!String::from_utf8(out).unwrap().contains("usage"));
}

#[test]
fn what_a_tool_block_writes_at_its_start_commits_nothing() {
    let mut encoder = StreamEncoder::new(&options());
    let mut classes = Vec::new();
    for event in messages_answer() {
        let mut out = Vec::new();
        let class = encoder.event(&event, &mut out);
        if !out.is_empty() {
            classes.push(class);
        }
    }
    use Class::{Answer, Preamble, Terminal};
    assert_eq!(classes, [Preamble, Answer, Answer, Answer, Answer, Preamble, Answer, Terminal, Terminal]);
}

#[test]
fn a_plain_answer_is_the_same_events_folded() {
    let body: Value = serde_json::from_slice(&reply_encode::plain(&messages_answer(), &options())).unwrap();
    assert_eq!(
        body,
        serde_json::json!({"id": "chatcmpl-own", "object": "chat.completion", "created": 7, "model": "up", "choices": [{"index": 0,
            "message": {"role": "assistant", "content": "hi", "refusal": null, "reasoning_content": "hm",
                "thinking_blocks": [{"index": 0, "type": "thinking", "thinking": "hm", "signature": "sig"}, {"index": 1, "type": "redacted_thinking", "data": "zz"}],
                "tool_calls": [{"id": "toolu_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            "logprobs": null, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 12, "completion_tokens": 6, "total_tokens": 18,
                "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 5}, "completion_tokens_details": {"reasoning_tokens": 2}}})
    );
    let empty = [
        Event::Start { id: None, model: None, usage: None },
        Event::Finish { reason: Finish::Stop, stop_sequence: None },
        Event::End,
    ];
    let body: Value = serde_json::from_slice(&reply_encode::plain(&empty, &options())).unwrap();
    assert_eq!((&body["choices"][0]["message"]["content"], &body["model"]), (&"".into(), &"asked".into()));
}

#[test]
fn a_plain_answer_decodes_as_its_stream_would() {
    let body = br#"{"id":"chatcmpl-1","model":"up","choices":[{"index":0,"message":{"role":"assistant","content":"a","reasoning":"hm","reasoning_content":"hm",
        "tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"y","type":"function","function":{"name":"g","arguments":"{}"}}]},"finish_reason":"stop"}],
        "usage":{"prompt_tokens":2,"completion_tokens":1}}"#;
    let events = reply_decode::plain(body, &options()).unwrap();
    let signed = format!("0 signed {SIGNATURE}");
    assert_eq!(
        short(&events),
        [
            "start chatcmpl-1 up",
            "+0 thinking",
            "0 hm",
            &signed,
            "-0",
            "+1 text",
            "1 a",
            "-1",
            "+2 call x f",
            "2 {}",
            "-2",
            "+3 call y g",
            "3 {}",
            "-3",
            "usage 2+1",
            "finish ToolCalls",
            "end"
        ]
    );
    lawful(&events);
    for (body, kind) in [
        ("{}", FaultKind::MalformedResponse),
        (r#"{"choices":[{"index":0,"message":{"content":"x"}}]}"#, FaultKind::StreamTruncated),
        (r#"{"error":{"message":"internal error"}}"#, FaultKind::UpstreamInternal),
    ] {
        assert_eq!(reply_decode::plain(body.as_bytes(), &options()).unwrap_err().kind, kind);
    }
}

#[test]
fn the_legal_order_refuses_what_clients_cannot_bear() {
    let chunk = |inside: &str| {
        format!(
            "data: {{\"id\":\"a\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{inside}]}}\n\n"
        )
    };
    let role = chunk(r#"{"index":0,"delta":{"role":"assistant","content":""}}"#);
    let call = |index: u8| {
        chunk(&format!(
            r#"{{"index":0,"delta":{{"tool_calls":[{{"index":{index},"id":"x","type":"function","function":{{"name":"f"}}}}]}}}}"#
        ))
    };
    let stop = chunk(r#"{"index":0,"delta":{},"finish_reason":"stop"}"#);
    let usage = "data: {\"id\":\"a\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[],\"usage\":{}}\n\n".to_owned();
    let done = "data: [DONE]\n\n".to_owned();
    let failed = "data: {\"error\":{}}\n\n".to_owned();
    let other = role.replace("\"a\"", "\"b\"").replace("\"role\":\"assistant\",", "");
    for (stream, lawful) in [
        (vec![&role, &call(0), &call(1), &stop, &usage, &done], true),
        (vec![&role, &failed], true),
        (vec![&failed], true),
        (vec![&role, &stop], false),
        (vec![&stop, &done], false),
        (vec![&role, &done], false),
        (vec![&role, &role], false),
        (vec![&role, &other], false),
        (vec![&role, &call(1)], false),
        (vec![&role, &call(0), &call(0)], false),
        (vec![&role, &usage], false),
        (vec![&role, &stop, &usage, &usage], false),
        (vec![&role, &stop, &call(0)], false),
        (vec![&role, &stop, &done, &done], false),
        (vec![&role, &failed, &done], false),
        (vec![&role, &stop, &failed], false),
    ] {
        let text: String = stream.iter().map(|frame| frame.as_str()).collect();
        let mut order = Order::default();
        let outcome =
            frames(&[text.as_bytes()]).iter().try_for_each(|frame| order.frame(frame)).and_then(|()| order.finish());
        assert_eq!(outcome.is_ok(), lawful, "{text}: {outcome:?}");
    }
}

#[test]
fn our_own_error_ends_a_stream_lawfully() {
    let error = turnkeep_base::ClientError::new(502, "stream_truncated", "cut");
    let mut out = Vec::new();
    StreamEncoder::new(&options()).event(&messages_answer()[0], &mut out);
    out.extend_from_slice(&error::event(&error, "turn_1"));
    let mut order = Order::default();
    frames(&[&out]).iter().try_for_each(|frame| order.frame(frame)).unwrap();
    order.finish().unwrap();
}

fn delta() -> impl Strategy<Value = String> {
    let call = (0u8..3, prop::option::of("[a-c]"), prop::option::of("[fg]?"), "[{}\\[\\]a\" ]{0,4}").prop_map(
        |(index, id, name, arguments)| {
            let arguments = serde_json::to_string(&arguments).unwrap();
            let id = id.map(|id| format!("\"id\":\"{id}\",")).unwrap_or_default();
            let name = name.map(|name| format!("\"name\":\"{name}\",")).unwrap_or_default();
            format!("\"tool_calls\":[{{\"index\":{index},{id}\"function\":{{{name}\"arguments\":{arguments}}}}}]")
        },
    );
    prop_oneof![
        Just("\"content\":\"a\"".to_owned()),
        Just("\"reasoning\":\"b\"".to_owned()),
        Just("\"refusal\":\"c\"".to_owned()),
        Just("\"role\":\"assistant\"".to_owned()),
        call,
    ]
}

proptest! {
    #[test]
    fn whatever_a_server_sends_decodes_lawfully_or_is_a_fault(
        deltas in prop::collection::vec((delta(), prop::option::weighted(0.1, prop::sample::select(vec!["stop", "tool_calls", "x"]))), 0..14)
    ) {
        let choices: Vec<String> = deltas
            .iter()
            .map(|(delta, finish)| format!("\"delta\":{{{delta}}},\"finish_reason\":{}", finish.map_or("null".into(), |f| format!("\"{f}\""))))
            .collect();
        let body = stream(&choices.iter().map(String::as_str).collect::<Vec<_>>());
        if let Ok(events) = decode(&[body.as_bytes()]) {
            lawful(&events);
            encode(&events);
            reply_encode::plain(&events, &options());
        }
    }

    #[test]
    fn no_bytes_make_the_decoders_panic(bytes in prop::collection::vec(prop::sample::select(
        b"{}[]\",:data \nchoices0delta".to_vec()), 0..80)) {
        let _outcome = decode(&[&bytes]);
        let _outcome = reply_decode::plain(&bytes, &options());
    }
}

#[test]
fn a_call_or_a_refusal_that_comes_after_the_finish_reason_says_how_the_answer_ends() {
    let call = r#"{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}"#;
    for (late, ends) in [(call, Finish::ToolCalls), (r#"{"refusal":"No."}"#, Finish::Refusal), ("{}", Finish::Stop)] {
        let stream = format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n\n\
             data: {{\"choices\":[{{\"index\":0,\"delta\":{late}}}]}}\n\ndata: [DONE]\n\n"
        );
        let events = decode(&[stream.as_bytes()]).unwrap();
        let end = |event: &Event| if let Event::Finish { reason, .. } = event { Some(*reason) } else { None };
        assert_eq!(events.iter().find_map(end), Some(ends), "{events:?}");
    }
}
