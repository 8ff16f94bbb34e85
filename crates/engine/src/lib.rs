//! The turn machine, its one drive loop, and the ports to the world.
//!
//! A turn runs in a task of its own, from admission to its closings; the client's leaving is an event to it, never a
//! future dropped in the middle of a settlement. Nothing here knows hyper, TLS, axum or a store.

#![forbid(unsafe_code)]

pub mod admission;
mod answer;
pub mod bonds;
mod call;
mod closing;
pub mod conversations;
mod drive;
pub mod ending;
pub mod engine;
mod evidence;
pub mod fetched;
pub mod incident;
pub mod kept;
pub mod machine;
pub mod pipe;
pub mod ports;
mod recorder;
pub mod route;
pub mod tally;
pub mod timers;
mod upstream_error;

pub use ending::idempotency_key_reused;
pub use engine::{Engine, EngineParts, Terms, TurnInput};
