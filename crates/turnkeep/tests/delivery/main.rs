//! Whether a reply has arrived, and everything that waits for it: bindings, histories, the response cache, held answers.
//! The whole gateway over real sockets, on a model whose answers may be used again.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

#[path = "../it/support/mod.rs"]
mod support;

mod arrivals;
mod asking;
mod cached;
mod readers;
mod restarts;
mod retries;
mod scene;
