//! Gemini generateContent, on both sides.

mod chunk;
pub mod classify;
mod classify_table;
pub mod error;
mod finish;
mod generation;
pub mod models;
pub mod order;
pub(crate) mod proof;
pub mod reply_decode;
pub mod reply_encode;
pub mod request;
pub mod request_encode;
mod schema;
mod sentinel;
pub mod tap;
