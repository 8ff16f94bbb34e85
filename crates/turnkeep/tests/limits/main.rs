//! What callers' keys may use of the whole gateway: rates, turns at once, budgets, ends, and who stands behind a shared
//! key; over real sockets.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

#[path = "../it/support/mod.rs"]
mod support;

mod asked;
mod budgets;
mod keys;
mod prices;
mod rates;
mod restart;
mod scene;
