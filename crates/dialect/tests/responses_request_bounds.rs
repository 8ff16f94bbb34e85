//! Large, deep and odd Responses requests: an answer or a clear refusal, in time that grows with the size alone.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper of a test may fail the test")]

use bytes::Bytes;
use serde_json::{Value, json};
use turnkeep_base::Dialect;
use turnkeep_dialect::json::Invalid;
use turnkeep_dialect::request::{ClientRequest, Operation, encode, read};
use turnkeep_dialect::turn::{Body, ToolKind};

const TARGETS: [Dialect; 3] = [Dialect::Chat, Dialect::Responses, Dialect::Messages];

fn responses(body: impl Into<Bytes>) -> Result<ClientRequest, Invalid> {
    read(Dialect::Responses, Operation::Generate, body.into())
}

/// The request in every other form.
fn everywhere(body: &Value) {
    let request = responses(body.to_string()).unwrap();
    let turn = request.turn().unwrap();
    for target in TARGETS {
        let encoded = encode(target, &turn, "up").unwrap();
        read(target, Operation::Generate, encoded.body).unwrap();
    }
}

#[test]
fn a_hundred_thousand_items_are_carried() {
    let items: Vec<_> = (0..100_000)
        .map(|at| match at % 4 {
            0 => json!({"role": "user", "content": "q"}),
            1 => json!({"type": "reasoning", "summary": [], "encrypted_content": "x"}),
            2 => json!({"type": "function_call", "call_id": format!("c{at}"), "namespace": "n", "name": "f", "arguments": "{}"}),
            _ => json!({"type": "function_call_output", "call_id": format!("c{}", at - 1), "output": "r"}),
        })
        .collect();
    let request = responses(json!({"model": "m", "input": items}).to_string()).unwrap();
    let turn = request.turn().unwrap();
    assert_eq!(turn.messages.len(), 75_000);
    let encoded = encode(Dialect::Responses, &turn, "up").unwrap();
    let body: Value = serde_json::from_slice(&encoded.body).unwrap();
    assert_eq!(body["input"].as_array().unwrap().len(), 100_000);
}

#[test]
fn many_names_of_many_tools_stay_apart() {
    let tools: Vec<_> = (0..1000)
        .map(|at| match at % 3 {
            0 => json!({"type": "function", "name": format!("n__f{}", at + 1)}),
            1 => json!({"type": "namespace", "name": "n", "tools": [{"type": "function", "name": format!("f{at}")}]}),
            _ => json!({"type": "custom", "name": format!("free{at}")}),
        })
        .collect();
    let body = json!({"model": "m", "input": "x", "tools": tools});
    let request = responses(body.to_string()).unwrap();
    let turn = request.turn().unwrap();
    let names: std::collections::BTreeSet<_> = turn
        .tools
        .iter()
        .map(|tool| match &tool.kind {
            ToolKind::Function { name, .. } | ToolKind::Custom { name, .. } => name.to_string(),
            ToolKind::Hosted(kind) => panic!("{kind}"),
        })
        .collect();
    assert_eq!(names.len(), 1000);
    everywhere(&body);
}

#[test]
fn a_schema_of_two_hundred_levels_is_refused_and_one_of_a_hundred_carried() {
    let tool = |depth: usize| {
        let schema =
            format!("{}{}{}", r#"{"type":"object","properties":{"a":"#.repeat(depth / 2), "{}", "}}".repeat(depth / 2));
        format!(r#"{{"model":"m","input":"x","tools":[{{"type":"function","name":"f","parameters":{schema}}}]}}"#)
    };
    let error = responses(tool(200)).unwrap_err();
    assert!(error.path.starts_with("tools[0]") && error.message.contains("nested deeper"), "{error}");
    let fine: Value = serde_json::from_str(&tool(100)).unwrap();
    everywhere(&fine);
}

#[test]
fn deep_items_are_refused_without_recursion() {
    for start in [r#"{"model":"m","input":["#, r#"{"model":"m","input":[{"type":"x","content":"#] {
        let body = format!("{start}{}", "[".repeat(1_000_000));
        assert!(responses(body).is_err());
    }
}

#[test]
fn arguments_that_are_no_json_are_carried() {
    for arguments in ["", "not json", "{\"a\":", "[1]", "null", "7", "\u{0}"] {
        everywhere(&json!({"model": "m", "input": [
            {"role": "user", "content": "q"},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": arguments},
            {"type": "function_call_output", "call_id": "c", "output": "r"},
        ], "tools": [{"type": "function", "name": "f"}]}));
    }
}

#[test]
fn lone_surrogates_and_nul_are_carried() {
    let odd = r"a\ud83d b\udc00 c\u0000 d";
    let body = format!(
        r#"{{"model":"m","instructions":"{odd}","input":[{{"role":"user","content":"{odd}"}},
        {{"type":"custom_tool_call","call_id":"c","name":"f","input":"{odd}"}},
        {{"type":"custom_tool_call_output","call_id":"c","output":"{odd}"}}]}}"#
    );
    let request = responses(body).unwrap();
    let turn = request.turn().unwrap();
    let Body::Text(text) = &turn.messages[1].parts[0].body else { panic!("{:?}", turn.messages[1]) };
    assert_eq!(text, "a\u{fffd} b\u{fffd} c\u{0} d");
    for target in TARGETS {
        let encoded = encode(target, &turn, "up").unwrap();
        serde_json::from_slice::<Value>(&encoded.body).unwrap();
    }
}

#[test]
fn nul_bytes_outside_of_strings_are_no_json() {
    assert!(responses(&b"{\"model\":\"m\",\0\"input\":\"x\"}"[..]).is_err());
    assert!(responses(&b"{\"model\":\"m\",\"input\":\"x\0\"}"[..]).is_err());
    assert!(responses(&b"{\"model\":\"m\",\"input\":\"\xff\"}"[..]).is_err());
}

#[test]
fn empty_content_is_carried_or_refused_in_every_place() {
    let user = json!({"role": "user", "content": "q"});
    for item in [
        json!({"role": "user", "content": ""}),
        json!({"role": "user", "content": []}),
        json!({"role": "user", "content": [{"type": "input_text", "text": ""}]}),
        json!({"role": "assistant", "content": ""}),
        json!({"role": "assistant", "content": []}),
        json!({"role": "assistant", "content": [{"type": "output_text", "text": ""}]}),
        json!({"role": "assistant", "content": [{"type": "refusal", "refusal": ""}]}),
        json!({"role": "developer", "content": ""}),
        json!({"role": "system", "content": []}),
        json!({"type": "reasoning", "summary": []}),
        json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": ""}], "encrypted_content": ""}),
        json!({"type": "additional_tools", "tools": []}),
    ] {
        for input in [json!([user, item]), json!([item, user]), json!([user, item, user])] {
            everywhere(&json!({"model": "m", "input": input, "instructions": "", "tools": []}));
        }
        // Alone it may be too little to send, which is said.
        let request = responses(json!({"model": "m", "input": [item]}).to_string()).unwrap();
        for target in TARGETS {
            if let Err(error) = encode(target, &request.turn().unwrap(), "up") {
                assert!(!error.path.is_empty() && !error.message.is_empty(), "{error:?}");
            }
        }
    }
    for output in [json!(""), json!([]), json!([{"type": "input_text", "text": ""}])] {
        everywhere(&json!({"model": "m", "input": [
            {"role": "user", "content": "q"},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": ""},
            {"type": "function_call_output", "call_id": "c", "output": output},
        ]}));
    }
}
