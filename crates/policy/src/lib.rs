//! Pure state machines: what an account's standing is, who may be chosen, who waits for whom. Events and a time go in,
//! decisions come out; nothing here does I/O, reads a clock or iterates a hash map.

#![forbid(unsafe_code)]

pub mod accounts;
pub mod affinity;
pub mod continuity;
pub mod conversations;
pub mod glob;
pub mod limits;
pub mod moment;
pub mod queue;
mod rate;
mod recent;
pub mod settle;
pub mod shelf;
pub mod span;
pub mod tuning;

pub use moment::Moment;
pub use span::Span;
pub use tuning::Tuning;
