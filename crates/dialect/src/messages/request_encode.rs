//! A canonical turn as a Messages request. Content that Messages has no place for is an error with its path; hints are
//! dropped and named.
//!
//! Choices made here, where the dialects differ:
//! - `max_tokens` is required: [`DEFAULT_MAX_TOKENS`] when the client gave none.
//! - Leading system messages become `system`. A later one becomes user text between `<system>` and `</system>`, in its
//!   place: only some models take the role `system` among the messages.
//! - Empty texts are left out, because the API refuses them.
//! - Thinking goes along only with the provider's own signature.
//! - Sampling parameters exist only in the older API version, which is asked for when they are set.

mod message;
mod settings;

use super::conversation::split;
use crate::json::{Invalid, Object};
use crate::request::{ApiVersion, Encoded};
use crate::tool_names::ToolNames;
use crate::turn::{Thinking, Turn};
use message::{write_messages, write_system};
use settings::{write_output, write_sampling, write_tools};
use std::collections::BTreeSet;
use turnkeep_base::Dialect;

/// The limit of output tokens when the client names none.
pub const DEFAULT_MAX_TOKENS: u64 = 4096;

type Dropped = BTreeSet<String>;

/// Writes the request for the upstream's name of the model.
pub fn encode(turn: &Turn<'_>, upstream_model: &str) -> Result<Encoded, Invalid> {
    let mut dropped: Dropped = turn.hints.iter().cloned().collect();
    let mut out = Vec::with_capacity(1024);
    let mut request = Object::open(&mut out);
    request.string("model", upstream_model);
    request.number("max_tokens", max_tokens(turn));
    let (system, rest) = split(&turn.messages);
    write_system(&mut request, system, &mut dropped)?;
    write_messages(&mut request, rest, &mut dropped)?;
    write_tools(&mut request, turn)?;
    write_sampling(&mut request, turn, &mut dropped);
    write_output(&mut request, turn, &mut dropped)?;
    if let Some(user) = &turn.user {
        request.object("metadata").string("user_id", user);
    }
    if turn.stream {
        request.bool("stream", true);
    }
    drop(request);
    let sampled = turn.temperature.is_some() || turn.top_p.is_some() || turn.top_k.is_some();
    let version = if sampled { ApiVersion::V2023 } else { ApiVersion::V2026 };
    Ok(Encoded {
        body: out.into(),
        dropped: dropped.into_iter().collect(),
        version,
        names: ToolNames::of(turn, Dialect::Messages),
    })
}

/// A thinking budget must stay below the limit.
fn max_tokens(turn: &Turn<'_>) -> u64 {
    turn.max_output.unwrap_or(match turn.reasoning.mode {
        Some(Thinking::Budget(budget)) => budget.saturating_add(DEFAULT_MAX_TOKENS),
        Some(Thinking::Adaptive | Thinking::Off) | None => DEFAULT_MAX_TOKENS,
    })
}

fn at(path: impl Into<String>, message: impl Into<String>) -> Invalid {
    Invalid { path: path.into(), message: message.into(), at: 0 }
}

/// The API refuses a text without a visible character.
fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}
