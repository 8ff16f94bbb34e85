//! The targets, each a function of any bytes. What they assert, [`crate::table`] says in words.

mod agents;
mod answers;
mod bytes;
mod config;
mod errors;
mod json;
mod requests;
mod rows;
mod rpc;
mod waits;

pub use agents::{acp, json_lines};
pub use answers::{
    chat_stream, chat_whole, gemini_stream, gemini_whole, messages_stream, messages_whole, other_answers,
    responses_stream, responses_whole,
};
pub use bytes::{envelope, inflate, sse};
pub use config::config;
pub use errors::error_reply;
pub use json::json;
pub use requests::{chat_request, gemini_request, messages_request, other_requests, responses_request};
pub use rows::{kept_record, sealed, stored_record, stored_rows};
pub use rpc::{devin, rpc_end, rpc_events};
pub use waits::stated_waits;
