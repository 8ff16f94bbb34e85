//! Whether a Messages upstream is asked to think, and when it must not be.

use super::Dropped;
use crate::choice::Offer;
use crate::envelope;
use crate::turn::{Body, Role, Thinking, ToolChoice, Turn};
use turnkeep_base::Dialect;

/// The least budget that the API takes.
const MIN_BUDGET: u64 = 1024;

/// The mode that is sent. What the API would refuse is left out and named.
pub(super) fn mode(turn: &Turn<'_>, offer: &Offer<'_, '_>, dropped: &mut Dropped) -> Option<Thinking> {
    let asked = match turn.reasoning.effort.as_deref() {
        Some("none") => Some(Thinking::Off),
        Some(_) | None => turn.reasoning.mode,
    };
    let asked = match asked {
        Some(Thinking::Budget(0)) => Some(Thinking::Off),
        Some(Thinking::Budget(budget)) if budget < MIN_BUDGET => {
            dropped.insert("thinking_budget".into());
            Some(Thinking::Budget(MIN_BUDGET))
        }
        asked @ (Some(Thinking::Adaptive | Thinking::Off | Thinking::Budget(_)) | None) => asked,
    };
    // A forced call leaves no room for thought; and with a budget the calls that are being answered must begin with the
    // thought that led to them, which another provider's, or none, cannot stand for.
    let forced = matches!(offer.choice.as_deref(), Some(ToolChoice::Any | ToolChoice::Named(_)));
    let unproven = matches!(asked, Some(Thinking::Budget(_))) && answers_unproven_calls(turn);
    if is_on(asked) && (forced || unproven) {
        dropped.insert("thinking".into());
        return None;
    }
    asked
}

/// The model is asked to think.
pub(super) fn is_on(mode: Option<Thinking>) -> bool {
    match mode {
        Some(Thinking::Adaptive | Thinking::Budget(_)) => true,
        Some(Thinking::Off) | None => false,
    }
}

/// The last message of the assistant calls tools, and no thinking of Anthropic's is in it.
fn answers_unproven_calls(turn: &Turn<'_>) -> bool {
    let ours = |proof: &str| envelope::open(proof, Dialect::Messages).is_some();
    let last = turn.messages.iter().rev().skip_while(|message| message.role != Role::Assistant);
    let (mut called, mut proven) = (false, false);
    for part in last.take_while(|message| message.role == Role::Assistant).flat_map(|message| &message.parts) {
        match &part.body {
            Body::ToolCall { .. } => called = true,
            Body::Thinking { signature, .. } => proven |= signature.as_deref().is_some_and(ours),
            Body::RedactedThinking(data) => proven |= ours(data),
            Body::Text(_)
            | Body::Image(_)
            | Body::File(_)
            | Body::ToolResult { .. }
            | Body::Refusal(_)
            | Body::Other(_) => {}
        }
    }
    called && !proven
}
