//! A canonical turn as a Responses request, for any server that speaks it.
//!
//! Choices made here, where the dialects differ:
//! - Nothing is stored at the upstream (`store` false); so items carry no ids, and reasoning goes along in full.
//! - Leading system messages become `instructions`. A later one becomes a developer message in its place.
//! - `strict` is written for every function: this API takes it for true where it is not there.
//! - Stop texts, `top_k`, penalties and the seed have no place here; they are dropped and named.

mod input;
mod parts;
mod settings;
mod tools;

use crate::json::{Invalid, Object};
use crate::request::{ApiVersion, Encoded};
use crate::tool_names::ToolNames;
use crate::turn::Turn;
use turnkeep_base::Dialect;

/// Writes the request for the upstream's name of the model.
pub fn encode(turn: &Turn<'_>, upstream_model: &str) -> Result<Encoded, Invalid> {
    let mut dropped = Dropped::default();
    let mut body = Vec::with_capacity(4096);
    {
        let mut object = Object::open(&mut body);
        object.string("model", upstream_model);
        let reasoned = input::write(&mut object, turn, &mut dropped)?;
        tools::write(&mut object, turn)?;
        settings::write(&mut object, turn, &mut dropped);
        object.bool("store", false);
        if reasoned || settings::may_reason(upstream_model) {
            object.array("include").string("reasoning.encrypted_content");
        }
        if turn.stream {
            object.bool("stream", true);
        }
    }
    turn.hints.iter().for_each(|hint| dropped.add(hint));
    Ok(Encoded {
        body: body.into(),
        dropped: dropped.names,
        version: ApiVersion::default(),
        names: ToolNames::of(turn, Dialect::Responses),
    })
}

/// The names of what was dropped, each once, in the order they were met.
#[derive(Debug, Default)]
struct Dropped {
    names: Vec<String>,
}

impl Dropped {
    fn add(&mut self, name: &str) {
        if !self.names.iter().any(|known| known == name) {
            self.names.push(name.to_owned());
        }
    }
}

/// Content that Responses has no form for.
fn refuse(path: String, what: &str) -> Invalid {
    Invalid { path, message: format!("{what} cannot be carried to a Responses upstream"), at: 0 }
}
