//! Which protocol a body is written in. A closed set: adding a dialect must make every match on it fail to compile.

use std::fmt;

/// A dialect of the model APIs, on either side of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dialect {
    /// OpenAI Chat Completions.
    Chat,
    /// Anthropic Messages.
    Messages,
}

impl Dialect {
    /// Every dialect, for tables and tests.
    pub const ALL: [Dialect; 2] = [Dialect::Chat, Dialect::Messages];

    /// The name used in logs, metrics and the ledger.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Chat => "chat",
            Dialect::Messages => "messages",
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
