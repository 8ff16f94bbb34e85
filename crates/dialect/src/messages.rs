//! Anthropic Messages, on both sides: a client's request in, an upstream's request out, an upstream's answer in and a
//! client's answer out, with the taps for an answer that passes unchanged.
//!
//! What leaves here keeps the protocol's own order (one open block at a time, dense indexes, thinking signed before it
//! stops); what comes in may be looser, as real servers are. Nothing here knows accounts, routes or retries.

pub mod classify;
mod classify_table;
pub mod error;
pub mod models;
pub mod order;
pub mod reply_decode;
pub mod reply_encode;
pub mod request;
pub mod request_encode;
pub mod tap;

pub(crate) mod conversation;
pub(crate) mod input;
mod kind;
pub(crate) mod nothing;
mod stop;
mod usage;
pub(crate) use usage::write as write_usage;
