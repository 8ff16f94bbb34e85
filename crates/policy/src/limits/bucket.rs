//! A limit per minute, by the generic cell rate algorithm: one number, the time at which the bucket will be full again. A
//! whole minute's worth may go at once; it comes back evenly.
//!
//! An account's rates ([`crate::accounts`]) work alike. A caller's turns run long and many at once, so here what is given
//! back is only what time has not given back already: else an estimate that was too high would count twice, once as it
//! flowed back and once when the turn ended, and hide what other turns have used.

use crate::moment::Moment;

const MINUTE: u64 = 60_000_000_000;
const MS: u64 = 1_000_000;
/// The most that one turn may owe, however much it used: ten minutes' worth.
const LARGEST: u64 = 10 * MINUTE;

/// One limit. Times in nanoseconds, so that a limit of millions a minute is exact enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bucket {
    interval: u64,
    full_at: u64,
}

/// What was drawn, and when all of it will have flowed back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Drawn {
    amount: u64,
    back_at: u64,
}

impl Bucket {
    /// A full one of this many a minute (at least one).
    pub(super) fn new(per_minute: u32) -> Self {
        Bucket { interval: interval(per_minute), full_at: 0 }
    }

    /// Another limit; the same share of it stays used.
    pub(super) fn set(&mut self, per_minute: u32) {
        self.interval = interval(per_minute);
    }

    /// When this much can be drawn. More than the bucket holds waits for a full one.
    pub(super) fn available_at(&self, cost: u64) -> Moment {
        let span = self.interval.saturating_mul(cost).min(MINUTE);
        Moment(self.full_at.saturating_add(span).saturating_sub(MINUTE).div_ceil(MS))
    }

    /// How many can be drawn now.
    pub(super) fn left(&self, now: Moment) -> u64 {
        let used = self.full_at.saturating_sub(now.0.saturating_mul(MS));
        MINUTE.saturating_sub(used) / self.interval
    }

    /// When the bucket is full again.
    pub(super) fn full_at(&self) -> Moment {
        Moment(self.full_at.div_ceil(MS))
    }

    /// Draws an estimate, a minute's worth at most, whether it is available or not.
    pub(super) fn draw(&mut self, now: Moment, cost: u64) -> Drawn {
        self.draw_within(now, cost, MINUTE)
    }

    /// Puts what was used in place of the estimate.
    pub(super) fn true_up(&mut self, now: Moment, drawn: Drawn, cost: u64) {
        let due = self.interval.saturating_mul(cost).min(LARGEST);
        if due > drawn.amount {
            // What was drawn has been flowing back all along; the rest starts now.
            self.full_at = self.full_at.max(now.0.saturating_mul(MS)).saturating_add(due - drawn.amount);
        } else {
            self.take_back(now, Drawn { amount: drawn.amount - due, back_at: drawn.back_at });
        }
    }

    /// Gives back what was drawn: it was not used.
    pub(super) fn give_back(&mut self, now: Moment, drawn: Drawn) {
        self.take_back(now, drawn);
    }

    fn draw_within(&mut self, now: Moment, cost: u64, most: u64) -> Drawn {
        let amount = self.interval.saturating_mul(cost).min(most);
        self.full_at = self.full_at.max(now.0.saturating_mul(MS)).saturating_add(amount);
        Drawn { amount, back_at: self.full_at }
    }

    fn take_back(&mut self, now: Moment, drawn: Drawn) {
        let still_used = drawn.back_at.saturating_sub(now.0.saturating_mul(MS)).min(drawn.amount);
        self.full_at = self.full_at.saturating_sub(still_used);
    }
}

fn interval(per_minute: u32) -> u64 {
    MINUTE / u64::from(per_minute.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minutes_worth_goes_at_once_and_comes_back_evenly() {
        let mut bucket = Bucket::new(3);
        let now = Moment(5_000);
        for left in [3, 2, 1] {
            assert_eq!(bucket.left(now), left);
            assert!(bucket.available_at(1) <= now);
            bucket.draw(now, 1);
        }
        assert_eq!((bucket.left(now), bucket.available_at(1)), (0, Moment(25_000)));
        assert_eq!((bucket.left(Moment(25_000)), bucket.full_at()), (1, Moment(65_000)));
    }

    #[test]
    fn what_was_not_used_comes_back_and_what_was_used_beyond_the_estimate_is_owed() {
        let mut bucket = Bucket::new(600);
        let full = bucket;
        let drawn = bucket.draw(Moment(0), 500);
        bucket.give_back(Moment(0), drawn);
        assert_eq!(bucket, full);
        let drawn = bucket.draw(Moment(0), 500);
        bucket.true_up(Moment(0), drawn, 100);
        assert_eq!(bucket.full_at(), Moment(10_000));
        let drawn = bucket.draw(Moment(0), 100);
        bucket.true_up(Moment(0), drawn, 900);
        assert_eq!(bucket.full_at(), Moment(100_000));
    }

    #[test]
    fn what_time_has_given_back_is_not_given_back_again() {
        let mut bucket = Bucket::new(60);
        let long = bucket.draw(Moment(0), 30);
        // A minute later all of it has flowed back, and another turn has used the whole minute.
        let other = bucket.draw(Moment(60_000), 60);
        bucket.true_up(Moment(60_000), other, 60);
        bucket.true_up(Moment(60_000), long, 1);
        assert_eq!(bucket.left(Moment(60_000)), 0);
    }

    #[test]
    fn a_turn_larger_than_the_bucket_waits_for_a_full_one_and_owes_ten_minutes_at_most() {
        let mut bucket = Bucket::new(10);
        bucket.draw(Moment(0), 1);
        assert_eq!(bucket.available_at(u64::MAX), Moment(6_000));
        let drawn = bucket.draw(Moment(6_000), u64::MAX);
        assert_eq!(bucket.full_at(), Moment(66_000));
        bucket.true_up(Moment(6_000), drawn, u64::MAX);
        assert_eq!(bucket.full_at(), Moment(606_000));
    }
}
