//! The recorded requests of real clients, of whichever dialect, on the way to every other: each is written, its target's
//! own reader takes it, every call goes along, and every text that somebody said arrives.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

#[path = "support/pairs.rs"]
mod pairs;

use pairs::read_body;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use turnkeep_base::Dialect;
use turnkeep_dialect::request::write_for;
use turnkeep_dialect::translation::model;

struct Capture {
    name: PathBuf,
    dialect: Dialect,
    body: Value,
}

fn dialect(target: &str) -> Option<Dialect> {
    let path = target.split('?').next().unwrap_or_default();
    match path {
        "/v1/chat/completions" => Some(Dialect::Chat),
        "/v1/responses" => Some(Dialect::Responses),
        "/v1/messages" => Some(Dialect::Messages),
        path => path.to_ascii_lowercase().ends_with("generatecontent").then_some(Dialect::Gemini),
    }
}

fn captures() -> Vec<Capture> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/captures");
    let mut found = Vec::new();
    for folder in std::fs::read_dir(root).unwrap() {
        for file in std::fs::read_dir(folder.unwrap().path()).unwrap() {
            let name = file.unwrap().path();
            let mut capture: Value = serde_json::from_slice(&std::fs::read(&name).unwrap()).unwrap();
            let body = capture["body"].take();
            if let Some(dialect) = dialect(capture["target"].as_str().unwrap()).filter(|_| body.is_object()) {
                found.push(Capture { name, dialect, body });
            }
        }
    }
    assert!(found.len() > 100, "recorded requests are missing");
    found
}

/// Every object of a value.
fn objects<'v>(value: &'v Value, out: &mut Vec<&'v serde_json::Map<String, Value>>) {
    match value {
        Value::Object(fields) => {
            out.push(fields);
            fields.values().for_each(|value| objects(value, out));
        }
        Value::Array(items) => items.iter().for_each(|value| objects(value, out)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn strings<'v>(value: &'v Value, out: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => out.push(text),
        Value::Object(fields) => fields.values().for_each(|value| strings(value, out)),
        Value::Array(items) => items.iter().for_each(|value| strings(value, out)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn conversation(dialect: Dialect, body: &Value) -> &Value {
    match dialect {
        Dialect::Chat | Dialect::Messages => &body["messages"],
        Dialect::Responses => &body["input"],
        Dialect::Gemini => &body["contents"],
    }
}

/// How many calls stand in a conversation.
fn calls(dialect: Dialect, body: &Value) -> usize {
    let mut all = Vec::new();
    objects(conversation(dialect, body), &mut all);
    let is = |fields: &serde_json::Map<String, Value>, kinds: &[&str]| {
        fields.get("type").and_then(Value::as_str).is_some_and(|kind| kinds.contains(&kind))
    };
    all.iter()
        .filter(|fields| match dialect {
            Dialect::Chat => fields.contains_key("function") && fields.contains_key("id"),
            Dialect::Responses => is(fields, &["function_call", "custom_tool_call"]),
            Dialect::Messages => is(fields, &["tool_use"]),
            Dialect::Gemini => fields.contains_key("functionCall") || fields.contains_key("function_call"),
        })
        .count()
}

/// Every text that the user or the model said.
fn said(dialect: Dialect, body: &Value) -> BTreeSet<String> {
    let mut all = Vec::new();
    objects(conversation(dialect, body), &mut all);
    let plain = |fields: &&&serde_json::Map<String, Value>| {
        fields.get("thought") != Some(&Value::Bool(true))
            && !["summary_text", "reasoning_text", "thinking"]
                .contains(&fields.get("type").and_then(Value::as_str).unwrap_or_default())
    };
    let texts = all.iter().filter(plain).flat_map(|fields| [fields.get("text"), fields.get("content")]);
    let texts = texts.flatten().filter_map(Value::as_str).map(|text| text.trim().to_owned());
    texts.filter(|text| !text.is_empty()).collect()
}

#[test]
fn every_recorded_request_reaches_every_upstream_with_all_that_was_said() {
    for Capture { name, dialect, body } in captures() {
        let request = read_body(dialect, body.to_string().as_bytes())
            .unwrap_or_else(|error| panic!("{}: {error}", name.display()));
        for target in Dialect::ALL {
            let encoded = match write_for(&request, target, model(target), false) {
                Ok(encoded) => encoded,
                // What only a server with the conversation, or the vendor's own tool, could do is refused by its path.
                Err(error) => {
                    let text = body.to_string();
                    let stored = ["item_reference", "previous_response_id", "compaction", "\"conversation\""];
                    assert!(stored.iter().any(|word| text.contains(word)), "{} to {target}: {error}", name.display());
                    assert!(!error.path.is_empty(), "{} to {target}: {error}", name.display());
                    continue;
                }
            };
            read_body(target, &encoded.body).unwrap_or_else(|error| panic!("{} to {target}: {error}", name.display()));
            let sent: Value = serde_json::from_slice(&encoded.body).unwrap();
            assert_eq!(calls(target, &sent), calls(dialect, &body), "{} to {target}", name.display());
            let mut arrived = Vec::new();
            strings(&sent, &mut arrived);
            for text in said(dialect, &body) {
                let there = arrived.iter().any(|arrived| arrived.contains(&text));
                assert!(there, "{} to {target}: {text:?} did not arrive", name.display());
            }
        }
    }
}
