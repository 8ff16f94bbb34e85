//! The Cascade driver under a real engine, against the lab's server over real sockets, by Connect and by gRPC.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::result_large_err)] // a test fails by panicking

mod chat;
mod driver;
mod hosted;
mod lease;
mod lease_every_poll;
mod talk;
// The engine's own world of ports; what its tests alone need of it is not needed here.
#[allow(dead_code)]
#[path = "../../../engine/tests/turns/world.rs"]
mod world;
