//! JSON as the codecs need it: one pass that checks the grammar, bounds the nesting, knows the path of every value for
//! error messages and the span of every value for byte-preserving edits; and a writer. It builds no tree.

mod reader;
mod writer;

pub use reader::{Kind, Reader, Span};
pub(crate) use writer::write_number;
pub use writer::{Array, Object, write_string};

/// The JSON is wrong, or not of the form the dialect asks for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}{}", if path.is_empty() { String::new() } else { format!("{path}: ") },
    if *at == 0 { String::new() } else { format!(" (at byte {at})") })]
pub struct Invalid {
    /// The path of the value, as `messages[3].content[0].type`; empty for the document itself.
    pub path: String,
    /// What is wrong, and what was expected.
    pub message: String,
    /// Where in the body, in bytes from its start; 0 also where no place is known.
    pub at: usize,
}

impl From<Invalid> for turnkeep_base::ClientError {
    fn from(invalid: Invalid) -> Self {
        let message = invalid.to_string();
        turnkeep_base::ClientError::invalid(invalid.path, message)
    }
}
