//! Real sockets: servers written byte by byte against the driver.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic)] // a test fails by panicking

mod coding;
mod faults;
mod peer;
mod pooling;
mod proxies;
mod tls;
