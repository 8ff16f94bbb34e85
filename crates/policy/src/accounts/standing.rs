//! An account's standing and the one function that changes it. The fields are private: any other write does not compile.

use super::budget::ErrorBudget;
use super::cooldown::{Cooldowns, Scope};
use crate::moment::Moment;
use std::collections::BTreeMap;
use std::time::Duration;
use turnkeep_base::verdict::verdict;
use turnkeep_base::{Effect, Fault, FaultKind};

/// The first episode's length.
pub const EPISODE: Duration = Duration::from_secs(15 * 60);
/// The longest episode.
pub const LONGEST_EPISODE: Duration = Duration::from_secs(60 * 60);
/// An episode's length where nobody else could serve.
pub const LAST_ONE_EPISODE: Duration = Duration::from_secs(60);
/// Two namings of a suspension within this time suspend.
const SUSPENSION_WINDOW: Duration = Duration::from_secs(30 * 60);
/// How long a health sample moves an account back in selection.
const SAMPLE_LIFE: Duration = Duration::from_secs(5 * 60);
/// Samples kept.
const SAMPLES: usize = 16;
/// A freed try may be taken again after this.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// Whether an account serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// It serves.
    Active,
    /// Its credential was refused too often; from `retry_at` one turn at a time may try it.
    Errored {
        /// Counts the errored times in a row, from 1.
        episode: u32,
        /// When it may be tried.
        retry_at: Moment,
    },
    /// The provider has suspended it; only the operator brings it back.
    Suspended {
        /// The provider's words.
        reason: String,
    },
    /// The operator has taken it out.
    Disabled,
}

impl Status {
    /// The word in metrics and the API.
    pub fn name(&self) -> &'static str {
        match self {
            Status::Active => "active",
            Status::Errored { .. } => "errored",
            Status::Suspended { .. } => "suspended",
            Status::Disabled => "disabled",
        }
    }
}

/// Everything that decides whether and how readily an account serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    status: Status,
    budget: ErrorBudget,
    cooldowns: Cooldowns,
    episode: u32,
    suspension_named: Option<Moment>,
    overloads: BTreeMap<String, u32>,
    samples: Vec<Moment>,
    trial: bool,
}

impl Default for Standing {
    fn default() -> Self {
        Standing {
            status: Status::Active,
            budget: ErrorBudget::default(),
            cooldowns: Cooldowns::default(),
            episode: 0,
            suspension_named: None,
            overloads: BTreeMap::new(),
            samples: Vec::new(),
            trial: false,
        }
    }
}

/// What an attempt was, for the judgement of its end.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// The model the upstream was asked for.
    pub model: &'a str,
    /// It was the single try of an errored account.
    pub trial: bool,
    /// Nobody else of the upstream is active.
    pub last_one: bool,
}

impl Standing {
    /// A standing as it was persisted: episode and remaining waits survive a restart, a running try does not.
    pub fn restored(status: Status, episode: u32, cooldowns: Cooldowns) -> Self {
        Standing { status, episode, cooldowns, ..Standing::default() }
    }

    /// The status.
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// The cooldowns.
    pub fn cooldowns(&self) -> &Cooldowns {
        &self.cooldowns
    }

    /// Budget units spent within the window.
    pub fn budget_used(&self, now: Moment) -> usize {
        self.budget.used(now)
    }

    /// How many errored times in a row lie behind it.
    pub fn episode(&self) -> u32 {
        self.episode
    }

    /// Health samples of the last minutes.
    pub fn recent_samples(&self, now: Moment) -> usize {
        self.samples.iter().filter(|&&then| now.since(then) < SAMPLE_LIFE).count()
    }

    /// The single try of an errored account begins.
    pub fn begin_trial(&mut self) {
        self.trial = true;
    }

    /// A try is under way.
    pub fn in_trial(&self) -> bool {
        self.trial
    }

    /// An attempt ended with a fault. This is the only place where a fault changes a standing.
    pub fn judge(&mut self, now: Moment, fault: &Fault, attempt: Attempt<'_>) {
        let verdict = verdict(fault);
        let out = matches!(self.status, Status::Suspended { .. } | Status::Disabled);
        let errored = matches!(self.status, Status::Errored { .. });
        if attempt.trial {
            self.trial = false;
        }
        if out || (errored && !attempt.trial) {
            return;
        }
        if let Some(charge) = verdict.charge {
            let named_again = verdict.effect == Effect::Suspend
                && self.suspension_named.is_some_and(|then| now.since(then) < SUSPENSION_WINDOW);
            if named_again {
                self.status = Status::Suspended { reason: fault.evidence.detail.clone() };
                return;
            }
            if verdict.effect == Effect::Suspend {
                self.suspension_named = Some(now);
            }
            let used_up = self.budget.charge(now, charge);
            if used_up || errored {
                self.flip(now, attempt.last_one);
            }
            return;
        }
        if errored {
            // The try was freed by something that is not the account's: it may be taken again soon.
            self.status = Status::Errored { episode: self.episode, retry_at: now.after(TRY_AGAIN) };
        }
        match verdict.effect {
            Effect::None | Effect::Misconfigured | Effect::Budget | Effect::Suspend => {}
            Effect::QuotaCooldown(default) => {
                self.cooldowns.cool(now, Scope::Quota, fault.declared_wait.unwrap_or(default), fault.kind);
            }
            Effect::RateCooldown(default) => {
                self.cooldowns.cool(now, Scope::Account, fault.declared_wait.unwrap_or(default), fault.kind);
            }
            Effect::ModelBlocked(wait) => {
                self.cooldowns.cool(now, Scope::Model(attempt.model.to_owned()), wait, fault.kind);
            }
            Effect::ModelOverload => {
                let wait = self.overload_wait(attempt.model, fault.declared_wait);
                self.cooldowns.cool(now, Scope::Model(attempt.model.to_owned()), wait, fault.kind);
                self.sample(now);
            }
            Effect::HealthSample => self.sample(now),
        }
    }

    fn overload_wait(&mut self, model: &str, declared: Option<Duration>) -> Duration {
        if self.overloads.len() >= super::cooldown::MODELS {
            self.overloads.clear();
        }
        let in_a_row = self.overloads.entry(model.to_owned()).or_insert(0);
        *in_a_row += 1;
        declared.unwrap_or_else(|| Duration::from_secs(2 << (*in_a_row - 1).min(5)).min(Duration::from_secs(60)))
    }

    fn sample(&mut self, now: Moment) {
        self.samples.retain(|&then| now.since(then) < SAMPLE_LIFE);
        if self.samples.len() < SAMPLES {
            self.samples.push(now);
        }
    }

    fn flip(&mut self, now: Moment, last_one: bool) {
        self.episode = self.episode.saturating_add(1);
        let length = EPISODE.mul_f64(1.5f64.powi(self.episode.min(10) as i32 - 1)).min(LONGEST_EPISODE);
        let length = if last_one { length.min(LAST_ONE_EPISODE) } else { length };
        self.budget.clear();
        self.status = Status::Errored { episode: self.episode, retry_at: now.after(length) };
    }

    /// The upstream completed a turn on the account. A success of an attempt that is not the try revives nothing.
    pub fn succeed(&mut self, attempt: Attempt<'_>) {
        self.overloads.remove(attempt.model);
        if attempt.trial {
            self.trial = false;
        }
        match self.status {
            Status::Active => self.budget.clear(),
            Status::Errored { .. } if attempt.trial => {
                self.budget.clear();
                self.episode = 0;
                self.status = Status::Active;
            }
            Status::Errored { .. } | Status::Suspended { .. } | Status::Disabled => {}
        }
    }

    /// An attempt ended without a judgement: it was never sent, or the client left.
    pub fn release_trial(&mut self, now: Moment, trial: bool) {
        if trial {
            self.trial = false;
            if let Status::Errored { episode, .. } = self.status {
                self.status = Status::Errored { episode, retry_at: now.after(TRY_AGAIN) };
            }
        }
    }

    /// The operator takes the account out, or brings it back with a clean sheet.
    pub fn set_enabled(&mut self, enabled: bool) {
        match (enabled, &self.status) {
            (false, _) => self.status = Status::Disabled,
            (true, Status::Active) => {}
            (true, Status::Errored { .. } | Status::Suspended { .. } | Status::Disabled) => {
                self.status = Status::Active;
                self.budget.clear();
                self.episode = 0;
            }
        }
    }

    /// Whether a fault of this kind is one that the status itself answers for.
    pub fn is_out(&self) -> Option<FaultKind> {
        match self.status {
            Status::Active | Status::Disabled => None,
            Status::Errored { .. } => Some(FaultKind::CredentialRejected),
            Status::Suspended { .. } => Some(FaultKind::AccountSuspended),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnkeep_base::{Evidence, Phase};

    const PLAIN: Attempt<'static> = Attempt { model: "m", trial: false, last_one: false };

    fn fault(kind: FaultKind) -> Fault {
        Fault::new(kind, Phase::Answered, Evidence::default())
    }

    #[test]
    fn three_of_any_fault_but_the_credential_ones_leave_an_account_active_with_an_empty_budget() {
        for &kind in FaultKind::ALL {
            let mut standing = Standing::default();
            for n in 0..4 {
                standing.judge(Moment(n), &fault(kind), PLAIN);
            }
            let evicts = matches!(kind, FaultKind::CredentialRejected | FaultKind::AccountSuspended);
            assert_eq!(standing.status() != &Status::Active, evicts, "{kind}");
            if !evicts {
                assert_eq!(standing.budget_used(Moment(9)), 0, "{kind}");
            }
        }
    }

    #[test]
    fn the_third_refusal_within_half_an_hour_flips_and_a_success_between_ends_the_chain() {
        let mut standing = Standing::default();
        let refused = fault(FaultKind::CredentialRejected);
        standing.judge(Moment(0), &refused, PLAIN);
        standing.judge(Moment(1), &refused, PLAIN);
        standing.succeed(PLAIN);
        standing.judge(Moment(2), &refused, PLAIN);
        standing.judge(Moment(3), &refused, PLAIN);
        assert_eq!(standing.status(), &Status::Active);
        standing.judge(Moment(4), &refused, PLAIN);
        assert_eq!(standing.status(), &Status::Errored { episode: 1, retry_at: Moment(4).after(EPISODE) });
    }

    #[test]
    fn refusals_half_an_hour_apart_do_not_add_up() {
        let mut standing = Standing::default();
        for n in 0..9 {
            standing.judge(Moment(n * 16 * 60_000), &fault(FaultKind::CredentialRejected), PLAIN);
        }
        assert_eq!(standing.status(), &Status::Active);
    }

    #[test]
    fn the_failed_try_opens_a_longer_episode_and_the_successful_one_ends_them() {
        let mut standing = Standing::default();
        let refused = fault(FaultKind::CredentialRejected);
        for _ in 0..3 {
            standing.judge(Moment(0), &refused, PLAIN);
        }
        let trial = Attempt { trial: true, ..PLAIN };
        standing.begin_trial();
        standing.judge(Moment(10), &refused, trial);
        assert_eq!(standing.status(), &Status::Errored { episode: 2, retry_at: Moment(10).after(EPISODE * 3 / 2) });
        standing.succeed(PLAIN);
        assert_eq!(standing.status().name(), "errored", "a late success of an older attempt revives nothing");
        standing.begin_trial();
        standing.succeed(trial);
        assert_eq!((standing.status(), standing.episode(), standing.in_trial()), (&Status::Active, 0, false));
    }

    #[test]
    fn a_try_that_meets_a_network_fault_is_freed_after_five_seconds_without_a_longer_episode() {
        let mut standing = Standing::default();
        for _ in 0..3 {
            standing.judge(Moment(0), &fault(FaultKind::CredentialRejected), PLAIN);
        }
        standing.begin_trial();
        standing.judge(Moment(10), &fault(FaultKind::TlsFailure), Attempt { trial: true, ..PLAIN });
        assert_eq!(standing.status(), &Status::Errored { episode: 1, retry_at: Moment(5010) });
        assert!(!standing.in_trial());
    }

    #[test]
    fn the_last_active_account_of_an_upstream_is_tried_again_within_a_minute() {
        let mut standing = Standing::default();
        let last = Attempt { last_one: true, ..PLAIN };
        for _ in 0..3 {
            standing.judge(Moment(0), &fault(FaultKind::CredentialRejected), last);
        }
        assert_eq!(standing.status(), &Status::Errored { episode: 1, retry_at: Moment(60_000) });
    }

    #[test]
    fn overloads_in_a_row_cool_the_model_for_longer_and_longer_up_to_a_minute() {
        let mut standing = Standing::default();
        let mut ends = Vec::new();
        for _ in 0..7 {
            standing.judge(Moment(0), &fault(FaultKind::ModelOverloaded), PLAIN);
            ends.push(standing.cooldowns().until(Moment(0), "m").map_or(0, |end| end.0 / 1000));
        }
        assert_eq!(ends, [2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(standing.cooldowns().until(Moment(0), "other"), None);
    }

    #[test]
    fn suspension_takes_the_provider_naming_it_twice_and_only_the_operator_ends_it() {
        let mut standing = Standing::default();
        standing.judge(Moment(0), &fault(FaultKind::AccountSuspended), PLAIN);
        assert_eq!(standing.status(), &Status::Active);
        standing.judge(Moment(1), &fault(FaultKind::AccountSuspended), PLAIN);
        assert_eq!(standing.status().name(), "suspended");
        standing.succeed(PLAIN);
        assert_eq!(standing.status().name(), "suspended");
        standing.set_enabled(true);
        assert_eq!(standing.status(), &Status::Active);
    }
}
