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
