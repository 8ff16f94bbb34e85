//! OpenAI Chat Completions, OpenAI Responses, Anthropic Messages and Gemini as sans-IO codecs, each usable on both sides:
//! bytes to the canonical [`turn::Turn`] and [`event::Event`]s and back, and the taps that read a same-dialect answer in
//! passing.
//!
//! Nothing here does I/O, reads a clock or draws a random number.

#![forbid(unsafe_code)]
// A fault carries its proof and what it declares; it is made at most once per answer, and ends it.
#![allow(clippy::result_large_err)]

pub mod chat;
mod choice;
pub mod classify;
pub mod connect;
pub mod count;
pub mod devin;
mod document;
pub mod dropped;
pub mod envelope;
pub mod event;
pub mod free_text;
pub mod gemini;
mod hosted;
pub mod identity;
pub mod json;
mod media;
pub mod messages;
pub mod recorded;
pub mod remote;
pub mod reply;
pub mod request;
pub mod responses;
pub mod tool_id;
pub mod tool_names;
pub mod translation;
pub mod turn;
pub mod windows;
