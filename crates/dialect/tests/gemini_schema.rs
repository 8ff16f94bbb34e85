//! The schemas of a Gemini client as other providers get them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

use serde_json::{Value, json};
use turnkeep_base::Dialect;
use turnkeep_dialect::request::{InPath, Operation, StreamForm, encode, read_in_path};

/// The tool's and the answer's schema in what is sent to an upstream of Messages.
fn sent(tools: Value, config: Value) -> (Value, Value) {
    let body = json!({"contents":[{"parts":[{"text":"hi"}]}],"tools":[{"functionDeclarations":[tools]}],"generationConfig":config});
    let path = InPath { model: "m".into(), stream: false, form: StreamForm::Events };
    let request = read_in_path(Operation::Generate, path, body.to_string().into()).unwrap();
    // Twice: what was made for the first turn serves the second.
    let first = encode(Dialect::Messages, &request.turn().unwrap(), "up").unwrap_or_else(|error| panic!("{error}"));
    let again = encode(Dialect::Messages, &request.clone().turn().unwrap(), "up").unwrap();
    assert_eq!(first.body, again.body);
    let sent: Value = serde_json::from_slice(&first.body).unwrap();
    (sent["tools"][0]["input_schema"].clone(), sent["output_config"]["format"]["schema"].clone())
}

#[test]
fn a_schema_of_geminis_own_kind_becomes_json_schema_in_tools_and_answers() {
    let own = json!({"type":"OBJECT","properties":{"city":{"type":"STRING","nullable":true},"type":{"type":"STRING"},
        "days":{"type":"ARRAY","items":{"type":"INTEGER"},"max_items":"3"}},"required":["city"],"property_ordering":["city"]});
    let other = json!({"type":"object","properties":{"city":{"type":["string","null"]},"type":{"type":"string"},
        "days":{"type":"array","items":{"type":"integer"},"maxItems":3}},"required":["city"]});
    let config = json!({"responseMimeType":"application/json","response_schema":own});
    assert_eq!(sent(json!({"name":"f","parameters":own}), config), (other.clone(), other));
}

#[test]
fn a_json_schema_goes_as_it_is_even_where_both_are_given() {
    let schema = json!({"type":"object","properties":{"snake_case":{"$ref":"#/$defs/a"}},"$defs":{"a":{"const":"STRING"}},
        "additionalProperties":false});
    let tool = json!({"name":"f","parameters":{"type":"OBJECT"},"parametersJsonSchema":schema});
    let config =
        json!({"responseMimeType":"application/json","responseJsonSchema":schema,"responseSchema":{"type":"STRING"}});
    assert_eq!(sent(tool, config), (schema.clone(), schema));
    let upper = json!({"name":"f","parametersJsonSchema":{"type":"OBJECT","properties":{"a":{"type":"STRING","default":"STRING"}}}});
    let lower = json!({"type":"object","properties":{"a":{"type":"string","default":"STRING"}}});
    assert_eq!(sent(upper, json!({})).0, lower);
}

#[test]
fn a_tool_without_a_schema_has_none() {
    assert_eq!(sent(json!({"name":"f"}), json!({})), (json!({"type":"object","properties":{}}), Value::Null));
}
