//! What becomes of each field of a request in each other dialect, as a table: printed for people by `turnkeep explain
//! translation`, and walked by a test that writes every row's sample for every target and looks.
//!
//! A field that is not in the table is a hint: dropped, and named.

mod chat;
mod gemini;
mod messages;
mod responses;

use std::fmt::Write;
use turnkeep_base::Dialect;

/// What becomes of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is a field of the target's own: its bytes stay.
    Own,
    /// It arrives.
    Carried {
        /// Where, as `generationConfig.topP`.
        at: &'static str,
        /// As what, for the row's sample; JSON.
        value: &'static str,
    },
    /// It has no place there; the client is told this name.
    Dropped(&'static str),
    /// The request is refused, with an error that names this path.
    Refused(&'static str),
    /// It says how the answer is to come, and is heeded by the gateway itself.
    Heeded,
}

/// A field of a client's request.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The field, or the kind of content, as people name it.
    pub field: &'static str,
    /// Members of a request that has it; JSON. They take the place of those of [`minimal`].
    pub sample: &'static str,
    /// What becomes of it, by target: Chat, Responses, Messages, Gemini.
    pub fates: [Fate; 4],
}

impl Row {
    /// What becomes of it at a target.
    pub fn fate(&self, target: Dialect) -> Fate {
        let [chat, responses, messages, gemini] = self.fates;
        match target {
            Dialect::Chat => chat,
            Dialect::Responses => responses,
            Dialect::Messages => messages,
            Dialect::Gemini => gemini,
        }
    }
}

/// The rows of a client's dialect.
pub fn rows(client: Dialect) -> &'static [Row] {
    match client {
        Dialect::Chat => chat::ROWS,
        Dialect::Responses => responses::ROWS,
        Dialect::Messages => messages::ROWS,
        Dialect::Gemini => gemini::ROWS,
    }
}

/// The smallest request of a dialect, to which a row's sample is added.
pub fn minimal(client: Dialect) -> &'static str {
    match client {
        Dialect::Chat => r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#,
        Dialect::Responses => r#"{"model":"m","input":"hi"}"#,
        Dialect::Messages => r#"{"model":"m","max_tokens":64000,"messages":[{"role":"user","content":"hi"}]}"#,
        Dialect::Gemini => r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#,
    }
}

/// The upstream's model that the table speaks of, a recent one of the dialect's vendor: some fields go only to models that
/// take them.
pub fn model(target: Dialect) -> &'static str {
    match target {
        Dialect::Chat | Dialect::Responses => "gpt-6-sol",
        Dialect::Messages => "claude-sonnet-5",
        Dialect::Gemini => "gemini-3-pro",
    }
}

/// The table as Markdown, one part for each client's dialect.
pub fn table() -> String {
    let mut out = String::new();
    for client in Dialect::ALL {
        // Writing to a string cannot fail.
        let _infallible = write!(out, "## From {}\n\n| field |", title(client));
        let targets = || Dialect::ALL.into_iter().filter(move |target| *target != client);
        for target in targets() {
            let _infallible = write!(out, " {} |", title(target));
        }
        out.push_str("\n|---|---|---|---|\n");
        for row in rows(client) {
            let _infallible = write!(out, "| {} |", row.field);
            for target in targets() {
                let _infallible = write!(out, " {} |", cell(row.fate(target)));
            }
            out.push('\n');
        }
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

fn title(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Chat => "Chat Completions",
        Dialect::Responses => "Responses",
        Dialect::Messages => "Messages",
        Dialect::Gemini => "Gemini",
    }
}

fn cell(fate: Fate) -> String {
    match fate {
        Fate::Own => "as it is".into(),
        Fate::Carried { at, value: _ } => format!("`{at}`"),
        Fate::Dropped(name) => format!("dropped, named `{name}`"),
        Fate::Refused(path) => format!("**refused** at `{path}`"),
        Fate::Heeded => "heeded by the gateway".into(),
    }
}

/// Short for the rows.
const fn to(at: &'static str, value: &'static str) -> Fate {
    Fate::Carried { at, value }
}

/// Short for the rows.
const fn row(field: &'static str, sample: &'static str, fates: [Fate; 4]) -> Row {
    Row { field, sample, fates }
}
