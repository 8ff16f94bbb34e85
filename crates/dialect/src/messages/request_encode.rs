//! A canonical turn as a Messages request. Content that Messages has no place for is an error with its path; hints are
//! dropped and named.
//!
//! Choices made here, where the dialects differ:
//! - `max_tokens` is required: [`DEFAULT_MAX_TOKENS`] when the client gave none.
//! - Leading system messages become `system`. A later one becomes user text between `<system>` and `</system>`, in its
//!   place: only some models take the role `system` among the messages.
//! - Empty texts are left out, because the API refuses them.
//! - Thinking goes along only with the provider's own signature.
//! - Sampling parameters exist only in the older API version, which is asked for when they are set.

use super::conversation::{Answer, Group, Piece, groups, split};
use super::input;
use crate::json::{Array, Invalid, Kind, Object, Reader};
use crate::request::{ApiVersion, Encoded};
use crate::tool_id;
use crate::turn::{Body, Image, Message, Output, Part, Thinking, Tool, ToolChoice, ToolKind, Turn};
use std::collections::BTreeSet;

/// The limit of output tokens when the client names none.
pub const DEFAULT_MAX_TOKENS: u64 = 4096;
/// What a call is told that the client never answered.
const NO_RESULT: &str = "no result was given";
/// The start of signatures that the gateway made itself and no provider accepts.
const OUR_ENVELOPE: &str = "turnkeep.";

type Dropped = BTreeSet<String>;

/// Writes the request for the upstream's name of the model.
pub fn encode(turn: &Turn<'_>, upstream_model: &str) -> Result<Encoded, Invalid> {
    let mut dropped: Dropped = turn.hints.iter().cloned().collect();
    let mut out = Vec::with_capacity(1024);
    let mut request = Object::open(&mut out);
    request.string("model", upstream_model);
    request.number("max_tokens", max_tokens(turn));
    let (system, rest) = split(&turn.messages);
    write_system(&mut request, system, &mut dropped)?;
    write_messages(&mut request, rest, &mut dropped)?;
    write_tools(&mut request, turn)?;
    write_sampling(&mut request, turn, &mut dropped);
    write_output(&mut request, turn, &mut dropped)?;
    if let Some(user) = &turn.user {
        request.object("metadata").string("user_id", user);
    }
    if turn.stream {
        request.bool("stream", true);
    }
    drop(request);
    let sampled = turn.temperature.is_some() || turn.top_p.is_some() || turn.top_k.is_some();
    let version = if sampled { ApiVersion::V2023 } else { ApiVersion::V2026 };
    Ok(Encoded { body: out.into(), dropped: dropped.into_iter().collect(), version })
}

/// A thinking budget must stay below the limit.
fn max_tokens(turn: &Turn<'_>) -> u64 {
    turn.max_output.unwrap_or(match turn.reasoning.mode {
        Some(Thinking::Budget(budget)) => budget.saturating_add(DEFAULT_MAX_TOKENS),
        Some(Thinking::Adaptive | Thinking::Off) | None => DEFAULT_MAX_TOKENS,
    })
}

fn refused(part: &Part<'_>, message: impl Into<String>) -> Invalid {
    Invalid { path: part.at.path(), message: message.into(), at: 0 }
}

fn at(path: impl Into<String>, message: impl Into<String>) -> Invalid {
    Invalid { path: path.into(), message: message.into(), at: 0 }
}

/// The API refuses a text without a visible character.
fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

fn write_system(request: &mut Object<'_>, system: &[Message<'_>], dropped: &mut Dropped) -> Result<(), Invalid> {
    let mut texts = Vec::new();
    for part in system.iter().flat_map(|message| &message.parts) {
        match system_text(part, dropped)? {
            Some(text) if !is_blank(text) => texts.push((text, part.cache)),
            Some(_) | None => {}
        }
    }
    match texts.as_slice() {
        [] => {}
        [(text, None)] => request.string("system", text),
        several => {
            let mut blocks = request.array("system");
            for (text, cache) in several {
                write_text(&mut blocks, text, *cache);
            }
        }
    }
    Ok(())
}

/// The text of a part of a system message.
fn system_text<'t>(part: &'t Part<'_>, dropped: &mut Dropped) -> Result<Option<&'t str>, Invalid> {
    match &part.body {
        Body::Text(text) | Body::Refusal(text) => Ok(Some(text)),
        Body::Thinking { .. } | Body::RedactedThinking(_) => {
            dropped.insert("thinking".into());
            Ok(None)
        }
        Body::Image(_) => Err(refused(part, "an image in a system message cannot be carried")),
        Body::ToolCall { .. } | Body::ToolResult { .. } => {
            Err(refused(part, "a tool call or result in a system message cannot be carried"))
        }
        Body::Other(kind) => Err(refused(part, format!("content of type `{kind}` cannot be carried"))),
    }
}

fn write_text(blocks: &mut Array<'_>, text: &str, cache: Option<&str>) {
    let mut block = blocks.object();
    block.string("type", "text");
    block.string("text", text);
    write_cache(&mut block, cache);
}

fn write_cache(block: &mut Object<'_>, cache: Option<&str>) {
    if let Some(cache) = cache {
        block.raw("cache_control", cache);
    }
}

/// Whether a signature, or redacted thinking, may be the provider's own.
fn is_native(proof: &str) -> bool {
    !proof.is_empty() && !proof.starts_with(OUR_ENVELOPE)
}

/// Whether a piece leaves anything to send.
fn is_written(piece: &Piece<'_, '_>) -> bool {
    match piece {
        Piece::System(part) => match &part.body {
            Body::Text(text) | Body::Refusal(text) => !is_blank(text),
            Body::Thinking { .. } | Body::RedactedThinking(_) => false,
            Body::Image(_) | Body::ToolCall { .. } | Body::ToolResult { .. } | Body::Other(_) => true,
        },
        Piece::Own(part) => match &part.body {
            Body::Text(text) | Body::Refusal(text) => !is_blank(text),
            Body::Thinking { signature, .. } => signature.as_deref().is_some_and(is_native),
            Body::RedactedThinking(data) => is_native(data),
            Body::Image(_) | Body::ToolCall { .. } | Body::ToolResult { .. } | Body::Other(_) => true,
        },
    }
}

fn write_messages(request: &mut Object<'_>, rest: &[Message<'_>], dropped: &mut Dropped) -> Result<(), Invalid> {
    let foreign = |part: &Part<'_>| match &part.body {
        Body::Thinking { .. } | Body::RedactedThinking(_) => !is_written(&Piece::Own(part)),
        Body::Text(_)
        | Body::Image(_)
        | Body::ToolCall { .. }
        | Body::ToolResult { .. }
        | Body::Refusal(_)
        | Body::Other(_) => false,
    };
    if rest.iter().flat_map(|message| &message.parts).any(foreign) {
        dropped.insert("thinking".into());
    }
    let groups = groups(rest, is_written)?;
    if groups.is_empty() {
        return Err(at("messages", "no message with content is left to send"));
    }
    let mut messages = request.array("messages");
    for group in &groups {
        let mut message = messages.object();
        message.string("role", if group.assistant { "assistant" } else { "user" });
        if let ([], [Piece::Own(Part { body: Body::Text(text), cache: None, .. })]) =
            (group.answers.as_slice(), group.pieces.as_slice())
        {
            message.string("content", text);
            continue;
        }
        write_group(&mut message.array("content"), group, dropped)?;
    }
    Ok(())
}

fn write_group(content: &mut Array<'_>, group: &Group<'_, '_>, dropped: &mut Dropped) -> Result<(), Invalid> {
    for answer in &group.answers {
        write_answer(content, answer)?;
    }
    for piece in &group.pieces {
        match piece {
            Piece::System(part) => {
                if let Some(text) = system_text(part, dropped)? {
                    write_text(content, &format!("<system>{text}</system>"), part.cache);
                }
            }
            Piece::Own(part) => write_part(content, part, group.assistant, dropped)?,
        }
    }
    Ok(())
}

fn write_answer(content: &mut Array<'_>, answer: &Answer<'_, '_>) -> Result<(), Invalid> {
    let mut block = content.object();
    block.string("type", "tool_result");
    block.string("tool_use_id", &tool_id::to_messages_safe(answer.id));
    let Some(part) = answer.part else {
        block.string("content", NO_RESULT);
        block.bool("is_error", true);
        return Ok(());
    };
    if let Body::ToolResult { id: _, content: inner, is_error } = &part.body {
        let is_sent = |part: &&Part<'_>| !matches!(&part.body, Body::Text(text) if text.is_empty());
        let inner: Vec<&Part<'_>> = inner.iter().filter(is_sent).collect();
        match inner.as_slice() {
            [] => block.string("content", ""),
            [Part { body: Body::Text(text), cache: None, .. }] => block.string("content", text),
            several => {
                let mut blocks = block.array("content");
                for part in several {
                    write_inner(&mut blocks, part)?;
                }
            }
        }
        if *is_error {
            block.bool("is_error", true);
        }
    }
    write_cache(&mut block, part.cache);
    Ok(())
}

fn write_inner(blocks: &mut Array<'_>, part: &Part<'_>) -> Result<(), Invalid> {
    match &part.body {
        Body::Text(text) | Body::Refusal(text) => {
            if !is_blank(text) {
                write_text(blocks, text, part.cache);
            }
            Ok(())
        }
        Body::Image(image) => {
            write_image(blocks, image, part.cache);
            Ok(())
        }
        Body::Other(kind) => Err(refused(part, format!("content of type `{kind}` cannot be carried"))),
        Body::ToolCall { .. } | Body::ToolResult { .. } | Body::Thinking { .. } | Body::RedactedThinking(_) => {
            Err(refused(part, "only texts and images can be carried in a tool result"))
        }
    }
}

fn write_image(blocks: &mut Array<'_>, image: &Image<'_>, cache: Option<&str>) {
    let mut block = blocks.object();
    block.string("type", "image");
    {
        let mut source = block.object("source");
        match image {
            Image::Data { media_type, data } => {
                source.string("type", "base64");
                source.string("media_type", media_type);
                source.string("data", data);
            }
            Image::Url(url) => {
                source.string("type", "url");
                source.string("url", url);
            }
        }
    }
    write_cache(&mut block, cache);
}

fn write_part(blocks: &mut Array<'_>, part: &Part<'_>, assistant: bool, dropped: &mut Dropped) -> Result<(), Invalid> {
    match &part.body {
        Body::Text(text) | Body::Refusal(text) => write_text(blocks, text, part.cache),
        Body::Image(_) if assistant => {
            return Err(refused(part, "an image in a message of the assistant cannot be carried"));
        }
        Body::Image(image) => write_image(blocks, image, part.cache),
        Body::ToolCall { .. } if !assistant => {
            return Err(refused(part, "a tool call outside a message of the assistant cannot be carried"));
        }
        Body::ToolCall { id, name, arguments } => {
            let mut block = blocks.object();
            block.string("type", "tool_use");
            block.string("id", &tool_id::to_messages_safe(id));
            block.string("name", name);
            input::write(&mut block, "input", arguments);
            write_cache(&mut block, part.cache);
        }
        Body::Thinking { .. } | Body::RedactedThinking(_) if !assistant => {
            dropped.insert("thinking".into());
        }
        Body::Thinking { text, signature } => {
            let mut block = blocks.object();
            block.string("type", "thinking");
            block.string("thinking", text);
            block.string("signature", signature.as_deref().unwrap_or_default());
        }
        Body::RedactedThinking(data) => {
            let mut block = blocks.object();
            block.string("type", "redacted_thinking");
            block.string("data", data);
        }
        // Results were sorted out before; one here is in a message of the assistant.
        Body::ToolResult { .. } => return Err(refused(part, "a tool result cannot be carried here")),
        Body::Other(kind) => return Err(refused(part, format!("content of type `{kind}` cannot be carried"))),
    }
    Ok(())
}

fn write_tools(request: &mut Object<'_>, turn: &Turn<'_>) -> Result<(), Invalid> {
    if turn.tools.is_empty() {
        // Without tools there is nothing to choose; a forced choice could not be obeyed.
        return match &turn.tool_choice {
            None | Some(ToolChoice::Auto | ToolChoice::None) => Ok(()),
            Some(ToolChoice::Any | ToolChoice::Named(_) | ToolChoice::Other(_)) => {
                Err(at("tool_choice", "a tool must be called, but there are no tools"))
            }
        };
    }
    {
        let mut tools = request.array("tools");
        for tool in &turn.tools {
            write_tool(&mut tools, tool)?;
        }
    }
    let single = turn.parallel_tools == Some(false);
    let (kind, name) = match &turn.tool_choice {
        None if !single => return Ok(()),
        None | Some(ToolChoice::Auto) => ("auto", None),
        Some(ToolChoice::None) => ("none", None),
        Some(ToolChoice::Any) => ("any", None),
        Some(ToolChoice::Named(name)) => ("tool", Some(name)),
        Some(ToolChoice::Other(kind)) => {
            return Err(at("tool_choice", format!("a choice of the kind `{kind}` cannot be carried")));
        }
    };
    let mut choice = request.object("tool_choice");
    choice.string("type", kind);
    if let Some(name) = name {
        choice.string("name", name);
    }
    if single && kind != "none" {
        choice.bool("disable_parallel_tool_use", true);
    }
    Ok(())
}

fn write_tool(tools: &mut Array<'_>, tool: &Tool<'_>) -> Result<(), Invalid> {
    let path = || format!("tools[{}]", tool.index);
    match &tool.kind {
        ToolKind::Hosted(kind) => {
            Err(at(path(), format!("a tool of the type `{kind}` runs at its own provider and cannot be carried")))
        }
        ToolKind::Function { name, description, schema, strict } => {
            let schema = schema.filter(|schema| *schema != "null").unwrap_or("{}");
            let Some(schema) = object_schema(schema) else {
                return Err(at(path(), "the schema of its arguments is no object"));
            };
            let mut out = tools.object();
            out.string("name", name);
            if let Some(description) = description {
                out.string("description", description);
            }
            out.raw("input_schema", &schema);
            if let Some(strict) = strict {
                out.bool("strict", *strict);
            }
            Ok(())
        }
    }
}

/// The schema, with the `type` that Messages requires where it has none. `None` when it is no object.
fn object_schema(schema: &str) -> Option<std::borrow::Cow<'_, str>> {
    let mut r = Reader::over(schema);
    if r.kind().ok()? != Kind::Object {
        return None;
    }
    let (mut typed, mut empty) = (false, true);
    r.object::<Invalid>(|r, key| {
        empty = false;
        typed |= key == "type";
        r.skip().map(drop)
    })
    .ok()?;
    Some(match (typed, empty) {
        (true, _) => schema.into(),
        (false, true) => r#"{"type":"object","properties":{}}"#.into(),
        (false, false) => format!("{{\"type\":\"object\",{}", &schema[1..]).into(),
    })
}

fn write_sampling(request: &mut Object<'_>, turn: &Turn<'_>, dropped: &mut Dropped) {
    if let Some(temperature) = turn.temperature {
        // Messages goes from 0 to 1, Chat to 2.
        if temperature.parse::<f64>().is_ok_and(|number| number > 1.0) {
            dropped.insert("temperature".into());
            request.raw("temperature", "1");
        } else {
            request.raw("temperature", temperature);
        }
    }
    if let Some(top_p) = turn.top_p {
        request.raw("top_p", top_p);
    }
    if let Some(top_k) = turn.top_k {
        request.raw("top_k", top_k);
    }
    let (blank, stops): (Vec<_>, Vec<_>) = turn.stop.iter().partition(|stop| is_blank(stop));
    if !blank.is_empty() {
        dropped.insert("stop".into());
    }
    if !stops.is_empty() {
        let mut sequences = request.array("stop_sequences");
        stops.iter().for_each(|stop| sequences.string(stop));
    }
}

/// `thinking` and `output_config`: how much to think and in what form to answer.
fn write_output(request: &mut Object<'_>, turn: &Turn<'_>, dropped: &mut Dropped) -> Result<(), Invalid> {
    let mut mode = turn.reasoning.mode;
    let effort = match turn.reasoning.effort.as_deref() {
        None => None,
        Some("none") => {
            mode = Some(Thinking::Off);
            None
        }
        Some("minimal" | "low") => Some("low"),
        Some("medium") => Some("medium"),
        Some("high") => Some("high"),
        Some("xhigh" | "max") => Some("max"),
        Some(_) => {
            dropped.insert("reasoning_effort".into());
            None
        }
    };
    if let Some(mode) = mode {
        let mut thinking = request.object("thinking");
        match mode {
            Thinking::Adaptive => thinking.string("type", "adaptive"),
            Thinking::Off => thinking.string("type", "disabled"),
            Thinking::Budget(budget) => {
                thinking.string("type", "enabled");
                thinking.number("budget_tokens", budget);
            }
        }
    }
    let schema = match &turn.output {
        Output::Text => None,
        Output::Json => {
            let message = "Messages has no equal of `json_object`; give a `json_schema` instead";
            return Err(at("response_format", message));
        }
        Output::Schema { name, schema, strict: _ } => {
            if name.is_some() {
                dropped.insert("response_format.json_schema.name".into());
            }
            Some(schema)
        }
    };
    if effort.is_none() && schema.is_none() {
        return Ok(());
    }
    let mut config = request.object("output_config");
    if let Some(effort) = effort {
        config.string("effort", effort);
    }
    if let Some(schema) = schema {
        let mut format = config.object("format");
        format.string("type", "json_schema");
        format.raw("schema", schema);
    }
    Ok(())
}
