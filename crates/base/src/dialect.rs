//! Which protocol a body is written in. A closed set: adding a dialect must make every match on it fail to compile.

use std::fmt;

/// A dialect of the model APIs, on either side of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dialect {
    /// OpenAI Chat Completions.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Anthropic Messages.
    Messages,
    /// Gemini generateContent.
    Gemini,
}

impl Dialect {
    /// Every dialect, for tables and tests.
    pub const ALL: [Dialect; 4] = [Dialect::Chat, Dialect::Responses, Dialect::Messages, Dialect::Gemini];

    /// The name used in logs, metrics and the ledger.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Chat => "chat",
            Dialect::Responses => "responses",
            Dialect::Messages => "messages",
            Dialect::Gemini => "gemini",
        }
    }

    /// The dialect of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Dialect::ALL.into_iter().find(|dialect| dialect.name() == name)
    }

    /// The response header in which its clients look for the id of their request.
    pub fn request_id_header(self) -> &'static str {
        match self {
            Dialect::Chat | Dialect::Responses | Dialect::Gemini => "x-request-id",
            Dialect::Messages => "request-id",
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
