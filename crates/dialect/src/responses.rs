//! OpenAI Responses, on both sides.

pub mod error;
pub mod order;
pub mod reply_decode;
pub mod reply_encode;
pub mod request;
pub mod request_encode;
pub mod tap;
