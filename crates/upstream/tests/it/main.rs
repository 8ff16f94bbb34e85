//! Real sockets: servers written byte by byte against the driver.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::result_large_err)] // a test fails by panicking

mod arbitrary;
mod bodies;
mod chat;
mod chat_lease_every_poll;
mod chat_servers;
mod coding;
mod cut;
mod devin;
mod exhausted;
mod faults;
mod http2;
mod lifetime;
mod peer;
#[path = "../support/polls.rs"]
mod polls;
mod pooling;
mod proxies;
mod resets;
mod rpc_connect;
mod rpc_grpc;
mod rpc_peer;
mod silence;
mod tls;
