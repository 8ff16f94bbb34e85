//! The timers of one turn, in a table: set, cleared and asked for the next one to fire.

use turnkeep_policy::Moment;

/// A timer of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Timer {
    /// The whole turn; a stream only until its answer commits.
    Total,
    /// A stream after its answer has committed.
    MaxTurn,
    /// Until the first content of an attempt.
    FirstContent,
    /// Between two events.
    Between,
    /// Headers are held back no longer.
    OpenAfter,
    /// A sign of life is due.
    Heartbeat,
    /// The wait before a retry is over.
    Backoff,
    /// Usage has not come after the last finish reason.
    AfterFinish,
    /// The client has not taken what waits for it.
    SlowReader,
    /// It is time to see whether the client takes enough.
    Pace,
    /// What goes on without a reader has had its time.
    Finish,
}

impl Timer {
    const ALL: [Timer; 11] = [
        Timer::Total,
        Timer::MaxTurn,
        Timer::FirstContent,
        Timer::Between,
        Timer::OpenAfter,
        Timer::Heartbeat,
        Timer::Backoff,
        Timer::AfterFinish,
        Timer::SlowReader,
        Timer::Pace,
        Timer::Finish,
    ];
}

/// The table.
#[derive(Clone, Debug, Default)]
pub struct Timers([Option<Moment>; Timer::ALL.len()]);

impl Timers {
    /// Sets a timer, replacing its earlier setting.
    pub fn set(&mut self, timer: Timer, at: Moment) {
        self.0[timer as usize] = Some(at);
    }

    /// When it fires, if it is set.
    pub fn at(&self, timer: Timer) -> Option<Moment> {
        self.0[timer as usize]
    }

    /// Clears a timer.
    pub fn clear(&mut self, timer: Timer) {
        self.0[timer as usize] = None;
    }

    /// Clears all of them.
    pub fn clear_all(&mut self) {
        *self = Timers::default();
    }

    /// Whether a timer is set.
    pub fn is_set(&self, timer: Timer) -> bool {
        self.0[timer as usize].is_some()
    }

    /// The next to fire. Of two at the same moment the one that ends more comes first.
    pub fn next(&self) -> Option<(Moment, Timer)> {
        let set = Timer::ALL.iter().filter_map(|&timer| self.0[timer as usize].map(|at| (at, timer)));
        set.min_by_key(|(at, timer)| (*at, *timer as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soonest_timer_is_next_and_a_cleared_one_never() {
        let mut timers = Timers::default();
        timers.set(Timer::Heartbeat, Moment(5));
        timers.set(Timer::Between, Moment(5));
        timers.set(Timer::Total, Moment(9));
        assert_eq!(timers.next(), Some((Moment(5), Timer::Between)));
        timers.clear(Timer::Between);
        timers.set(Timer::Heartbeat, Moment(20));
        assert_eq!(timers.next(), Some((Moment(9), Timer::Total)));
    }
}
