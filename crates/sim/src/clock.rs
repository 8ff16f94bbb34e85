//! Wall time: the runtime's paused clock, which never goes back, and the jumps that an operator or NTP makes.

use std::sync::atomic::{AtomicI64, Ordering};
use tokio::time::Instant;
use turnkeep_engine::ports::WallClock;

/// 2026-01-01T00:00:00Z, in Unix milliseconds: where each run begins.
const BEGIN_MS: i64 = 1_767_225_600_000;

/// The wall clock of a run.
#[derive(Debug)]
pub struct Clock {
    begun: Instant,
    jumped_ms: AtomicI64,
}

impl Clock {
    /// A clock that begins now.
    pub fn begin() -> Clock {
        Clock { begun: Instant::now(), jumped_ms: AtomicI64::new(0) }
    }

    /// Milliseconds since the run has begun, jumps apart.
    pub fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Sets the wall clock on, or back.
    pub fn jump(&self, by_ms: i64) {
        self.jumped_ms.fetch_add(by_ms, Ordering::Relaxed);
    }
}

impl WallClock for Clock {
    fn unix_ms(&self) -> u64 {
        let elapsed = i64::try_from(self.elapsed_ms()).unwrap_or(i64::MAX);
        let now = BEGIN_MS.saturating_add(elapsed).saturating_add(self.jumped_ms.load(Ordering::Relaxed));
        u64::try_from(now).unwrap_or(0)
    }
}
