//! Incident traces without a gateway: what is taken down reads back, runs again the same, keeps within its bounds, and a
//! file that is none, or was altered, is told.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

mod altered;
mod bounds;
mod recorded;
mod round_trip;
mod turns;
