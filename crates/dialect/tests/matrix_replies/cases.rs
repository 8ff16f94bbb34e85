//! The answers, each by hand in Chat and in Messages, streamed and plain, and what a client must get out of it.

use super::said::{Said, text};
use serde_json::{Value, json};
use turnkeep_dialect::chat;

/// One answer, by hand in Chat and in Messages.
pub struct Case {
    pub name: &'static str,
    pub chat: (&'static [&'static str], Value),
    pub messages: (&'static [&'static str], Value),
    /// What a Chat client and a Messages client get of the Chat upstream's answer, then of the Messages upstream's.
    pub of_chat: [Said; 2],
    pub of_messages: [Said; 2],
}

/// A Chat stream: each piece is the inside of `choices[0]`, or with a leading `+` of the whole chunk.
pub fn write_chat(pieces: &[&str]) -> String {
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

pub fn write_messages(events: &[&str]) -> String {
    let start = r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"up","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":7,"cache_read_input_tokens":2,"cache_creation_input_tokens":1,"output_tokens":1}}}"#;
    let mut out = String::new();
    for data in std::iter::once(&start).chain(events).chain(&[r#"{"type":"message_stop"}"#]) {
        let value: Value = serde_json::from_str(data).unwrap();
        out += &format!("event: {}\ndata: {data}\n\n", text(&value["type"]));
    }
    out
}

pub const CHAT_USAGE: &str = r#"+"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":2,"cache_write_tokens":1},"completion_tokens_details":{"reasoning_tokens":3}}"#;
pub const MESSAGES_END: &str = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":5,"output_tokens_details":{"thinking_tokens":3}}}"#;
pub const USAGE: Option<[u64; 5]> = Some([7, 2, 1, 5, 3]);
pub const ROLE: &str = r#""delta":{"role":"assistant","content":""},"finish_reason":null"#;

pub fn whole_chat(message: Value, finish: &str) -> Value {
    let mut message = message;
    message["role"] = "assistant".into();
    json!({"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"up",
        "choices":[{"index":0,"message":message,"finish_reason":finish}],
        "usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,
            "prompt_tokens_details":{"cached_tokens":2,"cache_write_tokens":1},"completion_tokens_details":{"reasoning_tokens":3}}})
}

pub fn whole_messages(content: Value, finish: &str, sequence: Value) -> Value {
    json!({"id":"msg_1","type":"message","role":"assistant","model":"up","content":content,"stop_reason":finish,"stop_sequence":sequence,
        "usage":{"input_tokens":7,"cache_read_input_tokens":2,"cache_creation_input_tokens":1,"output_tokens":5,"output_tokens_details":{"thinking_tokens":3}}})
}

pub fn said(text: &str, finish: &str) -> Said {
    Said { text: text.into(), finish: finish.into(), usage: USAGE, ..Said::default() }
}

pub fn cases() -> Vec<Case> {
    let call = |id: &str, name: &str, arguments: Value| (id.to_owned(), name.to_owned(), arguments);
    let two = || vec![call("call_a", "f", json!({"x":[1,{"y":"}"}]})), call("call_b", "g", json!({"k":2}))];
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
            name: "parallel tool calls whose fragments interleave",
            chat: (
                &[
                    ROLE,
                    r#""delta":{"content":"Let me"},"finish_reason":null"#,
                    r#""delta":{"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"f","arguments":""}}]},"finish_reason":null"#,
                    r#""delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":[1,"}}]},"finish_reason":null"#,
                    r#""delta":{"tool_calls":[{"index":1,"id":"call_b","type":"function","function":{"name":"g","arguments":""}}]},"finish_reason":null"#,
                    r#""delta":{"tool_calls":[{"index":1,"function":{"arguments":"{\"k"}},{"index":0,"function":{"arguments":"{\"y\":\"}\""}}]},"finish_reason":null"#,
                    r#""delta":{"tool_calls":[{"index":0,"function":{"arguments":"}]}"}},{"index":1,"function":{"arguments":"\":2}"}}]},"finish_reason":null"#,
                    r#""delta":{},"finish_reason":"tool_calls""#,
                    CHAT_USAGE,
                ],
                whole_chat(
                    json!({"content":"Let me","tool_calls":[
                        {"id":"call_a","type":"function","function":{"name":"f","arguments":"{\"x\":[1,{\"y\":\"}\"}]}"}},
                        {"id":"call_b","type":"function","function":{"name":"g","arguments":"{\"k\":2}"}}]}),
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
                    r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"k\":2}"}}"#,
                    r#"{"type":"content_block_stop","index":2}"#,
                    r#"{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":5,"output_tokens_details":{"thinking_tokens":3}}}"#,
                ],
                whole_messages(
                    json!([{"type":"text","text":"Let me"},{"type":"tool_use","id":"call_a","name":"f","input":{"x":[1,{"y":"}"}]}},
                        {"type":"tool_use","id":"call_b","name":"g","input":{"k":2}}]),
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
            name: "a call without arguments, whose id Messages does not take",
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
