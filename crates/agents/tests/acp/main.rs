//! The ACP driver against a real process, over real pipes.

#![allow(clippy::expect_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

#[path = "../support/processes.rs"]
mod processes;

mod answers;
mod cancelling;
mod faults;
mod gateway;
mod lease;
mod requests;
mod review_lease;
mod start;
mod world;
