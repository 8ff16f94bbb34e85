//! Tools, the choice among them, sampling, thinking and the form of the answer in a request to Messages.

use super::{Dropped, at, is_blank};
use crate::choice::Offer;
use crate::free_text;
use crate::json::{Array, Invalid, Kind, Object, Reader};
use crate::tool_names::sent;
use crate::turn::{Output, Thinking, Tool, ToolChoice, ToolKind, Turn};
use std::borrow::Cow;
use turnkeep_base::Dialect;

/// Writes `tools` and `tool_choice`.
pub(super) fn write_tools(request: &mut Object<'_>, turn: &Turn<'_>, offer: &Offer<'_, '_>) -> Result<(), Invalid> {
    if offer.tools.is_empty() {
        return Ok(());
    }
    {
        let mut tools = request.array("tools");
        for tool in &offer.tools {
            write_tool(&mut tools, tool)?;
        }
    }
    let single = turn.parallel_tools == Some(false);
    let (kind, name) = match offer.choice.as_deref() {
        None if !single => return Ok(()),
        None | Some(ToolChoice::Auto) => ("auto", None),
        Some(ToolChoice::None) => ("none", None),
        Some(ToolChoice::Any) => ("any", None),
        Some(ToolChoice::Named(name)) => ("tool", Some(name)),
        Some(ToolChoice::Allowed { .. }) => {
            return Err(at("tool_choice", "a choice among some tools cannot be carried"));
        }
        Some(ToolChoice::Other(kind)) => {
            return Err(at("tool_choice", format!("a choice of the kind `{kind}` cannot be carried")));
        }
    };
    let mut choice = request.object("tool_choice");
    choice.string("type", kind);
    if let Some(name) = name {
        choice.string("name", &sent(name, Dialect::Messages));
    }
    if single && kind != "none" {
        choice.bool("disable_parallel_tool_use", true);
    }
    Ok(())
}

fn write_tool(tools: &mut Array<'_>, tool: &Tool<'_>) -> Result<(), Invalid> {
    let path = || format!("tools[{}]", tool.index);
    match &tool.kind {
        // The API knows no tools that take free text.
        ToolKind::Custom { name, description, format } => {
            let mut out = tools.object();
            out.string("name", &sent(name, Dialect::Messages));
            if let Some(description) = free_text::describe(description.as_deref(), format.as_deref()) {
                out.string("description", &description);
            }
            out.raw("input_schema", free_text::SCHEMA);
            Ok(())
        }
        ToolKind::Hosted(kind) => {
            Err(at(path(), format!("a tool of the type `{kind}` runs at its own provider and cannot be carried")))
        }
        ToolKind::Function { name, description, schema, strict } => {
            let schema = schema.filter(|schema| *schema != "null").unwrap_or("{}");
            let Some(schema) = object_schema(schema) else {
                return Err(at(path(), "the schema of its arguments is no object"));
            };
            let mut out = tools.object();
            out.string("name", &sent(name, Dialect::Messages));
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
fn object_schema(schema: &str) -> Option<Cow<'_, str>> {
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

/// Writes the sampling parameters and `stop_sequences`; tells whether any of the former is set. Models that think take
/// none of them, and some targets' parameters are not Messages' at all.
pub(super) fn write_sampling(request: &mut Object<'_>, turn: &Turn<'_>, thinks: bool, dropped: &mut Dropped) -> bool {
    let foreign = [
        ("seed", turn.seed.is_some()),
        ("presence_penalty", turn.presence_penalty.is_some()),
        ("frequency_penalty", turn.frequency_penalty.is_some()),
        ("verbosity", turn.verbosity.is_some()),
        ("prompt_cache_key", turn.cache_key.is_some()),
    ];
    dropped.extend(foreign.iter().filter(|(_, set)| *set).map(|(name, _)| (*name).to_owned()));
    let mut sampled = false;
    for (name, number) in [("temperature", turn.temperature), ("top_p", turn.top_p), ("top_k", turn.top_k)] {
        let Some(number) = number else { continue };
        if thinks {
            dropped.insert(name.into());
            continue;
        }
        sampled = true;
        // Messages goes from 0 to 1, Chat to 2.
        if name == "temperature" && number.parse::<f64>().is_ok_and(|number| number > 1.0) {
            dropped.insert(name.into());
            request.raw(name, "1");
        } else {
            request.raw(name, number);
        }
    }
    let (blank, stops): (Vec<_>, Vec<_>) = turn.stop.iter().partition(|stop| is_blank(stop));
    if !blank.is_empty() {
        dropped.insert("stop".into());
    }
    if !stops.is_empty() {
        let mut sequences = request.array("stop_sequences");
        stops.iter().for_each(|stop| sequences.string(stop));
    }
    sampled
}

/// `thinking` and `output_config`: how much to think and in what form to answer.
pub(super) fn write_output(
    request: &mut Object<'_>,
    turn: &Turn<'_>,
    mode: Option<Thinking>,
    dropped: &mut Dropped,
) -> Result<(), Invalid> {
    let effort = match turn.reasoning.effort.as_deref() {
        // `none` has been taken for no thinking at all.
        None | Some("none") => None,
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
        // The form is always kept to exactly; a client that asked for less is told.
        Output::Schema { name, schema, strict } => {
            if name.is_some() {
                dropped.insert("response_format.json_schema.name".into());
            }
            if *strict == Some(false) {
                dropped.insert("response_format.json_schema.strict".into());
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
