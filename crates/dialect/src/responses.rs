//! OpenAI Responses, on both sides.

pub mod error;
pub mod order;
pub(crate) mod outline;
pub mod reply_decode;
pub mod reply_encode;
pub mod request;
pub mod request_encode;
mod restate;
pub mod tap;

/// What the `encrypted_content` of reasoning begins with that was Anthropic's redacted thinking: it is no proof of a text,
/// and whoever does not know the mark takes it for nobody's.
pub const REDACTED: &str = "turnkeep.redacted.";
