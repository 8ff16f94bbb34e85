//! OpenAI Chat Completions, on both sides: requests read from clients and written for upstreams, answers read from
//! upstreams (or tapped in passing) and written for clients, errors in its form and errors understood.
//!
//! "OpenAI" is the smaller half of what speaks this dialect; readers tolerate what compatible servers do to it, writers
//! keep to what all of them take.

mod chunk;
pub mod classify;
mod classify_table;
pub mod completions;
pub mod embeddings;
pub mod error;
mod fields;
pub mod models;
pub mod order;
pub mod reply_decode;
pub mod reply_encode;
pub mod request;
pub mod request_encode;
mod request_encode_media;
mod request_encode_message;
pub mod tap;

/// Signatures with this prefix mark thinking that came from a Chat upstream, which signs nothing: a Messages client keeps
/// signed thinking and sends it back, and by the prefix only a Chat upstream is given it again.
pub const SIGNATURE_PREFIX: &str = "turnkeep.chat.";

/// The signature that is given to thinking of a Chat upstream. The last part is the form's version, `v1` in base 64.
pub const SIGNATURE: &str = "turnkeep.chat.djE";
