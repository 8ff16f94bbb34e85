//! Canonical events as a Messages answer; the order validator watches every stream.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};
use turnkeep_base::{Dialect, Usage};
use turnkeep_dialect::event::{Block, Class, Delta, Event, Finish};
use turnkeep_dialect::messages::order::Order;
use turnkeep_dialect::messages::{reply_decode, reply_encode};
use turnkeep_dialect::reply::ReplyOptions;
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

/// The data of each event of a checked stream.
fn stream(events: &[Event]) -> Vec<Value> {
    let mut encoder = reply_encode::StreamEncoder::new(&options());
    let mut out = Vec::new();
    for event in events {
        encoder.event(event, &mut out);
    }
    checked(&out).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&out)))
}

fn checked(bytes: &[u8]) -> Result<Vec<Value>, String> {
    let (mut reader, mut order, mut datas) = (sse::Reader::new(1 << 20), Order::default(), Vec::new());
    reader.push(Bytes::copy_from_slice(bytes));
    while let Some(frame) = reader.next_frame().unwrap() {
        order.frame(&frame)?;
        datas.push(serde_json::from_slice(frame.data.as_ref().unwrap()).unwrap());
    }
    order.finish().map(|()| datas)
}

fn start() -> Event {
    Event::Start { id: Some("chatcmpl-9".into()), model: Some("up".into()), usage: None }
}

fn open(block: u32, kind: Block) -> Event {
    Event::BlockStart { block, kind }
}

fn call(block: u32, id: &str) -> Event {
    open(block, Block::ToolCall { id: id.into(), name: "f".into() })
}

fn text(block: u32, text: &str) -> Event {
    Event::Delta { block, delta: Delta::Text(text.into()) }
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

/// The types of the events with their block indexes.
fn outline(datas: &[Value]) -> Vec<String> {
    let name = |data: &Value| match data["index"].as_u64() {
        Some(index) => format!("{} {index}", data["type"].as_str().unwrap().trim_start_matches("content_block_")),
        None => data["type"].as_str().unwrap().to_owned(),
    };
    datas.iter().map(name).collect()
}

#[test]
fn a_text_answer_is_written_as_the_protocol_has_it() {
    let usage = Usage { input: 7, cache_read: 3, cache_write: 0, output: 2, reasoning: 1 };
    let events = [
        start(),
        open(0, Block::Text),
        text(0, "Hi\n"),
        stop(0),
        finish(Finish::Stop),
        Event::Usage(usage),
        Event::End,
    ];
    let datas = stream(&events);
    assert_eq!(
        datas,
        [
            json!({"type":"message_start","message":{"id":"msg_9","type":"message","role":"assistant","model":"up","content":[],
                "stop_reason":null,"stop_sequence":null,
                "usage":{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}}),
            json!({"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}),
            json!({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi\n"}}),
            json!({"type":"content_block_stop","index":0}),
            json!({"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},
                "usage":{"input_tokens":7,"cache_creation_input_tokens":0,"cache_read_input_tokens":3,"output_tokens":2,
                "output_tokens_details":{"thinking_tokens":1}}}),
            json!({"type":"message_stop"}),
        ]
    );
}

#[test]
fn interleaved_calls_are_written_one_after_the_other() {
    let events = [
        start(),
        open(0, Block::Text),
        text(0, "a"),
        call(1, "x"),
        arguments(1, "{\"p\""),
        call(2, "y"),
        arguments(2, "{\"q\":"),
        arguments(1, ":1}"),
        text(0, "b"),
        arguments(2, "2}"),
        stop(2),
        stop(0),
        arguments(1, " "),
        stop(1),
        finish(Finish::Stop),
        Event::End,
    ];
    let datas = stream(&events);
    assert_eq!(
        outline(&datas),
        [
            "message_start",
            "start 0",
            "delta 0",
            "delta 0",
            "stop 0",
            "start 1",
            "delta 1",
            "delta 1",
            "stop 1",
            "start 2",
            "delta 2",
            "stop 2",
            "message_delta",
            "message_stop"
        ]
    );
    assert_eq!(datas[6]["delta"]["partial_json"], "{\"p\":1}");
    assert_eq!(datas[10]["delta"]["partial_json"], "{\"q\":2}");
    assert_eq!(datas[12]["delta"]["stop_reason"], "tool_use");
}

#[test]
fn a_block_that_waited_goes_on_live_once_it_is_open() {
    let mut encoder = reply_encode::StreamEncoder::new(&options());
    let mut out = Vec::new();
    let mut grown = |event: &Event| {
        out.clear();
        let class = encoder.event(event, &mut out);
        (class, !out.is_empty())
    };
    assert_eq!(grown(&start()), (Class::Preamble, true));
    assert_eq!(grown(&call(0, "x")), (Class::Preamble, true));
    assert_eq!(grown(&call(1, "y")), (Class::Preamble, false));
    assert_eq!(grown(&arguments(1, "{")), (Class::Answer, false));
    assert_eq!(grown(&stop(0)), (Class::Answer, true));
    assert_eq!(grown(&arguments(1, "}")), (Class::Answer, true));
    assert_eq!(grown(&stop(1)), (Class::Answer, true));
    assert_eq!(grown(&finish(Finish::Stop)), (Class::Terminal, false));
    assert_eq!(grown(&Event::Usage(Usage::default())), (Class::Preamble, false));
    assert_eq!(grown(&Event::End), (Class::Terminal, true));
}

#[test]
fn thinking_is_signed_once_before_it_stops() {
    let thinking = |delta| Event::Delta { block: 0, delta };
    let events = [
        start(),
        open(0, Block::Thinking),
        thinking(Delta::Thinking("hm".into())),
        thinking(Delta::Signature("ab".into())),
        thinking(Delta::Signature("cd".into())),
        stop(0),
        open(1, Block::Thinking),
        stop(1),
        open(2, Block::RedactedThinking("blob".into())),
        stop(2),
        finish(Finish::Length),
        Event::End,
    ];
    let datas = stream(&events);
    assert_eq!(datas[3]["delta"], json!({"type":"signature_delta","signature":"abcd"}));
    let made = datas[6]["delta"]["signature"].as_str().unwrap();
    assert!(made.starts_with("turnkeep."), "{made}");
    assert_eq!(datas[8]["content_block"], json!({"type":"redacted_thinking","data":"blob"}));
    assert_eq!(datas[10]["delta"]["stop_reason"], "max_tokens");
}

#[test]
fn a_call_without_arguments_has_no_delta_and_an_id_that_clients_take() {
    let events = [call(0, "functions.f:0"), arguments(0, ""), arguments(0, " \n"), stop(0), Event::End];
    let datas = stream(&events);
    assert_eq!(outline(&datas), ["message_start", "start 0", "stop 0", "message_delta", "message_stop"]);
    assert_eq!(datas[0]["message"]["id"], "msg_0001");
    assert_eq!(datas[0]["message"]["model"], "asked");
    assert_eq!(datas[1]["content_block"]["input"], json!({}));
    assert_eq!(datas[3]["delta"]["stop_reason"], "tool_use");
}

#[test]
fn every_reason_is_written_and_tool_use_follows_from_the_calls() {
    for (reason, word) in [
        (Finish::Stop, "end_turn"),
        (Finish::StopSequence, "stop_sequence"),
        (Finish::Length, "max_tokens"),
        (Finish::ContextFull, "model_context_window_exceeded"),
        (Finish::ToolCalls, "end_turn"),
        (Finish::Refusal, "refusal"),
        (Finish::Pause, "pause_turn"),
    ] {
        assert_eq!(stream(&[start(), finish(reason), Event::End])[1]["delta"]["stop_reason"], word);
    }
    let refusal = [start(), open(0, Block::Refusal), text(0, "no"), stop(0), finish(Finish::Stop), Event::End];
    let datas = stream(&refusal);
    assert_eq!(datas[1]["content_block"]["type"], "text");
    assert_eq!(datas[4]["delta"]["stop_reason"], "refusal");
    let sequence = Event::Finish { reason: Finish::StopSequence, stop_sequence: Some("END".into()) };
    assert_eq!(stream(&[start(), sequence, Event::End])[1]["delta"]["stop_sequence"], "END");
}

#[test]
fn blocks_that_the_upstream_never_stopped_are_stopped_at_the_end() {
    let events = [start(), call(0, "x"), call(1, "y"), arguments(1, "{}"), finish(Finish::ToolCalls), Event::End];
    assert_eq!(
        outline(&stream(&events)),
        ["message_start", "start 0", "stop 0", "start 1", "delta 1", "stop 1", "message_delta", "message_stop"]
    );
}

#[test]
fn a_plain_answer_is_the_same_events_folded() {
    let events = [
        start(),
        open(0, Block::Thinking),
        Event::Delta { block: 0, delta: Delta::Thinking("hm".into()) },
        stop(0),
        open(1, Block::Text),
        text(1, "a"),
        call(2, "x"),
        arguments(2, "{\"p\":"),
        text(1, "b"),
        arguments(2, "1.0}"),
        call(3, "y"),
        call(4, "z"),
        arguments(4, "{oops"),
        finish(Finish::Stop),
        Event::Usage(Usage { input: 1, output: 2, ..Usage::default() }),
        Event::End,
    ];
    let body: Value = serde_json::from_slice(&reply_encode::plain(&events, &options())).unwrap();
    assert_eq!(
        body,
        json!({"id":"msg_9","type":"message","role":"assistant","model":"up","content":[
            {"type":"thinking","thinking":"hm","signature":"turnkeep.unsigned"},{"type":"text","text":"ab"},
            {"type":"tool_use","id":"x","name":"f","input":{"p":1.0}},{"type":"tool_use","id":"y","name":"f","input":{}},
            {"type":"tool_use","id":"z","name":"f","input":{"_raw":"{oops"}}],
            "stop_reason":"tool_use","stop_sequence":null,
            "usage":{"input_tokens":1,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":2}})
    );
}

#[test]
fn the_order_validator_refuses_what_clients_cannot_read() {
    let good = |datas: &[Value]| {
        let mut out = Vec::new();
        for data in datas {
            sse::write(&mut out, data["type"].as_str(), data.to_string().as_bytes());
        }
        checked(&out)
    };
    let datas = stream(&[
        start(),
        open(0, Block::Thinking),
        Event::Delta { block: 0, delta: Delta::Signature("s".into()) },
        stop(0),
        call(1, "x"),
        stop(1),
        finish(Finish::Stop),
        Event::End,
    ]);
    assert!(good(&datas).is_ok());
    // Without any one of its events the stream is illegal.
    for at in 0..datas.len() {
        let mut broken = datas.clone();
        broken.remove(at);
        assert!(good(&broken).is_err(), "without {}", datas[at]);
        let mut doubled = datas.clone();
        doubled.insert(at, datas[at].clone());
        assert!(good(&doubled).is_err(), "twice {}", datas[at]);
    }
    let mut wrong = datas.clone();
    wrong[6]["delta"]["stop_reason"] = json!("end_turn");
    assert!(good(&wrong).is_err());
    // An error may end it anywhere but after its end.
    let error = json!({"type":"error","error":{"type":"api_error","message":"m"}});
    for at in 0..datas.len() {
        let mut cut = datas[..at].to_vec();
        cut.push(error.clone());
        assert!(good(&cut).is_ok());
    }
    assert!(good(&[&datas[..], &[error]].concat()).is_err());
    assert!(checked(b"data: {\"type\":\"ping\"}\n\n").is_err());
}

#[derive(Clone, Debug)]
enum Step {
    Open(u8),
    Grow(prop::sample::Index, String),
    Stop(prop::sample::Index),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0u8..5).prop_map(Step::Open),
        (any::<prop::sample::Index>(), "[ -~é\n]{0,6}").prop_map(|(at, text)| Step::Grow(at, text)),
        any::<prop::sample::Index>().prop_map(Step::Stop),
    ]
}

/// Legal canonical events from steps: any number of blocks open at once.
fn events_of(steps: &[Step]) -> Vec<Event> {
    let (mut events, mut opened) = (vec![start()], Vec::<(u32, u8)>::new());
    let mut next = 0;
    for step in steps {
        match step {
            Step::Open(kind) => {
                let block = match kind {
                    0 => Block::Text,
                    1 => Block::Thinking,
                    2 => Block::RedactedThinking("r".into()),
                    3 => Block::Refusal,
                    _ => Block::ToolCall { id: format!("id{next}"), name: "f".into() },
                };
                events.push(open(next, block));
                opened.push((next, *kind));
                next += 1;
            }
            Step::Grow(at, said) if !opened.is_empty() => {
                let (block, kind) = opened[at.index(opened.len())];
                let delta = match kind {
                    0 | 3 => Delta::Text(said.clone()),
                    1 => Delta::Thinking(said.clone()),
                    2 => continue,
                    _ => Delta::Arguments(said.clone()),
                };
                events.push(Event::Delta { block, delta });
            }
            Step::Stop(at) if !opened.is_empty() => {
                let at = at.index(opened.len());
                events.push(stop(opened.remove(at).0));
            }
            Step::Grow(..) | Step::Stop(_) => {}
        }
    }
    events.extend(opened.iter().map(|(block, _)| stop(*block)));
    events.extend([finish(Finish::Stop), Event::End]);
    events
}

proptest! {
    #[test]
    fn whatever_the_events_the_stream_is_legal_and_loses_nothing(steps in prop::collection::vec(any_step(), 0..40)) {
        let events = events_of(&steps);
        let mut encoder = reply_encode::StreamEncoder::new(&options());
        let (mut out, mut reader) = (Vec::new(), sse::Reader::new(1 << 20));
        for event in &events {
            encoder.event(event, &mut out);
        }
        prop_assert!(checked(&out).is_ok(), "{:?}", checked(&out));
        let mut decoder = reply_decode::StreamDecoder::new(&options());
        let mut back = Vec::new();
        reader.push(out.into());
        while let Some(frame) = reader.next_frame().unwrap() {
            decoder.frame(&frame, &mut back).unwrap();
        }
        prop_assert_eq!(said(&events), said(&back));
    }
}

/// What each block says, by its number. White space before arguments says nothing.
fn said(events: &[Event]) -> Vec<(String, String)> {
    let mut blocks: Vec<(String, String)> = Vec::new();
    for event in events {
        match event {
            Event::BlockStart { kind: Block::Refusal, .. } => {
                blocks.push((format!("{:?}", Block::Text), String::new()))
            }
            Event::BlockStart { kind, .. } => blocks.push((format!("{kind:?}"), String::new())),
            Event::Delta { block, delta: Delta::Text(text) | Delta::Thinking(text) | Delta::Arguments(text) } => {
                blocks[*block as usize].1.push_str(text);
            }
            Event::Delta { delta: Delta::Signature(_), .. }
            | Event::Start { .. }
            | Event::BlockStop { .. }
            | Event::Finish { .. }
            | Event::Usage(_)
            | Event::End => {}
        }
    }
    for (kind, text) in &mut blocks {
        if kind.starts_with("ToolCall") {
            *text = text.trim_start().to_owned();
        }
    }
    blocks
}
