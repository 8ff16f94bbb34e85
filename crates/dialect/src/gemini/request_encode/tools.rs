//! Tools and the choice among them in a request to Gemini.

use super::{Dropped, at};
use crate::choice::offer;
use crate::free_text;
use crate::json::{Array, Invalid, Kind, Object, Reader};
use crate::tool_names;
use crate::turn::{Tool, ToolChoice, ToolKind, Turn};
use std::borrow::Cow;
use turnkeep_base::Dialect;

/// Writes `tools` and `toolConfig`.
pub(super) fn write_tools(request: &mut Object<'_>, turn: &Turn<'_>, dropped: &mut Dropped) -> Result<(), Invalid> {
    if turn.parallel_tools == Some(false) {
        dropped.insert("parallel_tool_calls".into());
    }
    // Gemini can be told "only these" where a call is asked for; otherwise only their tools are sent.
    let offer = offer(turn)?;
    let forced = match &turn.tool_choice {
        Some(ToolChoice::Allowed { required: true, names }) => Some(names.as_slice()),
        Some(
            ToolChoice::Allowed { required: false, .. }
            | ToolChoice::Auto
            | ToolChoice::None
            | ToolChoice::Any
            | ToolChoice::Named(_)
            | ToolChoice::Other(_),
        )
        | None => None,
    };
    if offer.tools.is_empty() {
        return Ok(());
    }
    {
        let mut tools = request.array("tools");
        let mut tool = tools.object();
        let mut declarations = tool.array("functionDeclarations");
        let all = forced.map(|_| turn.tools.iter().collect());
        for tool in all.unwrap_or(offer.tools) {
            write_tool(&mut declarations, tool, dropped)?;
        }
    }
    let (mode, names) = match &turn.tool_choice {
        None => return Ok(()),
        Some(ToolChoice::Auto | ToolChoice::Allowed { required: false, .. }) => ("AUTO", &[][..]),
        Some(ToolChoice::None) => ("NONE", &[][..]),
        Some(ToolChoice::Any) => ("ANY", &[][..]),
        Some(ToolChoice::Named(name)) => ("ANY", std::slice::from_ref(name)),
        Some(ToolChoice::Allowed { required: true, names }) => ("ANY", names.as_slice()),
        Some(ToolChoice::Other(kind)) => {
            return Err(at("tool_choice", format!("a choice of the kind `{kind}` cannot be carried")));
        }
    };
    let mut config = request.object("toolConfig");
    let mut calling = config.object("functionCallingConfig");
    calling.string("mode", mode);
    if !names.is_empty() {
        let mut allowed = calling.array("allowedFunctionNames");
        names.iter().for_each(|name| allowed.string(&tool_names::sent(name, Dialect::Gemini)));
    }
    Ok(())
}

fn write_tool(declarations: &mut Array<'_>, tool: &Tool<'_>, dropped: &mut Dropped) -> Result<(), Invalid> {
    let path = || format!("tools[{}]", tool.index);
    let (name, description, schema) = match &tool.kind {
        ToolKind::Function { name, description, schema, strict } => {
            if *strict == Some(true) {
                dropped.insert("tools[].strict".into());
            }
            (name, description.as_deref().map(Cow::Borrowed), schema.filter(|schema| *schema != "null"))
        }
        ToolKind::Custom { name, description, format } => {
            let description = free_text::describe(description.as_deref(), format.as_deref());
            (name, description.map(Cow::Owned), Some(free_text::SCHEMA))
        }
        ToolKind::Hosted(kind) => {
            let message = format!("a tool of the type `{kind}` runs at its own provider and cannot be carried");
            return Err(at(path(), message));
        }
    };
    if schema.is_some_and(|schema| !matches!(Reader::over(schema).kind(), Ok(Kind::Object))) {
        return Err(at(path(), "the schema of its arguments is no object"));
    }
    let mut out = declarations.object();
    out.string("name", &tool_names::sent(name, Dialect::Gemini));
    if let Some(description) = description {
        out.string("description", &description);
    }
    // No schema, and one that says nothing, mean no arguments.
    if let Some(schema) = schema.filter(|schema| !crate::messages::nothing::says_nothing(schema)) {
        out.raw("parametersJsonSchema", schema);
    }
    Ok(())
}
