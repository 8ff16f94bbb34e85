//! A canonical turn as a Gemini request. Content that Gemini has no place for is an error with its path; hints are
//! dropped and named. The model and whether the answer is streamed are in the path, not here.
//!
//! Choices made here, where the dialects differ:
//! - Leading system messages become `systemInstruction`. A later one becomes user text between `<system>` and
//!   `</system>`, in its place.
//! - Schemas go into the fields that take JSON Schema as it is, not into those of Gemini's own subset.
//! - A result is `{"output": "<text>"}`, a failed one `{"error": "<text>"}`; its images stand beside it.
//! - Only Gemini's own proofs go along, on the part behind the thinking that carries them. Where a model of the third
//!   generation asks for one on a call that it did not make, the placeholder that Gemini documents stands.

mod contents;
mod settings;
mod tools;

use crate::json::{Invalid, Object};
use crate::messages::conversation::split;
use crate::request::{ApiVersion, Encoded};
use crate::tool_names::ToolNames;
use crate::turn::Turn;
use contents::{write_contents, write_system};
use settings::write_config;
use std::collections::BTreeSet;
use tools::write_tools;
use turnkeep_base::Dialect;

type Dropped = BTreeSet<String>;

/// Writes the request for the upstream's name of the model.
pub fn encode(turn: &Turn<'_>, upstream_model: &str) -> Result<Encoded, Invalid> {
    let mut dropped: Dropped = turn.hints.iter().cloned().collect();
    let mut out = Vec::with_capacity(4096);
    let mut request = Object::open(&mut out);
    let (system, rest) = split(&turn.messages);
    write_system(&mut request, system, &mut dropped)?;
    write_contents(&mut request, rest, upstream_model, &mut dropped)?;
    write_tools(&mut request, turn, &mut dropped)?;
    write_config(&mut request, turn, upstream_model, &mut dropped)?;
    for (given, name) in [(&turn.user, "user"), (&turn.verbosity, "verbosity"), (&turn.cache_key, "prompt_cache_key")] {
        if given.is_some() {
            dropped.insert(name.into());
        }
    }
    drop(request);
    Ok(Encoded {
        body: out.into(),
        dropped: dropped.into_iter().collect(),
        version: ApiVersion::default(),
        names: ToolNames::of(turn, Dialect::Gemini),
    })
}

fn at(path: impl Into<String>, message: impl Into<String>) -> Invalid {
    Invalid { path: path.into(), message: message.into(), at: 0 }
}
