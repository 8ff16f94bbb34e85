//! Canonical events as a Gemini answer, streamed in both forms and plain.

#![allow(clippy::unwrap_used, reason = "a helper of a test may fail the test")]
// A fault is made at most once per answer, and ends it.
#![allow(clippy::result_large_err)]

mod gemini_said;

use gemini_said::{decode, decode_by, frames, in_form, lawful, options, run, short, text};
use proptest::prelude::*;
use serde_json::{Value, json};
use turnkeep_base::{Dialect, FaultKind, Usage};
use turnkeep_dialect::event::{Block, Class, Delta, Event, Finish};
use turnkeep_dialect::gemini::order::{self, Order};
use turnkeep_dialect::gemini::reply_decode::{self, StreamDecoder};
use turnkeep_dialect::gemini::reply_encode::{self, StreamEncoder};
use turnkeep_dialect::reply::ReplyOptions;
use turnkeep_dialect::request::StreamForm;

/// Writes a stream and holds it against the legal order.
#[track_caller]
fn encode(events: &[Event], form: StreamForm) -> Vec<u8> {
    let mut encoder = StreamEncoder::new(&in_form(form));
    let mut out = Vec::new();
    for event in events {
        assert_eq!(encoder.event(event, &mut out), event.class());
    }
    match form {
        StreamForm::Array => assert_eq!(order::array(&out), Ok(()), "{}", String::from_utf8_lossy(&out)),
        StreamForm::Events => {
            let mut order = Order::default();
            for frame in frames(&[&out]) {
                assert_eq!(order.frame(&frame), Ok(()), "{}", String::from_utf8_lossy(&frame.raw));
            }
            assert_eq!(order.finish(), Ok(()));
        }
    }
    out
}

/// The chunks of a stream, which are the same in both forms; without the head that every chunk has.
#[track_caller]
fn chunks(events: &[Event]) -> Vec<Value> {
    let datas = frames(&[&encode(events, StreamForm::Events)]).into_iter().filter_map(|frame| frame.data);
    let mut chunks: Vec<Value> = datas.map(|data| serde_json::from_slice(&data).unwrap()).collect();
    let mut array: Vec<Value> = serde_json::from_slice(&encode(events, StreamForm::Array)).unwrap();
    // A sign of life is an element of its own there.
    array.retain(|chunk| chunk.get("candidates").is_some());
    assert_eq!(chunks, array);
    for chunk in &mut chunks {
        let chunk = chunk.as_object_mut().unwrap();
        assert_eq!(chunk.remove("responseId"), Some(json!("r1")));
        assert_eq!(chunk.remove("modelVersion"), Some(json!("up")));
    }
    chunks
}

/// The parts of every chunk.
fn parts(events: &[Event]) -> Vec<Value> {
    chunks(events).iter().map(|chunk| chunk["candidates"][0]["content"]["parts"].clone()).collect()
}

fn start() -> Event {
    Event::Start { id: Some("r1".into()), model: Some("up".into()), usage: None }
}

fn block(block: u32, kind: Block, deltas: &[Delta]) -> Vec<Event> {
    let deltas = deltas.iter().map(|delta| Event::Delta { block, delta: delta.clone() });
    let first = Event::BlockStart { block, kind };
    [first].into_iter().chain(deltas).chain([Event::BlockStop { block }]).collect()
}

fn call(id: &str) -> Block {
    Block::ToolCall { id: id.into(), name: "f".into() }
}

fn end(reason: Finish) -> Vec<Event> {
    vec![Event::Finish { reason, stop_sequence: None }, Event::End]
}

fn answer(blocks: &[Vec<Event>], reason: Finish) -> Vec<Event> {
    [vec![start()], blocks.concat(), end(reason)].concat()
}

#[test]
fn a_text_goes_out_as_it_comes_and_the_last_chunk_has_the_reason_the_usage_and_a_part() {
    let usage = Usage { input: 5, cache_read: 3, cache_write: 2, output: 9, reasoning: 4 };
    let mut events = answer(
        &[
            block(0, Block::Thinking, &[Delta::Thinking("hm".into())]),
            block(1, Block::Text, &[Delta::Text("a".into()), Delta::Text(String::new()), Delta::Text("b\n".into())]),
        ],
        Finish::Stop,
    );
    events.insert(events.len() - 1, Event::Usage(usage));
    let chunk = |parts: Value| json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}]});
    assert_eq!(
        chunks(&events),
        [
            chunk(json!([{"text": "hm", "thought": true}])),
            chunk(json!([{"text": "a"}])),
            chunk(json!([{"text": "b\n"}])),
            json!({
                "candidates": [{"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": "STOP", "index": 0}],
                "usageMetadata": {"promptTokenCount": 10, "cachedContentTokenCount": 3, "candidatesTokenCount": 5,
                    "thoughtsTokenCount": 4, "totalTokenCount": 19},
            }),
        ]
    );
    let whole: Value = serde_json::from_slice(&reply_encode::plain(&events, &options())).unwrap();
    assert_eq!(whole["candidates"][0]["content"]["parts"], json!([{"text": "hm", "thought": true}, {"text": "ab\n"}]));
    assert_eq!(whole["usageMetadata"]["totalTokenCount"], 19);
    assert_eq!((&whole["responseId"], &whole["modelVersion"]), (&json!("r1"), &json!("up")));
}

#[test]
fn the_bytes_of_both_forms_are_framed_as_clients_split_them() {
    let events = answer(&[block(0, Block::Text, &[Delta::Text("a".into())])], Finish::Length);
    let text = |form| String::from_utf8(encode(&events, form)).unwrap();
    let first = r#"{"candidates":[{"content":{"parts":[{"text":"a"}],"role":"model"},"index":0}],"modelVersion":"up","responseId":"r1"}"#;
    let last = r#"{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"MAX_TOKENS","index":0}],"modelVersion":"up","responseId":"r1"}"#;
    assert_eq!(text(StreamForm::Events), format!("data: {first}\n\ndata: {last}\n\n"));
    assert_eq!(text(StreamForm::Array), format!("[{first},\r\n{last}]"));
}

#[test]
fn calls_whose_pieces_come_interleaved_go_out_whole_one_by_one() {
    let piece = |block, text: &str| Event::Delta { block, delta: Delta::Arguments(text.into()) };
    let open = |block, id: &str| Event::BlockStart { block, kind: call(id) };
    let blocks = vec![
        open(0, "a"),
        open(1, "b"),
        piece(0, "{\"x\""),
        piece(1, "{\"y\":"),
        piece(0, ":1}"),
        piece(1, "[]}"),
        Event::BlockStop { block: 1 },
        Event::BlockStop { block: 0 },
    ];
    let events = answer(&[blocks], Finish::ToolCalls);
    assert_eq!(
        parts(&events),
        [
            json!([{"functionCall": {"id": "b", "name": "f", "args": {"y": []}}}]),
            json!([{"functionCall": {"id": "a", "name": "f", "args": {"x": 1}}}]),
            json!([{"text": ""}]),
        ]
    );
    assert_eq!(chunks(&events)[2]["candidates"][0]["finishReason"], "STOP");
}

#[test]
fn a_long_call_gives_a_sign_of_life_that_no_client_reads_as_anything() {
    for (form, sign) in [(StreamForm::Events, "\n"), (StreamForm::Array, r#"[{"modelVersion":"up","responseId":"r1"}"#)]
    {
        let mut encoder = StreamEncoder::new(&in_form(form));
        let mut written = |event: &Event| {
            let mut out = Vec::new();
            let class = encoder.event(event, &mut out);
            (String::from_utf8(out).unwrap(), class)
        };
        written(&start());
        assert_eq!(written(&Event::BlockStart { block: 0, kind: call("a") }), (String::new(), Class::Preamble));
        let piece = Event::Delta { block: 0, delta: Delta::Arguments("{\"a\"".into()) };
        assert_eq!(written(&piece), (sign.to_owned(), Class::Answer));
        assert_eq!(written(&piece), (String::new(), Class::Answer));
    }
}

#[test]
fn a_proof_right_before_a_call_stands_on_the_call_and_any_other_on_a_thought() {
    let thinking = |number, text: &str, proof: &str| {
        let text = (!text.is_empty()).then(|| Delta::Thinking(text.into()));
        let deltas: Vec<Delta> = text.into_iter().chain([Delta::Signature(proof.into())]).collect();
        block(number, Block::Thinking, &deltas)
    };
    let events = answer(
        &[
            thinking(0, "hm", "turnkeep.gemini.b25l"),
            block(1, Block::Text, &[Delta::Text("so".into())]),
            thinking(2, "", "turnkeep.gemini.dHdv"),
            block(3, call("a"), &[]),
            block(4, call("b"), &[]),
            thinking(5, "", "turnkeep.gemini.dHJl"),
            thinking(6, "", "turnkeep.gemini.Zm91cg=="),
            block(7, call("c"), &[]),
            thinking(8, "", "turnkeep.unsigned"),
            thinking(9, "", "turnkeep.gemini.bGFzdA=="),
        ],
        Finish::ToolCalls,
    );
    let called = |id: &str| json!({"functionCall": {"id": id, "name": "f", "args": {}}});
    let signed = |mut part: Value, proof: &str| {
        part["thoughtSignature"] = json!(proof);
        part
    };
    let thought = |text: &str| json!({"text": text, "thought": true});
    assert_eq!(
        parts(&events),
        [
            json!([thought("hm")]),
            json!([signed(thought(""), "b25l"), {"text": "so"}]),
            json!([signed(called("a"), "dHdv")]),
            json!([called("b")]),
            json!([signed(thought(""), "dHJl")]),
            json!([signed(called("c"), "Zm91cg==")]),
            json!([signed(thought(""), "bGFzdA==")]),
        ]
    );
    let whole: Value = serde_json::from_slice(&reply_encode::plain(&events, &options())).unwrap();
    assert_eq!(
        whole["candidates"][0]["content"]["parts"],
        json!([
            signed(thought("hm"), "b25l"),
            {"text": "so"},
            signed(called("a"), "dHdv"),
            called("b"),
            signed(thought(""), "dHJl"),
            signed(called("c"), "Zm91cg=="),
            signed(thought(""), "bGFzdA=="),
        ])
    );
}

#[test]
fn the_state_of_every_other_dialect_comes_back_over_a_gemini_client() {
    for (kind, proof) in [
        (Block::Thinking, Some("turnkeep.responses.gAAA~")),
        (Block::Thinking, Some("ErUB+/x==")),
        (Block::Thinking, Some("turnkeep.chat.djE")),
        (Block::RedactedThinking("EmQK".into()), None),
        (Block::RedactedThinking("turnkeep.responses.gA".into()), None),
    ] {
        for blocks in [1, 2] {
            let proof: Vec<Delta> = proof.iter().map(|proof| Delta::Signature((*proof).into())).collect();
            let both = [block(0, kind.clone(), &proof), block(1, call("a"), &[])];
            let events = answer(&both[..blocks], Finish::Stop);
            // Missing arguments are written as none.
            let read = short(&decode(&[&encode(&events, StreamForm::Events)]).unwrap());
            let read: Vec<String> = read.into_iter().filter(|line| line != "1 {}").collect();
            let reason = if blocks == 2 { Finish::ToolCalls } else { Finish::Stop };
            assert_eq!(read, short(&answer(&both[..blocks], reason)));
        }
    }
}

#[test]
fn finish_reasons_are_geminis() {
    for (reason, written) in [
        (Finish::Stop, "STOP"),
        (Finish::StopSequence, "STOP"),
        (Finish::ToolCalls, "STOP"),
        (Finish::Pause, "STOP"),
        (Finish::Length, "MAX_TOKENS"),
        (Finish::ContextFull, "MAX_TOKENS"),
        (Finish::Refusal, "SAFETY"),
    ] {
        let events = answer(&[], reason);
        assert_eq!(chunks(&events)[0]["candidates"][0]["finishReason"], written);
        let whole: Value = serde_json::from_slice(&reply_encode::plain(&events, &options())).unwrap();
        assert_eq!(whole["candidates"][0]["finishReason"], written);
    }
    let refusal = answer(&[block(0, Block::Refusal, &[Delta::Text("no".into())])], Finish::Stop);
    assert_eq!(parts(&refusal)[0], json!([{"text": "no"}]));
    assert_eq!(chunks(&refusal)[1]["candidates"][0]["finishReason"], "SAFETY");
}

#[test]
fn nothing_between_the_start_and_the_content_is_written_and_the_end_is_one_terminal_piece() {
    let chat = concat!(
        "data: {\"id\":\"chatcmpl-1\",\"model\":\"up\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
        "data: {\"id\":\"chatcmpl-1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n",
        "data: {\"id\":\"chatcmpl-1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
        "data: {\"id\":\"chatcmpl-1\",\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}\n\n",
        "data: [DONE]\n\n",
    );
    for form in [StreamForm::Events, StreamForm::Array] {
        let options = ReplyOptions { upstream: Dialect::Chat, ..in_form(form) };
        let (pieces, ended, facts) = run(&options, &[chat.as_bytes()]);
        assert_eq!((ended, facts.finish), (Ok(()), Some(Finish::Stop)));
        let classes: Vec<Class> = pieces.iter().map(|piece| piece.class).collect();
        assert_eq!(classes, [Class::Answer, Class::Terminal]);
        // Cut before its end the answer never gets one.
        let (pieces, ended, _) = run(
            &options,
            &[chat
                .split("data: {\"id\":\"chatcmpl-1\",\"choices\":[{\"index\":0,\"delta\":{},")
                .next()
                .unwrap()
                .as_bytes()],
        );
        assert_eq!(ended.unwrap_err().kind, FaultKind::StreamTruncated);
        assert!(!text(&pieces).contains("finishReason") && !text(&pieces).ends_with(']'));
    }
}

#[test]
fn a_gemini_stream_reaches_clients_of_other_dialects_whole() {
    let stream = gemini_said::stream(&[
        &gemini_said::parts(r#"{"text":"let me"}"#),
        &gemini_said::last(
            r#"{"functionCall":{"name":"f","args":{"a":1}},"thoughtSignature":"c2ln"},{"functionCall":{"name":"f","args":{"a":2}}}"#,
            "STOP",
        ),
    ]);
    let options = |client| ReplyOptions { client, ..options() };
    let (pieces, ended, facts) = run(&options(Dialect::Messages), &[stream.as_bytes()]);
    assert_eq!((ended, facts.finish), (Ok(()), Some(Finish::ToolCalls)));
    let messages = text(&pieces);
    for wanted in
        ["turnkeep.gemini.c2ln", "call_own_0", "call_own_1", r#""stop_reason":"tool_use""#, "event: message_stop"]
    {
        assert!(messages.contains(wanted), "{wanted}: {messages}");
    }
    let (pieces, ended, _) = run(&options(Dialect::Chat), &[stream.as_bytes()]);
    assert_eq!(ended, Ok(()));
    let chat = text(&pieces);
    for wanted in ["call_own_0", "call_own_1", r#""finish_reason":"tool_calls""#, "data: [DONE]"] {
        assert!(chat.contains(wanted), "{wanted}: {chat}");
    }
}

/// Blocks with their content, of which the last may follow a proof.
fn any_blocks() -> impl Strategy<Value = Vec<(Block, Vec<Delta>)>> {
    let pieces = || prop::collection::vec("[a-z\u{e9}😀\n\"\\\\]{0,6}", 0..4);
    let texts = |kind: Block, delta: fn(String) -> Delta| {
        pieces().prop_map(move |pieces| (kind.clone(), pieces.into_iter().map(delta).collect::<Vec<_>>()))
    };
    let proof = prop::sample::select(vec!["turnkeep.gemini.c2ln", "turnkeep.responses.x", "ErUB", "turnkeep.chat.djE"]);
    let thinking = (pieces(), prop::option::of(proof.clone())).prop_map(|(pieces, proof)| {
        let texts = pieces.into_iter().map(Delta::Thinking);
        (Block::Thinking, texts.chain(proof.map(|proof| Delta::Signature(proof.into()))).collect::<Vec<_>>())
    });
    let arguments =
        prop::sample::select(vec!["", "{}", "{\"a\": [1, 2.50]}", "{\n\"b\":\"\\ud83d\"}", "[]", "not json", "{\"a"]);
    let call = ("[a-z]{1,4}", arguments, 0usize..8).prop_map(|(name, arguments, cut)| {
        let (first, second) = arguments.split_at(cut.min(arguments.len()));
        let pieces = [first, second].map(|piece| Delta::Arguments(piece.to_owned())).to_vec();
        (Block::ToolCall { id: String::new(), name }, pieces)
    });
    let redacted = proof.prop_map(|proof| (Block::RedactedThinking(proof.into()), Vec::new()));
    let block =
        prop_oneof![texts(Block::Text, Delta::Text), texts(Block::Refusal, Delta::Text), thinking, call, redacted,];
    prop::collection::vec(block, 0..8)
}

/// What was said, with neighbours of one kind joined: text, thinking, proofs, and calls with arguments as values.
fn said(events: &[Event]) -> Vec<(String, String)> {
    let mut said: Vec<(String, String)> = Vec::new();
    let mut kinds: Vec<Block> = Vec::new();
    let mut add = |kind: &str, text: &str| match said.last_mut() {
        Some((last, all)) if last == kind && !kind.starts_with("call ") => all.push_str(text),
        Some(_) | None => said.push((kind.to_owned(), text.to_owned())),
    };
    let mut arguments = String::new();
    for event in events {
        match event {
            Event::BlockStart { kind, .. } => {
                if let Block::RedactedThinking(data) = kind {
                    add("redacted", &format!("{data} "));
                }
                kinds.push(kind.clone());
            }
            Event::Delta { delta, .. } => match delta {
                Delta::Text(text) if !text.is_empty() => add("text", text),
                Delta::Thinking(text) if !text.is_empty() => add("thinking", text),
                Delta::Signature(proof) => add("proof", &format!("{proof} ")),
                Delta::Arguments(text) => arguments.push_str(text),
                Delta::Text(_) | Delta::Thinking(_) => {}
            },
            Event::BlockStop { .. } => {
                if let Some(Block::ToolCall { id, name }) = kinds.last() {
                    let one_line = arguments.replace('\n', " ");
                    let value = match one_line.as_str() {
                        "" => "{}".to_owned(),
                        "[]" | "not json" | "{\"a" => json!({"input": one_line}).to_string(),
                        object => object.to_owned(),
                    };
                    add(&format!("call {id} {name}"), &value);
                    arguments.clear();
                }
            }
            Event::Start { .. } | Event::Finish { .. } | Event::Usage(_) | Event::End => {}
        }
    }
    said
}

proptest! {
    #[test]
    fn whatever_is_written_is_lawful_and_reads_back_as_what_was_said(blocks in any_blocks(), usage in any::<Option<(u16, u16, u16)>>()) {
        let numbered: Vec<Vec<Event>> = (0u32..).zip(blocks).map(|(number, (kind, deltas))| {
            let kind = match kind {
                Block::ToolCall { name, .. } => Block::ToolCall { id: format!("id{number}"), name },
                kind @ (Block::Text | Block::Thinking | Block::RedactedThinking(_) | Block::Refusal) => kind,
            };
            block(number, kind, &deltas)
        }).collect();
        let mut events = answer(&numbered, Finish::Length);
        let usage = usage.map(|(prompt, output, reasoning)| {
            let output = u64::from(output).saturating_add(u64::from(reasoning));
            Usage::from_inclusive(prompt.into(), u64::from(prompt) / 2, 0, output, reasoning.into())
        });
        if let Some(usage) = usage {
            events.insert(events.len() - 1, Event::Usage(usage));
        }
        let stream = encode(&events, StreamForm::Events);
        let array = encode(&events, StreamForm::Array);
        let elements: Vec<&serde_json::value::RawValue> = serde_json::from_slice(&array).unwrap();
        let as_events: String = elements.iter().map(|element| format!("data: {}\n\n", element.get())).collect();
        for stream in [stream, as_events.into_bytes()] {
            for decoder in [StreamDecoder::new(&options()), StreamDecoder::strict(&options())] {
                let read = decode_by(decoder, &[&stream]).unwrap();
                lawful(&read);
                prop_assert_eq!(said(&read), said(&events));
                let counted = read.iter().rev().find_map(|event| if let Event::Usage(usage) = event { Some(*usage) } else { None });
                prop_assert_eq!(counted, usage);
            }
        }
        let whole = reply_encode::plain(&events, &options());
        prop_assert_eq!(order::body(&whole), Ok(()));
        for read in [reply_decode::plain(&whole, &options()), reply_decode::plain_strict(&whole, &options())] {
            let read = read.unwrap();
            lawful(&read);
            prop_assert_eq!(said(&read), said(&events));
        }
    }
}
