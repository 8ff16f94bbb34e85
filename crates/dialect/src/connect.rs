//! Connect and gRPC. So far only their errors are known, for the upstreams that are to speak them.

pub mod classify;
mod classify_table;
