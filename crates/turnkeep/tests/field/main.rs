//! What users of other gateways suffered, as behaviours that this one has: one test each, over real sockets. Which report
//! belongs to which test stands in `docs/field-faults.md`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

#[path = "../it/support/mod.rs"]
mod support;

mod accounts;
mod affinity;
mod cache;
mod endpoints;
mod fallbacks;
mod kit;
mod leaving;
mod list;
mod load;
mod memory;
mod money;
mod streams;
mod waits;
