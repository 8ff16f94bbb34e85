//! What an upstream may get of counted retries: a share of its turns and a few each second, saved up to a bound. Retries
//! beyond that would only be load on something that is failing already.

use crate::moment::Moment;
use crate::tuning::Tuning;

/// Retries that may be saved up, at least.
const LEAST_BURST: f64 = 10.0;
/// Seconds of the steady part that may be saved up.
const BURST_SECONDS: f64 = 10.0;

/// One upstream's budget, full at first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RetryBudget {
    /// Retries spent and not yet earned again.
    spent: f64,
    at: Moment,
}

impl RetryBudget {
    fn burst(tuning: &Tuning) -> f64 {
        (tuning.retries_per_second * BURST_SECONDS).max(LEAST_BURST)
    }

    fn spent(&self, now: Moment, tuning: &Tuning) -> f64 {
        (self.spent - now.since(self.at).as_secs_f64() * tuning.retries_per_second).max(0.0)
    }

    /// Whole retries left.
    pub(super) fn left(&self, now: Moment, tuning: &Tuning) -> u32 {
        // Adding up shares leaves dust; a retry that is there but for that is there.
        (Self::burst(tuning) - self.spent(now, tuning) + 1e-6).max(0.0) as u32
    }

    /// A turn began here: it earns its share.
    pub(super) fn turn(&mut self, now: Moment, tuning: &Tuning) {
        self.spent = (self.spent(now, tuning) - tuning.retry_share).max(0.0);
        self.at = now;
    }

    /// A counted retry.
    pub(super) fn retry(&mut self, now: Moment, tuning: &Tuning) {
        self.spent = (self.spent(now, tuning) + 1.0).min(Self::burst(tuning) + 1.0);
        self.at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_are_bounded_by_a_burst_a_share_of_the_turns_and_a_few_a_second() {
        let tuning = Tuning::default();
        let mut budget = RetryBudget::default();
        let spend = |budget: &mut RetryBudget, now| {
            let mut spent = 0;
            while budget.left(now, &tuning) > 0 {
                budget.retry(now, &tuning);
                spent += 1;
            }
            spent
        };
        assert_eq!(spend(&mut budget, Moment(0)), 30);
        (0..50).for_each(|_| budget.turn(Moment(0), &tuning));
        assert_eq!(spend(&mut budget, Moment(0)), 10);
        assert_eq!(spend(&mut budget, Moment(2_000)), 6);
        assert_eq!(spend(&mut budget, Moment(9_000_000)), 30, "what is saved up is bounded");
    }

    #[test]
    fn without_a_steady_part_only_the_turns_earn_retries() {
        let tuning = Tuning { retries_per_second: 0.0, ..Tuning::default() };
        let mut budget = RetryBudget::default();
        (0..10).for_each(|_| budget.retry(Moment(0), &tuning));
        assert_eq!(budget.left(Moment(9_000_000), &tuning), 0);
        (0..5).for_each(|_| budget.turn(Moment(0), &tuning));
        assert_eq!(budget.left(Moment(0), &tuning), 1);
    }
}
