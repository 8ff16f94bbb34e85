//! The accounts and upstreams as the operator sees them.

use super::pool::Pool;
use super::spec::AccountKey;
use super::standing::{Saved, Standing, Status};
use crate::moment::Moment;
use std::sync::Arc;
use turnkeep_base::AccountId;

/// An account as the operator sees it.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Its key.
    pub key: AccountKey,
    /// Its identity.
    pub id: AccountId,
    /// Its standing.
    pub standing: Standing,
    /// Attempts under way.
    pub in_flight: u32,
    /// The most at once.
    pub max_in_flight: u32,
    /// Its secret was found.
    pub has_secret: bool,
    /// The generation of its secret.
    pub generation: u64,
    /// Raised when it is removed or suspended.
    pub epoch: u64,
    /// It is in the configuration.
    pub configured: bool,
}

impl Snapshot {
    /// What of it outlives the process.
    pub fn saved(&self, now: Moment) -> Saved {
        self.standing.saved(now)
    }
}

/// An upstream as the operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamSnapshot {
    /// Its name.
    pub name: Arc<str>,
    /// How its calls leave.
    pub egress: Arc<str>,
    /// Network and upstream faults in a row.
    pub faults_in_a_row: u32,
    /// Its endpoint is out until then while another route can serve; a time that has passed means that it waits to be
    /// probed.
    pub ejected_until: Option<Moment>,
    /// Ejections, less those that have decayed.
    pub ejections: u32,
    /// Models for which the gateway's address is limited there, and until when.
    pub closed: Vec<(Arc<str>, Moment)>,
    /// Counted retries that it may get now.
    pub retries_left: u32,
}

impl Pool {
    /// One account as the operator sees it, also if its configuration is gone.
    pub fn snapshot(&self, key: AccountKey) -> Option<Snapshot> {
        self.account(key).map(|account| Snapshot {
            key,
            id: account.spec.id.clone(),
            standing: account.standing.clone(),
            in_flight: account.in_flight,
            max_in_flight: account.spec.max_in_flight,
            has_secret: account.spec.has_secret,
            generation: account.spec.generation,
            epoch: account.epoch,
            configured: account.removed.is_none(),
        })
    }

    /// All configured accounts as the operator sees them, and those whose last attempts still run.
    pub fn snapshots(&self) -> Vec<Snapshot> {
        let all = (0..self.accounts.len()).filter_map(|at| self.snapshot(AccountKey(at as u32)));
        all.filter(|snapshot| snapshot.configured || snapshot.in_flight > 0).collect()
    }

    /// All configured upstreams as the operator sees them.
    pub fn upstreams(&self, now: Moment) -> Vec<UpstreamSnapshot> {
        let configured = self.upstreams.iter().filter(|upstream| upstream.configured);
        let view = configured.map(|upstream| UpstreamSnapshot {
            name: upstream.name.clone(),
            egress: upstream.egress.clone(),
            faults_in_a_row: upstream.breaker.in_a_row(),
            ejected_until: upstream.breaker.ejected_until(),
            ejections: upstream.breaker.ejections(now, &self.tuning),
            closed: upstream.bursts.all_closed(now),
            retries_left: upstream.retries.left(now, &self.tuning),
        });
        view.collect()
    }

    /// Whether any account could serve something, now or after a wait.
    pub fn has_usable(&self) -> bool {
        self.accounts.iter().any(|account| {
            account.removed.is_none()
                && account.spec.has_secret
                && matches!(account.standing.status(), Status::Active | Status::Errored { .. })
        })
    }
}
