//! A Responses request as a client sends it: checked without being built ([`read`]), or read into a canonical turn
//! ([`decode`]).
//!
//! State that the gateway keeps itself (`previous_response_id`, `conversation`, `background`, `store`) is resolved before
//! a request comes here: its `input` is the whole history, and these fields mean nothing more.

mod decode;
mod foreign;
mod items;
mod media;
mod parts;
mod read;
mod read_item;
mod read_tool;
mod settings;
mod tools;

use crate::identity::Foreign;
use crate::request::{ClientRequest, Edit};
pub use decode::decode;
pub use foreign::foreign_reasoning;
pub use read::read;

/// The edits of a same-dialect route, beside the model's name: reasoning that no Responses upstream made is taken out.
pub fn edits(request: &ClientRequest) -> Vec<Edit> {
    foreign_reasoning(request, Foreign::Enveloped)
}
