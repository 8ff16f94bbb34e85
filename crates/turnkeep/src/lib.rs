//! The gateway's configuration and command line. The binary beside it wires the rooms together.

pub mod cli;
pub mod commands;
pub mod config;
