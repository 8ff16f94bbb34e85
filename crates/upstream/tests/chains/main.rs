//! Answers that a Responses upstream keeps, gone on with by a real engine over the real endpoint, against the lab over real
//! sockets.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

mod lease_every_poll;
// Another binary counts the happenings of an answer with it, too.
#[path = "../support/polls.rs"]
mod polls;
mod talk;
// The engine's own world of ports; what its tests alone need of it is not needed here.
#[allow(dead_code)]
#[path = "../../../engine/tests/turns/world.rs"]
mod world;
