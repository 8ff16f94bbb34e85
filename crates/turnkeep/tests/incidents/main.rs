//! Incident traces of the whole gateway: real turns over real sockets, exported and replayed by the real binary.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

#[path = "../it/support/mod.rs"]
mod support;

#[path = "../leases/cascade_scene.rs"]
#[allow(dead_code, reason = "what the tests of leases use of it is more")]
mod cascade_scene;
#[path = "../leases/cascade_server.rs"]
#[allow(dead_code, reason = "what the tests of leases use of it is more")]
mod cascade_server;
#[path = "../leases/fake.rs"]
#[allow(dead_code, reason = "what the tests of leases use of it is more")]
mod fake;
#[path = "../leases/scene.rs"]
#[allow(dead_code, reason = "what the tests of leases use of it is more")]
mod scene;

mod altered;
mod asked;
mod conversations;
mod stage;
mod turns;
