//! A canonical turn as a Messages request. Content that Messages has no place for is an error with its path; hints are
//! dropped and named.
//!
//! Choices made here, where the dialects differ:
//! - `max_tokens` is required: [`DEFAULT_MAX_TOKENS`] when the client gave none.
//! - Leading system messages become `system`. A later one becomes user text between `<system>` and `</system>`, in its
//!   place: only some models take the role `system` among the messages.
//! - Empty texts are left out, because the API refuses them.
//! - Thinking goes along only with the provider's own signature.
//! - Sampling parameters exist only in the older API version, which is asked for when they are set; a model that thinks
//!   takes none of them.
//! - A turn with tools and without cache marks gets two, at the end of the system prompt and of the conversation.

mod message;
mod settings;
mod thinking;

use super::conversation::split;
use crate::choice::offer;
use crate::json::{Invalid, Object};
use crate::request::{ApiVersion, Encoded};
use crate::tool_names::ToolNames;
use crate::turn::{Body, Part, Thinking, Turn};
pub(crate) use message::system_text;
use message::{write_messages, write_system};
use settings::{write_output, write_sampling, write_tools};
use std::collections::BTreeSet;
use turnkeep_base::Dialect;

/// The limit of output tokens when the client names none.
pub const DEFAULT_MAX_TOKENS: u64 = 4096;

/// The names of what is dropped.
pub(crate) type Dropped = BTreeSet<String>;

/// The mark of what may be cached, where the client has none: its dialect has no word for it, and without a mark nothing
/// of an agent's long prompt is.
const CACHED: &str = r#"{"type":"ephemeral"}"#;

/// Writes the request for the upstream's name of the model.
pub fn encode(turn: &Turn<'_>, upstream_model: &str) -> Result<Encoded, Invalid> {
    let mut dropped: Dropped = turn.hints.iter().cloned().collect();
    let mut out = Vec::with_capacity(1024);
    let mut request = Object::open(&mut out);
    let offer = offer(turn)?;
    let mode = thinking::mode(turn, &offer, &mut dropped);
    let mark = (!offer.tools.is_empty() && !has_marks(turn)).then_some(CACHED);
    request.string("model", upstream_model);
    request.number("max_tokens", max_tokens(turn, mode));
    let (system, rest) = split(&turn.messages);
    write_system(&mut request, system, mark, &mut dropped)?;
    write_messages(&mut request, rest, mark, &mut dropped)?;
    write_tools(&mut request, turn, &offer)?;
    let sampled = write_sampling(&mut request, turn, thinking::is_on(mode), &mut dropped);
    write_output(&mut request, turn, mode, &mut dropped)?;
    if let Some(user) = &turn.user {
        request.object("metadata").string("user_id", user);
    }
    if turn.stream {
        request.bool("stream", true);
    }
    drop(request);
    let version = if sampled { ApiVersion::V2023 } else { ApiVersion::V2026 };
    Ok(Encoded {
        body: out.into(),
        dropped: dropped.into_iter().collect(),
        version,
        names: ToolNames::of(turn, Dialect::Messages),
    })
}

/// A thinking budget is part of the limit and must stay below it: one that does not comes on top of what the client
/// wants of the answer.
fn max_tokens(turn: &Turn<'_>, mode: Option<Thinking>) -> u64 {
    let answer = turn.max_output.unwrap_or(DEFAULT_MAX_TOKENS);
    match (mode, turn.max_output) {
        (Some(Thinking::Budget(budget)), Some(most)) if most > budget => most,
        (Some(Thinking::Budget(budget)), Some(_) | None) => budget.saturating_add(answer.max(1)),
        (Some(Thinking::Adaptive | Thinking::Off) | None, _) => answer,
    }
}

/// The client marked what may be cached.
fn has_marks(turn: &Turn<'_>) -> bool {
    fn marked(part: &Part<'_>) -> bool {
        let inside =
            matches!(&part.body, Body::ToolResult { content, .. } if content.iter().any(|part| part.cache.is_some()));
        inside || part.cache.is_some()
    }
    turn.messages.iter().flat_map(|message| &message.parts).any(marked)
}

fn at(path: impl Into<String>, message: impl Into<String>) -> Invalid {
    Invalid { path: path.into(), message: message.into(), at: 0 }
}

/// The API refuses a text without a visible character.
fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}
