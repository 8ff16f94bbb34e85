//! Which tools a request offers, for targets that cannot be told "only these of them": the others are left out, which
//! works everywhere.

use crate::json::Invalid;
use crate::tool_names::name_of;
use crate::turn::{Tool, ToolChoice, Turn};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The tools that are sent and the choice among them, which is never [`ToolChoice::Allowed`].
#[derive(Debug)]
pub(crate) struct Offer<'t, 'a> {
    pub(crate) tools: Vec<&'t Tool<'a>>,
    pub(crate) choice: Option<Cow<'t, ToolChoice<'a>>>,
}

/// What of a turn's tools is sent. That one must be called where none is left is an error.
pub(crate) fn offer<'t, 'a>(turn: &'t Turn<'a>) -> Result<Offer<'t, 'a>, Invalid> {
    let (tools, choice): (Vec<_>, _) = match &turn.tool_choice {
        Some(ToolChoice::Allowed { required, names }) => {
            let names: BTreeSet<&str> = names.iter().map(AsRef::as_ref).collect();
            let allowed = |tool: &&Tool<'a>| name_of(tool).is_some_and(|name| names.contains(name.as_ref()));
            let choice = if *required { ToolChoice::Any } else { ToolChoice::Auto };
            (turn.tools.iter().filter(allowed).collect(), Some(Cow::Owned(choice)))
        }
        choice => (turn.tools.iter().collect(), choice.as_ref().map(Cow::Borrowed)),
    };
    if tools.is_empty() {
        // Without tools there is nothing to choose; a forced choice could not be obeyed.
        return match choice.as_deref() {
            None | Some(ToolChoice::Auto | ToolChoice::None) => Ok(Offer { tools, choice: None }),
            Some(ToolChoice::Any | ToolChoice::Named(_) | ToolChoice::Allowed { .. } | ToolChoice::Other(_)) => {
                let message = "a tool must be called, but there are no tools".to_owned();
                Err(Invalid { path: "tool_choice".into(), message, at: 0 })
            }
        };
    }
    Ok(Offer { tools, choice })
}
