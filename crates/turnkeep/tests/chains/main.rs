//! Conversations that a Responses upstream keeps, gone on with by a client of any dialect: over the whole gateway and a lab
//! that keeps its answers, with every conversation's transcript read there.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

#[path = "../it/support/mod.rs"]
mod support;

mod lease;
mod talk;
