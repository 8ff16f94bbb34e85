//! The servers that accounts are served by: where each is, which process it is, and whether that is still so.
//!
//! A server is asked for its health before the first turn, after a process was started anew, and after a call to it has
//! failed in a way that a restart would explain. What it says of its process is what handles are compared with.

use super::CascadeSpec;
use crate::rpc::{Rpc, RpcSpec};
use crate::spec::EndpointError;
use futures_util::future::BoxFuture;
use http::HeaderMap;
use parking_lot::Mutex;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use turnkeep_base::verdict::verdict;
use turnkeep_base::{AccountId, Evidence, Fault, FaultKind, Origin, Phase, Secret};
use turnkeep_policy::conversations::Conversation;

/// Who knows where a server is that is not always at the same place: a process that is started here.
pub trait CascadeHost: Send + Sync {
    /// A server that takes calls for the account; starts one where none runs. Nothing was sent when it fails.
    fn lend(&self, account: &AccountId) -> BoxFuture<'_, Result<CascadePlace, Fault>>;

    /// The process that was lent under this number still runs.
    fn runs(&self, started: u128) -> bool;
}

/// Where a server is.
pub struct CascadePlace {
    /// As `http://127.0.0.1:9100`.
    pub base_url: String,
    /// What only this process and we know: the bearer token of every call.
    pub secret: Secret,
    /// Another one with each start of a process.
    pub started: u128,
    /// Held for as long as a turn uses the process.
    pub hold: Arc<dyn Any + Send + Sync>,
}

/// Calls to cancel that may be under way at once. Beyond that the server is told nothing but that a watch has closed, which
/// ends no turn by the schema: it works to the turn's end, and keeps the conversation for as long as it keeps any.
const CANCELS: usize = 256;
/// How long a call to cancel may take.
pub(super) const CANCEL_WAIT: Duration = Duration::from_secs(5);

/// How long a server may take to tell its health.
const HEALTH_WAIT: Duration = Duration::from_secs(10);

/// What is known of an account's server.
#[derive(Clone)]
struct Known {
    rpc: Arc<Rpc>,
    base_url: String,
    started: Option<u128>,
    instance: u128,
    secret: Secret,
    /// It may be another process by now.
    doubted: bool,
}

/// The servers of all accounts.
pub(super) struct Links {
    spec: RpcSpec,
    host: Option<Arc<dyn CascadeHost>>,
    /// The client of the one place, where there is one.
    remote: Arc<Rpc>,
    known: Mutex<BTreeMap<AccountId, Known>>,
    pub(super) cancels: Arc<Semaphore>,
}

impl fmt::Debug for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Links").field("spec", &self.spec).field("hosted", &self.host.is_some()).finish_non_exhaustive()
    }
}

impl Links {
    pub(super) fn new(spec: CascadeSpec) -> Result<Links, EndpointError> {
        let CascadeSpec { mut rpc, host } = spec;
        if host.is_some() {
            // Checks the rest of the spec; no call goes there.
            rpc.base_url = "http://127.0.0.1:1".into();
            rpc.ca_pem = None;
            rpc.proxy = None;
        }
        let remote = Arc::new(Rpc::new(&rpc)?);
        Ok(Links { spec: rpc, host, remote, known: Mutex::default(), cancels: Arc::new(Semaphore::new(CANCELS)) })
    }

    pub(super) fn name(&self) -> &Arc<str> {
        self.remote.name()
    }

    pub(super) fn egress(&self) -> &Arc<str> {
        self.remote.egress()
    }

    /// The account's server, ready for calls.
    pub(super) async fn link(
        self: &Arc<Self>,
        account: &AccountId,
        secret: &Secret,
        until: Option<Instant>,
    ) -> Result<Link, Fault> {
        let place = match &self.host {
            Some(host) => Some(host.lend(account).await?),
            None => None,
        };
        let started = place.as_ref().map(|place| place.started);
        let found = self.known.lock().get(account).cloned();
        let known = found.filter(|known| known.started == started && !known.doubted);
        let (rpc, base_url, secret, hold) = match place {
            None => (self.remote.clone(), self.spec.base_url.clone(), secret.clone(), None),
            Some(CascadePlace { base_url, secret, started: _, hold }) => {
                let same = known.as_ref().filter(|known| known.base_url == base_url).map(|known| known.rpc.clone());
                let rpc = match same {
                    Some(rpc) => rpc,
                    None => Arc::new(self.client_at(&base_url)?),
                };
                (rpc, base_url, secret, Some(hold))
            }
        };
        let mut link = Link {
            links: self.clone(),
            rpc,
            account: account.clone(),
            secret,
            instance: known.map(|known| known.instance),
            until,
            trace: HeaderMap::new(),
            _hold: hold,
        };
        if link.instance.is_none() {
            // No clock of a turn runs for those who only look.
            link.instance = Some(match tokio::time::timeout(HEALTH_WAIT, link.health()).await {
                Ok(instance) => instance?,
                Err(_) => {
                    let text = format!("the server has not told its health within {} s", HEALTH_WAIT.as_secs());
                    return Err(Fault::new(FaultKind::UpstreamUnavailable, Phase::MaybeSent, Evidence::text(text)));
                }
            });
        }
        let known = Known {
            rpc: link.rpc.clone(),
            base_url,
            started,
            instance: link.instance(),
            secret: link.secret.clone(),
            doubted: false,
        };
        self.known.lock().insert(account.clone(), known);
        Ok(link)
    }

    fn client_at(&self, base_url: &str) -> Result<Rpc, Fault> {
        let spec = RpcSpec { base_url: base_url.to_owned(), ..self.spec.clone() };
        Rpc::new(&spec).map_err(|error| super::bug(&format!("the address of a started server: {error}")))
    }

    /// The account's server as it was last known.
    pub(super) fn known(self: &Arc<Self>, account: &AccountId) -> Option<Link> {
        let known = self.known.lock().get(account).cloned()?;
        Some(Link {
            links: self.clone(),
            rpc: known.rpc,
            account: account.clone(),
            secret: known.secret,
            instance: Some(known.instance),
            until: None,
            trace: HeaderMap::new(),
            _hold: None,
        })
    }

    /// The account's server may be another process by now.
    pub(super) fn doubt(&self, account: &AccountId) {
        if let Some(known) = self.known.lock().get_mut(account) {
            known.doubted = true;
        }
    }

    pub(super) fn forget(&self, account: &AccountId) {
        let forgotten = self.known.lock().remove(account);
        self.remote.forget_account(account);
        drop(forgotten);
    }

    /// The process that keeps the conversation is one that runs, as far as is known.
    pub(super) fn stands(&self, conversation: &Conversation) -> bool {
        let runs = |known: &Known| match (&self.host, known.started) {
            (Some(host), Some(started)) => host.runs(started),
            (Some(_) | None, _) => true,
        };
        let known = self.known.lock();
        if known.is_empty() {
            // Nothing was heard yet: a server that runs elsewhere may well be the same as before our own start.
            return self.host.is_none();
        }
        known.values().any(|known| conversation.instance == Some(known.instance) && runs(known))
    }
}

/// An account's server, for one turn.
#[derive(Clone)]
pub(super) struct Link {
    pub(super) links: Arc<Links>,
    pub(super) rpc: Arc<Rpc>,
    pub(super) account: AccountId,
    pub(super) secret: Secret,
    /// Set by the first health call.
    instance: Option<u128>,
    /// When the turn's time is over.
    pub(super) until: Option<Instant>,
    pub(super) trace: HeaderMap,
    /// Keeps the process running.
    _hold: Option<Arc<dyn Any + Send + Sync>>,
}

impl Link {
    /// The process.
    pub(super) fn instance(&self) -> u128 {
        self.instance.unwrap_or_default()
    }

    /// The server says that it is this process.
    pub(super) fn is_of(&mut self, instance: u128) {
        if self.instance != Some(instance) {
            self.instance = Some(instance);
            if let Some(known) = self.links.known.lock().get_mut(&self.account) {
                known.instance = instance;
            }
        }
    }

    /// With the headers of the client's trace.
    pub(super) fn tracing(mut self, trace: &HeaderMap) -> Self {
        self.trace = trace.clone();
        self
    }

    /// A call has failed. If that may be a restart, the next turn asks which process it is.
    pub(super) fn heard(&self, fault: &Fault) {
        let away = verdict(fault).origin == Origin::Network;
        if away || matches!(fault.kind, FaultKind::UpstreamUnavailable | FaultKind::ConversationGone) {
            self.links.doubt(&self.account);
        }
    }
}
