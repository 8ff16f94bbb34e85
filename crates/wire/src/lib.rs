//! Sans-IO framers. Bytes go in as they come, frames come out; nothing here reads a socket, a clock or JSON.

#![forbid(unsafe_code)]

pub mod envelope;
pub mod sse;
