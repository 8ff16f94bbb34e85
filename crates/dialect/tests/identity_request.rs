//! When two requests ask for the same answer: everything that is asked counts, and no spelling does.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use turnkeep_base::{Dialect, Fingerprint};
use turnkeep_dialect::identity;
use turnkeep_dialect::request::{ClientRequest, Operation, read};

const KEY: [u8; 32] = [7; 32];

fn of(dialect: Dialect, operation: Operation, body: &str) -> Fingerprint {
    let read = read(dialect, operation, Bytes::copy_from_slice(body.as_bytes()));
    identity::request(&KEY, &read.unwrap_or_else(|error| panic!("{error}: {body}")))
}

fn chat(body: &Value) -> Fingerprint {
    of(Dialect::Chat, Operation::Generate, &body.to_string())
}

fn messages(body: &Value) -> Fingerprint {
    of(Dialect::Messages, Operation::Generate, &body.to_string())
}

fn rich_chat() -> Value {
    json!({"model":"m","stream":false,"temperature":0.5,"top_p":1,"max_tokens":100,"n":1,"seed":3,"stop":["x"],
        "presence_penalty":0.1,"frequency_penalty":0.2,"logit_bias":{"5":1},"reasoning_effort":"low","user":"u","store":false,
        "response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"type":"object"}}},
        "tool_choice":"auto","parallel_tool_calls":true,"metadata":{"k":"v"},"unknown_field":{"deep":[1,{"er":null}]},
        "tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{"p":{"type":"string"}}}}}],
        "messages":[{"role":"system","content":"s"},
            {"role":"user","content":[{"type":"text","text":"hi"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]},
            {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},
            {"role":"tool","tool_call_id":"c1","content":"done"}]})
}

fn rich_messages() -> Value {
    json!({"model":"m","max_tokens":100,"temperature":0.5,"top_p":1,"top_k":4,"stop_sequences":["x"],
        "thinking":{"type":"enabled","budget_tokens":50},"output_config":{"effort":"low"},"metadata":{"user_id":"u"},
        "tool_choice":{"type":"auto"},"context_management":{"edits":[]},"unknown_field":true,
        "system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],
        "tools":[{"name":"f","description":"d","input_schema":{"type":"object"},"defer_loading":false}],
        "messages":[{"role":"user","content":[{"type":"text","text":"hi"},
            {"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]},
            {"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"c1","name":"f","input":{"a":1}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"done","is_error":false}]}]})
}

/// Every leaf of a value, changed one at a time, and every member of an object, left out one at a time.
fn changes(value: &Value, keep: &mut dyn FnMut(String, Value), path: &str, rebuild: &dyn Fn(Value) -> Value) {
    match value {
        Value::Object(map) => {
            for (key, inside) in map {
                let put = |new: Value| {
                    let mut map = map.clone();
                    map[key] = new;
                    rebuild(Value::Object(map))
                };
                changes(inside, keep, &format!("{path}.{key}"), &put);
                let mut less = map.clone();
                less.shift_remove(key);
                keep(format!("{path} without {key}"), rebuild(Value::Object(less)));
            }
        }
        Value::Array(list) => {
            for (at, inside) in list.iter().enumerate() {
                let put = |new: Value| {
                    let mut list = list.clone();
                    list[at] = new;
                    rebuild(Value::Array(list))
                };
                changes(inside, keep, &format!("{path}[{at}]"), &put);
            }
            if let Some(last) = list.last() {
                let more = list.iter().chain([last]).cloned().collect();
                keep(format!("{path} with its last twice"), rebuild(Value::Array(more)));
            }
        }
        Value::String(text) => keep(path.to_owned(), rebuild(Value::String(format!("{text}~")))),
        Value::Number(number) => keep(path.to_owned(), rebuild(json!(number.as_f64().unwrap() + 1.0))),
        Value::Bool(is) => keep(path.to_owned(), rebuild(json!(!is))),
        Value::Null => keep(path.to_owned(), rebuild(json!(0))),
    }
}

#[test]
fn whatever_is_asked_otherwise_is_another_request() {
    for (dialect, rich) in [(Dialect::Chat, rich_chat()), (Dialect::Messages, rich_messages())] {
        let mut seen = std::collections::BTreeMap::new();
        seen.insert(of(dialect, Operation::Generate, &rich.to_string()), "as it is".to_owned());
        let mut count = 0;
        let mut keep = |path: String, body: Value| {
            // What cannot be asked has no answer.
            let Ok(read) = read(dialect, Operation::Generate, body.to_string().into()) else { return };
            if path.starts_with(".stream") || path == " without stream" {
                return;
            }
            count += 1;
            if let Some(other) = seen.insert(identity::request(&KEY, &read), path.clone()) {
                panic!("{dialect}: {path} is the same request as {other}");
            }
        };
        changes(&rich, &mut keep, "", &|body| body);
        assert!(count > 60, "{dialect}: only {count} changes");
    }
}

#[test]
fn dialect_operation_and_key_count() {
    let body = r#"{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}"#;
    let here = of(Dialect::Messages, Operation::Generate, body);
    assert_ne!(here, of(Dialect::Chat, Operation::Generate, body));
    assert_ne!(here, of(Dialect::Messages, Operation::CountTokens, body));
    let read = read(Dialect::Messages, Operation::Generate, body.into()).unwrap();
    assert_ne!(here, identity::request(&[8; 32], &read));
}

#[test]
fn how_the_answer_is_sent_makes_no_difference() {
    let plain = rich_chat();
    for (stream, options) in [
        (json!(true), Value::Null),
        (json!(true), json!({"include_usage":true})),
        (Value::Null, json!({"include_usage":false})),
    ] {
        let mut other = plain.clone();
        other["stream"] = stream;
        other["stream_options"] = options;
        assert_eq!(chat(&plain), chat(&other));
    }
    let (mut one, mut other) = (rich_messages(), rich_messages());
    one["stream"] = json!(true);
    other["stream"] = json!(false);
    assert_eq!(messages(&one), messages(&other));
    // Only where they stand for that.
    let mut deep = plain.clone();
    deep["metadata"]["stream"] = json!("true");
    assert_ne!(chat(&plain), chat(&deep));
}

#[test]
fn field_fault_h8_the_same_request_has_the_same_hash_in_every_process() {
    let body = r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"temperature":0.5}"#;
    assert_eq!(of(Dialect::Chat, Operation::Generate, body).to_string(), "74d709772e9ffff34bfa98f840d21e81");
}

#[test]
fn field_fault_k7_the_order_of_keys_makes_no_difference() {
    let one = r#"{"model":"m","tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"x":1,"y":2},"b":{}}}}}],"messages":[{"role":"user","content":"hi"}]}"#;
    let other = "{ \"messages\":\n[{\"content\":\"h\\u0069\",\"role\":\"user\"}], \"tools\":[{\"function\":{\"parameters\":{\"properties\":{\"b\":{ },\"a\":{\"y\":2.0,\"x\":1}},\"type\":\"object\"},\"name\":\"f\"},\"type\":\"function\"}],\"stream\":true,\"model\":\"m\"}";
    assert_eq!(of(Dialect::Chat, Operation::Generate, one), of(Dialect::Chat, Operation::Generate, other));
}

#[test]
fn a_body_that_was_never_checked_is_what_its_bytes_are() {
    let unchecked = |body: &'static [u8]| ClientRequest {
        body: Bytes::from_static(body),
        ..read(Dialect::Chat, Operation::Generate, rich_chat().to_string().into()).unwrap()
    };
    let of = |body| identity::request(&KEY, &unchecked(body));
    assert_eq!(of(b"{\"a\""), of(b"{\"a\""));
    assert_ne!(of(b"{\"a\""), of(b"{\"b\""));
    assert_ne!(of(b"\xff"), of(b"{}"));
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-1000i64..1000).prop_map(Value::from),
        any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(|number| json!(number)),
        ".{0,6}".prop_map(Value::from),
        "[a-c]{2040,2060}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("[a-d]{0,2}", inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// The members of every object in another order, drawn from the seed.
fn permuted(value: &Value, seed: &mut u64) -> Value {
    match value {
        Value::Object(map) => {
            let mut members: Vec<(String, Value)> =
                map.iter().map(|(key, inside)| (key.clone(), permuted(inside, seed))).collect();
            for at in (1..members.len()).rev() {
                *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                members.swap(at, (*seed >> 33) as usize % (at + 1));
            }
            Value::Object(members.into_iter().collect::<Map<_, _>>())
        }
        Value::Array(list) => Value::Array(list.iter().map(|inside| permuted(inside, seed)).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

proptest! {
    #[test]
    fn any_order_of_keys_is_the_same_request_and_any_changed_leaf_is_another(value in value(), seed in any::<u64>(), pretty in any::<bool>()) {
        let body = |value: &Value| json!({"model":"m","messages":[{"role":"user","content":"hi"}],"extra":value});
        let other = permuted(&body(&value), &mut seed.clone());
        let text = if pretty { serde_json::to_string_pretty(&other).unwrap() } else { other.to_string() };
        let here = chat(&body(&value));
        prop_assert_eq!(here, of(Dialect::Chat, Operation::Generate, &text));
        let mut all = Vec::new();
        changes(&value, &mut |path, changed| all.push((path, changed)), "", &|changed| changed);
        for (path, changed) in all {
            // A number so large that one more is the same number.
            if changed != value {
                prop_assert_ne!(here, chat(&body(&changed)), "{}", path);
            }
        }
    }
}
