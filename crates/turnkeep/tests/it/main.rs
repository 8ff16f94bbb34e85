//! The whole gateway over real sockets: in process on a free loopback port, over one or more labs that play the
//! upstreams, spoken to by a client that can stop, close or reset at any point. What is asserted is what a client, an
//! upstream and an operator can see.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

mod support;

mod admission;
mod array;
mod blame;
mod blame_bodies;
mod blame_connections;
mod blame_files;
mod blame_hostile;
mod blame_replies;
mod blame_together;
mod bytes;
mod crash;
mod deadlines;
mod failover;
mod keys;
mod leaving;
mod ledger;
mod listeners;
mod off_spec;
mod other_operations;
mod restart;
mod shutdown;
mod silence;
mod switching;
mod upload;
