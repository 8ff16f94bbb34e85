//! What an upstream's error reply, or an error inside its stream, means. Named codes come before the status, the status
//! before wording; provider tables are data in each dialect's `classify`.

use crate::{chat, messages};
use turnkeep_base::{Dialect, Evidence, FaultKind};

/// An upstream's error, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classified {
    /// The kind of fault.
    pub kind: FaultKind,
    /// Status, provider code and message, bounded.
    pub evidence: Evidence,
    /// The provider's message in full, up to 4 KiB, for the caller of a `request_invalid`.
    pub message: String,
    /// The field that the provider names.
    pub param: Option<String>,
}

/// Classifies a reply with an error status. `body` is at most [`turnkeep_base::limit::MAX_ERROR_BODY`] bytes of it.
pub fn reply(upstream: Dialect, status: u16, body: &[u8]) -> Classified {
    match upstream {
        Dialect::Chat => chat::classify::reply(status, body),
        Dialect::Messages => messages::classify::reply(status, body),
    }
}
