//! Requests on the pairs of Chat and Messages. Each feature is written by hand once in either dialect: the one must become
//! the other, both ways, and on the same-dialect routes nothing but the model's name changes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

use bytes::Bytes;
use serde_json::{Value, json};
use turnkeep_base::Dialect;
use turnkeep_dialect::request::{Operation, encode, read};

/// One feature: what either dialect's client writes, and what becomes of it where that is not the other's writing.
struct Feature {
    name: &'static str,
    chat: Value,
    messages: Value,
    /// What a Chat upstream gets of `messages`, and what is named as dropped on the way.
    to_chat: (Option<Value>, &'static [&'static str]),
    to_messages: (Option<Value>, &'static [&'static str]),
}

fn user() -> Value {
    json!({"role":"user","content":"q"})
}

/// A feature that is the same both ways.
fn both(name: &'static str, chat: Value, messages: Value) -> Feature {
    Feature { name, chat, messages, to_chat: (None, &[]), to_messages: (None, &[]) }
}

const PNG: &str = "data:image/png;base64,iVBORw==";

fn png() -> Value {
    json!({"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw=="}})
}

fn call(id: &str, arguments: &str) -> Value {
    json!({"id":id,"type":"function","function":{"name":"f","arguments":arguments}})
}

fn features() -> Vec<Feature> {
    let schema = json!({"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false});
    let chat_tools =
        json!([{"type":"function","function":{"name":"f","description":"d","parameters":schema,"strict":true}}]);
    let messages_tools = json!([{"name":"f","description":"d","input_schema":schema,"strict":true}]);
    let image_message = json!([{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":PNG}}]);
    let parallel = json!([user(),
        {"role":"assistant","content":"Let me","tool_calls":[call("t1", "{\"a\":1.5}"), call("t2", "{}")]},
        {"role":"tool","tool_call_id":"t1","content":"one"},{"role":"tool","tool_call_id":"t2","content":"two"},
        {"role":"user","content":"go on"}]);
    let parallel_blocks = json!([user(),
        {"role":"assistant","content":[{"type":"text","text":"Let me"},{"type":"tool_use","id":"t1","name":"f","input":{"a":1.5}},
            {"type":"tool_use","id":"t2","name":"f","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"one"},
            {"type":"tool_result","tool_use_id":"t2","content":"two"},{"type":"text","text":"go on"}]}]);
    vec![
        both(
            "a system prompt and text",
            json!({"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"größer 😀"}]}),
            json!({"system":"be brief","messages":[{"role":"user","content":"größer 😀"}]}),
        ),
        both(
            "an image by data URL",
            json!({"messages":[{"role":"user","content":image_message}]}),
            json!({"messages":[{"role":"user","content":[{"type":"text","text":"look"}, png()]}]}),
        ),
        both(
            "parallel tool calls and their results",
            json!({"messages":parallel}),
            json!({"messages":parallel_blocks}),
        ),
        Feature {
            name: "a tool's error with an image",
            chat: json!({"messages":[user(),{"role":"assistant","content":null,"tool_calls":[call("t1", "{}")]},
                {"role":"tool","tool_call_id":"t1","content":[{"type":"text","text":"boom"},{"type":"image_url","image_url":{"url":PNG}}]}]}),
            messages: json!({"messages":[user(),{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{}}]},
                {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":[{"type":"text","text":"boom"}, png()]}]}]}),
            // Chat has no word for failure and takes only text from a tool.
            to_chat: (
                Some(json!({"messages":[user(),{"role":"assistant","content":null,"tool_calls":[call("t1", "{}")]},
                    {"role":"tool","tool_call_id":"t1","content":"Error: boom"},
                    {"role":"user","content":[{"type":"text","text":"[Images in the result of the tool call t1:]"},{"type":"image_url","image_url":{"url":PNG}}]}]})),
                &[],
            ),
            to_messages: (
                Some(
                    json!({"messages":[user(),{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{}}]},
                    {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"boom"}, png()]}]}]}),
                ),
                &[],
            ),
        },
        Feature {
            name: "thinking with a provider's signature goes back to that provider alone",
            chat: json!({"messages":[user(),{"role":"assistant","content":"a","reasoning_content":"hm",
                "thinking_blocks":[{"type":"thinking","thinking":"hm","signature":"EqQB"}]},user()]}),
            messages: json!({"messages":[user(),{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"EqQB"},
                {"type":"text","text":"a"}]},user()]}),
            to_chat: (Some(json!({"messages":[user(),{"role":"assistant","content":"a"},user()]})), &["thinking"]),
            to_messages: (None, &[]),
        },
        Feature {
            name: "thinking of a Chat upstream finds back to a Chat upstream",
            chat: json!({"messages":[user(),{"role":"assistant","content":"a","reasoning_content":"hm"},user()]}),
            messages: json!({"messages":[user(),{"role":"assistant","content":[
                {"type":"thinking","thinking":"hm","signature":turnkeep_dialect::chat::SIGNATURE},{"type":"text","text":"a"}]},user()]}),
            to_chat: (None, &[]),
            to_messages: (Some(json!({"messages":[user(),{"role":"assistant","content":"a"},user()]})), &["thinking"]),
        },
        both(
            "stop texts",
            json!({"messages":[user()],"stop":["END","\n\nHuman:"]}),
            json!({"messages":[user()],"stop_sequences":["END","\n\nHuman:"]}),
        ),
        Feature {
            name: "an answer of a schema",
            chat: json!({"messages":[user()],"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":schema,"strict":true}}}),
            messages: json!({"messages":[user()],"output_config":{"format":{"type":"json_schema","schema":schema}}}),
            to_chat: (
                Some(
                    json!({"messages":[user()],"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":schema}}}),
                ),
                &[],
            ),
            to_messages: (None, &["response_format.json_schema.name"]),
        },
        both(
            "tools",
            json!({"messages":[user()],"tools":chat_tools}),
            json!({"messages":[user()],"tools":messages_tools}),
        ),
        both(
            "one tool that must be called, alone",
            json!({"messages":[user()],"tools":chat_tools,"tool_choice":{"type":"function","function":{"name":"f"}},"parallel_tool_calls":false}),
            json!({"messages":[user()],"tools":messages_tools,"tool_choice":{"type":"tool","name":"f","disable_parallel_tool_use":true}}),
        ),
        both(
            "any tool",
            json!({"messages":[user()],"tools":chat_tools,"tool_choice":"required"}),
            json!({"messages":[user()],"tools":messages_tools,"tool_choice":{"type":"any"}}),
        ),
        both(
            "sampling, user and effort",
            json!({"messages":[user()],"temperature":0.70,"top_p":1e-1,"user":"u","reasoning_effort":"high"}),
            json!({"messages":[user()],"temperature":0.70,"top_p":1e-1,"metadata":{"user_id":"u"},"output_config":{"effort":"high"}}),
        ),
        Feature {
            name: "hints that the other dialect has no place for",
            chat: json!({"messages":[user()],"seed":7,"logit_bias":{"1":2},"frequency_penalty":0.5,"metadata":{"a":"b"},"service_tier":"flex","temperature":1.5}),
            messages: json!({"messages":[{"role":"user","content":[{"type":"text","text":"q","cache_control":{"type":"ephemeral"}}]}],
                "top_k":5,"service_tier":"auto","context_management":{"edits":[1]},"thinking":{"type":"disabled"}}),
            to_chat: (
                Some(json!({"messages":[user()]})),
                &["cache_control", "context_management", "service_tier", "thinking", "top_k"],
            ),
            to_messages: (
                Some(json!({"messages":[user()],"temperature":1})),
                &["frequency_penalty", "logit_bias", "metadata", "seed", "service_tier", "temperature"],
            ),
        },
        Feature {
            name: "a cache mark of OpenAI's is one of Messages'",
            chat: json!({"messages":[{"role":"user","content":[{"type":"text","text":"a","prompt_cache_breakpoint":{"mode":"explicit","ttl":"1h"}},
                {"type":"text","text":"b","prompt_cache_breakpoint":{"mode":"explicit","ttl":"24h"}}]}]}),
            messages: json!({"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"1h"}},
                {"type":"text","text":"b","cache_control":{"type":"ephemeral"}}]}]}),
            to_chat: (
                Some(
                    json!({"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}),
                ),
                &["cache_control"],
            ),
            to_messages: (None, &["messages[].content[].prompt_cache_breakpoint.ttl"]),
        },
    ]
}

/// A whole request around a feature's fields.
fn request(fields: &Value, stream: bool, model: &str) -> Value {
    let mut request = fields.clone();
    request["model"] = model.into();
    request["max_tokens"] = json!(64);
    if stream {
        request["stream"] = json!(true);
    }
    request
}

/// Takes off the mark that an agent's turn gets at its end, which must be there.
fn unmark(request: &mut Value) {
    let content = &mut request["messages"].as_array_mut().unwrap().last_mut().unwrap()["content"];
    let blocks = content.as_array_mut().unwrap();
    let mark = blocks.last_mut().unwrap().as_object_mut().unwrap().remove("cache_control");
    assert_eq!(mark, Some(json!({"type":"ephemeral"})));
    if let [only] = blocks.as_slice()
        && only["type"] == "text"
    {
        *content = only["text"].clone();
    }
}

#[test]
fn every_feature_goes_through_every_pair() {
    for feature in features() {
        for stream in [false, true] {
            for client in [Dialect::Chat, Dialect::Messages] {
                let (own, target, target_fields, (special, dropped)) = match client {
                    Dialect::Chat => (&feature.chat, Dialect::Messages, &feature.messages, &feature.to_messages),
                    Dialect::Messages => (&feature.messages, Dialect::Chat, &feature.chat, &feature.to_chat),
                    Dialect::Responses | Dialect::Gemini => panic!("{client} is not one of the pair"),
                };
                let what = format!("{}: {client} to {target}", feature.name);
                let mut asked = request(own, stream, "asked");
                let body = Bytes::from(serde_json::to_vec(&asked).unwrap());
                let read = read(client, Operation::Generate, body).unwrap_or_else(|error| panic!("{what}: {error}"));

                // The same dialect: the model's name, Chat's wish for usage, and no thinking in our own envelope.
                let same: Value = serde_json::from_slice(&read.pass_through("up")).unwrap();
                asked["model"] = "up".into();
                if client == Dialect::Chat && stream {
                    asked["stream_options"] = json!({"include_usage":true});
                }
                if read.dropped_in_passing() == ["thinking"] {
                    // What the gateway signed itself is for the way back to Chat alone.
                    let ours = |block: &Value| block["signature"] == turnkeep_dialect::chat::SIGNATURE;
                    asked["messages"][1]["content"].as_array_mut().unwrap().retain(|block| !ours(block));
                }
                assert_eq!(same, asked, "{}: {client} to {client}", feature.name);

                // The other dialect.
                let encoded =
                    encode(target, &read.turn().unwrap(), "up").unwrap_or_else(|error| panic!("{what}: {error}"));
                let mut wanted = request(special.as_ref().unwrap_or(target_fields), stream, "up");
                if target == Dialect::Chat && stream {
                    wanted["stream_options"] = json!({"include_usage":true});
                }
                let mut got: Value = serde_json::from_slice(&encoded.body).unwrap();
                if target == Dialect::Messages && got["tools"].is_array() {
                    unmark(&mut got);
                }
                assert_eq!(got, wanted, "{what}");
                let mut named = encoded.dropped;
                named.sort();
                assert_eq!(named, *dropped, "{what}");
            }
        }
    }
}

#[test]
fn numbers_and_schemas_cross_in_their_own_spelling() {
    let chat = r#"{"model":"m","messages":[{"role":"user","content":"q"}],"temperature":0.70,"tools":[{"type":"function","function":
        {"name":"f","parameters":{ "type":"object","properties":{"n":{"maximum":123456789012345678901234567890}} }}}]}"#;
    let read = read(Dialect::Chat, Operation::Generate, Bytes::from_static(chat.as_bytes())).unwrap();
    let encoded = encode(Dialect::Messages, &read.turn().unwrap(), "up").unwrap();
    let body = std::str::from_utf8(&encoded.body).unwrap();
    assert!(body.contains(r#""temperature":0.70"#), "{body}");
    assert!(
        body.contains(r#"{ "type":"object","properties":{"n":{"maximum":123456789012345678901234567890}} }"#),
        "{body}"
    );
}

#[test]
fn content_without_a_form_in_the_other_dialect_is_refused_by_its_path() {
    let ask = |part: Value| json!({"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"a"}, part]}]});
    let with = |field: &str, value: Value| {
        let mut body = json!({"model":"m","max_tokens":9,"messages":[user()]});
        body[field] = value;
        body
    };
    for (client, body, path) in [
        (
            Dialect::Chat,
            ask(json!({"type":"input_audio","input_audio":{"data":"AA==","format":"wav"}})),
            "messages[0].content[1]",
        ),
        (Dialect::Chat, ask(json!({"type":"file","file":{"file_id":"f"}})), "messages[0].content[1]"),
        (Dialect::Chat, with("tools", json!([{"type":"web_search"}])), "tools[0]"),
        (Dialect::Chat, with("n", json!(2)), "n"),
        (Dialect::Chat, with("tool_choice", json!("required")), "tool_choice"),
        (Dialect::Chat, with("response_format", json!({"type":"json_object"})), "response_format"),
        (Dialect::Chat, with("modalities", json!(["text", "audio"])), "modalities[1]"),
        (
            Dialect::Messages,
            ask(json!({"type":"document","source":{"type":"file","file_id":"f"}})),
            "messages[0].content[1]",
        ),
        (
            Dialect::Messages,
            ask(json!({"type":"image","source":{"type":"file","file_id":"f"}})),
            "messages[0].content[1]",
        ),
        (Dialect::Messages, with("tools", json!([{"type":"web_search_20250305","name":"web_search"}])), "tools[0]"),
        (Dialect::Messages, with("tool_choice", json!({"type":"any"})), "tool_choice"),
        (Dialect::Messages, with("stop_sequences", json!(["1", "2", "3", "4", "5"])), "stop_sequences"),
        (Dialect::Messages, with("mcp_servers", json!([{"url":"https://x"}])), "mcp_servers"),
    ] {
        let target = if client == Dialect::Chat { Dialect::Messages } else { Dialect::Chat };
        let request = read(client, Operation::Generate, serde_json::to_vec(&body).unwrap().into()).unwrap();
        let error = request.turn().and_then(|turn| encode(target, &turn, "up").map(|_| ())).unwrap_err();
        assert_eq!(error.path, path, "{error}");
    }
}

#[test]
fn a_call_that_was_never_answered_gets_an_answer_and_of_two_answers_the_last_counts() {
    let messages = json!({"messages":[user(),
        {"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{}},{"type":"tool_use","id":"t2","name":"f","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":"first"},{"type":"tool_result","tool_use_id":"t2","content":"last"},
            {"type":"text","text":"stop"}]},
        {"role":"assistant","content":[{"type":"tool_use","id":"t3","name":"f","input":{}}]}]});
    let body = serde_json::to_vec(&request(&messages, false, "m")).unwrap();
    let read = read(Dialect::Messages, Operation::Generate, body.into()).unwrap();
    let encoded = encode(Dialect::Chat, &read.turn().unwrap(), "up").unwrap();
    let sent: Value = serde_json::from_slice(&encoded.body).unwrap();
    let missing = "Error: no result was given";
    assert_eq!(
        sent["messages"],
        json!([user(), {"role":"assistant","content":null,"tool_calls":[call("t1", "{}"), call("t2", "{}")]},
            {"role":"tool","tool_call_id":"t2","content":"last"}, {"role":"tool","tool_call_id":"t1","content":missing},
            {"role":"user","content":"stop"}, {"role":"assistant","content":null,"tool_calls":[call("t3", "{}")]},
            {"role":"tool","tool_call_id":"t3","content":missing}])
    );
}

#[test]
fn a_body_of_many_thousand_calls_or_unknown_fields_is_translated_in_good_time() {
    let many = 50_000;
    let field = |at: usize| format!("\"größe, {at}\":1,");
    let fields: String = (0..many).map(field).collect();
    let calls: Vec<_> = (0..many).map(|at| call(&format!("c{at}"), "{}")).collect();
    let results: Vec<_> =
        (0..many).map(|at| json!({"role":"tool","tool_call_id":format!("c{at}"),"content":"r"})).collect();
    let messages =
        Value::from([vec![user(), json!({"role":"assistant","content":null,"tool_calls":calls})], results].concat());
    let mut body = Bytes::from(format!("{{{fields}\"model\":\"m\",\"messages\":{messages}}}"));
    let started = std::time::Instant::now();
    for client in [Dialect::Chat, Dialect::Messages] {
        let target = if client == Dialect::Chat { Dialect::Messages } else { Dialect::Chat };
        let request = read(client, Operation::Generate, body).unwrap();
        let encoded = encode(target, &request.turn().unwrap(), "up").unwrap();
        if client == Dialect::Chat {
            assert_eq!(encoded.dropped.len(), turnkeep_dialect::dropped::MAX_NAMES + 1);
            assert!(encoded.dropped.iter().all(|name| name.is_ascii()), "{:?}", encoded.dropped);
        }
        body = encoded.body;
    }
    // Linear work takes two seconds unoptimised, quadratic work a minute and more.
    assert!(started.elapsed() < std::time::Duration::from_secs(25), "{:?}", started.elapsed());
}
