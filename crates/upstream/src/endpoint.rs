//! One endpoint of a provider: the port's implementation. It makes a call into the request that its kind wants and hands the
//! answer up; the connections are its origin's.

use crate::answer;
use crate::kind::Kind;
use crate::origin::{Care, Origin, OriginSpec};
use crate::pool::Pool;
use crate::request::Template;
use crate::spec::{EndpointError, EndpointSpec};
use futures_util::future::BoxFuture;
use std::fmt;
use std::sync::Arc;
use turnkeep_base::{AccountId, Fault};
use turnkeep_engine::ports::{Answer, Call, Upstream};

/// An endpoint with its connections. Dropping it closes the idle ones; answers that are being read outlive it, and their
/// connections close behind them.
pub struct Endpoint {
    kind: Kind,
    template: Template,
    origin: Origin,
}

impl Endpoint {
    /// Makes an endpoint; opens no connection.
    pub fn new(spec: EndpointSpec) -> Result<Endpoint, EndpointError> {
        let origin = Origin::new(&OriginSpec {
            name: &spec.name,
            base_url: &spec.base_url,
            ca_pem: spec.ca_pem.as_deref(),
            proxy: spec.proxy.as_deref(),
            connect_timeout: spec.connect_timeout,
            max_connections: spec.max_connections,
            egress: &spec.egress,
            http2_only: false,
        })?;
        let template = Template::new(spec.kind, &spec.headers).map_err(|what| EndpointError {
            upstream: Arc::clone(&spec.name),
            key: "headers",
            what,
        })?;
        Ok(Endpoint { kind: spec.kind, template, origin })
    }

    /// The upstream's name.
    pub fn name(&self) -> &Arc<str> {
        &self.origin.name
    }

    /// By which way its calls leave: `direct`, or `proxy HOST:PORT`. Never a proxy's login.
    pub fn egress(&self) -> &Arc<str> {
        &self.origin.egress
    }

    /// Its wire protocol.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Connections of all accounts that wait for work.
    pub fn idle_connections(&self) -> usize {
        self.origin.pools.sum(Pool::idle)
    }

    /// Connections of all accounts that are open, or being opened.
    pub fn open_connections(&self) -> usize {
        self.origin.pools.sum(Pool::open)
    }

    /// Closes the idle connections. Exchanges go on.
    pub fn close_idle(&self) {
        self.origin.pools.close_idle();
    }

    /// Forgets an account that was removed: its idle connections close now, those with an exchange when that ends. A call
    /// that comes later all the same opens its own. False if no connection of it was known.
    pub fn forget_account(&self, account: &AccountId) -> bool {
        self.origin.pools.forget(account)
    }

    /// Sends a call that must not be sent twice: over a connection of its own, where nothing can have gone stale, and
    /// never again.
    pub(crate) async fn send_once(&self, call: Call) -> Result<Answer, Fault> {
        let account = call.account.clone();
        let draft = self.template.draft(&self.origin.target, call)?;
        let (response, lease) = self.origin.exchange_once(&account, draft).await?;
        answer::answer(response, lease)
    }

    async fn exchange(&self, call: Call) -> Result<Answer, Fault> {
        let account = call.account.clone();
        let draft = self.template.draft(&self.origin.target, call)?;
        let (response, lease) = self.origin.exchange(&account, draft, Care::ReplaySafe).await?;
        answer::answer(response, lease)
    }
}

impl Upstream for Endpoint {
    fn send(&self, call: Call) -> BoxFuture<'_, Result<Answer, Fault>> {
        Box::pin(self.exchange(call))
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("name", &self.origin.name)
            .field("kind", &self.kind)
            .field("host", &self.origin.target.host)
            .field("port", &self.origin.target.port)
            .finish_non_exhaustive()
    }
}
