//! What a request asks for, read once and in one shape for both dialects.
//!
//! Nothing is refused here: a field of the wrong type reads as absent, and the checks of each dialect name it.

use serde_json::Value;

/// The dialect of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Chat,
    Messages,
}

/// A forced or forbidden tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Choice {
    Auto,
    Never,
    Any,
    Named(String),
}

/// A tool the model may call.
#[derive(Debug, Clone)]
pub(crate) struct Tool {
    pub name: String,
    pub schema: Value,
}

/// A tool's result standing at the end of the conversation.
#[derive(Debug, Clone)]
pub(crate) struct ToolResult {
    pub name: String,
    pub text: String,
}

/// How a thinking block is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thinking {
    Off,
    Shown,
    SignatureOnly,
}

/// The request, read.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub dialect: Dialect,
    pub model: String,
    pub stream: bool,
    /// Chat's `stream_options.include_usage`.
    pub include_usage: bool,
    /// Chat's `n`.
    pub replies: u32,
    pub max_tokens: Option<u64>,
    pub stops: Vec<String>,
    pub tools: Vec<Tool>,
    pub choice: Choice,
    pub parallel: bool,
    pub last_user_text: String,
    /// Results that the last message answers with; empty when the last word is the user's.
    pub results: Vec<ToolResult>,
    /// A JSON schema for the answer (`true` when any JSON object will do).
    pub schema: Option<Value>,
    pub thinking: Thinking,
    pub prompt_words: u64,
}

/// Reads a body of either dialect.
pub(crate) fn read(dialect: Dialect, body: &Value) -> Ask {
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_chat = dialect == Dialect::Chat;
    let mut ask = Ask {
        dialect,
        model: body["model"].as_str().unwrap_or("lab").to_owned(),
        stream: body["stream"].as_bool().unwrap_or(false),
        include_usage: body["stream_options"]["include_usage"].as_bool().unwrap_or(false),
        replies: body["n"].as_u64().and_then(|n| u32::try_from(n).ok()).unwrap_or(1).clamp(1, 8),
        max_tokens: body["max_completion_tokens"].as_u64().or_else(|| body["max_tokens"].as_u64()),
        stops: strings(if is_chat { &body["stop"] } else { &body["stop_sequences"] }),
        tools: Vec::new(),
        choice: Choice::Auto,
        parallel: true,
        last_user_text: last_user_text(messages),
        results: Vec::new(),
        schema: None,
        thinking: Thinking::Off,
        prompt_words: prompt_words(body),
    };
    let choice = &body["tool_choice"];
    if is_chat {
        ask.replies = ask.replies.max(1);
        ask.parallel = body["parallel_tool_calls"].as_bool().unwrap_or(true);
        ask.tools = tools(&body["tools"], |tool| {
            let function = tool.get("function")?;
            Some((function.get("name")?.as_str()?.to_owned(), function["parameters"].clone()))
        });
        ask.choice = match choice.as_str().or_else(|| choice["type"].as_str()) {
            Some("none") => Choice::Never,
            Some("required") => Choice::Any,
            Some("function") => Choice::Named(choice["function"]["name"].as_str().unwrap_or_default().to_owned()),
            Some("allowed_tools") if choice["allowed_tools"]["mode"] == "required" => {
                let first = &choice["allowed_tools"]["tools"][0];
                let name = first["function"]["name"].as_str().or_else(|| first["name"].as_str());
                name.map_or(Choice::Any, |name| Choice::Named(name.to_owned()))
            }
            Some(_) | None => Choice::Auto,
        };
        ask.schema = match body["response_format"]["type"].as_str() {
            Some("json_schema") => Some(body["response_format"]["json_schema"]["schema"].clone()),
            Some("json_object") => Some(Value::Bool(true)),
            Some(_) | None => None,
        };
        ask.results = chat_results(messages);
    } else {
        ask.replies = 1;
        ask.parallel = !choice["disable_parallel_tool_use"].as_bool().unwrap_or(false);
        ask.tools =
            tools(&body["tools"], |tool| Some((tool.get("name")?.as_str()?.to_owned(), tool["input_schema"].clone())));
        ask.choice = match choice["type"].as_str() {
            Some("none") => Choice::Never,
            Some("any") => Choice::Any,
            Some("tool") => Choice::Named(choice["name"].as_str().unwrap_or_default().to_owned()),
            Some(_) | None => Choice::Auto,
        };
        let format = &body["output_config"]["format"];
        if format["type"] == "json_schema" {
            ask.schema = Some(format["schema"].clone());
        }
        ask.thinking = match (body["thinking"]["type"].as_str(), body["thinking"]["display"].as_str()) {
            (Some("enabled" | "adaptive"), Some("omitted")) => Thinking::SignatureOnly,
            (Some("enabled" | "adaptive"), _) => Thinking::Shown,
            (_, _) => Thinking::Off,
        };
        ask.results = messages_results(messages);
    }
    ask
}

/// The words of everything the model reads: a stand-in for tokens that anyone can recount.
pub(crate) fn prompt_words(body: &Value) -> u64 {
    ["system", "messages", "tools"].iter().map(|key| words_in(&body[*key])).sum::<u64>().max(1)
}

fn words_in(value: &Value) -> u64 {
    if let Some(text) = value.as_str() {
        return text.split_whitespace().count() as u64;
    }
    if let Some(items) = value.as_array() {
        return items.iter().map(words_in).sum();
    }
    // A part's type, a message's role and a cache mark are not words the model reads.
    let silent = ["type", "role", "cache_control"];
    value.as_object().map_or(0, |map| {
        map.iter().filter(|(key, _)| !silent.contains(&key.as_str())).map(|(_, value)| words_in(value)).sum()
    })
}

fn strings(value: &Value) -> Vec<String> {
    if let Some(one) = value.as_str() {
        return vec![one.to_owned()];
    }
    let many = value.as_array().map(Vec::as_slice).unwrap_or_default();
    many.iter().filter_map(Value::as_str).filter(|stop| !stop.is_empty()).map(str::to_owned).collect()
}

fn tools(value: &Value, read: impl Fn(&Value) -> Option<(String, Value)>) -> Vec<Tool> {
    let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(read).map(|(name, schema)| Tool { name, schema }).collect()
}

/// The text of a content field: a string, or its text parts joined by a line break.
pub(crate) fn text_of(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let parts = content.as_array().map(Vec::as_slice).unwrap_or_default();
    let texts: Vec<&str> =
        parts.iter().filter(|part| part["type"] == "text").filter_map(|part| part["text"].as_str()).collect();
    texts.join("\n")
}

fn last_user_text(messages: &[Value]) -> String {
    let users = messages.iter().rev().filter(|message| message["role"] == "user");
    users.map(|message| text_of(&message["content"])).find(|text| !text.is_empty()).unwrap_or_default()
}

fn chat_results(messages: &[Value]) -> Vec<ToolResult> {
    let tail = messages.iter().rev().take_while(|message| message["role"] == "tool").count();
    let (before, tail) = messages.split_at(messages.len() - tail);
    let calls = before.last().and_then(|message| message["tool_calls"].as_array()).map(Vec::as_slice);
    let calls = calls.unwrap_or_default();
    let named = |id: &Value| {
        let call = calls.iter().find(|call| call["id"] == *id);
        call.and_then(|call| call["function"]["name"].as_str()).unwrap_or("tool").to_owned()
    };
    let result =
        |message: &Value| ToolResult { name: named(&message["tool_call_id"]), text: text_of(&message["content"]) };
    tail.iter().map(result).collect()
}

fn messages_results(messages: &[Value]) -> Vec<ToolResult> {
    let Some(last) = messages.last().filter(|message| message["role"] == "user") else { return Vec::new() };
    let blocks = last["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    let calls: Vec<&Value> = messages
        .iter()
        .filter(|message| message["role"] == "assistant")
        .filter_map(|message| message["content"].as_array())
        .flatten()
        .filter(|block| block["type"] == "tool_use")
        .collect();
    let named = |id: &Value| {
        let call = calls.iter().rev().find(|call| call["id"] == *id);
        call.and_then(|call| call["name"].as_str()).unwrap_or("tool").to_owned()
    };
    let results = blocks.iter().filter(|block| block["type"] == "tool_result");
    let result = |block: &Value| ToolResult { name: named(&block["tool_use_id"]), text: text_of(&block["content"]) };
    results.map(result).collect()
}
