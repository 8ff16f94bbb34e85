//! What a real Chat Completions upstream refuses.

use serde_json::Value;

use crate::check::is_tool_name;
use crate::frame::Refused;

const ROLES: [&str; 6] = ["developer", "system", "user", "assistant", "tool", "function"];

pub(crate) fn body(body: &Value) -> Result<(), Refused> {
    if !body["model"].is_string() {
        return Err(Refused::bad("you must provide a model parameter").param("model"));
    }
    let Some(messages) = body["messages"].as_array() else {
        return Err(Refused::bad("Missing required parameter: 'messages'.")
            .param("messages")
            .code("missing_required_parameter"));
    };
    if messages.is_empty() {
        return Err(Refused::bad("Invalid 'messages': empty array.").param("messages").code("empty_array"));
    }
    if body.get("stream_options").is_some_and(|options| !options.is_null()) && body["stream"] != true {
        return Err(Refused::bad("The 'stream_options' parameter is only allowed when 'stream' is enabled.")
            .param("stream_options"));
    }
    for field in ["max_tokens", "max_completion_tokens"] {
        let value = &body[field];
        if !value.is_null() && value.as_u64().is_none_or(|most| most == 0) {
            return Err(Refused::bad(format!("Invalid '{field}': an integer of at least 1 is expected.")).param(field));
        }
    }
    tools(body)?;
    conversation(messages)
}

fn tools(body: &Value) -> Result<(), Refused> {
    let tools = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (at, tool) in tools.iter().enumerate() {
        if tool["type"] != "function" {
            continue;
        }
        if !tool["function"]["name"].as_str().is_some_and(|name| is_tool_name(name, 64)) {
            let path = format!("tools[{at}].function.name");
            let text = format!("Invalid '{path}': string does not match pattern '^[a-zA-Z0-9_-]+$' of at most 64.");
            return Err(Refused::bad(text).param(path).code("invalid_value"));
        }
    }
    let choice = &body["tool_choice"];
    if tools.is_empty() && !choice.is_null() && choice != "none" {
        let text = "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.";
        return Err(Refused::bad(text).param("tool_choice"));
    }
    if let Some(name) = choice["function"]["name"].as_str()
        && !tools.iter().any(|tool| tool["function"]["name"] == name)
    {
        let text = format!("Tool choice '{name}' not found in 'tools' parameter.");
        return Err(Refused::bad(text).param("tool_choice"));
    }
    Ok(())
}

fn conversation(messages: &[Value]) -> Result<(), Refused> {
    // The ids of the last assistant turn's calls that no tool message has answered yet.
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if !ROLES.contains(&role) {
            let path = format!("messages[{at}].role");
            return Err(Refused::bad(format!("Invalid value: '{role}'.")).param(path).code("invalid_value"));
        }
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            let Some(found) = open.iter().position(|have| *have == id) else {
                let text = "Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'.";
                return Err(Refused::bad(text).param(format!("messages[{at}].role")));
            };
            open.swap_remove(found);
            let parts = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
            if parts.iter().any(|part| part["type"] != "text") {
                let text = "Invalid value: a tool message takes only text parts.";
                return Err(Refused::bad(text).param(format!("messages[{at}].content")));
            }
            continue;
        }
        unanswered(&open, at)?;
        if role == "assistant" {
            let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
            open = calls.iter().filter_map(|call| call["id"].as_str()).collect();
            if message["content"].is_null() && calls.is_empty() && message["refusal"].is_null() {
                let text = "Invalid value for 'content': expected a string, got null.";
                return Err(Refused::bad(text).param(format!("messages[{at}].content")));
            }
        } else if message["content"].is_null() {
            let text = "Invalid value for 'content': expected a string, got null.";
            return Err(Refused::bad(text).param(format!("messages[{at}].content")));
        }
    }
    unanswered(&open, messages.len())
}

fn unanswered(open: &[&str], at: usize) -> Result<(), Refused> {
    if open.is_empty() {
        return Ok(());
    }
    let text = format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. \
         The following tool_call_ids did not have response messages: {}",
        open.join(", ")
    );
    Err(Refused::bad(text).param(format!("messages[{at}].role")))
}
