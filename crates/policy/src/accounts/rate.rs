//! An account's own limits per minute, of requests or of tokens, by the generic cell rate algorithm: one number, the time
//! at which the bucket will be full again. A whole minute's worth may go at once; it comes back evenly.

use crate::moment::Moment;

const MINUTE: u64 = 60_000_000_000;
const MS: u64 = 1_000_000;
/// The most that one attempt may draw, however much it cost: ten minutes' worth. An estimate draws one at most, or a few
/// requests that are refused would keep an account from everybody.
const LARGEST: u64 = 10 * MINUTE;

/// One limit. Times in nanoseconds, so that a limit of millions a minute is exact enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rate {
    interval: u64,
    full_at: u64,
}

/// What an attempt drew, to be given back or trued up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Drawn(u64);

impl Rate {
    /// A full bucket of this many a minute (at least one).
    pub(super) fn new(per_minute: u32) -> Self {
        Rate { interval: interval(per_minute), full_at: 0 }
    }

    /// Another limit; what was drawn stays drawn.
    pub(super) fn set(&mut self, per_minute: u32) {
        self.interval = interval(per_minute);
    }

    /// When this much can be drawn. More than the bucket holds waits for a full one.
    pub(super) fn available_at(&self, cost: u64) -> Moment {
        let span = self.interval.saturating_mul(cost).min(MINUTE);
        Moment(self.full_at.saturating_add(span).saturating_sub(MINUTE).div_ceil(MS))
    }

    /// When the bucket is full: the later, the less headroom.
    pub(super) fn full_at(&self) -> Moment {
        Moment(self.full_at.div_ceil(MS))
    }

    /// Draws what is estimated, whether it is available or not.
    pub(super) fn draw(&mut self, now: Moment, cost: u64) -> Drawn {
        self.draw_within(now, cost, MINUTE)
    }

    fn draw_within(&mut self, now: Moment, cost: u64, most: u64) -> Drawn {
        let drawn = self.interval.saturating_mul(cost).min(most);
        self.full_at = self.full_at.max(now.0.saturating_mul(MS)).saturating_add(drawn);
        Drawn(drawn)
    }

    /// Gives back what was drawn: nothing was sent.
    pub(super) fn give_back(&mut self, drawn: Drawn) {
        self.full_at = self.full_at.saturating_sub(drawn.0);
    }

    /// The true cost is known.
    pub(super) fn true_up(&mut self, now: Moment, drawn: Drawn, cost: u64) -> Drawn {
        self.give_back(drawn);
        self.draw_within(now, cost, LARGEST)
    }
}

/// Sets, changes or lifts a limit.
pub(super) fn rate_of(rate: &mut Option<Rate>, per_minute: Option<u32>) {
    match (rate.as_mut(), per_minute) {
        (Some(rate), Some(per_minute)) => rate.set(per_minute),
        (None, Some(per_minute)) => *rate = Some(Rate::new(per_minute)),
        (_, None) => *rate = None,
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
        let mut rate = Rate::new(3);
        let now = Moment(5_000);
        for _ in 0..3 {
            assert!(rate.available_at(1) <= now);
            rate.draw(now, 1);
        }
        assert_eq!(rate.available_at(1), Moment(25_000));
        rate.draw(Moment(25_000), 1);
        assert_eq!((rate.available_at(1), rate.available_at(2)), (Moment(45_000), Moment(65_000)));
    }

    #[test]
    fn what_was_not_sent_comes_back_and_an_estimate_is_trued_up_both_ways() {
        let mut rate = Rate::new(600);
        let full = rate;
        let drawn = rate.draw(Moment(0), 500);
        rate.give_back(drawn);
        assert_eq!(rate, full);
        let drawn = rate.draw(Moment(0), 500);
        rate.true_up(Moment(0), drawn, 100);
        assert_eq!(rate.full_at(), Moment(10_000));
        let drawn = rate.draw(Moment(0), 100);
        rate.true_up(Moment(0), drawn, 600);
        assert_eq!(rate.full_at(), Moment(70_000), "what it cost beyond the estimate is owed");
    }

    #[test]
    fn an_attempt_larger_than_the_bucket_waits_for_a_full_one_and_is_bounded() {
        let mut rate = Rate::new(10);
        rate.draw(Moment(0), 1);
        assert_eq!(rate.available_at(u64::MAX), Moment(6_000));
        let drawn = rate.draw(Moment(6_000), u64::MAX);
        assert_eq!(rate.full_at(), Moment(66_000), "an estimate takes a minute's worth at most");
        let drawn = rate.true_up(Moment(6_000), drawn, u64::MAX);
        assert_eq!(rate.full_at(), Moment(606_000));
        rate.true_up(Moment(6_000), drawn, 0);
        assert_eq!(rate.full_at(), Moment(6_000), "what was refused costs nothing");
    }
}
