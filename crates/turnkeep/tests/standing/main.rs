//! Standing, admission, retries, fallbacks and reload of the whole gateway, over real sockets.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

#[path = "../it/support/mod.rs"]
mod support;

mod egress;
mod endpoint;
mod evictions;
mod explain;
mod fallbacks;
mod half_open;
mod kept;
mod process;
mod queue;
mod rates;
mod reload;
mod scene;
mod secrets;
mod stored;
mod windows;
