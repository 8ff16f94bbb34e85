//! What a real Responses upstream refuses.

use serde_json::Value;

use crate::check::is_tool_name;
use crate::frame::Refused;
use crate::signature::Signatures;

const FIELDS: [&str; 38] = [
    "model",
    "input",
    "instructions",
    "previous_response_id",
    "conversation",
    "store",
    "background",
    "background_options",
    "include",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "parallel_tool_calls",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
    "context_management",
    "moderation",
    "image",
    "access_programs",
    "client_metadata",
    "generate",
    "modalities",
    "audio",
];

pub(crate) fn body(body: &Value, signatures: &Signatures) -> Result<(), Refused> {
    if let Some(unknown) = body.as_object().and_then(|map| map.keys().find(|key| !FIELDS.contains(&key.as_str()))) {
        let text = format!("Unknown parameter: '{unknown}'.");
        return Err(Refused::bad(text).param(unknown.clone()).code("unknown_parameter"));
    }
    if !body["model"].is_string() {
        return Err(Refused::bad("Missing required parameter: 'model'.")
            .param("model")
            .code("missing_required_parameter"));
    }
    if body["max_output_tokens"].as_i64().is_some_and(|most| most < 16) {
        let text = "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16.";
        return Err(Refused::bad(text).param("max_output_tokens").code("integer_below_min_value"));
    }
    tools(body)?;
    match &body["input"] {
        Value::String(_) => Ok(()),
        Value::Array(items) if items.is_empty() => {
            Err(Refused::bad("Invalid 'input': empty array.").param("input").code("empty_array"))
        }
        Value::Array(items) => conversation(items, signatures),
        Value::Null => {
            Err(Refused::bad("Missing required parameter: 'input'.").param("input").code("missing_required_parameter"))
        }
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            Err(Refused::bad("Invalid type for 'input': expected a string or an array.")
                .param("input")
                .code("invalid_type"))
        }
    }
}

fn tools(body: &Value) -> Result<(), Refused> {
    let tools = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (at, tool) in tools.iter().enumerate() {
        if !tool["type"].is_string() {
            let path = format!("tools[{at}].type");
            return Err(Refused::bad(format!("Missing required parameter: '{path}'."))
                .param(path)
                .code("missing_required_parameter"));
        }
        let named = matches!(tool["type"].as_str(), Some("function" | "custom"));
        if named && !tool["name"].as_str().is_some_and(|name| is_tool_name(name, 64)) {
            let path = format!("tools[{at}].name");
            let text = format!("Invalid '{path}': string does not match pattern '^[a-zA-Z0-9_-]+$' of at most 64.");
            return Err(Refused::bad(text).param(path).code("invalid_value"));
        }
    }
    let choice = &body["tool_choice"];
    if let Some(name) = choice["name"].as_str()
        && !tools.iter().any(|tool| tool["name"] == name)
    {
        let text = format!("Tool choice '{name}' not found in 'tools' parameter.");
        return Err(Refused::bad(text).param("tool_choice"));
    }
    Ok(())
}

/// The parts that a role's message takes.
fn parts(role: &str) -> &'static [&'static str] {
    match role {
        "assistant" => &["output_text", "refusal"],
        _ => &["input_text", "input_image", "input_file", "input_audio"],
    }
}

fn conversation(items: &[Value], signatures: &Signatures) -> Result<(), Refused> {
    let mut open: Vec<&str> = Vec::new();
    let mut known: Vec<&str> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let kind = item["type"].as_str().unwrap_or("message");
        match kind {
            "message" => message(at, item)?,
            "reasoning" => {
                let proof = item["encrypted_content"].as_str().unwrap_or_default();
                let text: String =
                    item["summary"].as_array().into_iter().flatten().filter_map(|part| part["text"].as_str()).collect();
                if proof.is_empty() {
                    let id = item["id"].as_str().unwrap_or("rs_unknown");
                    let text =
                        format!("Item with id '{id}' not found. Items are not persisted when `store` is set to false.");
                    return Err(Refused::new(404, text).param("input"));
                }
                if !signatures.accepts(&text, proof) {
                    let text = "The encrypted content could not be verified.";
                    return Err(Refused::bad(text).param(format!("input[{at}]")).code("invalid_encrypted_content"));
                }
            }
            "function_call" | "custom_tool_call" => {
                let id = text(item, at, "call_id")?;
                let name = text(item, at, "name")?;
                if !is_tool_name(name, 64) {
                    let path = format!("input[{at}].name");
                    return Err(Refused::bad(format!("Invalid '{path}'.")).param(path).code("invalid_value"));
                }
                text(item, at, if kind == "function_call" { "arguments" } else { "input" })?;
                open.push(id);
                known.push(id);
            }
            "function_call_output" | "custom_tool_call_output" => {
                let id = text(item, at, "call_id")?;
                if !known.contains(&id) {
                    let text = format!("No tool call found for function call output with call_id {id}.");
                    return Err(Refused::bad(text).param("input"));
                }
                open.retain(|have| *have != id);
            }
            "item_reference" => {
                let id = item["id"].as_str().unwrap_or_default();
                return Err(Refused::new(404, format!("Item with id '{id}' not found.")).param("input"));
            }
            "compaction" | "compaction_trigger" | "additional_tools" | "configuration_update" => {}
            other => {
                let path = format!("input[{at}].type");
                return Err(Refused::bad(format!("Invalid value: '{other}'.")).param(path).code("invalid_value"));
            }
        }
    }
    match open.first() {
        None => Ok(()),
        Some(id) => Err(Refused::bad(format!("No tool output found for function call {id}.")).param("input")),
    }
}

fn text<'a>(item: &'a Value, at: usize, field: &str) -> Result<&'a str, Refused> {
    item[field].as_str().ok_or_else(|| {
        let path = format!("input[{at}].{field}");
        Refused::bad(format!("Missing required parameter: '{path}'.")).param(path).code("missing_required_parameter")
    })
}

fn message(at: usize, item: &Value) -> Result<(), Refused> {
    let role = item["role"].as_str().unwrap_or_default();
    if !["user", "assistant", "system", "developer"].contains(&role) {
        let path = format!("input[{at}].role");
        return Err(Refused::bad(format!("Invalid value: '{role}'.")).param(path).code("invalid_value"));
    }
    let Some(content) = item["content"].as_array() else {
        return match item["content"].is_string() {
            true => Ok(()),
            false => {
                Err(Refused::bad(format!("Invalid type for 'input[{at}].content'."))
                    .param(format!("input[{at}].content")))
            }
        };
    };
    for (nth, part) in content.iter().enumerate() {
        let kind = part["type"].as_str().unwrap_or_default();
        if !parts(role).contains(&kind) {
            let path = format!("input[{at}].content[{nth}]");
            let text = format!("Invalid value: '{kind}'. Supported values are: {}.", parts(role).join(", "));
            return Err(Refused::bad(text).param(path).code("invalid_value"));
        }
    }
    Ok(())
}
