//! Answers on all four pairs of dialects, streamed and plain. Each case is written by hand once in either dialect, and
//! what a client must get out of it is said once: by what it means, not by its bytes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

use bytes::Bytes;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use turnkeep_base::{ClientError, Dialect, FaultKind, Usage};
use turnkeep_dialect::event::Class;
use turnkeep_dialect::reply::{Facts, Piece, ReplyFault, ReplyOptions, StreamCodec, error_event, plain};
use turnkeep_dialect::{chat, messages};
use turnkeep_wire::sse;

fn options(client: Dialect, upstream: Dialect) -> ReplyOptions {
    ReplyOptions {
        client,
        upstream,
        model: "asked".into(),
        usage_wanted: true,
        choices: 1,
        id: "own".into(),
        created: 7,
        max_event: 1 << 20,
    }
}

/// What a client understands of an answer.
#[derive(Debug, Default, PartialEq)]
struct Said {
    text: String,
    thinking: String,
    signature: String,
    refusal: String,
    /// Id, name, arguments.
    calls: Vec<(String, String, Value)>,
    finish: String,
    stop_sequence: Option<String>,
    /// Fresh input, read from the cache, written to it, output, reasoning.
    usage: Option<[u64; 5]>,
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

fn arguments(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("arguments {json}: {error}"))
}

fn chat_usage(usage: &Value) -> Option<[u64; 5]> {
    usage.is_object().then(|| {
        let (read, written) = (
            number(&usage["prompt_tokens_details"]["cached_tokens"]),
            number(&usage["prompt_tokens_details"]["cache_write_tokens"]),
        );
        let reasoning = number(&usage["completion_tokens_details"]["reasoning_tokens"]);
        [
            number(&usage["prompt_tokens"]) - read - written,
            read,
            written,
            number(&usage["completion_tokens"]),
            reasoning,
        ]
    })
}

fn messages_usage(usage: &Value) -> Option<[u64; 5]> {
    let of = |name: &str| number(&usage[name]);
    let reasoning = number(&usage["output_tokens_details"]["thinking_tokens"]);
    usage.is_object().then(|| {
        [
            of("input_tokens"),
            of("cache_read_input_tokens"),
            of("cache_creation_input_tokens"),
            of("output_tokens"),
            reasoning,
        ]
    })
}

/// As a Chat SDK puts a stream together.
fn chat_stream(datas: &[Value]) -> Said {
    let mut said = Said::default();
    let mut calls: BTreeMap<u64, (String, String, String)> = BTreeMap::new();
    for chunk in datas {
        let choice = &chunk["choices"][0];
        let delta = &choice["delta"];
        said.text += text(&delta["content"]);
        said.thinking += text(&delta["reasoning_content"]);
        said.signature += text(&delta["thinking_blocks"][0]["signature"]);
        said.refusal += text(&delta["refusal"]);
        for part in delta["tool_calls"].as_array().into_iter().flatten() {
            let call = calls.entry(part["index"].as_u64().unwrap()).or_default();
            call.0 += text(&part["id"]);
            call.1 += text(&part["function"]["name"]);
            call.2 += text(&part["function"]["arguments"]);
        }
        if let Some(reason) = choice["finish_reason"].as_str() {
            said.finish = reason.into();
        }
        said.usage = chat_usage(&chunk["usage"]).or(said.usage);
    }
    said.calls = calls.into_values().map(|(id, name, json)| (id, name, arguments(&json))).collect();
    said
}

/// As a Messages SDK puts a stream together.
fn messages_stream(datas: &[Value]) -> Said {
    let mut blocks: Vec<Value> = Vec::new();
    let mut inputs: Vec<String> = Vec::new();
    let (mut end, mut usage) = (json!({}), json!({}));
    for data in datas {
        let index = number(&data["index"]) as usize;
        match text(&data["type"]) {
            "message_start" => usage = data["message"]["usage"].clone(),
            "content_block_start" => {
                blocks.push(data["content_block"].clone());
                inputs.push(String::new());
            }
            "content_block_delta" => {
                inputs[index] += text(&data["delta"]["partial_json"]);
                for field in ["text", "thinking", "signature"] {
                    if let Some(more) = data["delta"][field].as_str() {
                        blocks[index][field] = format!("{}{more}", text(&blocks[index][field])).into();
                    }
                }
            }
            "message_delta" => {
                end = data["delta"].clone();
                for (key, value) in data["usage"].as_object().unwrap() {
                    usage[key] = value.clone();
                }
            }
            _ => {}
        }
    }
    for (block, input) in blocks.iter_mut().zip(inputs) {
        if block["type"] == "tool_use" && !input.is_empty() {
            block["input"] = arguments(&input);
        }
    }
    end["content"] = blocks.into();
    end["usage"] = usage;
    messages_plain(&end)
}

fn chat_plain(body: &Value) -> Said {
    let message = &body["choices"][0]["message"];
    let call = |call: &Value| {
        let function = &call["function"];
        (text(&call["id"]).to_owned(), text(&function["name"]).to_owned(), arguments(text(&function["arguments"])))
    };
    Said {
        text: text(&message["content"]).into(),
        thinking: text(&message["reasoning_content"]).into(),
        signature: text(&message["thinking_blocks"][0]["signature"]).into(),
        refusal: text(&message["refusal"]).into(),
        calls: message["tool_calls"].as_array().into_iter().flatten().map(call).collect(),
        finish: text(&body["choices"][0]["finish_reason"]).into(),
        stop_sequence: None,
        usage: chat_usage(&body["usage"]),
    }
}

fn messages_plain(body: &Value) -> Said {
    let mut said = Said { finish: text(&body["stop_reason"]).into(), ..Said::default() };
    said.stop_sequence = body["stop_sequence"].as_str().map(str::to_owned);
    said.usage = messages_usage(&body["usage"]);
    for block in body["content"].as_array().unwrap() {
        said.text += text(&block["text"]);
        said.thinking += text(&block["thinking"]);
        said.signature += text(&block["signature"]);
        if block["type"] == "tool_use" {
            said.calls.push((text(&block["id"]).into(), text(&block["name"]).into(), block["input"].clone()));
        }
    }
    said
}

/// One answer, by hand in both dialects.
struct Case {
    name: &'static str,
    chat: (&'static [&'static str], Value),
    messages: (&'static [&'static str], Value),
    /// What a Chat client and a Messages client get of the Chat upstream's answer, then of the Messages upstream's.
    of_chat: [Said; 2],
    of_messages: [Said; 2],
}

/// A Chat stream: each piece is the inside of `choices[0]`, or with a leading `+` of the whole chunk.
fn write_chat(pieces: &[&str]) -> String {
    let mut out = String::new();
    for piece in pieces {
        let inside = match piece.strip_prefix('+') {
            Some(whole) => whole.to_owned(),
            None => format!("\"choices\":[{{\"index\":0,{piece}}}],\"usage\":null"),
        };
        out += &format!(
            "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"up\",{inside}}}\n\n"
        );
    }
    out + "data: [DONE]\n\n"
}

fn write_messages(events: &[&str]) -> String {
    let start = r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"up","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":7,"cache_read_input_tokens":2,"cache_creation_input_tokens":1,"output_tokens":1}}}"#;
    let mut out = String::new();
    for data in std::iter::once(&start).chain(events).chain(&[r#"{"type":"message_stop"}"#]) {
        let value: Value = serde_json::from_str(data).unwrap();
        out += &format!("event: {}\ndata: {data}\n\n", text(&value["type"]));
    }
    out
}

const CHAT_USAGE: &str = r#"+"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":2,"cache_write_tokens":1},"completion_tokens_details":{"reasoning_tokens":3}}"#;
const MESSAGES_END: &str = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":5,"output_tokens_details":{"thinking_tokens":3}}}"#;
const USAGE: Option<[u64; 5]> = Some([7, 2, 1, 5, 3]);
const ROLE: &str = r#""delta":{"role":"assistant","content":""},"finish_reason":null"#;

fn whole_chat(message: Value, finish: &str) -> Value {
    let mut message = message;
    message["role"] = "assistant".into();
    json!({"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"up",
        "choices":[{"index":0,"message":message,"finish_reason":finish}],
        "usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,
            "prompt_tokens_details":{"cached_tokens":2,"cache_write_tokens":1},"completion_tokens_details":{"reasoning_tokens":3}}})
}

fn whole_messages(content: Value, finish: &str, sequence: Value) -> Value {
    json!({"id":"msg_1","type":"message","role":"assistant","model":"up","content":content,"stop_reason":finish,"stop_sequence":sequence,
        "usage":{"input_tokens":7,"cache_read_input_tokens":2,"cache_creation_input_tokens":1,"output_tokens":5,"output_tokens_details":{"thinking_tokens":3}}})
}

fn said(text: &str, finish: &str) -> Said {
    Said { text: text.into(), finish: finish.into(), usage: USAGE, ..Said::default() }
}

fn cases() -> Vec<Case> {
    let call = |id: &str, name: &str, arguments: Value| (id.to_owned(), name.to_owned(), arguments);
    let two = || vec![call("call_a", "f", json!({"x":[1,{"y":"}"}]})), call("call_b", "g", json!({}))];
    vec![
        Case {
            name: "text, and counts with cache and reasoning",
            chat: (
                &[
                    ROLE,
                    r#""delta":{"content":"Hi "},"finish_reason":null"#,
                    r#""delta":{"content":"wörld 😀"},"finish_reason":null"#,
                    r#""delta":{},"finish_reason":"stop""#,
                    CHAT_USAGE,
                ],
                whole_chat(json!({"content":"Hi wörld 😀"}), "stop"),
            ),
            messages: (
                &[
                    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
                    r#"{"type":"ping"}"#,
                    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi "}}"#,
                    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"w\u00f6rld \ud83d\ude00"}}"#,
                    r#"{"type":"content_block_stop","index":0}"#,
                    MESSAGES_END,
                ],
                whole_messages(json!([{"type":"text","text":"Hi wörld 😀"}]), "end_turn", Value::Null),
            ),
            of_chat: [said("Hi wörld 😀", "stop"), said("Hi wörld 😀", "end_turn")],
            of_messages: [said("Hi wörld 😀", "stop"), said("Hi wörld 😀", "end_turn")],
        },
        Case {
            name: "parallel tool calls whose fragments interleave, one of them without arguments",
            chat: (
                &[
                    ROLE,
                    r#""delta":{"content":"Let me"},"finish_reason":null"#,
                    r#""delta":{"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"f","arguments":""}}]},"finish_reason":null"#,
                    r#""delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":[1,"}}]},"finish_reason":null"#,
                    r#""delta":{"tool_calls":[{"index":1,"id":"call_b","type":"function","function":{"name":"g","arguments":""}}]},"finish_reason":null"#,
                    r#""delta":{"tool_calls":[{"index":1,"function":{"arguments":"{"}},{"index":0,"function":{"arguments":"{\"y\":\"}\""}}]},"finish_reason":null"#,
                    r#""delta":{"tool_calls":[{"index":0,"function":{"arguments":"}]}"}},{"index":1,"function":{"arguments":"}"}}]},"finish_reason":null"#,
                    r#""delta":{},"finish_reason":"tool_calls""#,
                    CHAT_USAGE,
                ],
                whole_chat(
                    json!({"content":"Let me","tool_calls":[
                        {"id":"call_a","type":"function","function":{"name":"f","arguments":"{\"x\":[1,{\"y\":\"}\"}]}"}},
                        {"id":"call_b","type":"function","function":{"name":"g","arguments":"{}"}}]}),
                    "tool_calls",
                ),
            ),
            messages: (
                &[
                    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
                    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Let me"}}"#,
                    r#"{"type":"content_block_stop","index":0}"#,
                    r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"call_a","name":"f","input":{}}}"#,
                    r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":""}}"#,
                    r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"x\":[1,"}}"#,
                    r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"y\":\"}\"}]}"}}"#,
                    r#"{"type":"content_block_stop","index":1}"#,
                    r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"call_b","name":"g","input":{}}}"#,
                    r#"{"type":"content_block_stop","index":2}"#,
                    r#"{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":5,"output_tokens_details":{"thinking_tokens":3}}}"#,
                ],
                whole_messages(
                    json!([{"type":"text","text":"Let me"},{"type":"tool_use","id":"call_a","name":"f","input":{"x":[1,{"y":"}"}]}},
                        {"type":"tool_use","id":"call_b","name":"g","input":{}}]),
                    "tool_use",
                    Value::Null,
                ),
            ),
            of_chat: [
                Said { calls: two(), ..said("Let me", "tool_calls") },
                Said { calls: two(), ..said("Let me", "tool_use") },
            ],
            of_messages: [
                Said { calls: two(), ..said("Let me", "tool_calls") },
                Said { calls: two(), ..said("Let me", "tool_use") },
            ],
        },
        Case {
            name: "an id that Messages does not take goes out in its letters",
            chat: (
                &[
                    ROLE,
                    r#""delta":{"tool_calls":[{"index":0,"id":"functions.f:0","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop""#,
                    CHAT_USAGE,
                ],
                whole_chat(
                    json!({"content":null,"tool_calls":[{"id":"functions.f:0","type":"function","function":{"name":"f","arguments":"{}"}}]}),
                    "stop",
                ),
            ),
            messages: (
                &[
                    r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{}}}"#,
                    r#"{"type":"content_block_stop","index":0}"#,
                    r#"{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":5,"output_tokens_details":{"thinking_tokens":3}}}"#,
                ],
                whole_messages(
                    json!([{"type":"tool_use","id":"toolu_1","name":"f","input":{}}]),
                    "tool_use",
                    Value::Null,
                ),
            ),
            of_chat: [
                Said { calls: vec![call("functions.f:0", "f", json!({}))], ..said("", "stop") },
                Said { calls: vec![call("tkid_ZnVuY3Rpb25zLmY6MA", "f", json!({}))], ..said("", "tool_use") },
            ],
            of_messages: [
                Said { calls: vec![call("toolu_1", "f", json!({}))], ..said("", "tool_calls") },
                Said { calls: vec![call("toolu_1", "f", json!({}))], ..said("", "tool_use") },
            ],
        },
        Case {
            name: "thinking with its signature",
            chat: (
                &[
                    ROLE,
                    r#""delta":{"reasoning_content":"hm, "},"finish_reason":null"#,
                    r#""delta":{"reasoning_content":"so"},"finish_reason":null"#,
                    r#""delta":{"content":"Yes"},"finish_reason":null"#,
                    r#""delta":{},"finish_reason":"stop""#,
                    CHAT_USAGE,
                ],
                whole_chat(json!({"content":"Yes","reasoning_content":"hm, so"}), "stop"),
            ),
            messages: (
                &[
                    r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
                    r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm, "}}"#,
                    r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"so"}}"#,
                    r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQB/+=="}}"#,
                    r#"{"type":"content_block_stop","index":0}"#,
                    r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
                    r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Yes"}}"#,
                    r#"{"type":"content_block_stop","index":1}"#,
                    MESSAGES_END,
                ],
                whole_messages(
                    json!([{"type":"thinking","thinking":"hm, so","signature":"EqQB/+=="},{"type":"text","text":"Yes"}]),
                    "end_turn",
                    Value::Null,
                ),
            ),
            of_chat: [
                Said { thinking: "hm, so".into(), ..said("Yes", "stop") },
                // Nobody signed it; the mark says so, and by it the thinking finds back to a Chat upstream alone.
                Said { thinking: "hm, so".into(), signature: chat::SIGNATURE.into(), ..said("Yes", "end_turn") },
            ],
            of_messages: [
                Said { thinking: "hm, so".into(), signature: "EqQB/+==".into(), ..said("Yes", "stop") },
                Said { thinking: "hm, so".into(), signature: "EqQB/+==".into(), ..said("Yes", "end_turn") },
            ],
        },
        Case {
            name: "a stop sequence, which only Messages tells",
            chat: (
                &[
                    ROLE,
                    r#""delta":{"content":"one"},"finish_reason":null"#,
                    r#""delta":{},"finish_reason":"stop""#,
                    CHAT_USAGE,
                ],
                whole_chat(json!({"content":"one"}), "stop"),
            ),
            messages: (
                &[
                    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
                    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"one"}}"#,
                    r#"{"type":"content_block_stop","index":0}"#,
                    r#"{"type":"message_delta","delta":{"stop_reason":"stop_sequence","stop_sequence":"END"},"usage":{"output_tokens":5,"output_tokens_details":{"thinking_tokens":3}}}"#,
                ],
                whole_messages(json!([{"type":"text","text":"one"}]), "stop_sequence", json!("END")),
            ),
            of_chat: [said("one", "stop"), said("one", "end_turn")],
            of_messages: [
                said("one", "stop"),
                Said { stop_sequence: Some("END".into()), ..said("one", "stop_sequence") },
            ],
        },
        Case {
            name: "an answer in a form, cut by the limit of tokens",
            chat: (
                &[ROLE, r#""delta":{"content":"{\"a\":"},"finish_reason":"length""#, CHAT_USAGE],
                whole_chat(json!({"content":"{\"a\":"}), "length"),
            ),
            messages: (
                &[
                    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
                    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"{\"a\":"}}"#,
                    r#"{"type":"content_block_stop","index":0}"#,
                    r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens","stop_sequence":null},"usage":{"output_tokens":5,"output_tokens_details":{"thinking_tokens":3}}}"#,
                ],
                whole_messages(json!([{"type":"text","text":"{\"a\":"}]), "max_tokens", Value::Null),
            ),
            of_chat: [said("{\"a\":", "length"), said("{\"a\":", "max_tokens")],
            of_messages: [said("{\"a\":", "length"), said("{\"a\":", "max_tokens")],
        },
        Case {
            name: "a refusal",
            chat: (
                &[
                    ROLE,
                    r#""delta":{"refusal":"I will not"},"finish_reason":null"#,
                    r#""delta":{},"finish_reason":"stop""#,
                    CHAT_USAGE,
                ],
                whole_chat(json!({"content":null,"refusal":"I will not"}), "stop"),
            ),
            messages: (
                &[
                    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
                    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"I will not"}}"#,
                    r#"{"type":"content_block_stop","index":0}"#,
                    r#"{"type":"message_delta","delta":{"stop_reason":"refusal","stop_sequence":null},"usage":{"output_tokens":5,"output_tokens_details":{"thinking_tokens":3}}}"#,
                ],
                whole_messages(json!([{"type":"text","text":"I will not"}]), "refusal", Value::Null),
            ),
            of_chat: [Said { refusal: "I will not".into(), ..said("", "stop") }, said("I will not", "refusal")],
            of_messages: [said("I will not", "content_filter"), said("I will not", "refusal")],
        },
        Case {
            name: "an end without a word",
            chat: (
                &[ROLE, r#""delta":{},"finish_reason":"content_filter""#, CHAT_USAGE],
                whole_chat(json!({"content":null}), "content_filter"),
            ),
            messages: (
                &[
                    r#"{"type":"message_delta","delta":{"stop_reason":"model_context_window_exceeded","stop_sequence":null},"usage":{"output_tokens":5,"output_tokens_details":{"thinking_tokens":3}}}"#,
                ],
                whole_messages(json!([]), "model_context_window_exceeded", Value::Null),
            ),
            of_chat: [said("", "content_filter"), said("", "refusal")],
            of_messages: [said("", "length"), said("", "model_context_window_exceeded")],
        },
    ]
}

/// Everything that the codec gives, with the fault it ended by.
fn feed(options: &ReplyOptions, stream: &str, length: usize) -> (Vec<Piece>, Result<Facts, ReplyFault>) {
    let mut codec = StreamCodec::new(options);
    let mut pieces = Vec::new();
    for chunk in stream.as_bytes().chunks(length) {
        if let Err(fault) = codec.feed(Bytes::copy_from_slice(chunk), &mut pieces) {
            return (pieces, Err(fault));
        }
    }
    let end = codec.finish(&mut pieces).map(|()| codec.facts().clone());
    (pieces, end)
}

/// The data of a client's stream, which must be in the dialect's legal order to its end.
fn lawful(client: Dialect, bytes: &[u8]) -> Vec<Value> {
    let mut reader = sse::Reader::new(1 << 20);
    reader.push(Bytes::copy_from_slice(bytes));
    let (mut chat, mut messages) = (chat::order::Order::default(), messages::order::Order::default());
    let mut datas = Vec::new();
    while let Some(frame) = reader.next_frame().unwrap() {
        let order = match client {
            Dialect::Chat => chat.frame(&frame),
            Dialect::Messages => messages.frame(&frame),
        };
        order.unwrap_or_else(|error| panic!("{error}: {:?}", String::from_utf8_lossy(&frame.raw)));
        datas.extend(frame.data.and_then(|data| serde_json::from_slice(&data).ok()));
    }
    match client {
        Dialect::Chat => chat.finish().unwrap(),
        Dialect::Messages => messages.finish().unwrap(),
    }
    assert_eq!(reader.pending(), 0);
    datas
}

fn joined(pieces: &[Piece]) -> Vec<u8> {
    pieces.iter().flat_map(|piece| piece.bytes.to_vec()).collect()
}

#[test]
fn an_answer_means_the_same_on_every_pair_streamed_and_plain() {
    for case in cases() {
        for upstream in Dialect::ALL {
            let (stream, whole, said) = match upstream {
                Dialect::Chat => (write_chat(case.chat.0), &case.chat.1, &case.of_chat),
                Dialect::Messages => (write_messages(case.messages.0), &case.messages.1, &case.of_messages),
            };
            for (client, said) in [Dialect::Chat, Dialect::Messages].into_iter().zip(said) {
                let what = format!("{}: {upstream} to {client}", case.name);
                let options = options(client, upstream);
                for length in [1, 7, 1 << 16] {
                    let (pieces, end) = feed(&options, &stream, length);
                    let facts = end.unwrap_or_else(|fault| panic!("{what}: {fault:?}"));
                    let datas = lawful(client, &joined(&pieces));
                    let got = match client {
                        Dialect::Chat => chat_stream(&datas),
                        Dialect::Messages => messages_stream(&datas),
                    };
                    assert_eq!(&got, said, "{what}, streamed");
                    assert_eq!(
                        facts.usage,
                        Some(Usage { input: 7, cache_read: 2, cache_write: 1, output: 5, reasoning: 3 }),
                        "{what}"
                    );
                    let ends = pieces.iter().position(|piece| piece.class == Class::Terminal).unwrap();
                    assert!(pieces[ends..].iter().all(|piece| piece.class == Class::Terminal), "{what}");
                }
                let (body, facts) = plain(&options, serde_json::to_vec(whole).unwrap().into()).unwrap();
                let body: Value = serde_json::from_slice(&body).unwrap();
                let got = match client {
                    Dialect::Chat => chat_plain(&body),
                    Dialect::Messages => messages_plain(&body),
                };
                assert_eq!(&got, said, "{what}, plain");
                assert_eq!(facts.usage.map(|usage| usage.total()), Some(15), "{what}");
            }
        }
    }
}

#[test]
fn an_error_in_a_stream_is_a_fault_on_every_pair_and_its_end_is_lawful() {
    let chat_error =
        "data: {\"error\":{\"message\":\"busy\",\"type\":\"server_error\",\"code\":\"server_is_overloaded\"}}\n\n";
    let messages_error =
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n";
    let (_, chat_text) = (write_chat(&[]), write_chat(&[ROLE, r#""delta":{"content":"so far"},"finish_reason":null"#]));
    let chat_text = chat_text.replace("data: [DONE]\n\n", "");
    let messages_text = write_messages(&[
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"so far"}}"#,
    ]);
    let messages_text = messages_text.replace("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", "");
    let start = messages_text.split_inclusive("\n\n").next().unwrap().to_owned();
    for client in Dialect::ALL {
        for (upstream, before, error) in [
            (Dialect::Chat, String::new(), chat_error),
            (Dialect::Chat, chat_text.clone(), chat_error),
            (Dialect::Messages, String::new(), messages_error),
            (Dialect::Messages, start.clone(), messages_error),
            (Dialect::Messages, messages_text.clone(), messages_error),
        ] {
            for length in [1, 1 << 16] {
                let (pieces, end) = feed(&options(client, upstream), &format!("{before}{error}"), length);
                let fault = end.unwrap_err();
                assert_eq!(fault.kind, FaultKind::ModelOverloaded, "{upstream} to {client}");
                assert!(pieces.iter().all(|piece| piece.class != Class::Terminal));
                let content = pieces.iter().any(|piece| piece.class == Class::Answer);
                assert_eq!(content, before.contains("so far"), "{upstream} to {client}");
                // What the client has, with our own error behind it, ends as its dialect's streams may end.
                let mut bytes = joined(&pieces);
                bytes.extend_from_slice(&error_event(client, &ClientError::new(503, "model_overloaded", "busy"), "t1"));
                let datas = lawful(client, &bytes);
                assert_eq!(datas.last().unwrap()["error"]["message"], "busy");
            }
        }
    }
}

#[test]
fn a_plain_answer_that_is_an_error_is_a_fault_on_every_pair() {
    for client in Dialect::ALL {
        for (upstream, body) in [
            (Dialect::Chat, r#"{"error":{"message":"busy","type":"server_error","code":"server_is_overloaded"}}"#),
            (Dialect::Messages, r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#),
        ] {
            let fault = plain(&options(client, upstream), Bytes::from_static(body.as_bytes())).unwrap_err();
            assert_eq!(fault.kind, FaultKind::ModelOverloaded, "{upstream} to {client}");
        }
    }
}

#[test]
fn a_block_after_the_reason_of_the_end_is_a_fault() {
    let late = write_messages(&[
        MESSAGES_END,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"late"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
    ]);
    let (_, end) = feed(&options(Dialect::Chat, Dialect::Messages), &late, 1 << 16);
    assert_eq!(end.unwrap_err().kind, FaultKind::MalformedResponse);
}
