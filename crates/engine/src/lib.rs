//! The turn machine, its one drive loop, and the ports to the world.

#![forbid(unsafe_code)]

pub mod admission;
pub mod machine;
pub mod pipe;
pub mod ports;
pub mod route;
pub mod tally;
pub mod timers;
