//! The turn machine, its one drive loop, and the ports to the world.

#![forbid(unsafe_code)]

pub mod ports;
