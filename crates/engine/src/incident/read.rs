//! A file's text to a trace, within bounds, and what is said of one that is none.

use super::trace::{FORMAT, Trace};
use serde::Deserialize;

/// The longest text that is read, in bytes. What is kept of one turn is far shorter.
pub const MAX_BYTES: usize = 8 << 20;

/// Why a text is no trace that this build can run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It is too long.
    #[error("is longer than {} MiB, which no incident trace is; is it the right file?", MAX_BYTES >> 20)]
    TooLong,
    /// It ends in the middle.
    #[error("ends in the middle, at line {line}, column {column}: it was cut short; export it again")]
    Truncated {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
    },
    /// It is no JSON, or no object with a format.
    #[error("is no incident trace ({why}); `turnkeep explain turn ID --export FILE` writes one")]
    NoTrace {
        /// What is wrong.
        why: String,
    },
    /// Another form.
    #[error("has the form {found:?}, and this build reads {FORMAT:?}; replay it with a build of its own version")]
    OtherForm {
        /// The form that it says it has, cut to 60 characters.
        found: String,
    },
    /// Its form is ours, and something in it is not.
    #[error("cannot be read at line {line}, column {column}: {why}; was it altered, or written by another build?")]
    Invalid {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// What is wrong there.
        why: String,
    },
}

/// All that every form has.
#[derive(Deserialize)]
struct AnyForm {
    format: String,
}

/// Reads a trace.
///
/// # Errors
/// The text is none, too long, cut short, or of another form.
pub fn read(text: &[u8]) -> Result<Trace, Unreadable> {
    if text.len() > MAX_BYTES {
        return Err(Unreadable::TooLong);
    }
    let cut = |error: &serde_json::Error| Unreadable::Truncated { line: error.line(), column: error.column() };
    let form: AnyForm = serde_json::from_slice(text).map_err(|error| match error.is_eof() && !text.is_empty() {
        true => cut(&error),
        false => Unreadable::NoTrace { why: error.to_string() },
    })?;
    if form.format != FORMAT {
        return Err(Unreadable::OtherForm { found: form.format.chars().take(60).collect() });
    }
    serde_json::from_slice(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let why = error.to_string();
        let place = format!(" at line {line} column {column}");
        let why = why.strip_suffix(&place).unwrap_or(&why).chars().take(400).collect();
        Unreadable::Invalid { line, column, why }
    })
}
