//! A standing as it is written down: ages and remaining waits, so that it means the same in another process with another
//! clock. A running try, health samples and runs of overloads or shells are not kept.

use super::{Change, Cooldowns, Mark, Standing, Status, signed};
use crate::accounts::cooldown::Scope;
use crate::moment::Moment;
use crate::tuning::Tuning;
use std::time::Duration;
use turnkeep_base::FaultKind;
use turnkeep_base::seeded;

/// A status without moments.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum SavedStatus {
    /// It serves.
    Active,
    /// It may be tried after this time.
    Errored {
        /// How long until then.
        #[serde(with = "crate::span")]
        left: Duration,
    },
    /// Out until the operator acts.
    Suspended,
    /// Taken out by the operator.
    Disabled,
}

/// What of a standing outlives the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// The status.
    pub status: SavedStatus,
    /// Errored times in a row; 0 when it is not errored.
    pub episode: u32,
    /// How long ago the status got its name.
    pub since: Option<Duration>,
    /// What made it errored or suspended.
    pub reason: Option<String>,
    /// How long ago each unit of the budget was spent, within its window.
    pub budget: Vec<Duration>,
    /// How long ago the provider last named it suspended.
    pub suspension_named: Option<Duration>,
    /// What cools, how much longer, and why.
    pub cooldowns: Vec<(Scope, Duration, FaultKind)>,
}

impl Standing {
    /// What is written down of it.
    pub fn saved(&self, now: Moment) -> Saved {
        let ago = |at: i64| Duration::from_millis(signed(now).saturating_sub(at).unsigned_abs());
        let status = match &self.status {
            Status::Active => SavedStatus::Active,
            Status::Errored { retry_at, .. } => SavedStatus::Errored { left: now.until(*retry_at) },
            Status::Suspended { .. } => SavedStatus::Suspended,
            Status::Disabled => SavedStatus::Disabled,
        };
        let cooldowns = self.cooldowns.running(now).filter(|_| !seeded::is("cooldowns-end-with-the-process"));
        Saved {
            status,
            episode: self.episode(),
            since: self.since.map(ago),
            reason: self.reason.clone(),
            budget: if seeded::is("the-budget-ends-with-the-process") {
                Vec::new()
            } else {
                self.budget.ages(signed(now))
            },
            suspension_named: self.suspension_named.map(ago),
            cooldowns: cooldowns.map(|(scope, it)| (scope.clone(), now.until(it.until), it.cause)).collect(),
        }
    }

    /// Puts back what was written down. Nothing gets longer by it than the numbers of today allow, and a cooldown that
    /// runs already is not shortened.
    pub(in crate::accounts) fn restore(&mut self, now: Moment, tuning: &Tuning, saved: Saved) {
        let at = |ago: Duration| signed(now).saturating_sub(i64::try_from(ago.as_millis()).unwrap_or(i64::MAX));
        let mut cooldowns = Cooldowns::default();
        for (scope, left, cause) in saved.cooldowns {
            cooldowns.cool(now, scope, left, tuning.longest_cooldown, cause);
        }
        cooldowns.merge(now, &self.cooldowns);
        *self = Standing::new(tuning);
        let status = match saved.status {
            SavedStatus::Active => Status::Active,
            SavedStatus::Errored { left } => {
                Status::Errored { episode: saved.episode.max(1), retry_at: now.after(left.min(tuning.longest_episode)) }
            }
            SavedStatus::Suspended => Status::Suspended { reason: saved.reason.clone().unwrap_or_default() },
            SavedStatus::Disabled => Status::Disabled,
        };
        self.transition(now, Change::Restore(status));
        self.cooldowns = cooldowns;
        self.since = saved.since.map(at);
        self.reason = saved.reason;
        self.suspension_named = saved.suspension_named.map(at);
        // Attempts are counted from 1, so that a restored unit belongs to none of them.
        let marks = saved.budget.into_iter().map(|ago| Mark { id: 0, at: at(ago) });
        self.budget.put_back(signed(now), marks.collect());
    }
}
