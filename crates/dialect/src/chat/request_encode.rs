//! A canonical turn as a Chat request, for any server that speaks Chat: only fields that compatible servers take, none
//! that only OpenAI knows where an older one does.

use super::request_encode_message::messages;
use crate::choice::{Offer, offer};
use crate::free_text;
use crate::json::{Array, Invalid, Kind, Object, Reader};
use crate::request::{ApiVersion, Encoded};
use crate::tool_names::{ToolNames, sent};
use crate::turn::{Output, Thinking, Tool, ToolChoice, ToolKind, Turn};
use std::borrow::Cow;
use turnkeep_base::Dialect;

/// Stop texts that Chat takes.
const MAX_STOPS: usize = 4;

/// Models that think before they answer and refuse `max_tokens`; every other server knows `max_tokens`, and many know
/// nothing else.
const ONLY_COMPLETION_TOKENS: [&str; 5] = ["o1", "o3", "o4", "gpt-5", "gpt-6"];

/// Writes the request for the upstream's name of the model.
pub fn encode(turn: &Turn<'_>, upstream_model: &str) -> Result<Encoded, Invalid> {
    let mut dropped = Dropped::default();
    let mut body = Vec::with_capacity(4096);
    {
        let mut object = Object::open(&mut body);
        object.string("model", upstream_model);
        messages(&mut object, turn, is_google(upstream_model), &mut dropped)?;
        tools(&mut object, turn)?;
        limits(&mut object, turn, upstream_model, &mut dropped)?;
        output(&mut object, turn);
        reasoning(&mut object, turn, &mut dropped);
        if let Some(user) = &turn.user {
            object.string("user", user);
        }
        if turn.stream {
            object.bool("stream", true);
            object.object("stream_options").bool("include_usage", true);
        }
    }
    turn.hints.iter().for_each(|hint| dropped.add(hint));
    Ok(Encoded {
        body: body.into(),
        dropped: dropped.names,
        version: ApiVersion::default(),
        names: ToolNames::of(turn, Dialect::Chat),
    })
}

/// The names of what was dropped, each once, in the order they were met.
#[derive(Default)]
pub(super) struct Dropped {
    names: Vec<String>,
}

impl Dropped {
    pub(super) fn add(&mut self, name: &str) {
        if !self.names.iter().any(|known| known == name) {
            self.names.push(name.to_owned());
        }
    }
}

/// Content that Chat has no form for.
pub(super) fn refuse(path: String, what: &str) -> Invalid {
    Invalid { path, message: format!("{what} cannot be carried to a Chat Completions upstream"), at: 0 }
}

fn tools(object: &mut Object<'_>, turn: &Turn<'_>) -> Result<(), Invalid> {
    let Offer { tools, choice } = offer(turn)?;
    if tools.is_empty() {
        return Ok(());
    }
    {
        let mut list = object.array("tools");
        for tool in tools {
            write_tool(&mut list, tool)?;
        }
    }
    match choice.as_deref() {
        None => {}
        Some(ToolChoice::Auto) => object.string("tool_choice", "auto"),
        Some(ToolChoice::None) => object.string("tool_choice", "none"),
        Some(ToolChoice::Any) => object.string("tool_choice", "required"),
        Some(ToolChoice::Named(name)) => {
            let mut choice = object.object("tool_choice");
            choice.string("type", "function");
            choice.object("function").string("name", &sent(name, Dialect::Chat));
        }
        Some(ToolChoice::Allowed { .. }) => return Err(refuse("tool_choice".into(), "a choice among some tools")),
        Some(ToolChoice::Other(kind)) => {
            return Err(refuse("tool_choice".into(), &format!("a choice of the form `{kind}`")));
        }
    }
    if let Some(parallel) = turn.parallel_tools {
        object.bool("parallel_tool_calls", parallel);
    }
    Ok(())
}

/// A tool; one that takes free text goes as a function, because compatible servers know nothing else.
fn write_tool(list: &mut Array<'_>, tool: &Tool<'_>) -> Result<(), Invalid> {
    let (name, description, schema, strict) = match &tool.kind {
        ToolKind::Function { name, description, schema, strict } => {
            let description = description.as_deref().map(Cow::Borrowed);
            (name, description, schema.map(with_properties), *strict)
        }
        ToolKind::Custom { name, description, format } => {
            let description = free_text::describe(description.as_deref(), format.as_deref()).map(Cow::Owned);
            (name, description, Some(free_text::SCHEMA.into()), None)
        }
        ToolKind::Hosted(kind) => {
            let what = format!("a tool of the type `{kind}`");
            return Err(refuse(format!("tools[{}]", tool.index), &what));
        }
    };
    let mut tool = list.object();
    tool.string("type", "function");
    let mut function = tool.object("function");
    function.string("name", &sent(name, Dialect::Chat));
    if let Some(description) = description {
        function.string("description", &description);
    }
    if let Some(schema) = schema {
        function.raw("parameters", &schema);
    }
    if let Some(strict) = strict {
        function.bool("strict", strict);
    }
    Ok(())
}

/// OpenAI-like servers refuse an object schema without `properties`; clients leave it out where there are none.
pub(crate) fn with_properties(schema: &str) -> Cow<'_, str> {
    let (mut any, mut there, mut object) = (false, false, false);
    let mut r = Reader::over(schema);
    let read = r.object(|r, key| {
        any = true;
        there |= key == "properties";
        if key == "type" && r.kind()? == Kind::String {
            object = r.string()? == "object";
            return Ok(());
        }
        r.skip().map(|_| ())
    });
    let inside = schema.trim_start().strip_prefix('{');
    match inside {
        Some(inside) if read.is_ok() && object && !there => {
            let comma = if any { "," } else { "" };
            format!("{{\"properties\":{{}}{comma}{inside}").into()
        }
        Some(_) | None => schema.into(),
    }
}

/// The model's name without the names of those who serve it.
fn bare(model: &str) -> &str {
    model.rsplit('/').next().unwrap_or(model)
}

/// OpenAI's own models of the newer kind.
fn is_newer(model: &str) -> bool {
    ONLY_COMPLETION_TOKENS.iter().any(|start| bare(model).starts_with(start))
}

/// Only Google's own endpoint of this dialect, and those in front of it, know its proofs.
fn is_google(model: &str) -> bool {
    bare(model).starts_with("gemini")
}

fn limits(object: &mut Object<'_>, turn: &Turn<'_>, model: &str, dropped: &mut Dropped) -> Result<(), Invalid> {
    if let Some(most) = turn.max_output {
        object.number(if is_newer(model) { "max_completion_tokens" } else { "max_tokens" }, most);
    }
    if let Some(temperature) = turn.temperature {
        object.raw("temperature", temperature);
    }
    if let Some(top_p) = turn.top_p {
        object.raw("top_p", top_p);
    }
    if turn.top_k.is_some() {
        dropped.add("top_k");
    }
    for (name, number) in [
        ("seed", turn.seed),
        ("presence_penalty", turn.presence_penalty),
        ("frequency_penalty", turn.frequency_penalty),
    ] {
        if let Some(number) = number {
            object.raw(name, number);
        }
    }
    // Fields that servers without them refuse.
    for (name, text) in [("verbosity", &turn.verbosity), ("prompt_cache_key", &turn.cache_key)] {
        match text {
            Some(text) if is_newer(model) => object.string(name, text),
            Some(_) => dropped.add(name),
            None => {}
        }
    }
    if turn.stop.len() > MAX_STOPS {
        let message = format!("this model's upstream takes at most {MAX_STOPS} stop texts, not {}", turn.stop.len());
        return Err(Invalid { path: "stop_sequences".into(), message, at: 0 });
    }
    if !turn.stop.is_empty() {
        let mut stop = object.array("stop");
        turn.stop.iter().for_each(|text| stop.string(text));
    }
    Ok(())
}

fn output(object: &mut Object<'_>, turn: &Turn<'_>) {
    match &turn.output {
        Output::Text => {}
        Output::Json => object.object("response_format").string("type", "json_object"),
        Output::Schema { name, schema, strict } => {
            let mut format = object.object("response_format");
            format.string("type", "json_schema");
            let mut inner = format.object("json_schema");
            inner.string("name", name.as_deref().unwrap_or("answer"));
            inner.raw("schema", schema);
            // OpenAI refuses most schemas as strict that were not written for it, so it is not asked for by itself.
            if let Some(strict) = strict {
                inner.bool("strict", *strict);
            }
        }
    }
}

/// Chat has one word for it. Thinking turned off has none that every model takes, so it is named as dropped; adaptive
/// is what models do by themselves; a budget becomes the nearest word.
fn reasoning(object: &mut Object<'_>, turn: &Turn<'_>, dropped: &mut Dropped) {
    let known = ["minimal", "low", "medium", "high", "xhigh", "max"];
    let effort = turn.reasoning.effort.as_deref();
    match (turn.reasoning.mode, effort) {
        (Some(Thinking::Off), effort) => {
            dropped.add("thinking");
            if effort.is_some() {
                dropped.add("effort");
            }
        }
        (Some(Thinking::Adaptive | Thinking::Budget(_)) | None, Some(effort)) if known.contains(&effort) => {
            object.string("reasoning_effort", effort);
        }
        (Some(Thinking::Budget(tokens)), effort) => {
            if effort.is_some() {
                dropped.add("effort");
            }
            let word = match tokens {
                0..4096 => "low",
                4096..16384 => "medium",
                16384.. => "high",
            };
            object.string("reasoning_effort", word);
        }
        (Some(Thinking::Adaptive) | None, Some(_)) => dropped.add("effort"),
        (Some(Thinking::Adaptive) | None, None) => {}
    }
}
