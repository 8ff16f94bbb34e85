//! Cascade servers that are processes: `agents` starts and keeps them, `upstream` calls them, and this lends the one to the
//! other.

use super::surroundings::Place;
use crate::config::Process;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use turnkeep_agents::supervise::{Address, Daemon, DaemonSpec, Launch, Listen, ProcessLimits, ProcessSpec};
use turnkeep_base::{AccountId, Evidence, Fault, FaultKind, Phase};
use turnkeep_upstream::{CascadeHost, CascadePlace};

/// A process for each account of an upstream.
pub(crate) struct Daemons(BTreeMap<Arc<str>, Kept>);

/// One account's, and what it was made from.
#[derive(Clone)]
struct Kept {
    process: Process,
    place: Place,
    daemon: Arc<Daemon>,
}

impl fmt::Debug for Daemons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

impl Daemons {
    /// Of these accounts; those of `before` that would come out the same go on. Nothing is started yet.
    pub(super) fn new(
        upstream: &str,
        process: &Process,
        places: &BTreeMap<Arc<str>, Place>,
        before: Option<&Daemons>,
    ) -> Daemons {
        let of = |(account, place): (&Arc<str>, &Place)| {
            let kept = before.and_then(|before| before.0.get(account));
            if let Some(kept) = kept.filter(|kept| kept.process == *process && kept.place == *place) {
                return (account.clone(), kept.clone());
            }
            let spec = ProcessSpec {
                name: format!("{upstream}/{account}").into(),
                command: process.command.clone(),
                home: Some(place.home.clone()),
                env: place.variables(),
                directory: process.state.join(&**account),
                limits: limits(process),
                // It has an address of its own, which only the system gives.
                launch: Launch::System,
            };
            // Whether it takes turns is asked by whoever calls it.
            let daemon = Arc::new(Daemon::new(DaemonSpec { process: spec, listen: Listen::Loopback }));
            (account.clone(), Kept { process: process.clone(), place: place.clone(), daemon })
        };
        Daemons(places.iter().map(of).collect())
    }

    /// They are in use no more, but for the turns that run: a process that `next` does not go on with ends with its last turn,
    /// however long others last.
    pub(super) fn let_go(&self, next: Option<&Daemons>) {
        for (account, Kept { daemon, .. }) in &self.0 {
            let kept = next.and_then(|next| next.0.get(account)).is_some_and(|kept| Arc::ptr_eq(&kept.daemon, daemon));
            if !kept {
                daemon.let_go();
            }
        }
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
            let Some(Kept { daemon, .. }) = found else {
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
        self.0.values().any(|kept| kept.daemon.instance() == Some(started))
    }

    fn dismiss(&self, account: &AccountId, started: u128) {
        if let Some(kept) = self.0.get(&account.account) {
            kept.daemon.dismiss(started);
        }
    }
}
