//! What an upstream gets of a client's request, and what stands in it.
//!
//! Included by `#[path = "support/sent.rs"] mod sent;`, beside `pairs`.

#![allow(dead_code, reason = "each test file uses a part of it")]

use super::pairs::{read_body, request};
use serde_json::{Value, json};
use turnkeep_base::Dialect;
use turnkeep_dialect::request::{Encoded, write_for};
use turnkeep_dialect::translation::model;

/// The upstream's body, which its own dialect must accept, and what came with it: written anew also within the dialect.
#[track_caller]
pub fn sent(client: Dialect, body: &Value, target: Dialect) -> (Value, Encoded) {
    sent_to(client, body, target, model(target))
}

/// The same for a model of this name.
#[track_caller]
pub fn sent_to(client: Dialect, body: &Value, target: Dialect, model: &str) -> (Value, Encoded) {
    let encoded = write_for(&request(client, body), target, model, false)
        .unwrap_or_else(|error| panic!("{client} to {target}: {error}: {body}"));
    if let Err(error) = read_body(target, &encoded.body) {
        panic!("{client} to {target}: {error}: {}", String::from_utf8_lossy(&encoded.body));
    }
    (serde_json::from_slice(&encoded.body).unwrap(), encoded)
}

/// As the gateway sends it: within a dialect the client's own bytes.
#[track_caller]
pub fn gone(client: Dialect, body: &Value, target: Dialect) -> (Value, Vec<String>) {
    if client == target {
        let request = request(client, body);
        let bytes = request.pass_through("m");
        return (serde_json::from_slice(&bytes).unwrap(), request.dropped_in_passing());
    }
    let (body, encoded) = sent(client, body, target);
    (body, encoded.dropped)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn list<'v>(value: &'v Value, field: &str) -> impl Iterator<Item = &'v Value> {
    value[field].as_array().into_iter().flatten()
}

/// The calls in a request: id, name, arguments.
pub fn calls(target: Dialect, body: &Value) -> Vec<(String, String, Value)> {
    let parsed = |value: &Value| serde_json::from_str(&text(value)).unwrap_or_else(|_| value.clone());
    match target {
        Dialect::Chat => list(body, "messages")
            .flat_map(|message| list(message, "tool_calls"))
            .map(|call| (text(&call["id"]), text(&call["function"]["name"]), parsed(&call["function"]["arguments"])))
            .collect(),
        Dialect::Responses => list(body, "input")
            .filter(|item| item["type"] == "function_call")
            .map(|item| (text(&item["call_id"]), text(&item["name"]), parsed(&item["arguments"])))
            .collect(),
        Dialect::Messages => list(body, "messages")
            .flat_map(|message| list(message, "content"))
            .filter(|block| block["type"] == "tool_use")
            .map(|block| (text(&block["id"]), text(&block["name"]), block["input"].clone()))
            .collect(),
        Dialect::Gemini => list(body, "contents")
            .flat_map(|content| list(content, "parts"))
            .map(|part| &part["functionCall"])
            .filter(|call| call.is_object())
            .map(|call| (text(&call["id"]), text(&call["name"]), call["args"].clone()))
            .collect(),
    }
}

/// The results in a request: the call's id, what the tool said.
pub fn results(target: Dialect, body: &Value) -> Vec<(String, String)> {
    match target {
        Dialect::Chat => list(body, "messages")
            .filter(|message| message["role"] == "tool")
            .map(|message| (text(&message["tool_call_id"]), text(&message["content"])))
            .collect(),
        Dialect::Responses => list(body, "input")
            .filter(|item| item["type"] == "function_call_output")
            .map(|item| (text(&item["call_id"]), text(&item["output"])))
            .collect(),
        Dialect::Messages => list(body, "messages")
            .flat_map(|message| list(message, "content"))
            .filter(|block| block["type"] == "tool_result")
            .map(|block| (text(&block["tool_use_id"]), text(&block["content"])))
            .collect(),
        Dialect::Gemini => list(body, "contents")
            .flat_map(|content| list(content, "parts"))
            .map(|part| &part["functionResponse"])
            .filter(|response| response.is_object())
            .map(|response| (text(&response["id"]), text(&response["response"]["output"])))
            .collect(),
    }
}

/// The names of the tools in a request, in order.
pub fn tools(target: Dialect, body: &Value) -> Vec<String> {
    tool_list(target, body).iter().map(|tool| text(&tool["name"])).collect()
}

/// The schemas of the tools in a request, in order.
pub fn schemas(target: Dialect, body: &Value) -> Vec<Value> {
    let field = match target {
        Dialect::Chat | Dialect::Responses => "parameters",
        Dialect::Messages => "input_schema",
        Dialect::Gemini => "parametersJsonSchema",
    };
    tool_list(target, body).iter().map(|tool| tool[field].clone()).collect()
}

fn tool_list(target: Dialect, body: &Value) -> Vec<Value> {
    match target {
        Dialect::Chat => list(body, "tools").map(|tool| tool["function"].clone()).collect(),
        Dialect::Responses | Dialect::Messages => list(body, "tools").cloned().collect(),
        Dialect::Gemini => list(body, "tools").flat_map(|tool| list(tool, "functionDeclarations")).cloned().collect(),
    }
}

/// A tool of this name and schema in the client's dialect.
pub fn tool(client: Dialect, name: &str, schema: &Value) -> Value {
    match client {
        Dialect::Chat => json!({"type":"function","function":{"name":name,"parameters":schema}}),
        Dialect::Responses => json!({"type":"function","name":name,"parameters":schema}),
        Dialect::Messages => json!({"name":name,"input_schema":schema}),
        Dialect::Gemini => json!({"name":name,"parametersJsonSchema":schema}),
    }
}
