//! Real sockets: servers written byte by byte against the driver.

#![allow(missing_docs)]

mod coding;
mod faults;
mod peer;
mod pooling;
mod proxies;
mod tls;
