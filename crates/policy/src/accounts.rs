//! The accounts of every upstream: their standing, their cooldowns, and which of them serves the next attempt.

mod budget;
mod cooldown;
mod pool;
mod standing;

pub use budget::ErrorBudget;
pub use cooldown::{Cooldown, Cooldowns, Scope};
pub use pool::{AccountKey, AccountSpec, Candidate, Need, Pick, Pool, Snapshot, Unavailable};
pub use standing::{Standing, Status};
