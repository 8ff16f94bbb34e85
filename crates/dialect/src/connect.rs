//! Connect and gRPC: what their errors mean. Their framing is `wire`'s, their transport `upstream`'s.

pub mod classify;
mod classify_table;
