//! Tools that their provider runs (web search and the like), on a route to another dialect. A client that merely offers
//! them beside its own works without: they are left out and named. A request that has no other tools asks for nothing
//! else than them, so its target refuses it.

use crate::turn::{ToolKind, Turn};
use std::borrow::Cow;

/// The turn without such tools, and their names as the client is told them.
pub(crate) fn left_out<'t, 'a>(turn: &'t Turn<'a>) -> (Cow<'t, Turn<'a>>, Vec<String>) {
    let kind = |kind: &ToolKind<'_>| match kind {
        ToolKind::Hosted(kind) => Some(format!("tools[].{kind}")),
        ToolKind::Function { .. } | ToolKind::Custom { .. } => None,
    };
    let names: Vec<String> = turn.tools.iter().filter_map(|tool| kind(&tool.kind)).collect();
    if names.is_empty() || names.len() == turn.tools.len() {
        return (Cow::Borrowed(turn), Vec::new());
    }
    let mut turn = turn.clone();
    turn.tools.retain(|tool| kind(&tool.kind).is_none());
    (Cow::Owned(turn), names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn::Tool;

    fn tool(kind: ToolKind<'static>) -> Tool<'static> {
        Tool { index: 0, kind }
    }

    #[test]
    fn they_are_left_out_by_name_beside_others_and_stay_where_they_are_alone() {
        let function = ToolKind::Function { name: "f".into(), description: None, schema: None, strict: None };
        let hosted = ToolKind::Hosted("web_search".into());
        let mut turn = Turn { tools: vec![tool(hosted.clone()), tool(function)], ..Turn::default() };
        let (without, names) = left_out(&turn);
        assert_eq!((without.tools.len(), names), (1, vec!["tools[].web_search".to_owned()]));
        turn.tools = vec![tool(hosted)];
        let (same, names) = left_out(&turn);
        assert_eq!((same.tools.len(), names.len()), (1, 0));
    }
}
