//! The whole gateway under simulation: its real HTTP, engine, drivers, dialects and store on a paused clock, over simulated
//! connections to real labs, with clients that leave, networks that break and processes that die. A run is a plan drawn from
//! a seed; the same seed does the same, to the byte of its trace. `docs/simulation.md` tells what is looked at.

mod agents;
mod ask;
pub mod bugs;
mod client;
mod clock;
pub mod explore;
mod gateway;
mod link;
mod logs;
pub mod marks;
mod net;
mod panics;
mod pipe;
pub mod plan;
mod reply;
pub mod run;
mod script;
pub mod shrink;
mod store;
mod streams;
mod trace;
mod watch;
