//! Monotonic time as a number, so that pure code can compute with it and a simulation can invent it.

use std::time::Duration;

/// Milliseconds since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Moment(pub u64);

impl Moment {
    /// This much later; never wraps.
    pub fn after(self, wait: Duration) -> Moment {
        let ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        Moment(self.0.saturating_add(ms))
    }

    /// How long until then; zero when it has passed.
    pub fn until(self, then: Moment) -> Duration {
        Duration::from_millis(then.0.saturating_sub(self.0))
    }

    /// How long since then; zero when it is yet to come.
    pub fn since(self, then: Moment) -> Duration {
        Duration::from_millis(self.0.saturating_sub(then.0))
    }
}
