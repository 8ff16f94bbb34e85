//! Standing, admission, retries, fallbacks and reload of the whole gateway, over real sockets.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

#[path = "../it/support/mod.rs"]
mod support;

mod egress;
mod evictions;
mod half_open;
mod scene;
mod windows;
