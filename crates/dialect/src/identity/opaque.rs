//! Whether a conversation carries state that only its provider can read: signed or redacted thinking. It belongs to the
//! account, or the organisation, that made it, and others refuse it or must not be sent it.

use crate::turn::{Body, Turn};

/// What the gateway puts where a provider's proof would stand begins so, and then names the origin: thinking that a Chat
/// upstream gave, or that nobody signed. No provider made it, so it is nobody's state.
const OUR_ENVELOPE: &str = "turnkeep.";

/// A signature, or redacted thinking, that may be a provider's own.
pub(crate) fn is_native(proof: &str) -> bool {
    !proof.is_empty() && !proof.starts_with(OUR_ENVELOPE)
}

/// The turn carries thinking with a proof of its provider's.
pub fn has_opaque_state(turn: &Turn<'_>) -> bool {
    turn.messages.iter().flat_map(|message| &message.parts).any(|part| match &part.body {
        Body::Thinking { text: _, signature } => signature.as_deref().is_some_and(is_native),
        Body::RedactedThinking(data) => is_native(data),
        Body::Text(_)
        | Body::Image(_)
        | Body::ToolCall { .. }
        | Body::ToolResult { .. }
        | Body::Refusal(_)
        | Body::Other(_) => false,
    })
}
