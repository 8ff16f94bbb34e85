//! Conversations that upstreams keep, through the whole gateway over real sockets: when the next turn goes on with one,
//! and that none is lost, spoilt, driven by two turns at once, or given to another caller. The upstreams are servers and
//! agents of these tests' own, and the lab as Devin; none shares code with the drivers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

#[path = "../it/support/mod.rs"]
mod support;

mod acp_lease;
mod agent;
mod cascade_lease;
mod cascade_lease_faults;
mod cascade_lease_owners;
mod cascade_lease_process;
mod cascade_lease_silent;
mod cascade_process;
mod cascade_scene;
mod cascade_server;
mod devin_lease;
mod fake;
mod moved_lease;
mod processes;
mod scene;
