//! The recorded requests of real clients on a translated route: nothing of them is lost unnamed. Every field is carried,
//! is named among the dropped ones, or stands on a short list of what says nothing; and what was said arrives in order.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

use bytes::Bytes;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use turnkeep_base::Dialect;
use turnkeep_dialect::json::Invalid;
use turnkeep_dialect::request::{Encoded, Operation, encode, read};
use turnkeep_dialect::tool_id::{from_messages_safe, to_messages_safe};

struct Capture {
    name: PathBuf,
    dialect: Dialect,
    body: Value,
}

fn captures() -> Vec<Capture> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/captures");
    let mut found = Vec::new();
    for folder in std::fs::read_dir(root).unwrap() {
        for file in std::fs::read_dir(folder.unwrap().path()).unwrap() {
            let name = file.unwrap().path();
            let mut capture: Value = serde_json::from_slice(&std::fs::read(&name).unwrap()).unwrap();
            let dialect = match capture["target"].as_str().unwrap().split('?').next() {
                Some("/v1/chat/completions") => Dialect::Chat,
                Some("/v1/messages") => Dialect::Messages,
                Some(_) | None => continue,
            };
            found.push(Capture { name, dialect, body: capture["body"].take() });
        }
    }
    let of = |dialect| found.iter().filter(|capture| capture.dialect == dialect).count();
    assert!(of(Dialect::Chat) > 40 && of(Dialect::Messages) > 60, "recorded requests are missing");
    found
}

fn other(dialect: Dialect) -> Dialect {
    match dialect {
        Dialect::Chat => Dialect::Messages,
        Dialect::Messages => Dialect::Chat,
        Dialect::Responses | Dialect::Gemini => panic!("not one of the pair"),
    }
}

/// Through the canonical turn to the other dialect.
fn translated(dialect: Dialect, body: &Value) -> Result<(Value, Encoded), Invalid> {
    let body = Bytes::from(serde_json::to_vec(body).unwrap());
    let request = read(dialect, Operation::Generate, body)?;
    let encoded = encode(other(dialect), &request.turn()?, "up")?;
    // The target's own check takes it.
    read(other(dialect), Operation::Generate, encoded.body.clone())?;
    Ok((serde_json::from_slice(&encoded.body).unwrap(), encoded))
}

/// What one participant said or did, in no dialect.
#[derive(Debug, PartialEq)]
enum Item {
    System(String),
    User(String),
    Assistant(String),
    Image(String),
    Call(String, String, Value),
    Result(String, Vec<String>),
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The texts of a content, be it a string or a list.
fn texts(content: &Value) -> Vec<String> {
    match content {
        Value::String(text) => vec![text.clone()],
        Value::Array(parts) => {
            parts.iter().filter(|part| part["text"].is_string()).map(|part| string(&part["text"])).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => vec![],
    }
}

/// Texts without a visible character are no content: Messages takes none.
fn visible(texts: Vec<String>) -> impl Iterator<Item = String> {
    texts.into_iter().filter(|text| !text.trim().is_empty())
}

fn arguments(text: &str) -> Value {
    if text.trim().is_empty() {
        json!({})
    } else {
        serde_json::from_str(text).unwrap_or_else(|_| json!({"_raw": text}))
    }
}

fn chat_items(body: &Value) -> Vec<Item> {
    let mut items = Vec::new();
    for message in body["messages"].as_array().unwrap() {
        let said = visible(texts(&message["content"]));
        match message["role"].as_str().unwrap() {
            "system" | "developer" => items.extend(said.map(Item::System)),
            "user" => {
                items.extend(said.map(Item::User));
                for part in message["content"].as_array().into_iter().flatten() {
                    items.extend(part["image_url"]["url"].as_str().map(|url| Item::Image(url.to_owned())));
                }
            }
            "tool" => items.push(Item::Result(string(&message["tool_call_id"]), said.collect())),
            _ => {
                items.extend(said.map(Item::Assistant));
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    let function = &call["function"];
                    let arguments = arguments(&string(&function["arguments"]));
                    items.push(Item::Call(string(&call["id"]), string(&function["name"]), arguments));
                }
            }
        }
    }
    items
}

fn messages_items(body: &Value) -> Vec<Item> {
    let mut items: Vec<Item> = visible(texts(&body["system"])).map(Item::System).collect();
    for message in body["messages"].as_array().unwrap() {
        let role = string(&message["role"]);
        let said = |text: String| match role.as_str() {
            "assistant" => Item::Assistant(text),
            "system" => Item::System(text),
            _ => match text.strip_prefix("<system>").and_then(|rest| rest.strip_suffix("</system>")) {
                Some(system) => Item::System(system.to_owned()),
                None => Item::User(text),
            },
        };
        let (mut calls, mut images) = (Vec::new(), Vec::new());
        for block in message["content"].as_array().into_iter().flatten() {
            match block["type"].as_str().unwrap() {
                "tool_use" => {
                    calls.push(Item::Call(string(&block["id"]), string(&block["name"]), block["input"].clone()))
                }
                "tool_result" => {
                    items.push(Item::Result(string(&block["tool_use_id"]), visible(texts(&block["content"])).collect()))
                }
                "image" => images.push(Item::Image(format!(
                    "data:{};base64,{}",
                    string(&block["source"]["media_type"]),
                    string(&block["source"]["data"])
                ))),
                _ => {}
            }
        }
        items.extend(visible(texts(&message["content"])).map(said));
        items.extend(images);
        items.extend(calls);
    }
    items
}

fn ids(items: Vec<Item>, map: impl Fn(&str) -> String) -> Vec<Item> {
    let item = |item| match item {
        Item::Call(id, name, arguments) => Item::Call(map(&id), name, arguments),
        Item::Result(id, texts) => Item::Result(map(&id), texts),
        item @ (Item::System(_) | Item::User(_) | Item::Assistant(_) | Item::Image(_)) => item,
    };
    items.into_iter().map(item).collect()
}

/// Name, description and schema of every tool. An object schema has `type` and `properties` in the one dialect or the
/// other, whether the client wrote them or not.
fn tools(dialect: Dialect, body: &Value) -> Vec<(String, String, Value)> {
    let tool = |tool: &Value| {
        let (tool, schema) = match dialect {
            Dialect::Chat => (&tool["function"], &tool["function"]["parameters"]),
            Dialect::Messages => (tool, &tool["input_schema"]),
            Dialect::Responses | Dialect::Gemini => panic!("not one of the pair"),
        };
        let mut schema = if schema.is_object() { schema.clone() } else { json!({}) };
        let fields = schema.as_object_mut().unwrap();
        fields.entry("type").or_insert("object".into());
        fields.entry("properties").or_insert(json!({}));
        (string(&tool["name"]), string(&tool["description"]), schema)
    };
    body["tools"].as_array().into_iter().flatten().map(tool).collect()
}

#[test]
fn what_was_said_called_and_answered_arrives_in_order() {
    for capture in captures() {
        let (sent, _) =
            translated(capture.dialect, &capture.body).unwrap_or_else(|e| panic!("{}: {e}", capture.name.display()));
        let (before, after) = match capture.dialect {
            Dialect::Chat => {
                (ids(chat_items(&capture.body), |id| to_messages_safe(id).into_owned()), messages_items(&sent))
            }
            Dialect::Messages => {
                (ids(messages_items(&capture.body), |id| from_messages_safe(id).into_owned()), chat_items(&sent))
            }
            Dialect::Responses | Dialect::Gemini => panic!("not one of the pair"),
        };
        assert_eq!(before, after, "{}", capture.name.display());
        let target = other(capture.dialect);
        assert_eq!(tools(capture.dialect, &capture.body), tools(target, &sent), "{}", capture.name.display());
        assert_eq!(sent["model"], "up");
        assert_eq!(sent["stream"].as_bool().unwrap_or(false), capture.body["stream"].as_bool().unwrap_or(false));
        let limit = |body: &Value| ["max_tokens", "max_completion_tokens"].iter().find_map(|name| body[name].as_u64());
        assert!(limit(&sent) == limit(&capture.body) || limit(&capture.body).is_none());
        for field in ["temperature", "top_p"] {
            assert_eq!(sent[field], capture.body[field]);
        }
    }
}

/// Fields that reach the other dialect, whose meaning the other tests check, by their paths without indexes. A `*` at
/// the end takes all below.
const CARRIED: &[&str] = &[
    "model",
    "stream",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "stop*",
    "stop_sequences*",
    "user",
    "safety_identifier",
    "parallel_tool_calls",
    "tool_choice*",
    "response_format*",
    "reasoning_effort",
    "output_config.effort",
    "output_config.format*",
    "metadata.user_id",
    "thinking.type",
    "thinking.budget_tokens",
    "system",
    "system[].type",
    "system[].text",
    "messages[].role",
    "messages[].content",
    "messages[].content[].type",
    "messages[].content[].text",
    "messages[].content[].image_url.url",
    "messages[].content[].source*",
    "messages[].content[].id",
    "messages[].content[].name",
    "messages[].content[].input*",
    "messages[].content[].tool_use_id",
    "messages[].content[].content",
    "messages[].content[].content[].type",
    "messages[].content[].content[].text",
    "messages[].content[].is_error",
    "messages[].tool_call_id",
    "messages[].tool_calls[].id",
    "messages[].tool_calls[].type",
    "messages[].tool_calls[].function.name",
    "messages[].tool_calls[].function.arguments",
    "tools[].type",
    "tools[].name",
    "tools[].description",
    "tools[].input_schema*",
    "tools[].strict",
    "tools[].function.name",
    "tools[].function.description",
    "tools[].function.parameters*",
    "tools[].function.strict",
];

/// Fields that say nothing on a translated route:
/// - whether a Chat client wants the usage chunk is ours to obey, since the other dialect always tells the usage;
/// - the number of a call in a list that has an order.
const NOTHING: &[&str] = &["stream_options.include_usage", "messages[].tool_calls[].index"];

/// What a target's encoder calls fields that it names in one word for all places.
fn alias(path: &str) -> &str {
    match path.rsplit('.').next().unwrap_or(path) {
        "cache_control" => "cache_control",
        _ if path.contains(".cache_control.") => "cache_control",
        "thinking" | "signature" | "reasoning_content" => "thinking",
        _ => path,
    }
}

fn covers(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => path.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '['])),
        None => pattern == path,
    }
}

/// The paths, without indexes, of all values that hold no others.
fn leaves(value: &Value, path: &str, out: &mut BTreeSet<String>) {
    match value {
        Value::Array(list) => list.iter().for_each(|item| leaves(item, &format!("{path}[]"), out)),
        Value::Object(map) => {
            for (key, value) in map {
                let dot = if path.is_empty() { "" } else { "." };
                leaves(value, &format!("{path}{dot}{key}"), out);
            }
        }
        // Whether it is given or not makes no difference.
        Value::Null => {}
        Value::String(text) if text.is_empty() => {}
        Value::String(_) | Value::Bool(_) | Value::Number(_) => {
            out.insert(path.to_owned());
        }
    }
}

#[test]
fn every_field_is_carried_or_named_or_says_nothing() {
    let mut lost = BTreeSet::new();
    for capture in captures() {
        let (_, encoded) = translated(capture.dialect, &capture.body).unwrap();
        let mut paths = BTreeSet::new();
        leaves(&capture.body, "", &mut paths);
        for path in paths {
            let named = encoded.dropped.iter().any(|name| covers(&format!("{name}*"), &path) || name == alias(&path));
            let listed = CARRIED.iter().chain(NOTHING).any(|pattern| covers(pattern, &path));
            if !named && !listed {
                lost.insert(format!("{path} ({:?}), as in {}", capture.dialect, capture.name.display()));
            }
            // And nothing is named that was carried.
        }
        for name in &encoded.dropped {
            assert!(!["model", "messages", "tools", "system", "stream"].contains(&name.as_str()), "{name} dropped");
        }
    }
    assert!(lost.is_empty(), "{lost:#?}");
}

/// Where every kind of object stands: its path without indexes and a JSON pointer to the first of it.
fn objects(value: &Value, path: &str, pointer: &str, out: &mut Vec<(String, String)>) {
    match value {
        Value::Array(list) => {
            for (at, item) in list.iter().enumerate() {
                objects(item, &format!("{path}[]"), &format!("{pointer}/{at}"), out);
            }
        }
        Value::Object(map) => {
            // Blocks of different types are different objects.
            let kind = map.get("type").and_then(Value::as_str).unwrap_or_default();
            out.push((format!("{path}<{kind}>"), pointer.to_owned()));
            for (key, value) in map {
                let below = format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
                objects(value, &format!("{path}.{key}"), &below, out);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What dialects have and no recorded request does.
fn rarities() -> [Capture; 2] {
    let capture = |dialect, body| Capture { name: "by hand".into(), dialect, body };
    let png = "data:image/png;base64,AAAA";
    [
        capture(
            Dialect::Chat,
            json!({"model":"m","max_tokens":9,"stop":["x"],"user":"u","messages":[
                {"role":"developer","content":[{"type":"text","text":"s","prompt_cache_breakpoint":{"mode":"explicit"}}]},
                {"role":"user","name":"n","content":[{"type":"text","text":"t","cache_control":{"type":"ephemeral"}},
                    {"type":"image_url","image_url":{"url":png,"detail":"low"}}]},
                {"role":"assistant","reasoning_content":"r","thinking_blocks":[{"type":"thinking","thinking":"r","signature":"s"},
                    {"type":"other"}],"content":[{"type":"text","text":"a"},{"type":"refusal","refusal":"no"}],
                    "function_call":{"name":"f","arguments":"{}"}},
                {"role":"function","name":"f","content":"r"}],
                "functions":[{"name":"f","parameters":{"type":"object"}}],"function_call":{"name":"f"},
                "response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"}}},
                "prediction":{"type":"content","content":"x"},"metadata":{"a":"b"}}),
        ),
        capture(
            Dialect::Messages,
            json!({"model":"m","max_tokens":9,"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],
                "metadata":{"user_id":"u"},"thinking":{"type":"enabled","budget_tokens":1024},"messages":[
                {"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},
                    {"type":"image","source":{"type":"url","url":"https://x/y.png"}}]},
                {"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"redacted_thinking","data":"d"},
                    {"type":"tool_use","id":"t1","name":"f","input":{"a":1}}]},
                {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":[{"type":"text","text":"r"},
                    {"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}]}],
                "tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"tool","name":"f","disable_parallel_tool_use":true},
                "output_config":{"effort":"low","format":{"type":"json_schema","schema":{"type":"object"}}}}),
        ),
    ]
}

#[test]
fn a_field_that_nobody_knows_is_named_wherever_it_stands() {
    let mut seen = BTreeSet::new();
    let mut lost = Vec::new();
    for capture in captures().into_iter().chain(rarities()) {
        let mut places = Vec::new();
        objects(&capture.body, "", "", &mut places);
        for (path, pointer) in places {
            if !seen.insert((capture.dialect, path.clone())) {
                continue;
            }
            let mut body = capture.body.clone();
            let object = body.pointer_mut(&pointer).unwrap().as_object_mut().unwrap();
            object.insert("x_unknown".into(), "x_value".into());
            // Refused by name, named, or carried with the raw JSON around it.
            let told = match translated(capture.dialect, &body) {
                Ok((sent, encoded)) => {
                    let named = encoded
                        .dropped
                        .iter()
                        .any(|name| name.ends_with("x_unknown") || path.starts_with(&format!(".{name}")));
                    let marked =
                        encoded.dropped.iter().any(|name| name == "cache_control") && path.contains(".cache_control");
                    named || marked || sent.to_string().contains("x_unknown")
                }
                Err(_) => false,
            };
            if !told {
                lost.push(format!("{:?} {path}", capture.dialect));
            }
        }
    }
    assert!(lost.is_empty(), "{lost:#?}");
}
