//! Accounts' standing across restarts: loaded at start, written down after every change. One task writes while the gateway
//! runs, and no other process does, so that no standing overwrites a newer one.

mod switches;

use crate::commands::Failure;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use switches::Switches;
use tokio::time::{MissedTickBehavior, interval};
use turnkeep_base::{AccountId, FaultKind};
use turnkeep_engine::admission::Admission;
use turnkeep_engine::ports::WallClock;
use turnkeep_policy::Moment;
use turnkeep_policy::accounts::{Saved, SavedStatus, Scope, Snapshot};
use turnkeep_store::{CooldownRecord, CooldownScope, StandingRecord, StandingStatus, Store, StoreError};

/// A pause after a write that failed.
const PAUSE: Duration = Duration::from_secs(1);
/// How often the store is asked what the operator has switched.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// The reason that an earlier version wrote where the operator had switched the account; it says nothing of the account.
const NO_REASON: &str = "by the operator";

/// The persisted standings of these accounts.
pub(super) async fn load(store: &dyn Store, ids: &[AccountId]) -> Result<Vec<StandingRecord>, Failure> {
    let mut records = store.load_standing().await.map_err(Failure::operation)?;
    records.retain(|record| ids.contains(&record.account));
    Ok(records)
}

/// They as admission takes them.
pub(super) fn restored(records: Vec<StandingRecord>, wall: u64) -> Vec<(AccountId, Saved)> {
    records.into_iter().map(|record| (record.account.clone(), saved(&record, wall))).collect()
}

/// What is kept of the error budget, as times since when, in Unix milliseconds.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct BudgetRecord {
    spent_ms: Vec<u64>,
    suspension_named_ms: Option<u64>,
}

fn saved(record: &StandingRecord, wall: u64) -> Saved {
    // A clock that was set back makes nothing younger than now.
    let ago = |at: u64| Duration::from_millis(wall.saturating_sub(at));
    let cooldowns = record.cooldowns.iter().filter_map(|cooldown| {
        let left = cooldown.until_ms.saturating_sub(wall).min(cooldown.length_ms);
        let cause = FaultKind::ALL.iter().copied().find(|kind| kind.name() == cooldown.fault);
        let scope = match (cooldown.scope, &cooldown.model) {
            (CooldownScope::Account, _) => Scope::Account,
            (CooldownScope::Quota, _) => Scope::Quota,
            (CooldownScope::Rate, _) => Scope::Rate,
            (CooldownScope::Model, Some(model)) => Scope::Model(model.clone()),
            (CooldownScope::Model, None) => return None,
        };
        (left > 0).then(|| (scope, Duration::from_millis(left), cause.unwrap_or(FaultKind::Unclassified)))
    });
    let status = match record.status {
        StandingStatus::Active => SavedStatus::Active,
        StandingStatus::Disabled => SavedStatus::Disabled,
        StandingStatus::Errored => {
            let retry_at = record.retry_at_ms.unwrap_or(wall);
            // What was left when it was written down: no clock makes it longer.
            let length = retry_at.saturating_sub(record.updated_ms);
            SavedStatus::Errored { left: Duration::from_millis(retry_at.saturating_sub(wall).min(length)) }
        }
        StandingStatus::Suspended => SavedStatus::Suspended,
    };
    let budget: BudgetRecord = serde_json::from_str(&record.budget_json).unwrap_or_default();
    Saved {
        status,
        episode: record.episode,
        since: record.since_ms.map(ago),
        reason: record.reason.clone().filter(|reason| reason != NO_REASON),
        budget: budget.spent_ms.into_iter().map(ago).collect(),
        suspension_named: budget.suspension_named_ms.map(ago),
        cooldowns: cooldowns.collect(),
    }
}

fn record(snapshot: &Snapshot, now: Moment, wall: u64) -> StandingRecord {
    let saved = snapshot.saved(now);
    let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let ago = |age: Duration| wall.saturating_sub(ms(age));
    let (status, retry_at_ms) = match saved.status {
        SavedStatus::Active => (StandingStatus::Active, None),
        SavedStatus::Errored { left } => (StandingStatus::Errored, Some(wall.saturating_add(ms(left)))),
        SavedStatus::Suspended => (StandingStatus::Suspended, None),
        SavedStatus::Disabled => (StandingStatus::Disabled, None),
    };
    let cooldowns = saved.cooldowns.into_iter().map(|(scope, left, cause)| {
        let (scope, model) = match scope {
            Scope::Account => (CooldownScope::Account, None),
            Scope::Model(model) => (CooldownScope::Model, Some(model)),
            Scope::Quota => (CooldownScope::Quota, None),
            Scope::Rate => (CooldownScope::Rate, None),
        };
        let length_ms = ms(left);
        let fault = cause.name().to_owned();
        CooldownRecord { scope, model, fault, until_ms: wall.saturating_add(length_ms), length_ms }
    });
    let budget = BudgetRecord {
        spent_ms: saved.budget.into_iter().map(ago).collect(),
        suspension_named_ms: saved.suspension_named.map(ago),
    };
    StandingRecord {
        account: snapshot.id.clone(),
        status,
        episode: saved.episode,
        since_ms: saved.since.map(ago),
        retry_at_ms,
        reason: saved.reason,
        budget_json: serde_json::to_string(&budget).unwrap_or_else(|_| "{}".into()),
        updated_ms: wall,
        cooldowns: cooldowns.collect(),
    }
}

/// Accounts' standings, and where and when they are written down.
#[derive(Clone)]
pub(super) struct Book {
    admission: Arc<Admission>,
    store: Arc<dyn Store>,
    clock: Arc<dyn WallClock>,
}

impl Book {
    /// Of these.
    pub(super) fn new(admission: Arc<Admission>, store: Arc<dyn Store>, clock: Arc<dyn WallClock>) -> Book {
        Book { admission, store, clock }
    }

    async fn write(&self, changed: &[Snapshot]) -> Result<(), StoreError> {
        if changed.is_empty() {
            return Ok(());
        }
        let (now, wall) = (self.admission.present(), self.clock.unix_ms());
        let rows = changed.iter().map(|snapshot| record(snapshot, now, wall)).collect();
        let written = self.store.save_standing(rows).await;
        written.inspect_err(|error| tracing::error!(%error, "accounts' standings could not be written"))
    }

    /// Takes up what the operator has switched while no gateway ran, for a start: before anybody is served.
    pub(super) async fn take_up_switches(&self) -> Result<(), Failure> {
        Switches::default().take_up(self).await.map_err(Failure::operation)
    }

    /// Writes down how every account stands, for the end: also what a failing store has dropped before. Only an account
    /// that never had a standing to speak of gets none.
    pub(super) async fn save_all(&self) {
        let now = self.admission.present();
        let mut all: BTreeMap<AccountId, Snapshot> = BTreeMap::new();
        for snapshot in self.admission.take_changes().into_iter().chain(self.admission.snapshots()) {
            all.insert(snapshot.id.clone(), snapshot);
        }
        // If the store cannot be read, none is left out.
        if let Ok(before) = self.store.load_standing().await {
            let before: BTreeSet<AccountId> = before.into_iter().map(|record| record.account).collect();
            all.retain(|id, snapshot| before.contains(id) || snapshot.saved(now) != untouched());
        }
        let all: Vec<Snapshot> = all.into_values().collect();
        // An error is in the log; there is no later time to try again.
        let _ = self.write(&all).await;
    }

    /// Writes down every change and takes up what the operator switches, for as long as the gateway runs. One task does
    /// both: what it has in hand from before a switch is written before it, not over it.
    pub(super) async fn keep(self) {
        let mut switches = Switches::default();
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                // First: while faults come in fast there are changes all the time.
                _ = looks.tick() => {
                    if let Err(error) = switches.take_up(&self).await {
                        tracing::warn!(%error, "what the operator has switched is not taken up yet");
                    }
                }
                changed = self.admission.changes() => {
                    while self.write(&changed).await.is_err() {
                        tokio::time::sleep(PAUSE).await;
                    }
                }
            }
        }
    }
}

/// A standing that nothing has ever changed.
fn untouched() -> Saved {
    Saved {
        status: SavedStatus::Active,
        episode: 0,
        since: None,
        reason: None,
        budget: Vec::new(),
        suspension_named: None,
        cooldowns: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errored() -> StandingRecord {
        StandingRecord {
            account: AccountId { upstream: "u".into(), account: "a".into() },
            status: StandingStatus::Errored,
            episode: 2,
            since_ms: Some(900_000),
            retry_at_ms: Some(1_060_000),
            reason: None,
            budget_json: r#"{"spent_ms":[990000],"suspension_named_ms":null}"#.into(),
            updated_ms: 1_000_000,
            cooldowns: vec![CooldownRecord {
                scope: CooldownScope::Account,
                model: None,
                fault: "rate_limited".into(),
                until_ms: 1_090_000,
                length_ms: 90_000,
            }],
        }
    }

    #[test]
    fn what_was_left_at_a_restart_is_left_less_the_time_between() {
        let saved = saved(&errored(), 1_030_000);
        assert!(matches!(saved.status, SavedStatus::Errored { left } if left == Duration::from_secs(30)));
        assert_eq!(saved.cooldowns, [(Scope::Account, Duration::from_secs(60), FaultKind::RateLimited)]);
        assert_eq!((saved.since, saved.budget), (Some(Duration::from_secs(130)), vec![Duration::from_secs(40)]));
    }

    #[test]
    fn a_clock_that_was_set_back_or_far_ahead_neither_stretches_nor_keeps_a_wait() {
        let back = saved(&errored(), 0);
        assert!(matches!(back.status, SavedStatus::Errored { left } if left == Duration::from_secs(60)));
        assert_eq!(back.cooldowns[0].1, Duration::from_secs(90));
        let ahead = saved(&errored(), 9_000_000_000);
        assert!(matches!(ahead.status, SavedStatus::Errored { left } if left.is_zero()));
        assert!(ahead.cooldowns.is_empty());
    }

    #[test]
    fn a_row_of_an_earlier_version_that_the_operator_wrote_has_no_reason() {
        let record = StandingRecord {
            status: StandingStatus::Disabled,
            reason: Some("by the operator".into()),
            budget_json: "[]".into(),
            ..errored()
        };
        let saved = saved(&record, 1_030_000);
        assert_eq!((saved.status, saved.reason), (SavedStatus::Disabled, None));
    }

    #[test]
    fn a_budget_that_cannot_be_read_is_an_empty_one() {
        let record = StandingRecord { budget_json: "[]".into(), ..errored() };
        assert!(saved(&record, 1_000_000).budget.is_empty());
    }
}
