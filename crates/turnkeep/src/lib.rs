//! The gateway's configuration, its command line, and the wiring that puts the rooms together.

pub mod cli;
pub mod commands;
pub mod config;
pub mod logs;
pub mod probe;
pub mod secrets;
pub mod wiring;
