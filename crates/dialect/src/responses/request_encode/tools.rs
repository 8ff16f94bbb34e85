//! The tools and which of them must be called, flat as Responses has them.

use super::refuse;
use crate::chat::request_encode::with_properties;
use crate::json::{Array, Invalid, Object};
use crate::tool_names::sent;
use crate::turn::{Tool, ToolChoice, ToolKind, Turn};
use std::collections::BTreeSet;
use turnkeep_base::Dialect;

/// What a function without a schema takes.
const NO_ARGUMENTS: &str = r#"{"type":"object","properties":{}}"#;

/// The canonical names of the turn's free-text tools, those too that only its history knows.
pub(super) fn custom<'t>(turn: &'t Turn<'_>) -> BTreeSet<&'t str> {
    let offered = turn.tools.iter().filter_map(|tool| match &tool.kind {
        ToolKind::Custom { name, .. } => Some(name.as_ref()),
        ToolKind::Function { .. } | ToolKind::Hosted(_) => None,
    });
    let known = turn.renamed.iter().filter(|known| known.client.custom).map(|known| known.canonical.as_str());
    offered.chain(known).collect()
}

pub(super) fn write(object: &mut Object<'_>, turn: &Turn<'_>) -> Result<(), Invalid> {
    if turn.tools.is_empty() {
        return match &turn.tool_choice {
            None | Some(ToolChoice::Auto | ToolChoice::None | ToolChoice::Allowed { required: false, .. }) => Ok(()),
            Some(ToolChoice::Any | ToolChoice::Named(_) | ToolChoice::Allowed { .. } | ToolChoice::Other(_)) => {
                let message = "a tool must be called, and there are no tools".to_owned();
                Err(Invalid { path: "tool_choice".into(), message, at: 0 })
            }
        };
    }
    {
        let mut list = object.array("tools");
        for given in &turn.tools {
            tool(&mut list, given)?;
        }
    }
    choice(object, turn)?;
    if let Some(parallel) = turn.parallel_tools {
        object.bool("parallel_tool_calls", parallel);
    }
    Ok(())
}

fn tool(list: &mut Array<'_>, tool: &Tool<'_>) -> Result<(), Invalid> {
    match &tool.kind {
        ToolKind::Function { name, description, schema, strict } => {
            let mut out = list.object();
            out.string("type", "function");
            out.string("name", &sent(name, Dialect::Responses));
            if let Some(description) = description {
                out.string("description", description);
            }
            match schema {
                Some(schema) => out.raw("parameters", &with_properties(schema)),
                None => out.raw("parameters", NO_ARGUMENTS),
            }
            out.bool("strict", strict.unwrap_or(false));
            Ok(())
        }
        ToolKind::Custom { name, description, format } => {
            let mut out = list.object();
            out.string("type", "custom");
            out.string("name", &sent(name, Dialect::Responses));
            if let Some(description) = description {
                out.string("description", description);
            }
            if let Some(format) = format {
                out.raw("format", format);
            }
            Ok(())
        }
        ToolKind::Hosted(kind) => Err(refuse(
            format!("tools[{}]", tool.index),
            &format!("a tool of the type `{kind}`, which its provider runs,"),
        )),
    }
}

fn choice(object: &mut Object<'_>, turn: &Turn<'_>) -> Result<(), Invalid> {
    let custom = custom(turn);
    let named = |out: &mut Object<'_>, name: &str| {
        out.string("type", if custom.contains(name) { "custom" } else { "function" });
        out.string("name", &sent(name, Dialect::Responses));
    };
    match &turn.tool_choice {
        None => {}
        Some(ToolChoice::Auto) => object.string("tool_choice", "auto"),
        Some(ToolChoice::None) => object.string("tool_choice", "none"),
        Some(ToolChoice::Any) => object.string("tool_choice", "required"),
        Some(ToolChoice::Named(name)) => named(&mut object.object("tool_choice"), name),
        Some(ToolChoice::Allowed { required, names }) => {
            let mut choice = object.object("tool_choice");
            choice.string("type", "allowed_tools");
            choice.string("mode", if *required { "required" } else { "auto" });
            let mut list = choice.array("tools");
            names.iter().for_each(|name| named(&mut list.object(), name));
        }
        Some(ToolChoice::Other(kind)) => {
            return Err(refuse("tool_choice".into(), &format!("a choice of the form `{kind}`")));
        }
    }
    Ok(())
}
