//! Nothing is lost and nothing is left over: every attempt against the upstream's own meter, crowds that vanish, clients that
//! leave or do not read, a store in trouble; with the whole gateway over real sockets, killed at random where that matters.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

#[path = "../it/support/mod.rs"]
mod support;

mod chance;
mod crowd;
mod gone;
mod killed;
mod meter;
mod random_turns;
mod stalled;
mod trouble;
