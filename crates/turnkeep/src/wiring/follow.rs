//! Follows what the command line does to the store while the gateway runs: keys made, rotated and revoked, accounts
//! enabled and disabled. Accounts that were added are taken up at the next start.

use super::keys;
use crate::commands::accounts::BY_OPERATOR;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use turnkeep_base::AccountId;
use turnkeep_engine::admission::Admission;
use turnkeep_engine::ports::WallClock;
use turnkeep_http::Gateway;
use turnkeep_http::callers::{KeyDigest, Known};
use turnkeep_store::{StandingStatus, Store, StoreError, SystemClock};

/// How often the store is asked whether anything has changed.
const EVERY: Duration = Duration::from_secs(2);

/// Follows for as long as the gateway runs. `configured` are the configuration's own keys, which stay.
pub async fn follow(
    gateway: Arc<Gateway>,
    admission: Arc<Admission>,
    store: Arc<dyn Store>,
    configured: BTreeMap<KeyDigest, Known>,
) {
    let mut seen = store.revision().await.ok();
    let mut switched = BTreeMap::new();
    // What was switched before the start is in the standings that the start has read.
    let started_ms = SystemClock.unix_ms();
    let mut every = tokio::time::interval(EVERY);
    loop {
        every.tick().await;
        if let Err(error) = switches(&admission, store.as_ref(), started_ms, &mut switched).await {
            tracing::warn!(%error, "the store's accounts could not be read again");
        }
        let Ok(revision) = store.revision().await else { continue };
        if seen == Some(revision) {
            continue;
        }
        match store.keys_snapshot().await {
            Ok(snapshot) => {
                let mut known = keys::of_store(&snapshot);
                known.extend(configured.clone());
                gateway.callers().replace(known);
                seen = Some(revision);
                tracing::info!("the callers' keys were read again from the store");
            }
            Err(error) => tracing::warn!(%error, "the store's keys could not be read again"),
        }
    }
}

/// Applies what the command line has switched since the last time.
async fn switches(
    admission: &Arc<Admission>,
    store: &dyn Store,
    started_ms: u64,
    switched: &mut BTreeMap<AccountId, u64>,
) -> Result<(), StoreError> {
    for record in store.load_standing().await? {
        let at = record.updated_ms;
        let by_operator = record.reason.as_deref() == Some(BY_OPERATOR);
        if !by_operator || at < started_ms || switched.get(&record.account) == Some(&at) {
            continue;
        }
        let enabled = record.status != StandingStatus::Disabled;
        if admission.switch(&record.account, enabled) {
            tracing::info!(account = %record.account, enabled, "the operator switched an account");
        }
        switched.insert(record.account, at);
    }
    Ok(())
}
