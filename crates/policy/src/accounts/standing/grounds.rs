//! What one judgement was made from, taken down so that it can be made again elsewhere: by an incident trace's replay.
//!
//! It holds no name and no words. Ages and waits are lengths, so that they mean the same on another clock. What the pool
//! judges beside the account (its endpoint's breaker, a burst of the gateway's address) is not in it.

use super::{Attempt, SavedStatus, Standing, Status, signed};
use crate::accounts::budget::Mark;
use crate::accounts::cooldown::{Cooldown, Scope};
use crate::accounts::judged::{Applied, Bearing};
use crate::moment::Moment;
use crate::span::Span;
use crate::tuning::Tuning;
use std::time::Duration;
use turnkeep_base::{Evidence, Fault, FaultKind, Phase, Shells};

/// A dimension that cools, without the model's name: it is always the attempt's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dimension {
    /// The whole account.
    Account,
    /// The account for the attempt's model.
    Model,
    /// The account's money or plan.
    Quota,
    /// The account's own request rate.
    Rate,
}

impl Dimension {
    /// The dimension of a scope.
    pub fn of(scope: &Scope) -> Dimension {
        match scope {
            Scope::Account => Dimension::Account,
            Scope::Model(_) => Dimension::Model,
            Scope::Quota => Dimension::Quota,
            Scope::Rate => Dimension::Rate,
        }
    }

    fn scope(self) -> Scope {
        match self {
            Dimension::Account => Scope::Account,
            Dimension::Model => Scope::Model(MODEL.into()),
            Dimension::Quota => Scope::Quota,
            Dimension::Rate => Scope::Rate,
        }
    }
}

/// The attempt's model, where its name is not known.
const MODEL: &str = "";
/// The attempt, where its number is not known. Restored units of a budget have 0.
const ATTEMPT: u64 = 1;

/// All that one judgement was made from beside the fault.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grounds {
    /// When it was made; 0 of one that was read.
    #[serde(skip)]
    pub at: Moment,
    /// The status before.
    pub status: SavedStatus,
    /// Errored times in a row before; 0 when it was not errored.
    pub episode: u32,
    /// The attempt was the single try of an errored account.
    pub is_try: bool,
    /// It used the secret that the account has now.
    pub current_secret: bool,
    /// Some model would be without an active account if this one were out.
    pub last_one: bool,
    /// How much of the fault may bear on the account.
    pub bearing: Bearing,
    /// How long ago each unit of the budget was spent, within its window.
    pub budget: Vec<Span>,
    /// How long ago the provider last named it suspended.
    pub suspension_named: Option<Span>,
    /// Shells in a row.
    pub shells: u8,
    /// Overloads of the attempt's model in a row.
    pub overloads: u32,
    /// What cooled of the dimensions that the fault could touch, and how much longer.
    pub cooldowns: Vec<(Dimension, Span)>,
    /// The numbers.
    pub tuning: Tuning,
}

/// What a judgement made again did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JudgedAgain {
    /// To the account, in order. Moments count from [`Grounds::at`].
    pub applied: Vec<Applied>,
    /// A unit of the budget was spent on the strength of a run of shells.
    pub shell_charge: bool,
}

impl Standing {
    pub(in crate::accounts) fn grounds(
        &self,
        now: Moment,
        tuning: &Tuning,
        attempt: Attempt<'_>,
        bearing: Bearing,
        last_one: bool,
    ) -> Grounds {
        let ago = |at: i64| Span(Duration::from_millis(signed(now).saturating_sub(at).unsigned_abs()));
        let concerns = |scope: &Scope| match scope {
            Scope::Account | Scope::Quota | Scope::Rate => true,
            Scope::Model(name) => name == attempt.model,
        };
        let left = |(scope, cooldown): (&Scope, &Cooldown)| (Dimension::of(scope), Span(now.until(cooldown.until)));
        Grounds {
            at: now,
            status: match &self.status {
                Status::Active => SavedStatus::Active,
                Status::Errored { retry_at, .. } => SavedStatus::Errored { left: now.until(*retry_at) },
                Status::Suspended { .. } => SavedStatus::Suspended,
                Status::Disabled => SavedStatus::Disabled,
            },
            episode: self.episode(),
            is_try: self.trial == Some(attempt.id),
            current_secret: attempt.current_secret,
            last_one,
            bearing,
            budget: self.budget.ages(signed(now)).into_iter().map(Span).collect(),
            suspension_named: self.suspension_named.map(ago),
            shells: self.shells.count(),
            overloads: self.overloads.get(attempt.model).copied().unwrap_or(0),
            cooldowns: self.cooldowns.running(now).filter(|(scope, _)| concerns(scope)).map(left).collect(),
            tuning: tuning.clone(),
        }
    }
}

impl Grounds {
    /// Judges the fault once more, by the rules of this build. The account starts as it stood; its moment is 0.
    pub fn judge(&self, fault: &Fault) -> JudgedAgain {
        let (now, tuning) = (Moment(0), &self.tuning);
        let mut standing = Standing::new(tuning);
        let signed_ago = |ago: Duration| i64::try_from(ago.as_millis()).unwrap_or(i64::MAX).saturating_neg();
        standing.status = match self.status {
            SavedStatus::Active => Status::Active,
            SavedStatus::Errored { left } => {
                Status::Errored { episode: self.episode.max(1), retry_at: now.after(left) }
            }
            SavedStatus::Suspended => Status::Suspended { reason: String::new() },
            SavedStatus::Disabled => Status::Disabled,
        };
        standing.trial = self.is_try.then_some(ATTEMPT);
        standing.suspension_named = self.suspension_named.map(|ago| signed_ago(ago.0));
        let marks = self.budget.iter().map(|&ago| Mark { id: 0, at: signed_ago(ago.0) });
        standing.budget.put_back(signed(now), marks.collect());
        let shell = Evidence::default().with_status(401);
        let shell = Fault::new(FaultKind::UpstreamInternal, Phase::Answered, shell);
        standing.shells = Shells::default();
        for _ in 0..self.shells {
            let _before_the_run_ends = standing.shells.note(&shell);
        }
        if self.overloads > 0 {
            standing.overloads.insert(MODEL.into(), self.overloads);
        }
        for &(dimension, Span(left)) in &self.cooldowns {
            standing.cooldowns.cool(now, dimension.scope(), left, left, FaultKind::RateLimited);
        }
        let attempt = Attempt { id: ATTEMPT, model: MODEL, current_secret: self.current_secret };
        let outcome = standing.judge(now, tuning, fault, attempt, self.bearing, self.last_one);
        JudgedAgain { applied: outcome.applied, shell_charge: outcome.shell_charge }
    }
}
