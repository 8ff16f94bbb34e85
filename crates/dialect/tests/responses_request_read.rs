//! A Responses request as it is read on every turn: what is refused, by which path, and which bytes change on the way.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper of a test may fail the test")]

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};
use turnkeep_base::Dialect;
use turnkeep_dialect::identity::Foreign;
use turnkeep_dialect::json::Invalid;
use turnkeep_dialect::request::{ClientRequest, Operation, apply, read};
use turnkeep_dialect::responses::request::foreign_reasoning;

const FULL: &str = include_str!("responses_requests/full.json");

fn responses(body: &str) -> Result<ClientRequest, Invalid> {
    read(Dialect::Responses, Operation::Generate, Bytes::copy_from_slice(body.as_bytes()))
}

fn with(fields: &str) -> Result<ClientRequest, Invalid> {
    responses(&format!(r#"{{"model":"m","input":"hi"{fields}}}"#))
}

fn of_item(item: &str) -> Result<ClientRequest, Invalid> {
    responses(&format!(r#"{{"model":"m","input":[{item}]}}"#))
}

fn fault(outcome: Result<ClientRequest, Invalid>) -> (String, String) {
    let error = outcome.unwrap_err();
    (error.path, error.message)
}

#[test]
fn what_the_gateway_must_know_is_found() {
    let request = responses(FULL).unwrap();
    assert_eq!((request.model.as_str(), request.stream, request.max_output), ("m", true, Some(900)));
    assert_eq!((request.dialect, request.choices), (Dialect::Responses, 1));
    assert_eq!(&request.body[request.spans.model.clone()], br#""m""#);
    let plain = with(r#","stream":null,"max_output_tokens":null,"instructions":null,"tools":null"#).unwrap();
    assert_eq!((plain.stream, plain.max_output), (false, None));
}

#[test]
fn the_tokens_of_the_same_body_can_be_counted() {
    let body = Bytes::from_static(FULL.as_bytes());
    let request = read(Dialect::Responses, Operation::CountTokens, body.clone()).unwrap();
    assert_eq!(request.operation, Operation::CountTokens);
    assert!(read(Dialect::Responses, Operation::Embed, body).unwrap_err().message.contains("embeddings"));
}

#[test]
fn errors_of_the_request_name_the_path() {
    for (body, path, message) in [
        ("[]", "", "expected an object, found an array"),
        (r#"{"input":"x"}"#, "model", "missing"),
        (r#"{"model":"","input":"x"}"#, "model", "empty string"),
        (r#"{"model":7,"input":"x"}"#, "model", "expected a string, found a number"),
        (r#"{"model":"m"}"#, "input", "one of `input`"),
        (r#"{"model":"m","input":[]}"#, "input", "one of `input`"),
        (r#"{"model":"m","input":null}"#, "input", "one of `input`"),
        (r#"{"model":"m","input":{}}"#, "input", "a string or an array of items"),
        (r#"{"model":"m","input":["x"]}"#, "input[0]", "expected an object, found a string"),
        (r#"{"model":"m","input":"x","conversation":{}}"#, "conversation.id", "missing"),
        (r#"{"model":"m","input":"x","previous_response_id":7}"#, "previous_response_id", "expected a string"),
        (r#"{"model":"m","input":"x","store":"no"}"#, "store", "expected a boolean"),
        (r#"{"model":"m","input":"x","max_output_tokens":-1}"#, "max_output_tokens", "at least 0"),
        (r#"{"model":"m","input":"x","text":{"format":{}}}"#, "text.format.type", "missing"),
        (
            r#"{"model":"m","input":"x","text":{"format":{"type":"json_schema","name":"a"}}}"#,
            "text.format.schema",
            "missing",
        ),
        (
            r#"{"model":"m","input":"x","text":{"format":{"name":7,"type":"json_schema"}}}"#,
            "text.format.name",
            "a string",
        ),
        (r#"{"model":"m","input":"x","reasoning":{"effort":1}}"#, "reasoning.effort", "expected a string"),
        (r#"{"model":"m","input":"x","include":[1]}"#, "include[0]", "expected a string"),
        (r#"{"model":"m","input":"x","tools":[{"name":"a"}]}"#, "tools[0].type", "missing"),
        (r#"{"model":"m","input":"x","tools":[{"type":"function"}]}"#, "tools[0].name", "missing"),
        (
            r#"{"model":"m","input":"x","tools":[{"type":"function","name":"a","parameters":[]}]}"#,
            "tools[0].parameters",
            "a JSON schema",
        ),
        (
            r#"{"model":"m","input":"x","tools":[{"type":"namespace","name":"n","tools":[{"type":"custom"}]}]}"#,
            "tools[0].tools[0].name",
            "missing",
        ),
        (r#"{"model":"m","input":"x","tool_choice":7}"#, "tool_choice", "a word"),
        (r#"{"model":"m","input":"x","tool_choice":{"type":"function"}}"#, "tool_choice.name", "missing"),
        (
            r#"{"model":"m","input":"x","tool_choice":{"type":"allowed_tools","tools":[{}]}}"#,
            "tool_choice.tools[0].type",
            "missing",
        ),
    ] {
        let (found, said) = fault(responses(body));
        assert_eq!(found, path, "{body}: {said}");
        assert!(said.contains(message), "{body}: {said}");
    }
}

#[test]
fn errors_of_items_name_the_path() {
    for (item, path, message) in [
        (r#"{"content":"x"}"#, "role", "missing"),
        (r#"{"role":"robot","content":"x"}"#, "role", "unknown role `robot`"),
        (r#"{"role":7,"content":"x"}"#, "role", "expected a string"),
        (r#"{"role":"user"}"#, "content", "missing"),
        (r#"{"role":"user","content":null}"#, "content", "a string or an array of parts"),
        (r#"{"role":"user","content":["x"]}"#, "content[0]", "an object with a `type`"),
        (r#"{"role":"user","content":[{"type":"input_text","text":""},{"text":"x"}]}"#, "content[1].type", "missing"),
        (r#"{"content":[{"text":7,"type":"input_text"}],"role":"user"}"#, "content[0].text", "expected a string"),
        (r#"{"role":"user","content":[{"type":"input_image"}]}"#, "content[0]", "`image_url`"),
        (r#"{"role":"user","content":[{"type":"input_image","image_url":{}}]}"#, "content[0].image_url", "a string"),
        (r#"{"role":"user","content":[{"type":"input_file","filename":"a"}]}"#, "content[0]", "`file_data`"),
        (r#"{"type":7,"role":"user","content":"x"}"#, "type", "expected a string"),
        (r#"{"type":"function_call","name":"a","arguments":""}"#, "call_id", "missing"),
        (r#"{"type":"function_call","call_id":"c","name":"a","arguments":{}}"#, "arguments", "expected a string"),
        (r#"{"type":"function_call_output","output":"x"}"#, "call_id", "missing"),
        (r#"{"call_id":"c","output":7,"type":"function_call_output"}"#, "output", "a string or an array of parts"),
        (r#"{"call_id":"c","output":[{}],"type":"custom_tool_call_output"}"#, "output[0].type", "missing"),
        (r#"{"type":"custom_tool_call","call_id":"c","name":"a"}"#, "input", "missing"),
        (r#"{"type":"reasoning","summary":"x"}"#, "summary", "an array of parts"),
        (r#"{"type":"reasoning","summary":[],"encrypted_content":{}}"#, "encrypted_content", "expected a string"),
        (r#"{"type":"item_reference"}"#, "id", "missing"),
        (r#"{"type":"additional_tools"}"#, "tools", "missing"),
        (r#"{"tools":[{"type":"function"}],"type":"additional_tools"}"#, "tools[0].name", "missing"),
    ] {
        let (found, said) = fault(of_item(item));
        assert_eq!(found, format!("input[0].{path}"), "{item}: {said}");
        assert!(said.contains(message), "{item}: {said}");
    }
}

#[test]
fn unknown_fields_items_and_parts_pass() {
    with(r#","future":{"a":[1]}"#).unwrap();
    for item in [
        r#"{"type":"hologram","role":7,"content":[1],"output":{"x":1},"summary":5,"tools":[{"name":"a"}],"call_id":[]}"#,
        r#"{"type":"mcp_list_tools","server_label":"s","tools":[{"name":"a","input_schema":{}}]}"#,
        r#"{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot"}}"#,
        r#"{"role":"user","content":[{"type":"smell","text":7}]}"#,
        r#"{"id":"fc_1"}"#,
        r#"{"id":"fc_1","type":null}"#,
        r#"{"type":"compaction_trigger"}"#,
    ] {
        of_item(item).unwrap();
    }
}

#[test]
fn a_request_without_input_may_ask_by_what_is_stored() {
    for field in [r#""previous_response_id":"resp_1""#, r#""conversation":"conv_1""#, r#""prompt":{"id":"pmpt_1"}"#] {
        for input in ["", r#","input":[]"#, r#","input":null"#] {
            responses(&format!(r#"{{"model":"m",{field}{input}}}"#)).unwrap();
        }
    }
    let empty = responses(r#"{"model":"m","previous_response_id":null}"#);
    assert_eq!(fault(empty).0, "input");
}

#[test]
fn a_field_that_the_gateway_reads_may_stand_there_once() {
    for (field, value) in [
        ("model", "\"m\""),
        ("input", "\"x\""),
        ("stream", "true"),
        ("max_output_tokens", "1"),
        ("previous_response_id", "null"),
        ("conversation", "null"),
        ("store", "null"),
        ("background", "false"),
    ] {
        let (path, message) =
            fault(responses(&format!(r#"{{"model":"m","input":"x","{field}":{value},"{field}":{value}}}"#)));
        assert_eq!(path, field);
        assert!(message.contains("duplicate"), "{message}");
    }
}

#[test]
fn only_the_models_name_changes_in_passing() {
    let request = responses(FULL).unwrap();
    assert_eq!(request.pass_through("m"), FULL.as_bytes());
    let changed = request.pass_through("other");
    assert_eq!(changed, FULL.replacen(r#""m""#, r#""other""#, 1).as_bytes());
}

#[test]
fn reasoning_in_our_envelope_is_taken_out_in_passing() {
    let own = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "bmF0aXZl"});
    let foreign = json!({"type": "reasoning", "summary": [], "encrypted_content": "turnkeep.messages.c2ln"});
    let user = json!({"role": "user", "content": "turnkeep. is a word"});
    for (input, left) in [
        (json!([user, foreign, own]), json!([user, own])),
        (json!([foreign, foreign, user]), json!([user])),
        (json!([user, foreign]), json!([user])),
        (json!([user, own]), json!([user, own])),
        (json!([foreign]), json!([{"type": "message", "role": "user", "content": "..."}])),
    ] {
        let body = json!({"model": "m", "input": input, "stream": true}).to_string();
        let request = responses(&body).unwrap();
        let passed: Value = serde_json::from_slice(&request.pass_through("m")).unwrap();
        assert_eq!(passed["input"], left);
        assert_eq!(passed["stream"], true);
    }
}

#[test]
fn all_reasoning_can_be_taken_out_for_another_owner() {
    let request = responses(FULL).unwrap();
    let edits = foreign_reasoning(&request, Foreign::All);
    let left: Value = serde_json::from_slice(&apply(&request.body, &edits)).unwrap();
    let mut expected: Value = serde_json::from_str(FULL).unwrap();
    let items = expected["input"].as_array_mut().unwrap();
    items.retain(|item| item["type"] != "reasoning");
    assert_eq!(left, expected);
    assert_eq!(foreign_reasoning(&request, Foreign::Enveloped), []);
}

/// Every place in a document.
fn places(value: &Value, here: &str, out: &mut Vec<String>) {
    out.push(here.to_owned());
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| places(value, &format!("{here}/{key}"), out)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, value)| places(value, &format!("{here}/{at}"), out))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn a_wrong_type_at_any_place_is_an_answer_or_an_error_with_its_path() {
    let full: Value = serde_json::from_str(FULL).unwrap();
    let mut all = Vec::new();
    places(&full, "", &mut all);
    assert!(all.len() > 150);
    let odd = [
        json!(null),
        json!(true),
        json!(-1.5),
        json!(""),
        json!("x"),
        json!([]),
        json!([[1]]),
        json!({}),
        json!({"type": 7}),
    ];
    let (mut refused, mut taken) = (0, 0);
    for place in &all {
        for value in &odd {
            let mut body = full.clone();
            *body.pointer_mut(place).unwrap() = value.clone();
            let outcome = responses(&body.to_string()).and_then(|request| request.turn().map(drop));
            match outcome {
                Ok(()) => taken += 1,
                Err(error) => {
                    refused += 1;
                    let steps = place.trim_start_matches('/').replace('/', ".");
                    let first = steps.split('.').next().unwrap();
                    assert!(error.path.starts_with(first) || first.is_empty(), "{place} as {value}: {error:?}");
                    assert!(!error.message.is_empty());
                }
            }
        }
    }
    assert!(refused > 400 && taken > 400, "{refused} refused, {taken} taken");
}

#[test]
fn a_missing_field_at_any_place_is_an_answer_or_an_error_with_its_path() {
    let full: Value = serde_json::from_str(FULL).unwrap();
    let mut all = Vec::new();
    places(&full, "", &mut all);
    for place in all.iter().filter(|place| !place.is_empty()) {
        let mut body = full.clone();
        let (parent, key) = place.rsplit_once('/').unwrap();
        match body.pointer_mut(parent).unwrap() {
            Value::Object(fields) => drop(fields.remove(key)),
            Value::Array(items) => drop(items.remove(key.parse().unwrap())),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => panic!("{place}"),
        }
        if let Err(error) = responses(&body.to_string()).and_then(|request| request.turn().map(drop)) {
            assert!(!error.path.is_empty(), "{place}: {error:?}");
        }
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(cut in 0..FULL.len(), bytes in prop::collection::vec(any::<u8>(), 0..8)) {
        let mut body = FULL.as_bytes().to_vec();
        body.splice(cut..(cut + bytes.len()).min(FULL.len()), bytes);
        let outcome = read(Dialect::Responses, Operation::Generate, body.into());
        if let Ok(request) = outcome {
            let turn = request.turn();
            prop_assert!(turn.is_ok() || !turn.unwrap_err().message.is_empty());
        }
    }
}
