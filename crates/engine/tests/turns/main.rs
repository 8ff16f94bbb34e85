//! Turns from their start to their closings, over an engine whose ports are the test's own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

mod abandoned;
mod closings;
mod costly;
mod given_again;
mod panics;
mod slow;
mod stored;
mod world;
