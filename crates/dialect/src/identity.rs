//! By what a request, its conversation and the state in it are known again: keyed hashes of what is meant, not of the
//! bytes. Clients write the same request with other key orders and white space, move their cache marks from turn to turn
//! and write the arguments of our tool calls anew when they send them back.
//!
//! The key is the gateway's own, so nobody can look for two requests of one hash, and no hash tells what was said. What
//! the hashes are kept for, and for which caller, is not decided here.

mod canonical;
mod chain;
mod conversation;
mod history;
mod opaque;
mod parts;
mod request;
mod session;
mod volatile;

pub use conversation::{Whose, conversation};
pub use history::{History, answered, history};
pub(crate) use opaque::without;
pub use opaque::{Foreign, has_opaque_state, strip_edits, strip_opaque_state};
pub use parts::of_parts;
pub use request::request;
pub use session::{session, session_within};

use turnkeep_base::Fingerprint;

/// The key of every hash.
pub type HashKey = [u8; 32];

/// The first half of a hash.
fn fingerprint(hash: &blake3::Hash) -> Fingerprint {
    let mut out = [0; 16];
    out.copy_from_slice(&hash.as_bytes()[..16]);
    Fingerprint(out)
}
