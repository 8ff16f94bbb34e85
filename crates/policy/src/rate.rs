//! A limit per minute, of requests or of tokens, an account's or a caller's, by the generic cell rate algorithm: one number,
//! the time at which the bucket will be full again. A whole minute's worth may go at once; it comes back evenly.
//!
//! Turns run long and many at once, so what is given back is only what time has not given back already: else an estimate
//! that was too high would count twice, once as it flowed back and once when the turn ended, and hide what others have used.

use crate::moment::Moment;

const MINUTE: u64 = 60_000_000_000;
const MS: u64 = 1_000_000;
/// The most that one turn may owe, however much it used: ten minutes' worth. An estimate draws one at most, or a few
/// requests that are refused would keep an account from everybody.
const LARGEST: u64 = 10 * MINUTE;

/// One limit. Times in nanoseconds, so that a limit of millions a minute is exact enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    interval: u64,
    full_at: u64,
}

/// What was drawn, and when all of it will have flowed back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Drawn {
    amount: u64,
    back_at: u64,
}

impl Rate {
    /// A full one of this many a minute (at least one).
    pub(crate) fn new(per_minute: u32) -> Self {
        Rate { interval: interval(per_minute), full_at: 0 }
    }

    /// Another limit; what was drawn stays drawn, as the same share of it.
    pub(crate) fn set(&mut self, per_minute: u32) {
        self.interval = interval(per_minute);
    }

    /// When this much can be drawn. More than the bucket holds waits for a full one.
    pub(crate) fn available_at(&self, cost: u64) -> Moment {
        let span = self.interval.saturating_mul(cost).min(MINUTE);
        Moment(self.full_at.saturating_add(span).saturating_sub(MINUTE).div_ceil(MS))
    }

    /// How many can be drawn now.
    pub(crate) fn left(&self, now: Moment) -> u64 {
        let used = self.full_at.saturating_sub(nanoseconds(now));
        MINUTE.saturating_sub(used) / self.interval
    }

    /// When the bucket is full again: the later, the less headroom.
    pub(crate) fn full_at(&self) -> Moment {
        Moment(self.full_at.div_ceil(MS))
    }

    /// Draws an estimate, a minute's worth at most, whether it is available or not.
    pub(crate) fn draw(&mut self, now: Moment, cost: u64) -> Drawn {
        let amount = self.interval.saturating_mul(cost).min(MINUTE);
        self.full_at = self.full_at.max(nanoseconds(now)).saturating_add(amount);
        Drawn { amount, back_at: self.full_at }
    }

    /// Puts what was used in place of what was drawn; gives what is drawn for it now.
    pub(crate) fn true_up(&mut self, now: Moment, drawn: Drawn, cost: u64) -> Drawn {
        let due = self.interval.saturating_mul(cost).min(LARGEST);
        if let Some(more) = due.checked_sub(drawn.amount) {
            // What was drawn has been flowing back all along; the rest starts now.
            self.full_at = self.full_at.max(nanoseconds(now)).saturating_add(more);
            return Drawn { amount: due, back_at: self.full_at };
        }
        let unused = drawn.amount - due;
        self.give_back(now, Drawn { amount: unused, back_at: drawn.back_at });
        Drawn { amount: due, back_at: drawn.back_at.saturating_sub(unused) }
    }

    /// Gives back what was drawn: it was not used.
    pub(crate) fn give_back(&mut self, now: Moment, drawn: Drawn) {
        let still_used = drawn.back_at.saturating_sub(nanoseconds(now)).min(drawn.amount);
        self.full_at = self.full_at.saturating_sub(still_used);
    }
}

/// Sets, changes or lifts a limit.
pub(crate) fn rate_of(rate: &mut Option<Rate>, per_minute: Option<u32>) {
    match (rate.as_mut(), per_minute) {
        (Some(rate), Some(per_minute)) => rate.set(per_minute),
        (None, Some(per_minute)) => *rate = Some(Rate::new(per_minute)),
        (Some(_) | None, None) => *rate = None,
    }
}

fn nanoseconds(now: Moment) -> u64 {
    now.0.saturating_mul(MS)
}

fn interval(per_minute: u32) -> u64 {
    MINUTE / u64::from(per_minute.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minutes_worth_goes_at_once_and_comes_back_evenly() {
        let mut rate = Rate::new(3);
        let now = Moment(5_000);
        for left in [3, 2, 1] {
            assert_eq!(rate.left(now), left);
            assert!(rate.available_at(1) <= now);
            rate.draw(now, 1);
        }
        assert_eq!((rate.left(now), rate.available_at(1)), (0, Moment(25_000)));
        assert_eq!((rate.left(Moment(25_000)), rate.full_at()), (1, Moment(65_000)));
    }

    #[test]
    fn what_was_not_used_comes_back_and_what_was_used_beyond_the_estimate_is_owed() {
        let mut rate = Rate::new(600);
        let full = rate;
        let drawn = rate.draw(Moment(0), 500);
        rate.give_back(Moment(0), drawn);
        assert_eq!(rate, full);
        let drawn = rate.draw(Moment(0), 500);
        rate.true_up(Moment(0), drawn, 100);
        assert_eq!(rate.full_at(), Moment(10_000));
        let drawn = rate.draw(Moment(0), 100);
        rate.true_up(Moment(0), drawn, 900);
        assert_eq!(rate.full_at(), Moment(100_000));
    }

    #[test]
    fn what_time_has_given_back_is_not_given_back_again() {
        let mut rate = Rate::new(60);
        let long = rate.draw(Moment(0), 30);
        // A minute later all of it has flowed back, and another turn has used the whole minute.
        let other = rate.draw(Moment(60_000), 60);
        rate.true_up(Moment(60_000), other, 60);
        rate.true_up(Moment(60_000), long, 1);
        assert_eq!(rate.left(Moment(60_000)), 0);
    }

    #[test]
    fn a_turn_larger_than_the_bucket_waits_for_a_full_one_and_owes_ten_minutes_at_most() {
        let mut rate = Rate::new(10);
        rate.draw(Moment(0), 1);
        assert_eq!(rate.available_at(u64::MAX), Moment(6_000));
        let drawn = rate.draw(Moment(6_000), u64::MAX);
        assert_eq!(rate.full_at(), Moment(66_000));
        rate.true_up(Moment(6_000), drawn, u64::MAX);
        assert_eq!(rate.full_at(), Moment(606_000));
    }

    #[test]
    fn what_comes_in_later_waits_for_what_flows_back() {
        let mut rate = Rate::new(3);
        for _ in 0..3 {
            rate.draw(Moment(5_000), 1);
        }
        rate.draw(Moment(25_000), 1);
        assert_eq!((rate.available_at(1), rate.available_at(2)), (Moment(45_000), Moment(65_000)));
    }

    #[test]
    fn what_was_refused_costs_nothing_however_often_it_was_trued_up() {
        let mut rate = Rate::new(10);
        let drawn = rate.draw(Moment(6_000), u64::MAX);
        assert_eq!(rate.full_at(), Moment(66_000), "an estimate takes a minute's worth at most");
        let drawn = rate.true_up(Moment(6_000), drawn, u64::MAX);
        assert_eq!(rate.full_at(), Moment(606_000));
        let drawn = rate.true_up(Moment(6_000), drawn, 0);
        assert_eq!(rate.full_at(), Moment(6_000));
        rate.give_back(Moment(6_000), drawn);
        assert_eq!(rate.full_at(), Moment(6_000), "nothing is left to give back");
    }
}
