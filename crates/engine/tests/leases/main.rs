//! Leases of conversations that upstreams keep, through whole turns, over an upstream that keeps transcripts and refuses,
//! fails and stalls where the test says.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

mod accounts;
mod cancelled;
mod crowd;
mod fake;
mod histories;
mod restart;
mod review;
mod table;
#[path = "../turns/world.rs"]
#[allow(dead_code, reason = "shared with the turns' own tests")]
mod turns;
mod world;
