//! Cascade servers that are processes: `agents` starts and keeps them, `upstream` calls them, and this lends the one to the
//! other.

use super::surroundings::Place;
use crate::config::Process;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use turnkeep_agents::supervise::{Address, Daemon, DaemonSpec, Listen, ProcessLimits, ProcessSpec};
use turnkeep_base::{AccountId, Evidence, Fault, FaultKind, Phase};
use turnkeep_upstream::{CascadeHost, CascadePlace};

/// A process for each account of an upstream.
pub(super) struct Daemons(BTreeMap<Arc<str>, Daemon>);

impl fmt::Debug for Daemons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

impl Daemons {
    /// Of these accounts. Nothing is started yet.
    pub(super) fn new(upstream: &str, process: &Process, places: &BTreeMap<Arc<str>, Place>) -> Daemons {
        let daemon = |(account, place): (&Arc<str>, &Place)| {
            let spec = ProcessSpec {
                name: format!("{upstream}/{account}").into(),
                command: process.command.clone(),
                home: Some(place.home.clone()),
                env: place.variables(),
                directory: process.state.join(&**account),
                limits: limits(process),
            };
            // Whether it takes turns is asked by whoever calls it.
            (account.clone(), Daemon::new(DaemonSpec { process: spec, listen: Listen::Loopback }))
        };
        Daemons(places.iter().map(daemon).collect())
    }
}

/// The bounds of a process.
pub(super) fn limits(process: &Process) -> ProcessLimits {
    ProcessLimits { memory: Some(process.memory), ..ProcessLimits::default() }
}

impl CascadeHost for Daemons {
    fn lend(&self, account: &AccountId) -> BoxFuture<'_, Result<CascadePlace, Fault>> {
        let (found, account) = (self.0.get(&account.account), account.clone());
        async move {
            let Some(daemon) = found else {
                let evidence = Evidence::text(format!("{account} has no process"));
                return Err(Fault::new(FaultKind::NoCredential, Phase::Unsent, evidence));
            };
            let lent = daemon.lend().await.map_err(|not_ready| not_ready.fault())?;
            let base_url = match &lent.endpoint.address {
                Address::Tcp(address) => format!("http://{address}"),
                Address::Unix(path) => {
                    let evidence = Evidence::text(format!("{account} listens at {}, not at a port", path.display()));
                    return Err(Fault::new(FaultKind::GatewayBug, Phase::Unsent, evidence));
                }
            };
            let (secret, started) = (lent.endpoint.secret.clone(), lent.endpoint.instance);
            Ok(CascadePlace { base_url, secret, started, hold: Arc::new(lent) })
        }
        .boxed()
    }

    fn runs(&self, started: u128) -> bool {
        self.0.values().any(|daemon| daemon.instance() == Some(started))
    }

    fn dismiss(&self, account: &AccountId, started: u128) {
        if let Some(daemon) = self.0.get(&account.account) {
            daemon.dismiss(started);
        }
    }
}
