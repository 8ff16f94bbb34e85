//! An account's standing and the one function that changes its status. The fields are private: any other write does not
//! compile. What a fault means is not decided here but in the blame table.

mod effects;
mod grounds;
mod saved;
#[cfg(test)]
mod tests;

pub use grounds::{Dimension, Grounds, JudgedAgain};
pub use saved::{Saved, SavedStatus};

use super::budget::{ErrorBudget, Mark, within};
use super::cooldown::Cooldowns;
use super::judged::{Applied, Bearing};
use crate::moment::Moment;
use crate::tuning::Tuning;
use std::collections::BTreeMap;
use std::time::Duration;
use turnkeep_base::seeded;
use turnkeep_base::verdict::verdict;
use turnkeep_base::{Effect, Fault, Shells};

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

/// Everything that may become of a status.
enum Change {
    /// The budget is used up, or the try was refused.
    Episode { length: Duration },
    /// The try ended without an answer to its question.
    TryFreed { again: Moment },
    /// The try succeeded.
    TryPassed,
    /// The provider has named it suspended for the second time.
    Suspend { reason: String },
    /// The operator.
    Enable,
    /// The operator, or the configuration.
    Disable,
    /// Another secret of the same principal.
    NewSecret,
    /// The charge that opened the episode was none of the account's.
    TakeBack { again: Moment },
    /// As it was before a restart.
    Restore(Status),
}

/// How an episode was opened, so that its last charge can be taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Opening {
    charge: u64,
    /// What else was in the budget.
    others: Vec<Mark>,
}

/// Everything that decides whether and how readily an account serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    status: Status,
    /// Since when the status has its name, in signed milliseconds: it may be from before this process.
    since: Option<i64>,
    reason: Option<String>,
    budget: ErrorBudget,
    cooldowns: Cooldowns,
    opening: Option<Opening>,
    suspension_named: Option<i64>,
    shells: Shells,
    overloads: BTreeMap<String, u32>,
    samples: Vec<Moment>,
    /// The attempt that is the try.
    trial: Option<u64>,
}

/// What an attempt was, for the judgement of its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt<'a> {
    /// Counts the pool's attempts.
    pub(super) id: u64,
    /// The model the upstream was asked for.
    pub(super) model: &'a str,
    /// It used the secret that the account has now.
    pub(super) current_secret: bool,
}

/// What a judgement did.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) applied: Vec<Applied>,
    /// It spent a unit of the budget on the strength of a run of shells.
    pub(super) shell_charge: bool,
}

impl Standing {
    pub(super) fn new(tuning: &Tuning) -> Self {
        let mut standing = Standing {
            status: Status::Active,
            since: None,
            reason: None,
            budget: ErrorBudget::default(),
            cooldowns: Cooldowns::default(),
            opening: None,
            suspension_named: None,
            shells: Shells::default(),
            overloads: BTreeMap::new(),
            samples: Vec::new(),
            trial: None,
        };
        standing.retune(tuning);
        standing
    }

    pub(super) fn retune(&mut self, tuning: &Tuning) {
        self.budget.retune(tuning.budget_window);
    }

    /// The status.
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// How long ago the status got its name, unless it has never changed.
    pub fn since(&self, now: Moment) -> Option<Duration> {
        self.since.map(|since| Duration::from_millis(signed(now).saturating_sub(since).unsigned_abs()))
    }

    /// What made it errored or suspended, in the provider's words.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// The cooldowns.
    pub fn cooldowns(&self) -> &Cooldowns {
        &self.cooldowns
    }

    /// Budget units spent within the window.
    pub fn budget_used(&self, now: Moment) -> u32 {
        self.budget.used(signed(now))
    }

    /// How many errored times in a row; 0 when it is not errored.
    pub fn episode(&self) -> u32 {
        match self.status {
            Status::Errored { episode, .. } => episode,
            Status::Active | Status::Suspended { .. } | Status::Disabled => 0,
        }
    }

    /// Health samples of the last minutes.
    pub fn recent_samples(&self, now: Moment) -> usize {
        self.samples.iter().filter(|&&until| until > now).count()
    }

    /// When the number of recent samples next changes.
    pub(super) fn sample_ends(&self, now: Moment) -> Option<Moment> {
        self.samples.iter().copied().filter(|&until| until > now).min()
    }

    /// A try is under way.
    pub fn in_trial(&self) -> bool {
        self.trial.is_some()
    }

    /// The single try of an errored account begins.
    pub(super) fn begin_trial(&mut self, attempt: u64) {
        if !seeded::is("half-open-floods") {
            self.trial = Some(attempt);
        }
    }

    /// The one transition function: total, and the only place that writes a status. False when nothing changes.
    fn transition(&mut self, now: Moment, change: Change) -> bool {
        let next = match (&self.status, change) {
            (_, Change::Restore(status)) => status,
            (Status::Active, Change::Episode { length }) => Status::Errored { episode: 1, retry_at: now.after(length) },
            (Status::Errored { episode, .. }, Change::Episode { length }) => {
                Status::Errored { episode: episode.saturating_add(1), retry_at: now.after(length) }
            }
            (Status::Errored { episode, .. }, Change::TryFreed { again }) => {
                Status::Errored { episode: *episode, retry_at: again }
            }
            (Status::Errored { episode, retry_at }, Change::NewSecret) => {
                Status::Errored { episode: *episode, retry_at: now.min(*retry_at) }
            }
            (Status::Errored { episode, .. }, Change::TakeBack { again }) if *episode > 1 => {
                Status::Errored { episode: episode - 1, retry_at: again }
            }
            (Status::Errored { .. }, Change::TakeBack { .. } | Change::TryPassed) => Status::Active,
            (Status::Active | Status::Errored { .. }, Change::Suspend { reason }) => Status::Suspended { reason },
            (Status::Errored { .. } | Status::Suspended { .. } | Status::Disabled, Change::Enable) => Status::Active,
            (_, Change::Disable) => Status::Disabled,
            (
                Status::Active,
                Change::TryFreed { .. }
                | Change::TryPassed
                | Change::Enable
                | Change::NewSecret
                | Change::TakeBack { .. },
            )
            | (
                Status::Suspended { .. } | Status::Disabled,
                Change::Episode { .. }
                | Change::TryFreed { .. }
                | Change::TryPassed
                | Change::Suspend { .. }
                | Change::NewSecret
                | Change::TakeBack { .. },
            ) => return false,
        };
        let changed = self.status != next;
        if self.status.name() != next.name() {
            self.since = Some(signed(now));
            if matches!(next, Status::Active | Status::Disabled) {
                self.reason = None;
            }
        }
        self.status = next;
        changed
    }

    /// An attempt ended with a fault. This is the only place where a fault changes a standing. `last_one` says whether
    /// some model would be left without an active account if this one were out.
    pub(super) fn judge(
        &mut self,
        now: Moment,
        tuning: &Tuning,
        fault: &Fault,
        attempt: Attempt<'_>,
        bearing: Bearing,
        last_one: bool,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        let is_try = self.ends_try(attempt.id);
        let recorded = |mut outcome: Outcome, why| {
            outcome.applied.push(Applied::Recorded(why));
            outcome
        };
        let errored = match self.status {
            Status::Active => false,
            Status::Errored { .. } if is_try => true,
            Status::Errored { .. } => return recorded(outcome, "the account is errored, and this was not its try"),
            Status::Suspended { .. } => return recorded(outcome, "the account is suspended"),
            Status::Disabled => return recorded(outcome, "the account is disabled"),
        };
        let verdict = verdict(fault);
        let mut charge = verdict.charge;
        let judged = bearing == Bearing::Full;
        if judged && attempt.current_secret {
            let shells = self.shells.note(fault);
            outcome.shell_charge = charge.is_none() && shells.is_some();
            charge = charge.or(shells);
        }
        let mut flipped = false;
        match charge {
            None => {}
            Some(_) if !judged => outcome.applied.push(Applied::Recorded("the client had left")),
            Some(_) if !attempt.current_secret && !seeded::is("an-older-secret-counts") => {
                outcome.applied.push(Applied::Recorded("an older secret was refused"));
            }
            Some(charge) => {
                if verdict.effect == Effect::Suspend {
                    if self.is_named_again(now, tuning) {
                        self.suspend(now, fault);
                        outcome.applied.push(Applied::Suspended);
                        return outcome;
                    }
                    self.suspension_named = Some(signed(now));
                }
                let used = self.budget.charge(signed(now), attempt.id, charge);
                if !errored {
                    outcome.applied.push(Applied::Budget { used, of: tuning.budget });
                }
                let most = if seeded::is("errored-at-the-first-charge") { 1 } else { tuning.budget };
                if errored || used >= most {
                    outcome.applied.push(self.flip(now, tuning, attempt.id, fault, last_one));
                    flipped = true;
                }
            }
        }
        if errored && !flipped {
            self.transition(now, Change::TryFreed { again: now.after(tuning.try_again) });
        }
        self.cool(now, tuning, fault, verdict.effect, attempt.model, judged, &mut outcome.applied);
        outcome
    }

    fn is_named_again(&self, now: Moment, tuning: &Tuning) -> bool {
        seeded::is("suspend-at-the-first-word")
            || self.suspension_named.is_some_and(|at| within(signed(now), at, tuning.budget_window))
    }

    fn suspend(&mut self, now: Moment, fault: &Fault) {
        let reason = fault.to_string();
        self.reason = Some(reason.clone());
        self.opening = None;
        self.trial = None;
        self.transition(now, Change::Suspend { reason });
    }

    fn flip(&mut self, now: Moment, tuning: &Tuning, charge: u64, fault: &Fault, last_one: bool) -> Applied {
        let steps = self.episode().min(32) as i32;
        let longest = if last_one { tuning.last_account_retry } else { tuning.longest_episode };
        let length = tuning.episode.mul_f64(1.5f64.powi(steps)).min(tuning.longest_episode).min(longest);
        let others = self.budget.clear().into_iter().filter(|mark| mark.id != charge).collect();
        self.opening = Some(Opening { charge, others });
        self.reason = Some(fault.to_string());
        self.trial = None;
        self.transition(now, Change::Episode { length });
        Applied::Errored { episode: self.episode(), retry_at: now.after(length) }
    }

    /// The upstream completed a turn on the account. A success of an attempt that is not the try revives nothing. True
    /// when something that outlives the process has changed.
    pub(super) fn succeed(&mut self, now: Moment, attempt: Attempt<'_>) -> bool {
        let is_try = self.ends_try(attempt.id);
        match self.status {
            Status::Errored { .. } if !is_try && !seeded::is("any-success-revives") => return false,
            Status::Suspended { .. } | Status::Disabled => return false,
            Status::Active | Status::Errored { .. } => {}
        }
        self.overloads.remove(attempt.model);
        if !attempt.current_secret {
            return false;
        }
        self.shells.clear();
        self.opening = None;
        let spent = !seeded::is("success-does-not-clear-the-budget") && !self.budget.clear().is_empty();
        self.transition(now, Change::TryPassed) || spent
    }

    /// An attempt ended without a judgement: it was never sent, or nothing can be said of it. True when it was the try.
    pub(super) fn end_unjudged(&mut self, now: Moment, tuning: &Tuning, attempt: u64) -> bool {
        self.ends_try(attempt) && self.transition(now, Change::TryFreed { again: now.after(tuning.try_again) })
    }

    fn ends_try(&mut self, attempt: u64) -> bool {
        let is_try = self.trial == Some(attempt);
        if is_try && !seeded::is("a-try-that-is-never-freed") {
            self.trial = None;
        }
        is_try
    }

    /// The operator takes the account out, or brings it back with a clean sheet; cooldowns stay, they are facts.
    pub(super) fn set_enabled(&mut self, now: Moment, enabled: bool) -> bool {
        let changed = self.transition(now, if enabled { Change::Enable } else { Change::Disable });
        if changed {
            self.budget.clear();
            self.shells.clear();
            self.opening = None;
            self.suspension_named = None;
            self.trial = None;
        }
        changed
    }

    /// The account has another secret of the same principal: errored, it may be tried at once. What the budget holds
    /// stays, or a credential that is renewed each time it is refused would never be out.
    pub(super) fn new_secret(&mut self, now: Moment) -> bool {
        self.trial = None;
        self.transition(now, Change::NewSecret)
    }

    /// The account is taken away; a try of it is nobody's any more.
    pub(super) fn abandon_try(&mut self) {
        self.trial = None;
    }

    /// Takes a charge back, and the episode that it alone opened. False when neither is there any more.
    pub(super) fn take_back(&mut self, now: Moment, tuning: &Tuning, charge: u64) -> bool {
        if seeded::is("a-charge-is-not-taken-back") {
            return false;
        }
        match self.opening.take() {
            Some(opening) if opening.charge == charge => {
                let undone = self.transition(now, Change::TakeBack { again: now.after(tuning.try_again) });
                if undone {
                    self.trial = None;
                    self.budget.put_back(signed(now), opening.others);
                }
                undone
            }
            other => {
                self.opening = other;
                self.budget.take_back(charge)
            }
        }
    }
}

fn signed(moment: Moment) -> i64 {
    i64::try_from(moment.0).unwrap_or(i64::MAX)
}
