//! Real sockets: servers written byte by byte against the driver.

#![allow(missing_docs)]

mod peer;
mod pooling;
