//! One account in the pool, and whether it may serve an attempt. This is the truth; the index in `ready` is only a
//! quicker way to the same answer.

use super::ready::{Filed, Hold, Place, Rank, Shelf};
use super::spec::{AccountKey, AccountSpec};
use super::standing::{Standing, Status};
use crate::moment::Moment;
use crate::rate::Rate;
use turnkeep_base::seeded;

/// One account.
#[derive(Clone, Debug)]
pub(super) struct Account {
    pub(super) spec: AccountSpec,
    /// Its upstream's place in the pool.
    pub(super) upstream: usize,
    /// Which of the upstream's lists of models it has.
    pub(super) models: u32,
    pub(super) standing: Standing,
    pub(super) in_flight: u32,
    pub(super) last_used: u64,
    /// Where it stands in the circle that breaks ties.
    pub(super) spread: u64,
    pub(super) requests: Option<Rate>,
    pub(super) tokens: Option<Rate>,
    pub(super) epoch: u64,
    /// Its configuration is gone; the counter says when, in order.
    pub(super) removed: Option<u64>,
    /// Where it is in the index.
    pub(super) filed: Option<Filed>,
    /// When its filing next changes by itself.
    pub(super) wake: Option<Moment>,
}

/// Whether an account may serve an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Eligible {
    Yes {
        trial: bool,
    },
    /// But for its slots.
    Busy,
    /// But for its own rate.
    Rate(Moment),
    Cooling(Moment),
    Errored(Moment),
    NotEntitled,
    /// Not before somebody acts.
    Out,
}

/// How long the end of a try that is under way is thought to be off, at the most pleasant.
pub(super) const TRYING: std::time::Duration = std::time::Duration::from_secs(1);

impl Account {
    fn is_out(&self) -> bool {
        !self.spec.has_secret
            || self.removed.is_some()
            || matches!(self.standing.status(), Status::Suspended { .. } | Status::Disabled)
    }

    /// When its own rate allows an attempt of so many tokens.
    pub(super) fn rate_at(&self, tokens: u64) -> Moment {
        let requests = self.requests.map_or(Moment(0), |rate| rate.available_at(1));
        requests.max(self.tokens.map_or(Moment(0), |rate| rate.available_at(tokens)))
    }

    /// When all of its own rate is there again.
    fn full_at(&self) -> Moment {
        let full = |rate: Option<Rate>| rate.map_or(Moment(0), |rate| rate.full_at());
        full(self.requests).max(full(self.tokens))
    }

    /// Whether it may serve an attempt of so many tokens on this model.
    pub(super) fn eligible(&self, now: Moment, model: &str, tokens: u64) -> Eligible {
        if self.is_out() {
            return Eligible::Out;
        }
        if !self.spec.models.allow(model) || self.standing.cooldowns().blocked(now, model) {
            return Eligible::NotEntitled;
        }
        let trial = match self.standing.status() {
            Status::Active => false,
            Status::Errored { retry_at, .. } if *retry_at > now => return Eligible::Errored(*retry_at),
            Status::Errored { .. } if self.standing.in_trial() => return Eligible::Errored(now.after(TRYING)),
            Status::Errored { .. } => true,
            Status::Suspended { .. } | Status::Disabled => return Eligible::Out,
        };
        if let Some(until) = self.standing.cooldowns().until(now, model) {
            return Eligible::Cooling(until);
        }
        if self.in_flight >= self.spec.max_in_flight && !seeded::is("slots-past-the-limit") {
            return Eligible::Busy;
        }
        let rate_at = self.rate_at(tokens);
        if rate_at > now { Eligible::Rate(rate_at) } else { Eligible::Yes { trial } }
    }

    /// What of its slots is taken, in millionths.
    pub(super) fn load(&self) -> u64 {
        u64::from(self.in_flight) * 1_000_000 / u64::from(self.spec.max_in_flight.max(1))
    }

    /// Its rank among the eligible.
    pub(super) fn rank(&self, now: Moment, key: AccountKey) -> Rank {
        let full_at = self.full_at();
        Rank {
            load: self.load(),
            samples: self.standing.recent_samples(now),
            full_at: if full_at > now { full_at } else { Moment(0) },
            last_used: self.last_used,
            spread: self.spread,
            key,
        }
    }

    /// Where it belongs in the index, and when that next changes by itself.
    pub(super) fn filing(&self, now: Moment, key: AccountKey) -> (Option<Filed>, Option<Moment>) {
        if self.is_out() {
            return (None, None);
        }
        let cooldowns = self.standing.cooldowns();
        let mut wake = self.standing.sample_ends(now);
        let mut wake_at = |at: Moment| {
            if at > now {
                wake = Some(wake.map_or(at, |old| old.min(at)));
            }
        };
        cooldowns.running(now).for_each(|(_, cooldown)| wake_at(cooldown.until));
        let (rate_at, full_at) = (self.rate_at(0), self.full_at());
        wake_at(rate_at);
        wake_at(full_at);
        let whole = cooldowns.whole(now);
        let (errored, trial) = match self.standing.status() {
            Status::Errored { retry_at, .. } if *retry_at > now => {
                wake_at(*retry_at);
                (Some(Place::Errored(*retry_at)), None)
            }
            Status::Errored { .. } if self.standing.in_trial() => (Some(Place::Trying), None),
            Status::Errored { retry_at, .. } => (None, Some(*retry_at)),
            Status::Active | Status::Suspended { .. } | Status::Disabled => (None, None),
        };
        let place = match (errored, whole, trial) {
            (Some(errored), _, _) => errored,
            (None, Some(until), _) => Place::Cooling(until),
            (None, None, _) if self.in_flight >= self.spec.max_in_flight && !seeded::is("slots-past-the-limit") => {
                Place::Busy
            }
            (None, None, _) if rate_at > now => Place::Rate(rate_at),
            (None, None, Some(retry_at)) => Place::Trial(retry_at),
            (None, None, None) => Place::Ready(self.rank(now, key)),
        };
        let is_errored = matches!(place, Place::Errored(_) | Place::Trying);
        let mut shelf = Shelf { models: self.models, held: Vec::new() };
        let mut holds = Vec::new();
        for (model, cooldown) in cooldowns.of_models(now) {
            shelf.held.push(model.to_owned());
            holds.push(match (cooldown.is_block(), is_errored) {
                (true, _) => Hold::Blocked,
                (false, true) => Hold::Errored,
                (false, false) => Hold::Cooling(whole.map_or(cooldown.until, |whole| whole.max(cooldown.until))),
            });
        }
        (Some(Filed { shelf, place, holds }), wake)
    }
}
