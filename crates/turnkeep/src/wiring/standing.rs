//! Accounts' standing across restarts: loaded at start, written down after every change.

use crate::commands::Failure;
use std::sync::Arc;
use std::time::Duration;
use turnkeep_base::{AccountId, FaultKind};
use turnkeep_engine::admission::Admission;
use turnkeep_engine::ports::WallClock;
use turnkeep_policy::Moment;
use turnkeep_policy::accounts::{Cooldowns, Scope, Snapshot, Standing, Status};
use turnkeep_store::{CooldownRecord, CooldownScope, StandingRecord, StandingStatus, Store, SystemClock};

/// A pause after a write that failed.
const PAUSE: Duration = Duration::from_secs(1);

/// Puts the persisted standings back.
pub async fn restore(admission: &Admission, store: &dyn Store, ids: &[AccountId], wall: u64) -> Result<(), Failure> {
    let now = admission.present();
    for record in store.load_standing().await.map_err(Failure::operation)? {
        if ids.contains(&record.account) {
            admission.restore(&record.account, standing(&record, now, wall));
        }
    }
    Ok(())
}

fn standing(record: &StandingRecord, now: Moment, wall: u64) -> Standing {
    let mut cooldowns = Cooldowns::default();
    for cooldown in &record.cooldowns {
        let left = cooldown.until_ms.saturating_sub(wall).min(cooldown.length_ms);
        let cause = FaultKind::ALL.iter().copied().find(|kind| kind.name() == cooldown.fault);
        let scope = match (cooldown.scope, &cooldown.model) {
            (CooldownScope::Account, _) => Scope::Account,
            (CooldownScope::Quota, _) => Scope::Quota,
            (CooldownScope::Rate, _) => Scope::Rate,
            (CooldownScope::Model, Some(model)) => Scope::Model(model.clone()),
            (CooldownScope::Model, None) => continue,
        };
        if left > 0 {
            let cause = cause.unwrap_or(FaultKind::Unclassified);
            cooldowns.cool(now, scope, Duration::from_millis(left), cause);
        }
    }
    let status = match record.status {
        StandingStatus::Active => Status::Active,
        StandingStatus::Disabled => Status::Disabled,
        StandingStatus::Errored => {
            // An episode is never longer than an hour, whatever a clock says.
            let left = record.retry_at_ms.unwrap_or(wall).saturating_sub(wall).min(60 * 60 * 1000);
            Status::Errored { episode: record.episode, retry_at: now.after(Duration::from_millis(left)) }
        }
        StandingStatus::Suspended => Status::Suspended { reason: record.reason.clone().unwrap_or_default() },
    };
    Standing::restored(status, record.episode, cooldowns)
}

fn record(snapshot: &Snapshot, now: Moment, wall: u64) -> StandingRecord {
    let ms = |at: Moment| u64::try_from(now.until(at).as_millis()).unwrap_or(u64::MAX);
    let standing = &snapshot.standing;
    let (status, retry_at_ms, reason) = match standing.status() {
        Status::Active => (StandingStatus::Active, None, None),
        Status::Errored { retry_at, .. } => (StandingStatus::Errored, Some(wall.saturating_add(ms(*retry_at))), None),
        Status::Suspended { reason } => (StandingStatus::Suspended, None, Some(reason.clone())),
        Status::Disabled => (StandingStatus::Disabled, None, None),
    };
    let cooldowns = standing.cooldowns().running(now).map(|(scope, cooldown)| {
        let (scope, model) = match scope {
            Scope::Account => (CooldownScope::Account, None),
            Scope::Model(model) => (CooldownScope::Model, Some(model.clone())),
            Scope::Quota => (CooldownScope::Quota, None),
            Scope::Rate => (CooldownScope::Rate, None),
        };
        let length_ms = ms(cooldown.until);
        let fault = cooldown.cause.name().to_owned();
        CooldownRecord { scope, model, fault, until_ms: wall.saturating_add(length_ms), length_ms }
    });
    StandingRecord {
        account: snapshot.id.clone(),
        status,
        episode: standing.episode(),
        since_ms: None,
        retry_at_ms,
        reason,
        budget_json: "[]".into(),
        updated_ms: wall,
        cooldowns: cooldowns.collect(),
    }
}

async fn write(admission: &Admission, store: &dyn Store, changed: &[Snapshot]) -> bool {
    if changed.is_empty() {
        return true;
    }
    let (now, wall) = (admission.present(), SystemClock.unix_ms());
    let rows = changed.iter().map(|snapshot| record(snapshot, now, wall)).collect();
    match store.save_standing(rows).await {
        Ok(()) => true,
        Err(error) => {
            tracing::error!(%error, "accounts' standings could not be written");
            false
        }
    }
}

/// Writes down what has changed, once.
pub async fn save(admission: &Admission, store: &dyn Store) {
    write(admission, store, &admission.take_changes()).await;
}

/// Writes down every change, for as long as the gateway runs.
pub async fn keep(admission: Arc<Admission>, store: Arc<dyn Store>) {
    loop {
        let changed = admission.changes().await;
        while !write(&admission, store.as_ref(), &changed).await {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnkeep_policy::accounts::AccountKey;

    #[test]
    fn a_cooldown_and_an_episode_survive_a_restart_and_a_clock_that_was_set_back_does_not_lengthen_them() {
        let mut cooldowns = Cooldowns::default();
        cooldowns.cool(Moment(0), Scope::Account, Duration::from_secs(90), FaultKind::RateLimited);
        let errored = Status::Errored { episode: 2, retry_at: Moment(60_000) };
        let snapshot = Snapshot {
            key: AccountKey(0),
            id: AccountId { upstream: "u".into(), account: "a".into() },
            standing: Standing::restored(errored, 2, cooldowns),
            in_flight: 0,
            max_in_flight: 1,
            has_secret: true,
        };
        let written = record(&snapshot, Moment(0), 1_000_000);
        let later = standing(&written, Moment(5), 1_030_000);
        assert_eq!(later.cooldowns().until(Moment(5), "m"), Some(Moment(60_005)));
        assert_eq!(later.status(), &Status::Errored { episode: 2, retry_at: Moment(30_005) });
        let set_back = standing(&written, Moment(5), 0);
        assert_eq!(set_back.cooldowns().until(Moment(5), "m"), Some(Moment(90_005)));
    }
}
