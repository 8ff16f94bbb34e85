//! What a request asks for, read once and in one shape for every dialect.
//!
//! Nothing is refused here: a field of the wrong type reads as absent, and the checks of each dialect name it.

use serde_json::Value;

/// The dialect of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Chat,
    /// OpenAI's older completions: a prompt that is continued.
    Completions,
    Responses,
    Messages,
    Gemini,
}

/// What a path says of a request whose dialect keeps it out of the body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct InPath<'a> {
    pub model: Option<&'a str>,
    pub stream: bool,
    /// The stream is one JSON array.
    pub array: bool,
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
    /// It takes free text.
    pub custom: bool,
    /// The Responses namespace it is in.
    pub namespace: Option<String>,
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
    /// A stream is one JSON array (Gemini).
    pub array: bool,
    /// The history is to be compacted (Responses).
    pub compacts: bool,
    /// The body, for replies that repeat it.
    pub body: Value,
}

/// Reads a body.
pub(crate) fn read(dialect: Dialect, path: InPath<'_>, body: &Value) -> Ask {
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut ask = Ask {
        dialect,
        model: path.model.or_else(|| body["model"].as_str()).unwrap_or("lab").to_owned(),
        stream: path.stream || body["stream"].as_bool().unwrap_or(false),
        include_usage: body["stream_options"]["include_usage"].as_bool().unwrap_or(false),
        replies: 1,
        max_tokens: None,
        stops: Vec::new(),
        tools: Vec::new(),
        choice: Choice::Auto,
        parallel: true,
        last_user_text: String::new(),
        results: Vec::new(),
        schema: None,
        thinking: Thinking::Off,
        prompt_words: prompt_words(body),
        array: path.array,
        compacts: false,
        body: Value::Null,
    };
    match dialect {
        Dialect::Chat => chat(&mut ask, body, messages),
        Dialect::Completions => {
            ask.max_tokens = Some(body["max_tokens"].as_u64().unwrap_or(16));
            ask.stops = strings(&body["stop"]);
            let prompt = &body["prompt"];
            ask.last_user_text = prompt.as_str().or_else(|| prompt[0].as_str()).unwrap_or_default().to_owned();
        }
        Dialect::Responses => responses(&mut ask, body),
        Dialect::Messages => messages_body(&mut ask, body, messages),
        Dialect::Gemini => gemini(&mut ask, body),
    }
    ask
}

fn chat(ask: &mut Ask, body: &Value, messages: &[Value]) {
    ask.replies = body["n"].as_u64().and_then(|n| u32::try_from(n).ok()).unwrap_or(1).clamp(1, 8);
    ask.max_tokens = body["max_completion_tokens"].as_u64().or_else(|| body["max_tokens"].as_u64());
    ask.stops = strings(&body["stop"]);
    ask.last_user_text = last_user_text(messages);
    ask.parallel = body["parallel_tool_calls"].as_bool().unwrap_or(true);
    ask.tools = tools(&body["tools"], |tool| {
        let function = tool.get("function")?;
        Some((function.get("name")?.as_str()?.to_owned(), function["parameters"].clone()))
    });
    let choice = &body["tool_choice"];
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
}

fn messages_body(ask: &mut Ask, body: &Value, messages: &[Value]) {
    ask.max_tokens = body["max_tokens"].as_u64();
    ask.stops = strings(&body["stop_sequences"]);
    ask.last_user_text = last_user_text(messages);
    let choice = &body["tool_choice"];
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

fn responses(ask: &mut Ask, body: &Value) {
    ask.max_tokens = body["max_output_tokens"].as_u64();
    ask.parallel = body["parallel_tool_calls"].as_bool().unwrap_or(true);
    let items = body["input"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_user = |item: &&Value| item["role"] == "user";
    ask.last_user_text = match body["input"].as_str() {
        Some(text) => text.to_owned(),
        None => {
            let users = items.iter().rev().filter(is_user);
            users.map(|item| text_of(&item["content"])).find(|text| !text.is_empty()).unwrap_or_default()
        }
    };
    let more = items.iter().filter(|item| item["type"] == "additional_tools").flat_map(|item| list(&item["tools"]));
    for tool in list(&body["tools"]).iter().chain(more) {
        responses_tool(tool, None, &mut ask.tools);
    }
    let choice = &body["tool_choice"];
    ask.choice = match choice.as_str().or_else(|| choice["type"].as_str()) {
        Some("none") => Choice::Never,
        Some("required") => Choice::Any,
        Some("function" | "custom") => Choice::Named(choice["name"].as_str().unwrap_or_default().to_owned()),
        Some("allowed_tools") if choice["mode"] == "required" => {
            choice["tools"][0]["name"].as_str().map_or(Choice::Any, |name| Choice::Named(name.to_owned()))
        }
        Some(_) | None => Choice::Auto,
    };
    let format = &body["text"]["format"];
    ask.schema = match format["type"].as_str() {
        Some("json_schema") => Some(format["schema"].clone()),
        Some("json_object") => Some(Value::Bool(true)),
        Some(_) | None => None,
    };
    let wanted = |field: &str| body["reasoning"][field].as_str().is_some_and(|word| word != "none");
    ask.thinking = match (wanted("effort"), wanted("summary")) {
        (_, true) => Thinking::Shown,
        (true, false) => Thinking::SignatureOnly,
        (false, false) => Thinking::Off,
    };
    let tail = items.iter().rev().take_while(|item| is_output(item)).count();
    let result = |item: &Value| {
        let call = items.iter().rev().find(|call| !is_output(call) && call["call_id"] == item["call_id"]);
        let name = call.and_then(|call| call["name"].as_str()).unwrap_or("tool").to_owned();
        ToolResult { name, text: text_of(&item["output"]) }
    };
    ask.results = items[items.len() - tail..].iter().map(result).collect();
    ask.compacts = items.last().is_some_and(|item| item["type"] == "compaction_trigger");
    ask.body = body.clone();
}

fn is_output(item: &Value) -> bool {
    matches!(item["type"].as_str(), Some("function_call_output" | "custom_tool_call_output"))
}

fn responses_tool(tool: &Value, namespace: Option<&str>, out: &mut Vec<Tool>) {
    let name = tool["name"].as_str().unwrap_or_default().to_owned();
    let kept = |schema: Value, custom: bool| Tool {
        name: name.clone(),
        schema,
        custom,
        namespace: namespace.map(str::to_owned),
    };
    match tool["type"].as_str() {
        Some("function") => out.push(kept(tool["parameters"].clone(), false)),
        Some("custom") => out.push(kept(Value::Null, true)),
        Some("namespace") => list(&tool["tools"]).iter().for_each(|inner| responses_tool(inner, Some(&name), out)),
        Some(_) | None => {}
    }
}

fn gemini(ask: &mut Ask, body: &Value) {
    let config = &body["generationConfig"];
    ask.max_tokens = config["maxOutputTokens"].as_u64();
    ask.stops = strings(&config["stopSequences"]);
    let contents = list(&body["contents"]);
    let texts = |content: &Value| {
        let texts: Vec<&str> = list(&content["parts"]).iter().filter_map(|part| part["text"].as_str()).collect();
        texts.join("\n")
    };
    let users = contents.iter().rev().filter(|content| content["role"] != "model");
    ask.last_user_text = users.map(texts).find(|text| !text.is_empty()).unwrap_or_default();
    for tool in list(&body["tools"]) {
        ask.tools.extend(tools(&tool["functionDeclarations"], |function| {
            let schema = function.get("parametersJsonSchema").or_else(|| function.get("parameters"));
            Some((function["name"].as_str()?.to_owned(), schema.cloned().unwrap_or(Value::Null)))
        }));
    }
    let calling = &body["toolConfig"]["functionCallingConfig"];
    ask.choice = match calling["mode"].as_str() {
        Some("NONE") => Choice::Never,
        Some("ANY") => match calling["allowedFunctionNames"][0].as_str() {
            Some(name) => Choice::Named(name.to_owned()),
            None => Choice::Any,
        },
        Some(_) | None => Choice::Auto,
    };
    if config["responseMimeType"] == "application/json" {
        let schema = config.get("responseJsonSchema").or_else(|| config.get("responseSchema"));
        ask.schema = Some(schema.cloned().unwrap_or(Value::Bool(true)));
    }
    let thinking = &config["thinkingConfig"];
    ask.thinking = match (thinking["includeThoughts"].as_bool(), thinking["thinkingBudget"].as_i64()) {
        (_, Some(0)) => Thinking::Off,
        (Some(true), _) => Thinking::Shown,
        (_, _) if thinking.is_object() => Thinking::SignatureOnly,
        (_, _) => Thinking::Off,
    };
    let last = contents.last().map(|content| list(&content["parts"])).unwrap_or_default();
    let result = |part: &Value| {
        let result = &part["functionResponse"];
        let response = &result["response"];
        let text = response["output"].as_str().or_else(|| response["error"].as_str()).map(str::to_owned);
        let text = text.unwrap_or_else(|| response.to_string());
        ToolResult { name: result["name"].as_str().unwrap_or("tool").to_owned(), text }
    };
    ask.results = last.iter().filter(|part| part["functionResponse"].is_object()).map(result).collect();
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The words of everything the model reads: a stand-in for tokens that anyone can recount.
pub(crate) fn prompt_words(body: &Value) -> u64 {
    ["system", "messages", "tools", "instructions", "input", "prompt", "systemInstruction", "contents"]
        .iter()
        .map(|key| words_in(&body[*key]))
        .sum::<u64>()
        .max(1)
}

fn words_in(value: &Value) -> u64 {
    if let Some(text) = value.as_str() {
        return text.split_whitespace().count() as u64;
    }
    if let Some(items) = value.as_array() {
        return items.iter().map(words_in).sum();
    }
    // A part's type, a message's role and a cache mark are not words the model reads.
    let silent = ["type", "role", "cache_control", "thoughtSignature", "encrypted_content"];
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
    list.iter().filter_map(read).map(|(name, schema)| Tool { name, schema, custom: false, namespace: None }).collect()
}

/// The text of a content field: a string, or its text parts joined by a line break.
pub(crate) fn text_of(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let parts = content.as_array().map(Vec::as_slice).unwrap_or_default();
    let texts: Vec<&str> = parts
        .iter()
        .filter(|part| matches!(part["type"].as_str(), Some("text" | "input_text" | "output_text")))
        .filter_map(|part| part["text"].as_str())
        .collect();
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
