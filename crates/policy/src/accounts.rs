//! The accounts of every upstream: their standing, their cooldowns, and which of them serves the next attempt.

mod breaker;
mod budget;
mod configure;
mod cooldown;
mod egress;
mod eligible;
mod judge;
mod judged;
mod pick;
mod pool;
mod ready;
mod retry_budget;
mod snapshot;
mod spec;
mod standing;

pub use cooldown::{Cooldown, Cooldowns, Scope};
pub use judged::{Applied, Bearing, ChargeRef, Judged, Taken};
pub use pool::Pool;
pub use snapshot::{Snapshot, UpstreamSnapshot};
pub use spec::{AccountKey, AccountSpec, Candidate, Need, Pick, Tier, Unavailable, UpstreamSpec};
pub use standing::{Dimension, Grounds, JudgedAgain, Saved, SavedStatus, Standing, Status};
