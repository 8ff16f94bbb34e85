//! Cooldowns, one end per dimension. Dimensions never overwrite each other and always keep the later end.

use crate::moment::Moment;
use std::collections::BTreeMap;
use std::time::Duration;
use turnkeep_base::FaultKind;
use turnkeep_base::seeded;

/// How many (account, model) pairs are remembered per account; the soonest to end gives way.
pub const MODELS: usize = 256;

/// What cools.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// The whole account.
    Account,
    /// The account for one model.
    Model(String),
    /// The account's money or plan.
    Quota,
    /// The account's own request rate.
    Rate,
}

/// One cooldown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cooldown {
    /// When it ends.
    pub until: Moment,
    /// What caused it.
    pub cause: FaultKind,
}

impl Cooldown {
    /// It stands for "this key may not use this model".
    pub(super) fn is_block(self) -> bool {
        self.cause == FaultKind::ModelNotEntitled
    }
}

/// The cooldowns of one account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cooldowns(BTreeMap<Scope, Cooldown>);

impl Cooldowns {
    /// Cools a dimension for a while, at most `longest`, never shortening what is there. Gives the end that holds.
    pub(super) fn cool(
        &mut self,
        now: Moment,
        scope: Scope,
        wait: Duration,
        longest: Duration,
        cause: FaultKind,
    ) -> Moment {
        self.0.retain(|_, cooldown| cooldown.until > now);
        let until = now.after(if seeded::is("a-cooldown-without-end") { longest * 1000 } else { wait.min(longest) });
        if until <= now {
            return self.0.get(&scope).map_or(now, |cooldown| cooldown.until);
        }
        if matches!(scope, Scope::Model(_)) && !self.0.contains_key(&scope) && self.0.len() >= MODELS {
            // What is remembered of models that a key may not use gives way first: callers can make names up.
            let models = self.0.iter().filter(|(scope, _)| matches!(scope, Scope::Model(_)));
            let first = models.min_by_key(|(_, cooldown)| (!cooldown.is_block(), cooldown.until));
            if let Some(scope) = first.map(|(scope, _)| scope.clone()) {
                self.0.remove(&scope);
            }
        }
        let entry = self.0.entry(scope).or_insert(Cooldown { until, cause });
        if until > entry.until || seeded::is("a-cooldown-that-shrinks") {
            *entry = Cooldown { until, cause };
        }
        entry.until
    }

    /// When the account may serve `model` again; `None` when nothing cools it now.
    pub fn until(&self, now: Moment, model: &str) -> Option<Moment> {
        let own = self.of_models(now).find(|(name, _)| *name == model).map(|(_, cooldown)| cooldown.until);
        own.max(self.whole(now))
    }

    /// When the account may serve anything again; `None` when nothing cools all of it now.
    pub(super) fn whole(&self, now: Moment) -> Option<Moment> {
        let running = self.running(now).filter(|(scope, _)| !matches!(scope, Scope::Model(_)));
        running.map(|(_, cooldown)| cooldown.until).max()
    }

    /// The running cooldowns of single models, by name.
    pub(super) fn of_models(&self, now: Moment) -> impl Iterator<Item = (&str, &Cooldown)> {
        self.running(now).filter_map(|(scope, cooldown)| match scope {
            Scope::Model(name) => Some((name.as_str(), cooldown)),
            Scope::Account | Scope::Quota | Scope::Rate => None,
        })
    }

    /// Whether this (account, model) is blocked because the key may not use the model.
    pub fn blocked(&self, now: Moment, model: &str) -> bool {
        self.of_models(now).any(|(name, cooldown)| name == model && cooldown.is_block())
    }

    /// Takes over those of another that still run; the later end of each dimension holds.
    pub(super) fn merge(&mut self, now: Moment, other: &Cooldowns) {
        for (scope, cooldown) in other.running(now) {
            let left = now.until(cooldown.until);
            self.cool(now, scope.clone(), left, left, cooldown.cause);
        }
    }

    /// Those that still run.
    pub fn running(&self, now: Moment) -> impl Iterator<Item = (&Scope, &Cooldown)> {
        self.0.iter().filter(move |(_, cooldown)| cooldown.until > now)
    }

    /// Nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Duration = Duration::from_secs(6 * 60 * 60);

    #[test]
    fn a_cooldown_never_shrinks_and_dimensions_do_not_touch() {
        let mut cooldowns = Cooldowns::default();
        let now = Moment(1000);
        cooldowns.cool(now, Scope::Account, Duration::from_secs(60), LONGEST, FaultKind::RateLimited);
        cooldowns.cool(now, Scope::Account, Duration::from_secs(5), LONGEST, FaultKind::RateLimited);
        cooldowns.cool(now, Scope::Model("m".into()), Duration::from_secs(90), LONGEST, FaultKind::ModelOverloaded);
        assert_eq!(cooldowns.until(now, "other"), Some(Moment(61_000)));
        assert_eq!(cooldowns.until(now, "m"), Some(Moment(91_000)));
        assert_eq!(cooldowns.until(Moment(61_000), "other"), None);
    }

    #[test]
    fn a_cooldown_of_days_is_capped_and_the_number_of_models_is_bounded() {
        let mut cooldowns = Cooldowns::default();
        cooldowns.cool(Moment(0), Scope::Quota, Duration::from_secs(18 * 86_400), LONGEST, FaultKind::QuotaExhausted);
        assert_eq!(cooldowns.until(Moment(0), "m"), Some(Moment(0).after(LONGEST)));
        for n in 0..2 * MODELS {
            let wait = Duration::from_secs(10 + n as u64);
            cooldowns.cool(Moment(0), Scope::Model(n.to_string()), wait, LONGEST, FaultKind::ModelOverloaded);
        }
        assert!(cooldowns.running(Moment(0)).count() <= MODELS);
        assert!(cooldowns.until(Moment(0), "511").is_some());
    }
}
