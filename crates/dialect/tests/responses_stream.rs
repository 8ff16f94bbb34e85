//! A Responses upstream's answer as canonical events.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper of a test may fail the test")]
// A fault is made at most once per answer, and ends it.
#![allow(clippy::result_large_err)]

#[allow(dead_code, reason = "each test file uses a part of it")]
#[path = "support/events.rs"]
mod events;

use bytes::Bytes;
use events::lawful;
use proptest::prelude::*;
use turnkeep_base::{Dialect, FaultKind};
use turnkeep_dialect::event::{Delta, Event};
use turnkeep_dialect::reply::{Progress, ReplyFault, ReplyOptions};
use turnkeep_dialect::responses::order::Order;
use turnkeep_dialect::responses::reply_decode::{self, StreamDecoder};
use turnkeep_dialect::responses::reply_encode::StreamEncoder;
use turnkeep_wire::sse;

fn options() -> ReplyOptions {
    ReplyOptions {
        client: Dialect::Chat,
        upstream: Dialect::Responses,
        model: "asked".into(),
        usage_wanted: true,
        choices: 1,
        id: "own".into(),
        created: 7,
        max_event: 1 << 20,
        asked: Default::default(),
    }
}

fn decode(decoder: &mut StreamDecoder, chunks: &[&[u8]]) -> Result<Vec<Event>, ReplyFault> {
    let mut reader = sse::Reader::new(1 << 20);
    let mut events = Vec::new();
    for chunk in chunks {
        reader.push(Bytes::copy_from_slice(chunk));
        while let Some(frame) = reader.next_frame().unwrap() {
            if decoder.frame(&frame, &mut events)? == Progress::Done {
                return Ok(events);
            }
        }
    }
    Err(ReplyFault::truncated())
}

/// Each line is an event's data; the `event:` line is made of its type.
fn stream(datas: &[&str]) -> String {
    let event = |data: &&str| {
        let kind = serde_json::from_str::<serde_json::Value>(data).unwrap()["type"].as_str().unwrap().to_owned();
        format!("event: {kind}\ndata: {data}\n\n")
    };
    datas.iter().map(event).collect()
}

fn lenient(datas: &[&str]) -> Result<Vec<Event>, ReplyFault> {
    decode(&mut StreamDecoder::new(&options()), &[stream(datas).as_bytes()])
}

fn strict(datas: &[&str]) -> Result<Vec<Event>, ReplyFault> {
    decode(&mut StreamDecoder::strict(&options()), &[stream(datas).as_bytes()])
}

/// In short, with the cached part of the input by itself.
fn short(events: &[Event]) -> Vec<String> {
    events::short(events, |usage| format!("{}/{}+{}", usage.input, usage.cache_read, usage.output))
}

#[track_caller]
fn golden(datas: &[&str], expected: &[&str]) {
    let events = lenient(datas).unwrap();
    assert_eq!(short(&events), expected);
    lawful(&events);
}

const CREATED: &str = r#"{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","created_at":5,"model":"up","status":"in_progress","output":[]}}"#;
const COMPLETED: &str = r#"{"type":"response.completed","sequence_number":99,"response":{"id":"resp_1","status":"completed","output":[],"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":3,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":13}}}"#;

/// One of everything, as the protocol has it.
const FULL: &[&str] = &[
    CREATED,
    r#"{"type":"response.in_progress","sequence_number":1,"response":{"id":"resp_1","status":"in_progress"}}"#,
    r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"half"}}"#,
    r#"{"type":"response.reasoning_summary_part.added","item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}"#,
    r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"first"}"#,
    r#"{"type":"response.reasoning_summary_text.done","item_id":"rs_1","output_index":0,"summary_index":0,"text":"first"}"#,
    r#"{"type":"response.reasoning_summary_part.done","item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":"first"}}"#,
    r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":1,"delta":"second"}"#,
    r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"first"},{"type":"summary_text","text":"second"}],"encrypted_content":"whole"}}"#,
    r#"{"type":"response.output_item.added","output_index":1,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}"#,
    r#"{"type":"response.content_part.added","item_id":"msg_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}}"#,
    r#"{"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"Let me ","logprobs":[]}"#,
    r#"{"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"look.","logprobs":[]}"#,
    r#"{"type":"response.output_text.done","item_id":"msg_1","output_index":1,"content_index":0,"text":"Let me look.","logprobs":[]}"#,
    r#"{"type":"response.content_part.done","item_id":"msg_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":"Let me look.","annotations":[],"logprobs":[]}}"#,
    r#"{"type":"response.output_item.done","output_index":1,"item":{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Let me look.","annotations":[],"logprobs":[]}]}}"#,
    r#"{"type":"response.output_item.added","output_index":2,"item":{"id":"fc_1","type":"function_call","status":"in_progress","call_id":"call_1","name":"f","arguments":""}}"#,
    r#"{"type":"response.output_item.added","output_index":3,"item":{"id":"ctc_1","type":"custom_tool_call","status":"in_progress","call_id":"call_2","name":"patch","input":""}}"#,
    r#"{"type":"response.custom_tool_call_input.delta","item_id":"ctc_1","output_index":3,"delta":"a\n"}"#,
    r#"{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"{\"x\":"}"#,
    r#"{"type":"response.custom_tool_call_input.delta","item_id":"ctc_1","output_index":3,"delta":"b"}"#,
    r#"{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"1}"}"#,
    r#"{"type":"response.custom_tool_call_input.done","item_id":"ctc_1","output_index":3,"input":"a\nb"}"#,
    r#"{"type":"response.output_item.done","output_index":3,"item":{"id":"ctc_1","type":"custom_tool_call","status":"completed","call_id":"call_2","name":"patch","input":"a\nb"}}"#,
    r#"{"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":2,"arguments":"{\"x\":1}"}"#,
    r#"{"type":"response.output_item.done","output_index":2,"item":{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"f","arguments":"{\"x\":1}"}}"#,
    COMPLETED,
];

const FULL_EVENTS: &[&str] = &[
    "start resp_1 up",
    "+0 thinking",
    "0 first",
    "0 \n\n",
    "0 second",
    "0 signed turnkeep.responses.whole",
    "-0",
    "+1 text",
    "1 Let me ",
    "1 look.",
    "-1",
    "+2 call call_1 f",
    "+3 call call_2 patch",
    "2 {\"x\":",
    "2 1}",
    "3 {\"input\":\"a\\nb\"}",
    "-3",
    "-2",
    "usage 6/4+3",
    "finish ToolCalls",
    "end",
];

#[test]
fn a_full_stream_with_interleaved_calls_keeps_every_piece_in_its_own_block() {
    golden(FULL, FULL_EVENTS);
    // Nothing of it is passed over.
    assert_eq!(short(&strict(FULL).unwrap()), FULL_EVENTS);
}

#[test]
fn the_cuts_of_the_transport_do_not_matter() {
    let stream = stream(FULL);
    let bytes = stream.as_bytes();
    for at in 0..=bytes.len() {
        let events = decode(&mut StreamDecoder::new(&options()), &[&bytes[..at], &bytes[at..]]).unwrap();
        assert_eq!(short(&events), FULL_EVENTS, "cut at {at}");
    }
}

/// Without what servers leave out, the same is read.
#[test]
fn numbers_that_are_left_out_are_not_needed() {
    for key in
        ["\"output_index\":", "\"content_index\":", "\"summary_index\":", "\"sequence_number\":", "\"logprobs\":[]"]
    {
        let without: Vec<String> = FULL.iter().map(|data| drop_field(data, key)).collect();
        assert!(without.iter().any(|data| !FULL.contains(&data.as_str())), "{key}");
        let datas: Vec<&str> = without.iter().map(String::as_str).collect();
        let events = short(&lenient(&datas).unwrap());
        // Parts of reasoning are told apart by their indexes alone.
        let parts = key == "\"summary_index\":";
        let expected: Vec<&&str> = FULL_EVENTS.iter().filter(|line| !parts || **line != "0 \n\n").collect();
        assert_eq!(
            events.iter().map(String::as_str).collect::<Vec<_>>(),
            expected.into_iter().copied().collect::<Vec<_>>(),
            "{key}"
        );
    }
}

/// Takes a field with a number, or the empty list, out of an object.
fn drop_field(data: &str, key: &str) -> String {
    let mut out = data.to_owned();
    while let Some(at) = out.find(&format!(",{key}")) {
        let rest = &out[at + 1 + key.len()..];
        let end = rest.find(|byte: char| !byte.is_ascii_digit()).unwrap();
        let tail = rest[end..].to_owned();
        out.truncate(at);
        out.push_str(&tail);
    }
    out
}

#[test]
fn what_is_said_once_is_enough_wherever_it_is_said() {
    let deltas = |data: &&str| data.contains(".delta\"") || data.contains("_part.");
    let added = |data: &&str| data.contains("output_item.added");
    let done = |data: &&str| data.contains(".done\"");
    let text = |events: &[Event]| {
        let joined = |block: u32| -> String {
            let of = |event: &Event| match event {
                Event::Delta {
                    block: at,
                    delta: Delta::Text(text) | Delta::Thinking(text) | Delta::Arguments(text),
                } if *at == block => Some(text.clone()),
                Event::Delta { .. }
                | Event::Start { .. }
                | Event::BlockStart { .. }
                | Event::BlockStop { .. }
                | Event::Finish { .. }
                | Event::Usage(_)
                | Event::End => None,
            };
            events.iter().filter_map(of).collect()
        };
        let mut all: Vec<String> = (0..4).map(joined).collect();
        all.sort();
        all
    };
    let whole = text(&lenient(FULL).unwrap());
    assert_eq!(whole, ["Let me look.", "first\n\nsecond", "{\"input\":\"a\\nb\"}", "{\"x\":1}"]);
    for (case, kept) in [
        ("no deltas", FULL.iter().copied().filter(|data| !deltas(data)).collect::<Vec<_>>()),
        ("nothing added", FULL.iter().copied().filter(|data| !added(data)).collect()),
        (
            "only what is done",
            FULL.iter().copied().filter(|data| done(data) || *data == CREATED || *data == COMPLETED).collect(),
        ),
    ] {
        let events = lenient(&kept).unwrap_or_else(|fault| panic!("{case}: {fault:?}"));
        lawful(&events);
        assert_eq!(text(&events), whole, "{case}");
        assert!(short(&events).contains(&"finish ToolCalls".into()), "{case}");
    }
}

#[test]
fn an_answer_that_is_only_in_the_terminal_event_is_read_from_there() {
    golden(
        &[
            CREATED,
            r#"{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"s"},{"id":"msg_1","type":"message","content":[{"type":"output_text","text":"a"},{"type":"refusal","refusal":"b"}]},{"id":"fc_1","type":"function_call","call_id":"c","name":"f","arguments":"{}"}]}}"#,
        ],
        &[
            "start resp_1 up",
            "+0 thinking",
            "0 signed turnkeep.responses.s",
            "-0",
            "+1 text",
            "1 a",
            "-1",
            "+2 refusal",
            "2 b",
            "-2",
            "+3 call c f",
            "3 {}",
            "-3",
            "finish ToolCalls",
            "end",
        ],
    );
}

#[test]
fn what_was_streamed_is_not_read_again_at_the_end() {
    golden(
        &[
            CREATED,
            r#"{"type":"response.output_text.delta","item_id":"msg_1","delta":"a"}"#,
            r#"{"type":"response.function_call_arguments.delta","item_id":"fc_1","delta":"{}"}"#,
            r#"{"type":"response.output_item.added","item":{"id":"fc_1","type":"function_call","call_id":"c","name":"f","arguments":""}}"#,
            r#"{"type":"response.completed","response":{"output":[{"id":"msg_1","type":"message","content":[{"type":"output_text","text":"a"}]},{"id":"fc_1","type":"function_call","call_id":"c","name":"f","arguments":"{}"}]}}"#,
        ],
        &["start resp_1 up", "+0 text", "0 a", "+1 call c f", "1 {}", "-0", "-1", "finish ToolCalls", "end"],
    );
}

#[test]
fn items_under_one_index_and_ids_that_change_with_every_event_are_told_apart() {
    // Every item under index 0.
    golden(
        &[
            CREATED,
            r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"fc_1","type":"function_call","call_id":"c1","name":"f","arguments":""}}"#,
            r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"fc_2","type":"function_call","call_id":"c2","name":"f","arguments":""}}"#,
            r#"{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"fc_2","delta":"{\"b\":1}"}"#,
            r#"{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"fc_1","delta":"{\"a\":1}"}"#,
            COMPLETED,
        ],
        &[
            "start resp_1 up",
            "+0 call c1 f",
            "+1 call c2 f",
            "1 {\"b\":1}",
            "0 {\"a\":1}",
            "-0",
            "-1",
            "usage 6/4+3",
            "finish ToolCalls",
            "end",
        ],
    );
    // Every event with another id.
    golden(
        &[
            CREATED,
            r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"x1","type":"message","content":[]}}"#,
            r#"{"type":"response.output_text.delta","output_index":0,"item_id":"x2","content_index":0,"delta":"a"}"#,
            r#"{"type":"response.output_text.delta","output_index":0,"item_id":"x3","content_index":0,"delta":"b"}"#,
            r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"x4","type":"message","content":[{"type":"output_text","text":"ab"}]}}"#,
            r#"{"type":"response.completed","response":{"output":[{"id":"x5","type":"message","content":[{"type":"output_text","text":"ab"}]}]}}"#,
        ],
        &["start resp_1 up", "+0 text", "0 a", "0 b", "-0", "finish Stop", "end"],
    );
}

#[test]
fn an_item_at_the_end_that_was_never_told_is_one_of_its_own() {
    // The number of the message is known, so the second message is not the first one once more.
    let events = short(&lenient(&[
        CREATED,
        r#"{"type":"response.output_item.added","output_index":1,"item":{"id":"m1","type":"message","content":[]}}"#,
        r#"{"type":"response.output_text.delta","output_index":1,"item_id":"m1","delta":"b"}"#,
        r#"{"type":"response.completed","response":{"output":[{"id":"m0","type":"message","content":[{"type":"output_text","text":"a"}]},{"id":"m1","type":"message","content":[{"type":"output_text","text":"b"}]}]}}"#,
    ]).unwrap());
    assert_eq!(events, ["start resp_1 up", "+0 text", "0 b", "+1 text", "1 a", "-1", "-0", "finish Stop", "end"]);
}

#[test]
fn calls_whose_items_have_only_a_call_id_are_known_by_it() {
    golden(
        &[
            CREATED,
            r#"{"type":"response.output_item.added","item":{"type":"function_call","call_id":"fc_a","name":"f","arguments":""}}"#,
            r#"{"type":"response.output_item.added","item":{"type":"function_call","call_id":"fc_b","name":"g","arguments":""}}"#,
            r#"{"type":"response.function_call_arguments.delta","item_id":"fc_b","delta":"{\"b\":"}"#,
            r#"{"type":"response.function_call_arguments.delta","item_id":"fc_a","delta":"{\"a\":1}"}"#,
            r#"{"type":"response.function_call_arguments.delta","item_id":"fc_b","delta":"2}"}"#,
            r#"{"type":"response.output_item.done","item":{"type":"function_call","call_id":"fc_a","name":"f","arguments":"{\"a\":1}"}}"#,
            r#"{"type":"response.output_item.done","item":{"type":"function_call","call_id":"fc_b","name":"g","arguments":"{\"b\":2}"}}"#,
            COMPLETED,
        ],
        &[
            "start resp_1 up",
            "+0 call fc_a f",
            "+1 call fc_b g",
            "1 {\"b\":",
            "0 {\"a\":1}",
            "1 2}",
            "-0",
            "-1",
            "usage 6/4+3",
            "finish ToolCalls",
            "end",
        ],
    );
}

#[test]
fn pieces_that_come_before_their_item_do_not_go_to_another_one() {
    golden(
        &[
            CREATED,
            r#"{"type":"response.function_call_arguments.delta","item_id":"fc_2","delta":"{\"b\":2}"}"#,
            r#"{"type":"response.output_item.added","item":{"id":"fc_1","type":"function_call","call_id":"c1","name":"f"}}"#,
            r#"{"type":"response.output_item.added","item":{"id":"fc_2","type":"function_call","call_id":"c2","name":"g"}}"#,
            COMPLETED,
        ],
        &[
            "start resp_1 up",
            "+0 call c1 f",
            "+1 call c2 g",
            "1 {\"b\":2}",
            "-1",
            "-0",
            "usage 6/4+3",
            "finish ToolCalls",
            "end",
        ],
    );
}

#[test]
fn calls_without_ids_arguments_or_their_text_form_are_calls_all_the_same() {
    golden(
        &[
            CREATED,
            r#"{"type":"response.output_item.done","item":{"type":"function_call","name":"f"}}"#,
            r#"{"type":"response.output_item.done","item":{"type":"function_call","name":"g","arguments":{"a":1},"namespace":"fs"}}"#,
            r#"{"type":"response.completed","response":{"status":"completed"}}"#,
        ],
        &[
            "start resp_1 up",
            "+0 call call_resp1_0 f",
            "-0",
            "+1 call call_resp1_1 fs__g",
            "1 {\"a\":1}",
            "-1",
            "finish ToolCalls",
            "end",
        ],
    );
}

#[test]
fn reasoning_without_text_is_its_proof_and_reasoning_without_either_is_nothing() {
    golden(
        &[
            CREATED,
            r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}"#,
            r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"s"}}"#,
            r#"{"type":"response.output_item.done","output_index":1,"item":{"id":"rs_2","type":"reasoning","summary":[]}}"#,
            r#"{"type":"response.output_item.done","output_index":2,"item":{"id":"rs_3","type":"reasoning","summary":[],"encrypted_content":"turnkeep.redacted.d"}}"#,
            r#"{"type":"response.reasoning_text.delta","output_index":3,"item_id":"rs_4","content_index":0,"delta":"open"}"#,
            r#"{"type":"response.output_item.done","output_index":3,"item":{"id":"rs_4","type":"reasoning","summary":[{"type":"summary_text","text":"in short"}],"content":[{"type":"reasoning_text","text":"open"}]}}"#,
            COMPLETED,
        ],
        &[
            "start resp_1 up",
            "+0 thinking",
            "0 signed turnkeep.responses.s",
            "-0",
            "+1 redacted d",
            "-1",
            "+2 thinking",
            "2 open",
            "-2",
            "usage 6/4+3",
            "finish Stop",
            "end",
        ],
    );
}

#[test]
fn the_tools_of_the_provider_are_passed_over_and_a_record_with_them_has_one_form() {
    let datas = [
        CREATED,
        r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"ws_1","type":"web_search_call","status":"in_progress"}}"#,
        r#"{"type":"response.web_search_call.searching","output_index":0,"item_id":"ws_1"}"#,
        r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"ws_1","type":"web_search_call","status":"completed","action":{"query":"q"}}}"#,
        r#"{"type":"response.output_text.delta","output_index":1,"item_id":"msg_1","content_index":0,"delta":"found"}"#,
        r#"{"type":"keepalive"}"#,
        r#"{"type":"response.completed","response":{"output":[{"id":"ws_1","type":"web_search_call"},{"id":"msg_1","type":"message","content":[{"type":"output_text","text":"found"}]}]}}"#,
    ];
    golden(&datas, &["start resp_1 up", "+0 text", "0 found", "-0", "finish Stop", "end"]);
    assert_eq!(strict(&datas).unwrap_err().kind, FaultKind::MalformedResponse);
}

#[test]
fn a_record_is_read_whole_or_not_at_all() {
    let item = |fields: &str| {
        format!(
            r#"{{"type":"response.output_item.done","output_index":0,"item":{{"id":"msg_1","type":"message",{fields}}}}}"#
        )
    };
    let text = r#""content":[{"type":"output_text","text":"a","annotations":[],"logprobs":[]}]"#;
    assert!(strict(&[CREATED, &item(text), COMPLETED]).is_ok());
    for more in [
        format!(r#"{text},"phase":"commentary""#),
        r#""content":[{"type":"output_text","text":"a","annotations":[{"type":"url_citation"}]}]"#.into(),
        r#""content":[{"type":"output_text","text":"a","logprobs":[{"token":"a"}]}]"#.into(),
        r#""content":[{"type":"output_audio","data":"a"}]"#.into(),
    ] {
        let item = item(&more);
        assert!(lenient(&[CREATED, &item, COMPLETED]).is_ok(), "{more}");
        let fault = strict(&[CREATED, &item, COMPLETED]).unwrap_err();
        assert_eq!(fault.kind, FaultKind::MalformedResponse, "{more}");
    }
    // Pieces that are not the whole.
    let piece =
        r#"{"type":"response.output_text.delta","output_index":0,"item_id":"msg_1","content_index":0,"delta":"other"}"#;
    assert!(lenient(&[CREATED, piece, &item(text), COMPLETED]).is_ok());
    assert!(strict(&[CREATED, piece, &item(text), COMPLETED]).is_err());
}

#[test]
fn the_end_says_what_cut_the_answer() {
    let end = |response: &str| format!(r#"{{"type":"response.incomplete","response":{response}}}"#);
    for (response, finish) in [
        (r#"{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}"#, "finish Length"),
        (r#"{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}"#, "finish Refusal"),
        (r#"{"status":"incomplete","incomplete_details":null}"#, "finish Length"),
        ("{}", "finish Length"),
    ] {
        let events = short(&lenient(&[CREATED, &end(response)]).unwrap());
        assert_eq!(events[1], finish, "{response}");
    }
    // The object is believed where the event's name says that all is well.
    let events = lenient(&[CREATED, r#"{"type":"response.completed","response":{"status":"incomplete"}}"#]).unwrap();
    assert_eq!(short(&events)[1], "finish Length");
    for (reason, finish) in [
        (r#"{"reason":"content_filter"}"#, "finish Refusal"),
        (r#"{"reason":"max_output_tokens"}"#, "finish Length"),
        ("null", "finish Stop"),
    ] {
        let end = format!(
            r#"{{"type":"response.completed","response":{{"status":"completed","incomplete_details":{reason}}}}}"#
        );
        assert_eq!(short(&lenient(&[CREATED, &end]).unwrap())[1], finish, "{reason}");
    }
    // But not where it only forgot to change.
    let events = lenient(&[CREATED, r#"{"type":"response.completed","response":{"status":"in_progress"}}"#]).unwrap();
    assert_eq!(short(&events)[1], "finish Stop");
    let events = lenient(&[CREATED, r#"{"type":"response.done","response":{"status":"completed"}}"#]).unwrap();
    assert_eq!(short(&events)[1], "finish Stop");
}

#[test]
fn a_call_that_stops_in_the_middle_is_no_call_that_is_complete() {
    let events = lenient(&[
        CREATED,
        r#"{"type":"response.output_item.added","item":{"id":"fc_1","type":"function_call","call_id":"c","name":"f","arguments":""}}"#,
        r#"{"type":"response.function_call_arguments.delta","item_id":"fc_1","delta":"{\"path\":\"/et"}"#,
        r#"{"type":"response.completed","response":{"status":"completed"}}"#,
    ]);
    assert_eq!(
        short(&events.unwrap()),
        ["start resp_1 up", "+0 call c f", "0 {\"path\":\"/et", "-0", "finish Length", "end"]
    );
}

#[test]
fn an_answer_that_failed_is_a_fault_of_the_kind_that_it_says() {
    for (event, kind) in [
        (
            r#"{"type":"error","code":"rate_limit_exceeded","message":"slow down","param":null,"sequence_number":3}"#,
            FaultKind::RateLimited,
        ),
        (
            r#"{"type":"error","error":{"type":"insufficient_quota","code":"insufficient_quota","message":"m"}}"#,
            FaultKind::QuotaExhausted,
        ),
        (
            r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"m"}}}"#,
            FaultKind::RateLimited,
        ),
        (
            r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"m"}}}"#,
            FaultKind::UpstreamInternal,
        ),
        (r#"{"type":"response.failed","response":{"status":"failed","error":null}}"#, FaultKind::UpstreamInternal),
        (r#"{"type":"response.failed"}"#, FaultKind::UpstreamInternal),
        (r#"{"type":"response.cancelled","response":{"status":"cancelled"}}"#, FaultKind::UpstreamInternal),
        (
            r#"{"type":"response.completed","response":{"status":"failed","error":{"code":"server_error","message":"m"}}}"#,
            FaultKind::UpstreamInternal,
        ),
    ] {
        assert_eq!(lenient(&[CREATED, event]).unwrap_err().kind, kind, "{event}");
    }
}

#[test]
fn an_end_that_did_not_come_is_not_made_up() {
    assert_eq!(lenient(&FULL[..FULL.len() - 1]).unwrap_err().kind, FaultKind::StreamTruncated);
    // Another dialect's end is none here.
    let mut decoder = StreamDecoder::new(&options());
    let bytes = stream(&[CREATED]) + "data: [DONE]\n\n";
    assert_eq!(decode(&mut decoder, &[bytes.as_bytes()]).unwrap_err().kind, FaultKind::StreamTruncated);
}

#[test]
fn what_is_no_protocol_is_malformed() {
    for data in ["{", "[]", "\"x\"", r#"{"type":"response.done","response":{"status":"queued"}}"#] {
        let bytes = format!("event: response.completed\ndata: {data}\n\n");
        let fault = decode(&mut StreamDecoder::new(&options()), &[bytes.as_bytes()]).unwrap_err();
        assert_eq!(fault.kind, FaultKind::MalformedResponse, "{data}");
    }
    let nameless = r#"{"type":"response.function_call_arguments.delta","item_id":"fc_1","delta":"{}"}"#;
    assert_eq!(lenient(&[CREATED, nameless, COMPLETED]).unwrap_err().kind, FaultKind::MalformedResponse);
}

#[test]
fn what_has_to_be_held_is_bounded() {
    let piece =
        format!(r#"{{"type":"response.custom_tool_call_input.delta","item_id":"c","delta":"{}"}}"#, "x".repeat(600));
    let small = ReplyOptions { max_event: 1000, ..options() };
    let events = decode(&mut StreamDecoder::new(&small), &[stream(&[CREATED, &piece, &piece]).as_bytes()]);
    assert_eq!(events.unwrap_err().kind, FaultKind::MalformedResponse);
    let item =
        |id: usize| format!(r#"{{"type":"response.output_item.added","item":{{"id":"m{id}","type":"message"}}}}"#);
    let many: Vec<String> = (0..5000).map(item).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert!(lenient(&many).unwrap_err().evidence.detail.contains("output items"));
    let part = |id: usize| {
        format!(r#"{{"type":"response.output_text.delta","item_id":"m","content_index":{id},"delta":"a"}}"#)
    };
    let many: Vec<String> = (0..5000).map(part).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert!(lenient(&many).unwrap_err().evidence.detail.contains("parts of output items"));
}

#[test]
fn a_whole_answer_is_the_same_events() {
    let output = r#"[{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"s"},
        {"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"a","annotations":[]}]},
        {"id":"ctc_1","type":"custom_tool_call","call_id":"c","name":"patch","input":"x\"y"}]"#;
    let body = format!(
        r#"{{"id":"resp_1","object":"response","created_at":5.5,"model":"up","status":"completed","error":null,"output":{output},"usage":{{"input_tokens":3,"output_tokens":2}}}}"#
    );
    let expected = [
        "start resp_1 up",
        "+0 thinking",
        "0 hm",
        "0 signed turnkeep.responses.s",
        "-0",
        "+1 text",
        "1 a",
        "-1",
        "+2 call c patch",
        "2 {\"input\":\"x\\\"y\"}",
        "-2",
        "usage 3/0+2",
        "finish ToolCalls",
        "end",
    ];
    let events = reply_decode::plain(body.as_bytes(), &options()).unwrap();
    assert_eq!(short(&events), expected);
    lawful(&events);
    let (events, created) = reply_decode::plain_strict(body.as_bytes(), &options()).unwrap();
    assert_eq!((short(&events), created), (expected.map(String::from).to_vec(), Some(5)));
}

#[test]
fn a_whole_answer_that_is_none_is_a_fault_with_a_clear_word() {
    for (body, kind, word) in [
        (
            r#"{"error":{"type":"rate_limit_error","code":"rate_limit_exceeded","message":"m"}}"#,
            FaultKind::RateLimited,
            "m",
        ),
        (
            r#"{"output":[],"status":"failed","error":{"code":"server_error","message":"m"}}"#,
            FaultKind::UpstreamInternal,
            "m",
        ),
        (r#"{"output":[],"status":"queued"}"#, FaultKind::MalformedResponse, "`queued`"),
        (r#"{"output":[],"status":"in_progress"}"#, FaultKind::MalformedResponse, "`in_progress`"),
        (r#"{"output":[]}"#, FaultKind::MalformedResponse, "`status`"),
        ("{}", FaultKind::MalformedResponse, "`output`"),
        ("[]", FaultKind::MalformedResponse, "expected an object"),
    ] {
        let fault = reply_decode::plain(body.as_bytes(), &options()).unwrap_err();
        assert_eq!(fault.kind, kind, "{body}");
        assert!(fault.evidence.detail.contains(word), "{body}: {fault:?}");
    }
}

proptest! {
    /// Whatever a server leaves out, repeats or mixes up: what is read of it is a lawful answer or a fault.
    #[test]
    fn events_in_any_order_are_read_as_a_lawful_answer_or_not_at_all(
        picks in prop::collection::vec((0..FULL.len() - 1, any::<bool>(), any::<bool>()), 0..40),
    ) {
        let mut datas: Vec<String> = Vec::new();
        for (at, index, id) in picks {
            let mut data = FULL[at].to_owned();
            if index {
                data = drop_field(&data, "\"output_index\":");
            }
            if id {
                data = data.replace("\"item_id\"", "\"no_item_id\"").replace("\"id\":", "\"no_id\":");
            }
            datas.push(data);
        }
        datas.push(COMPLETED.to_owned());
        let datas: Vec<&str> = datas.iter().map(String::as_str).collect();
        match lenient(&datas) {
            Ok(events) => {
                lawful(&events);
                let mut encoder = StreamEncoder::new(&ReplyOptions { client: Dialect::Responses, ..options() });
                let mut out = Vec::new();
                for event in &events {
                    encoder.event(event, &mut out);
                }
                let (mut reader, mut order) = (sse::Reader::new(1 << 20), Order::default());
                reader.push(Bytes::from(out));
                while let Some(frame) = reader.next_frame().unwrap() {
                    order.frame(&frame).unwrap();
                }
                order.finish().unwrap();
            }
            Err(fault) => prop_assert_eq!(fault.kind, FaultKind::MalformedResponse),
        }
    }
}

#[test]
fn an_event_without_the_protocols_prefix_ends_nothing_whether_passed_on_or_translated() {
    let created = r#"data: {"type":"response.created","response":{"id":"r","object":"response"}}"#;
    let stream = format!("{created}\n\ndata: {{\"type\":\"completed\",\"response\":{{\"status\":\"completed\"}}}}\n\n");
    for client in Dialect::ALL {
        let options = ReplyOptions { client, upstream: Dialect::Responses, ..options() };
        let mut codec = turnkeep_dialect::reply::StreamCodec::new(&options);
        let mut pieces = Vec::new();
        codec.feed(stream.clone().into(), &mut pieces).unwrap();
        assert_eq!(codec.finish(&mut pieces).unwrap_err().kind, FaultKind::StreamTruncated, "to {client}");
    }
}
