//! A Gemini request as a client sends it: checked without being built ([`read`]), or read into a canonical turn
//! ([`decode`]). Every field of the protocol has two spellings, camelCase and snake_case, at every level.

mod config;
mod decode;
mod fields;
mod parts;
mod read;
mod results;
mod signatures;
mod tools;

pub use decode::decode;
pub(super) use fields::camel;
pub use read::read;
pub use signatures::foreign_signatures;

use crate::identity::Foreign;
use crate::request::{ClientRequest, Edit};

/// The edits of a same-dialect route: proofs that no Gemini upstream made do not go to one.
pub fn edits(request: &ClientRequest) -> Vec<Edit> {
    foreign_signatures(request, Foreign::Enveloped)
}
