//! What a real Messages upstream refuses.

use http::HeaderMap;
use serde_json::Value;

use crate::check::is_tool_name;
use crate::frame::Refused;
use crate::signature::Signatures;

const NEW: &str = "2026-10-21";
const OLD: &str = "2023-06-01";

fn version_of(headers: &HeaderMap) -> Option<&str> {
    headers.get("anthropic-version")?.to_str().ok()
}

pub(crate) fn version(headers: &HeaderMap) -> Result<(), Refused> {
    match version_of(headers) {
        Some(NEW | OLD) => Ok(()),
        Some(other) => Err(Refused::bad(format!("anthropic-version: \"{other}\" is not a valid version"))),
        None => Err(Refused::bad("anthropic-version: header is required")),
    }
}

pub(crate) fn body(
    headers: &HeaderMap,
    body: &Value,
    counts_only: bool,
    signatures: &Signatures,
) -> Result<(), Refused> {
    if !body["model"].is_string() {
        return Err(Refused::bad("model: Field required"));
    }
    if !counts_only {
        match &body["max_tokens"] {
            Value::Null => return Err(Refused::bad("max_tokens: Field required")),
            Value::Number(most) if most.is_u64() => {}
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                return Err(Refused::bad("max_tokens: Input should be a valid integer"));
            }
        }
    }
    let is_new = version_of(headers) == Some(NEW);
    for field in ["temperature", "top_p", "top_k"] {
        if is_new && body.get(field).is_some() {
            return Err(Refused::bad(format!("{field}: Extra inputs are not permitted")));
        }
    }
    thinking(headers, body)?;
    tools(body)?;
    blocks_have_text(&body["system"], "system")?;
    let Some(messages) = body["messages"].as_array() else { return Err(Refused::bad("messages: Field required")) };
    if messages.is_empty() {
        return Err(Refused::bad("messages: at least one message is required"));
    }
    for (at, message) in messages.iter().enumerate() {
        one_message(at, at + 1 == messages.len(), message, is_new, signatures)?;
    }
    let merged = merged(messages);
    pairing(&merged)?;
    if body["thinking"]["type"] == "enabled" {
        thinking_leads(&merged)?;
    }
    Ok(())
}

fn thinking(headers: &HeaderMap, body: &Value) -> Result<(), Refused> {
    if body["thinking"]["type"] != "enabled" {
        return Ok(());
    }
    let budget = body["thinking"]["budget_tokens"].as_u64();
    let Some(budget) = budget.filter(|budget| *budget >= 1024) else {
        let text = "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024";
        return Err(Refused::bad(text));
    };
    // With interleaved thinking the budget is for all the blocks of a turn, and may exceed one reply's tokens.
    let betas = headers.get_all("anthropic-beta").iter().filter_map(|value| value.to_str().ok());
    let interleaved =
        betas.flat_map(|value| value.split(',')).any(|beta| beta.trim().starts_with("interleaved-thinking"));
    if !interleaved && body["max_tokens"].as_u64().is_some_and(|most| most <= budget) {
        return Err(Refused::bad("`max_tokens` must be greater than `thinking.budget_tokens`."));
    }
    Ok(())
}

fn tools(body: &Value) -> Result<(), Refused> {
    let tools = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (at, tool) in tools.iter().enumerate() {
        // A dated type is a tool of the provider's own: no schema to check.
        if tool["type"].as_str().is_some_and(|kind| kind != "custom") {
            continue;
        }
        if !tool["name"].as_str().is_some_and(|name| is_tool_name(name, 128)) {
            let text = format!("tools.{at}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'");
            return Err(Refused::bad(text));
        }
        if !tool["input_schema"].is_object() {
            return Err(Refused::bad(format!("tools.{at}.custom.input_schema: Field required")));
        }
        if tool["input_schema"]["type"] != "object" {
            return Err(Refused::bad(format!("tools.{at}.custom.input_schema.type: Input should be 'object'")));
        }
    }
    let choice = &body["tool_choice"];
    if tools.is_empty() && matches!(choice["type"].as_str(), Some("any" | "tool")) {
        return Err(Refused::bad("tool_choice may only be specified while providing tools."));
    }
    if choice["type"] == "tool" && !tools.iter().any(|tool| tool["name"] == choice["name"]) {
        return Err(Refused::bad(format!(
            "Tool '{}' not found in provided tools",
            choice["name"].as_str().unwrap_or("")
        )));
    }
    Ok(())
}

fn blocks_have_text(content: &Value, path: &str) -> Result<(), Refused> {
    let blocks = content.as_array().map(Vec::as_slice).unwrap_or_default();
    if blocks.iter().any(|block| block["type"] == "text" && block["text"].as_str().is_none_or(str::is_empty)) {
        return Err(Refused::bad(format!("{path}: text content blocks must be non-empty")));
    }
    Ok(())
}

fn one_message(
    at: usize,
    is_last: bool,
    message: &Value,
    is_new: bool,
    signatures: &Signatures,
) -> Result<(), Refused> {
    let role = message["role"].as_str().unwrap_or_default();
    if !["user", "assistant", "system"].contains(&role) {
        return Err(Refused::bad(format!("messages.{at}.role: Input should be 'user' or 'assistant'")));
    }
    let content = &message["content"];
    let empty = content.as_str().map(str::is_empty).or_else(|| content.as_array().map(Vec::is_empty));
    match empty {
        None => return Err(Refused::bad(format!("messages.{at}.content: Field required"))),
        Some(true) if !(is_last && role == "assistant") => {
            let text = "all messages must have non-empty content except for the optional final assistant message";
            return Err(Refused::bad(format!("messages.{at}: {text}")));
        }
        Some(_) => {}
    }
    blocks_have_text(content, "messages")?;
    let blocks = content.as_array().map(Vec::as_slice).unwrap_or_default();
    for (nth, block) in blocks.iter().enumerate() {
        let path = format!("messages.{at}.content.{nth}");
        let Some(kind) = block["type"].as_str() else {
            return Err(Refused::bad(format!("{path}.type: Field required")));
        };
        if is_new && role == "assistant" && kind == "document" {
            return Err(Refused::bad(format!("{path}.document: Extra inputs are not permitted")));
        }
        let cited = block["citations"].as_array().is_some_and(|citations| !citations.is_empty());
        if is_new && role == "user" && kind == "text" && cited {
            return Err(Refused::bad(format!("{path}.text.citations: Extra inputs are not permitted")));
        }
        match kind {
            "tool_use" => {
                let id = block["id"].as_str().unwrap_or_default();
                if !is_tool_name(id, usize::MAX) {
                    let text = "String should match pattern '^[a-zA-Z0-9_-]+$'";
                    return Err(Refused::bad(format!("{path}.tool_use.id: {text}")));
                }
                if !block["input"].is_object() {
                    return Err(Refused::bad(format!("{path}.tool_use.input: Input should be a valid dictionary")));
                }
                if role != "assistant" {
                    return Err(Refused::bad(format!("{path}: `tool_use` blocks can only be in `assistant` messages")));
                }
            }
            "tool_result" if role != "user" => {
                return Err(Refused::bad(format!("{path}: `tool_result` blocks can only be in `user` messages")));
            }
            "thinking" => {
                let thinking = block["thinking"].as_str().unwrap_or_default();
                let signature = block["signature"].as_str().unwrap_or_default();
                if !signatures.accepts(thinking, signature) {
                    return Err(Refused::bad(format!("{path}: Invalid `signature` in `thinking` block")));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Turns as the server sees them: neighbours of one role are one turn. `at` is the first message's place.
struct MergedTurn<'a> {
    at: usize,
    role: &'a str,
    blocks: Vec<&'a Value>,
}

fn merged(messages: &[Value]) -> Vec<MergedTurn<'_>> {
    let mut turns: Vec<MergedTurn<'_>> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if role == "system" {
            continue;
        }
        let blocks: Vec<&Value> = match message["content"].as_array() {
            Some(blocks) => blocks.iter().collect(),
            None => vec![&message["content"]],
        };
        match turns.last_mut().filter(|turn| turn.role == role) {
            Some(turn) => turn.blocks.extend(blocks),
            None => turns.push(MergedTurn { at, role, blocks }),
        }
    }
    turns
}

fn ids<'a>(turn: &MergedTurn<'a>, kind: &str, field: &str) -> Vec<&'a str> {
    let blocks = turn.blocks.iter().filter(|block| block["type"] == kind);
    blocks.filter_map(|block| block[field].as_str()).collect()
}

/// Every call is answered in the next user turn, first, once, and nothing else is.
fn pairing(turns: &[MergedTurn<'_>]) -> Result<(), Refused> {
    let mut asked: Vec<&str> = Vec::new();
    for turn in turns {
        if turn.role == "assistant" {
            asked = ids(turn, "tool_use", "id");
            continue;
        }
        let answered = ids(turn, "tool_result", "tool_use_id");
        for (nth, id) in answered.iter().enumerate() {
            if !asked.contains(id) {
                return Err(Refused::bad(format!(
                    "messages.{}.content.{nth}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each \
                     `tool_result` block must have a corresponding `tool_use` block in the previous message.",
                    turn.at
                )));
            }
            if answered[..nth].contains(id) {
                return Err(Refused::bad(format!(
                    "messages.{}.content.{nth}: each tool_use must have a single result. Found multiple \
                     `tool_result` blocks with id: {id}",
                    turn.at
                )));
            }
        }
        let leading = turn.blocks.iter().take_while(|block| block["type"] == "tool_result").count();
        let missing: Vec<&str> = asked.iter().filter(|id| !answered.contains(id)).copied().collect();
        if !missing.is_empty() || leading < answered.len() {
            let named = if missing.is_empty() { asked.join(", ") } else { missing.join(", ") };
            return Err(Refused::bad(format!(
                "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately after: {named}. Each \
                 `tool_use` block must have a corresponding `tool_result` block in the next message.",
                turn.at
            )));
        }
        asked.clear();
    }
    if asked.is_empty() {
        return Ok(());
    }
    let named = asked.join(", ");
    Err(Refused::bad(format!(
        "messages: `tool_use` ids were found without `tool_result` blocks immediately after: {named}."
    )))
}

/// With thinking on, the turn whose calls are being answered starts with its thinking.
fn thinking_leads(turns: &[MergedTurn<'_>]) -> Result<(), Refused> {
    let [.., calls, results] = turns else { return Ok(()) };
    let answers = results.blocks.iter().any(|block| block["type"] == "tool_result");
    let first = calls.blocks.first().and_then(|block| block["type"].as_str()).unwrap_or("text");
    if answers && calls.role == "assistant" && !["thinking", "redacted_thinking"].contains(&first) {
        return Err(Refused::bad(format!(
            "messages.{}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{first}`. When \
             `thinking` is enabled, a final `assistant` message must start with a thinking block.",
            calls.at
        )));
    }
    Ok(())
}
