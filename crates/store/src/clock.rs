//! The wall clock of the machine, for a store that nobody gives another.

use std::time::{SystemTime, UNIX_EPOCH};
use turnkeep_engine::ports::WallClock;

/// The system's wall clock. A time before 1970 reads as 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl WallClock for SystemClock {
    fn unix_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}
