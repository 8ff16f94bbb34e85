//! What a provider's prompt cache rests on: the bytes before a cache mark, and the marks themselves. A same-dialect route
//! changes neither; a translated one carries the marks that its target understands and names the others.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

use bytes::Bytes;
use serde_json::{Value, json};
use turnkeep_base::Dialect;
use turnkeep_dialect::request::{Operation, encode, read};

const MARKED: &str = r#"{"model":"m", "max_tokens":5,"tools":[{"name":"f","input_schema":{"type":"object","properties":{"z":{},"a":{}}},"cache_control":{"type":"ephemeral"}}],
  "system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral","ttl":"1h"}}],"messages":[{"role":"user","content":[{"cache_control":{"type":"ephemeral"},"type":"text","text":"h\u00ef"}]}],"stream":true}"#;

fn sent(dialect: Dialect, body: &str, model: &str) -> String {
    let request = read(dialect, Operation::Generate, Bytes::copy_from_slice(body.as_bytes())).unwrap();
    String::from_utf8(request.pass_through(model).to_vec()).unwrap()
}

#[test]
fn field_fault_h7_cache_marks_arrive() {
    assert_eq!(sent(Dialect::Messages, MARKED, "m"), MARKED);
    // From Chat, in either spelling, to Messages.
    let marked = |mark: Value| {
        let mut part = json!({"type":"text","text":"s"});
        part.as_object_mut().unwrap().extend(mark.as_object().unwrap().clone());
        let body = json!({"model":"m","messages":[{"role":"system","content":[part]},{"role":"user","content":"hi"}]});
        let request = read(Dialect::Chat, Operation::Generate, body.to_string().into()).unwrap();
        let encoded = encode(Dialect::Messages, &request.turn().unwrap(), "up").unwrap();
        let body: Value = serde_json::from_slice(&encoded.body).unwrap();
        body["system"][0]["cache_control"].clone()
    };
    assert_eq!(marked(json!({"cache_control":{"type":"ephemeral"}})), json!({"type":"ephemeral"}));
    assert_eq!(
        marked(json!({"prompt_cache_breakpoint":{"mode":"explicit","ttl":"1h"}})),
        json!({"type":"ephemeral","ttl":"1h"})
    );
}

#[test]
fn field_fault_h19_nothing_is_written_anew_and_no_mark_is_stripped() {
    // Another name for the model is the one edit, in its place.
    assert_eq!(sent(Dialect::Messages, MARKED, "up"), MARKED.replacen("\"m\"", "\"up\"", 1));
    let chat = "{\"messages\":[{\"role\":\"user\",\"content\":\"a\\u0062 \"}],\n\"temperature\":1.0,\"model\":\"m\"}";
    assert_eq!(sent(Dialect::Chat, chat, "up"), chat.replacen("\"m\"", "\"up\"", 1));
}

#[test]
fn field_fault_h22_keys_keep_their_order() {
    let body = r#"{"z":1,"model":"m","messages":[{"role":"user","content":"hi","b":1,"a":2}],"a":{"y":1,"x":2},"tools":[{"type":"function","function":{"parameters":{"type":"object","properties":{"z":{},"a":{}}},"name":"f"}}]}"#;
    assert_eq!(sent(Dialect::Chat, body, "m"), body);
    // A translated schema keeps its own order too: it is part of the cached prefix.
    let request = read(Dialect::Chat, Operation::Generate, body.into()).unwrap();
    let encoded = encode(Dialect::Messages, &request.turn().unwrap(), "up").unwrap();
    assert!(String::from_utf8_lossy(&encoded.body).contains(r#""properties":{"z":{},"a":{}}"#));
}

#[test]
fn field_fault_h8_a_translated_request_has_the_same_bytes_each_time() {
    let request = read(Dialect::Messages, Operation::Generate, MARKED.into()).unwrap();
    let encoded = || encode(Dialect::Chat, &request.turn().unwrap(), "up").unwrap();
    assert_eq!(encoded(), encoded());
}
