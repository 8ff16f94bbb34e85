//! The servers that accounts are served by: where each is, which process it is, and whether that is still so.
//!
//! A server is asked for its health before the first turn, after a process was started anew, and after a call to it has
//! failed in a way that a restart would explain. What it says of its process is what handles are compared with.
//!
//! One that is started here and takes no calls is given up ([`CascadeHost::dismiss`]): where nobody listens at its place, and
//! where its health is not told in time. A call of a turn that was let go of unanswered has its health asked before the next.

use super::CascadeSpec;
use super::looks::Looks;
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
use turnkeep_base::{AccountId, Fault, FaultKind, Origin, Secret};
use turnkeep_policy::conversations::Conversation;

/// Who knows where a server is that is not always at the same place: a process that is started here.
pub trait CascadeHost: Send + Sync {
    /// A server that takes calls for the account; starts one where none runs. Nothing was sent when it fails.
    fn lend(&self, account: &AccountId) -> BoxFuture<'_, Result<CascadePlace, Fault>>;

    /// The process that was lent under this number still runs, and is lent.
    fn runs(&self, started: u128) -> bool;

    /// The process that was lent to the account under this number takes no calls. It is not lent again, and ends when nobody
    /// holds it any more; another one is started for who comes next.
    fn dismiss(&self, account: &AccountId, started: u128);
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

/// How long a server may take to tell its health, unless its spec says otherwise.
pub(super) const HEALTH_WAIT: Duration = Duration::from_secs(10);

/// What is known of an account's server.
#[derive(Clone)]
struct Known {
    rpc: Arc<Rpc>,
    /// What `rpc` was made from but for its address.
    spec: Arc<RpcSpec>,
    base_url: String,
    started: Option<u128>,
    instance: u128,
    secret: Secret,
    /// It may be another process by now.
    doubted: bool,
}

/// The servers of all accounts.
pub(super) struct Links {
    spec: Arc<RpcSpec>,
    host: Option<Arc<dyn CascadeHost>>,
    /// The client of the one place, where there is one.
    remote: Arc<Rpc>,
    known: Arc<Mutex<BTreeMap<AccountId, Known>>>,
    /// At the health of servers that are started here.
    looks: Looks,
    pub(super) health_within: Duration,
    pub(super) cancels: Arc<Semaphore>,
}

impl fmt::Debug for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Links").field("spec", &self.spec).field("hosted", &self.host.is_some()).finish_non_exhaustive()
    }
}

impl Links {
    /// With what those `before` know, if there are any.
    pub(super) fn new(spec: CascadeSpec, before: Option<&Links>) -> Result<Links, EndpointError> {
        let CascadeSpec { mut rpc, host, health_within } = spec;
        if host.is_some() {
            // Checks the rest of the spec; no call goes there.
            rpc.base_url = "http://127.0.0.1:1".into();
            rpc.ca_pem = None;
            rpc.proxy = None;
        }
        let remote = Arc::new(Rpc::new(&rpc)?);
        let known = before.map_or_else(Arc::default, |before| before.known.clone());
        let cancels = before.map_or_else(|| Arc::new(Semaphore::new(CANCELS)), |before| before.cancels.clone());
        let looks = Looks::default();
        Ok(Links { spec: Arc::new(rpc), host, remote, known, looks, health_within, cancels })
    }

    pub(super) fn name(&self) -> &Arc<str> {
        self.remote.name()
    }

    pub(super) fn egress(&self) -> &Arc<str> {
        self.remote.egress()
    }

    /// The account's server, ready for calls. A started one that was ready and takes no calls any more is passed over for a
    /// fresh one, once: nothing of the turn has left.
    pub(super) async fn link(
        self: &Arc<Self>,
        account: &AccountId,
        secret: &Secret,
        until: Option<Instant>,
    ) -> Result<Link, Fault> {
        let mut passed_over = false;
        loop {
            let place = match &self.host {
                Some(host) => Some(host.lend(account).await?),
                None => None,
            };
            let started = place.as_ref().map(|place| place.started);
            let found = self.known.lock().get(account).cloned().filter(|known| known.started == started);
            let was_ready = found.is_some();
            let mut link = self.link_to(place, found, account, secret, until)?;
            if link.instance.is_none() {
                match self.looks.ask(&link).await {
                    Ok(instance) => link.instance = Some(instance),
                    Err(unwell) if unwell.dismissed && was_ready && !passed_over => {
                        passed_over = true;
                        continue;
                    }
                    Err(unwell) => return Err(unwell.fault),
                }
            }
            self.know(&link);
            return Ok(link);
        }
    }

    /// What leads to this place, with what is known of it; without its process where that is to be asked.
    fn link_to(
        self: &Arc<Self>,
        place: Option<CascadePlace>,
        found: Option<Known>,
        account: &AccountId,
        secret: &Secret,
        until: Option<Instant>,
    ) -> Result<Link, Fault> {
        let started = place.as_ref().map(|place| place.started);
        let instance = found.as_ref().filter(|known| !known.doubted).map(|known| known.instance);
        let (rpc, base_url, secret, hold) = match place {
            None => (self.remote.clone(), self.spec.base_url.clone(), secret.clone(), None),
            Some(CascadePlace { base_url, secret, started: _, hold }) => {
                let same = |known: &Known| known.base_url == base_url && Arc::ptr_eq(&known.spec, &self.spec);
                let rpc = match found.filter(|known| same(known) && !known.doubted) {
                    Some(known) => known.rpc,
                    None => Arc::new(self.client_at(&base_url)?),
                };
                (rpc, base_url, secret, Some(hold))
            }
        };
        Ok(Link {
            links: self.clone(),
            rpc,
            base_url,
            account: account.clone(),
            secret,
            started,
            instance,
            until,
            trace: HeaderMap::new(),
            _hold: hold,
        })
    }

    fn know(&self, link: &Link) {
        let Link { rpc, base_url, account, secret, started, .. } = link;
        let known = Known {
            rpc: rpc.clone(),
            spec: self.spec.clone(),
            base_url: base_url.clone(),
            started: *started,
            instance: link.instance(),
            secret: secret.clone(),
            doubted: false,
        };
        self.known.lock().insert(account.clone(), known);
    }

    fn client_at(&self, base_url: &str) -> Result<Rpc, Fault> {
        let spec = RpcSpec { base_url: base_url.to_owned(), ..(*self.spec).clone() };
        Rpc::new(&spec).map_err(|error| super::bug(&format!("the address of a started server: {error}")))
    }

    /// The account's server as it was last known.
    pub(super) fn known(self: &Arc<Self>, account: &AccountId) -> Option<Link> {
        let known = self.known.lock().get(account).cloned()?;
        Some(Link {
            links: self.clone(),
            rpc: known.rpc,
            base_url: known.base_url,
            account: account.clone(),
            secret: known.secret,
            started: known.started,
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
        self.looks.forget(account);
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
    base_url: String,
    pub(super) account: AccountId,
    pub(super) secret: Secret,
    /// The start of the process, where it is started here.
    pub(super) started: Option<u128>,
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

    /// A call has failed. If that may be a restart, the next turn asks which process it is; where nobody listens any more, a
    /// started one is given up at once.
    pub(super) fn heard(&self, fault: &Fault) {
        let away = verdict(fault).origin == Origin::Network;
        if away || matches!(fault.kind, FaultKind::UpstreamUnavailable | FaultKind::ConversationGone) {
            self.links.doubt(&self.account);
        }
        // An address that cannot be had, or a name, is none of its faults.
        if matches!(fault.kind, FaultKind::ConnectRefused | FaultKind::ConnectTimeout) {
            self.dismiss();
        }
    }

    /// What was asked of it was let go of without an answer. One that was started here may hang: the next turn asks for its
    /// health. With one that runs elsewhere nothing can be done about that.
    pub(super) fn unanswered(&self) {
        if self.started.is_some() {
            self.links.doubt(&self.account);
        }
    }

    /// It takes no calls: one that was started here is not lent again.
    pub(super) fn dismiss(&self) {
        if let (Some(host), Some(started)) = (&self.links.host, self.started) {
            host.dismiss(&self.account, started);
        }
    }
}
