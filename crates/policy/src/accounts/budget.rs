//! The error budget: a few named credential faults within a sliding window, without a success between, and the account
//! is out for a while. Spending takes a [`Charge`], which only the blame table makes.

use std::time::Duration;
use turnkeep_base::Charge;

/// One spent unit. Times are signed milliseconds, because a restored unit was spent before this process began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// The attempt that spent it.
    pub(super) id: u64,
    /// When.
    pub(super) at: i64,
}

/// The spent part of an account's budget.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ErrorBudget {
    spent: Vec<Mark>,
    window: Duration,
}

impl ErrorBudget {
    /// The window in which units add up.
    pub(super) fn retune(&mut self, window: Duration) {
        self.window = window;
    }

    /// Spends one unit; tells how many are spent within the window.
    pub(super) fn charge(&mut self, now: i64, id: u64, charge: Charge) -> u32 {
        let _the_permission_is_used_up = charge;
        self.put_back(now, vec![Mark { id, at: now }]);
        self.used(now)
    }

    /// Takes one unit back; false when it is no longer there.
    pub(super) fn take_back(&mut self, id: u64) -> bool {
        let before = self.spent.len();
        self.spent.retain(|mark| mark.id != id);
        self.spent.len() < before
    }

    /// Units that were spent earlier and had been put aside.
    pub(super) fn put_back(&mut self, now: i64, marks: Vec<Mark>) {
        self.spent.extend(marks);
        let window = self.window;
        self.spent.retain(|mark| within(now, mark.at, window));
        self.spent.sort_by_key(|mark| mark.at);
    }

    /// Empties it; gives what was in it.
    pub(super) fn clear(&mut self) -> Vec<Mark> {
        std::mem::take(&mut self.spent)
    }

    /// The ages of the units within the window.
    pub(super) fn ages(&self, now: i64) -> Vec<Duration> {
        let running = self.spent.iter().filter(|mark| within(now, mark.at, self.window));
        running.map(|mark| Duration::from_millis(now.saturating_sub(mark.at).unsigned_abs())).collect()
    }

    /// Units spent within the window.
    pub(super) fn used(&self, now: i64) -> u32 {
        self.spent.iter().filter(|mark| within(now, mark.at, self.window)).count() as u32
    }
}

/// Whether something of that time is still within the window.
pub(super) fn within(now: i64, at: i64, window: Duration) -> bool {
    let window = i64::try_from(window.as_millis()).unwrap_or(i64::MAX);
    now.saturating_sub(at) < window
}
