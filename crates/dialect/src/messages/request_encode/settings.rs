//! Tools, the choice among them, sampling, thinking and the form of the answer in a request to Messages.

use super::{Dropped, at, is_blank};
use crate::json::{Array, Invalid, Kind, Object, Reader};
use crate::turn::{Output, Thinking, Tool, ToolChoice, ToolKind, Turn};
use std::borrow::Cow;

/// Writes `tools` and `tool_choice`.
pub(super) fn write_tools(request: &mut Object<'_>, turn: &Turn<'_>) -> Result<(), Invalid> {
    if turn.tools.is_empty() {
        // Without tools there is nothing to choose; a forced choice could not be obeyed.
        return match &turn.tool_choice {
            None | Some(ToolChoice::Auto | ToolChoice::None | ToolChoice::Allowed { required: false, .. }) => Ok(()),
            Some(ToolChoice::Any | ToolChoice::Named(_) | ToolChoice::Allowed { .. } | ToolChoice::Other(_)) => {
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
        Some(ToolChoice::Allowed { .. }) => todo!(),
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
        ToolKind::Custom { .. } => todo!(),
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

/// Writes the sampling parameters and `stop_sequences`.
pub(super) fn write_sampling(request: &mut Object<'_>, turn: &Turn<'_>, dropped: &mut Dropped) {
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
pub(super) fn write_output(request: &mut Object<'_>, turn: &Turn<'_>, dropped: &mut Dropped) -> Result<(), Invalid> {
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
