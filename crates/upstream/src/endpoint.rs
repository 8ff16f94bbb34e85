//! One endpoint of a provider: the port's implementation. It lends a connection, sends, replays once what died on a
//! connection that had gone stale, and hands the answer up.

use crate::answer;
use crate::classify;
use crate::connect::{Connected, Connector};
use crate::error_tables::Reach;
use crate::kind::Kind;
use crate::line::LineState;
use crate::pool::{Lease, Pool, Speaks};
use crate::pools::Pools;
use crate::proxy::{Proxy, Speech};
use crate::request::{Draft, Template};
use crate::spec::{EndpointError, EndpointSpec};
use crate::target::Target;
use crate::tls;
use futures_util::future::BoxFuture;
use std::fmt;
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};
use turnkeep_base::{AccountId, Fault, FaultKind, Phase};
use turnkeep_engine::ports::{Answer, Call, Upstream};

/// An endpoint with its connections. Dropping it closes the idle ones; answers that are being read outlive it, and their
/// connections close behind them.
pub struct Endpoint {
    name: Arc<str>,
    egress: Arc<str>,
    kind: Kind,
    target: Target,
    connector: Connector,
    template: Template,
    max_connections: usize,
    pools: Pools,
}

/// An exchange that failed before its answer's head.
struct Failed {
    fault: Fault,
    /// Nothing of an answer was heard, and it was the connection that failed or that took no more requests.
    stale: bool,
}

impl Endpoint {
    /// Makes an endpoint; opens no connection.
    pub fn new(spec: EndpointSpec) -> Result<Endpoint, EndpointError> {
        let name = Arc::clone(&spec.name);
        let name = &name;
        let wrong = |key: &'static str| move |what: String| EndpointError { upstream: Arc::clone(name), key, what };
        let target = Target::parse(&spec.base_url).map_err(wrong("base_url"))?;
        let proxy = spec.proxy.as_deref().map(Proxy::parse).transpose().map_err(wrong("proxy"))?;
        let config = match (target.tls, &spec.ca_pem) {
            (true, roots) => Some(tls::config(roots.as_deref()).map_err(wrong("ca"))?),
            (false, Some(_)) => return Err(wrong("ca")("roots are of no use to an http:// URL".into())),
            (false, None) => None,
        };
        let tls = config.map(|config| Connector::tls_to(&target, config)).transpose().map_err(wrong("base_url"))?;
        let via_proxy = match &proxy {
            Some(proxy) if proxy.speech == Speech::Http && !target.tls => Some(proxy.authorization.clone()),
            Some(_) | None => None,
        };
        let template = Template::new(spec.kind, &spec.headers, via_proxy).map_err(wrong("headers"))?;
        if spec.connect_timeout.is_zero() {
            return Err(wrong("timeouts.connect")("it is zero".into()));
        }
        let egress = match &proxy {
            Some(proxy) => format!("proxy {}:{}", proxy.host, proxy.port).into(),
            None => "direct".into(),
        };
        Ok(Endpoint {
            egress,
            kind: spec.kind,
            target,
            connector: Connector { proxy, tls, timeout: spec.connect_timeout, loopback_only: spec.loopback_only },
            template,
            max_connections: spec.max_connections,
            pools: Pools::new(spec.max_connections),
            name: spec.name,
        })
    }

    /// The upstream's name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// By which way its calls leave: `direct`, or `proxy HOST:PORT`. Never a proxy's login.
    pub fn egress(&self) -> &Arc<str> {
        &self.egress
    }

    /// Its wire protocol.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Connections of all accounts that wait for work.
    pub fn idle_connections(&self) -> usize {
        self.pools.sum(Pool::idle)
    }

    /// Connections of all accounts that are open, or being opened.
    pub fn open_connections(&self) -> usize {
        self.pools.sum(Pool::open)
    }

    /// Closes the idle connections. Exchanges go on.
    pub fn close_idle(&self) {
        self.pools.close_idle();
    }

    /// Forgets an account that was removed: its idle connections close now, those with an exchange when that ends. A call
    /// that comes later all the same opens its own. False if no connection of it was known.
    pub fn forget_account(&self, account: &AccountId) -> bool {
        self.pools.forget(account)
    }

    /// Sends a call that must not be sent twice: over a connection of its own, where nothing can have gone stale, and
    /// never again.
    pub(crate) async fn send_once(&self, call: Call) -> Result<Answer, Fault> {
        let pool = self.pools.of(&call.account);
        let draft = self.template.draft(&self.target, call)?;
        let (lease, _) = self.open(&pool, false).await?;
        self.send(lease, draft).await.map_err(|failed| failed.fault)
    }

    async fn exchange(&self, call: Call) -> Result<Answer, Fault> {
        let pool = self.pools.of(&call.account);
        let mut draft = self.template.draft(&self.target, call)?;
        let mut lease = pool.reuse().await;
        let mut may_be_sent = false;
        let mut replayed = false;
        loop {
            let (lease, reused) = match lease.take() {
                Some(lease) => (lease, true),
                None => self.open(&pool, !replayed).await.map_err(|fault| sent_before(fault, may_be_sent))?,
            };
            // Kept only where it may be needed: a fresh connection gets no second chance.
            let spare = reused.then(|| draft.clone());
            let failed = match self.send(lease, draft).await {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            let Some(again) = spare.filter(|_| failed.stale) else {
                return Err(sent_before(failed.fault, may_be_sent));
            };
            may_be_sent |= failed.fault.phase != Phase::Unsent;
            tracing::debug!(upstream = %self.name, fault = %failed.fault, "a stale connection; once more on a fresh one");
            draft = again;
            replayed = true;
        }
    }

    async fn send(&self, mut lease: Lease, draft: Draft) -> Result<Answer, Failed> {
        let request = self.template.finish(&self.target, draft, lease.speaks());
        match lease.send(request).await {
            Ok(response) => answer::answer(response, lease).map_err(|fault| Failed { fault, stale: false }),
            Err(failure) => {
                let blank = Arc::default();
                let line: &Arc<LineState> = lease.line().unwrap_or(&blank);
                let returned = failure.returned.is_some();
                let (mut fault, reach) = match &failure.error {
                    Some(error) => classify::sending(error, returned, line),
                    None => {
                        let fault = classify::unsent(FaultKind::GatewayBug, "a lease without its connection");
                        (fault, Reach::Connection)
                    }
                };
                if lease.heard() && fault.phase == Phase::MaybeSent {
                    fault.phase = Phase::Answered;
                }
                let stale = match reach {
                    Reach::Unprocessed => true,
                    // The peer took the request and gave it up: that is an answer.
                    Reach::Stream => false,
                    Reach::Connection => fault.kind == FaultKind::ConnectionReset && !lease.heard(),
                };
                Err(Failed { stale, fault })
            }
        }
    }

    /// Opens a connection within the connect clock. Where many may share one, the callers go one at a time, and a later
    /// one may find (`share`) that it need not open its own; then `true` comes with the lease.
    async fn open(&self, pool: &Arc<Pool>, share: bool) -> Result<(Lease, bool), Fault> {
        let deadline = Instant::now() + self.connector.timeout;
        let may_share = share && self.target.tls && pool.speaks() != Some(Speaks::Http1);
        let _turn = if may_share {
            match timeout_at(deadline, pool.opening.lock()).await {
                Ok(turn) => Some(turn),
                Err(_) => return Err(classify::connect_clock(&self.target.host.to_string(), "waiting to connect to")),
            }
        } else {
            None
        };
        if may_share && let Some(lease) = pool.reuse().await {
            return Ok((lease, true));
        }
        let Some(place) = pool.place() else {
            let text = format!("the account has {} connections open already", self.max_connections);
            return Err(classify::unsent(FaultKind::GatewayExhausted, text));
        };
        let connected = self.connector.connect(&self.target, deadline).await?;
        let line: Arc<LineState> = Arc::default();
        let opened = match connected {
            Connected::Plain(stream) => pool.open_http1(stream, place, Arc::clone(&line)).await,
            Connected::Tls(stream, true) => pool.open_http2(stream, place, Arc::clone(&line)).await,
            Connected::Tls(stream, false) => pool.open_http1(stream, place, Arc::clone(&line)).await,
        };
        opened.map(|lease| (lease, false)).map_err(|error| classify::opening(&error, &line))
    }
}

/// An earlier try of the same call may have been sent, whatever stopped this one.
fn sent_before(mut fault: Fault, may_be_sent: bool) -> Fault {
    if may_be_sent && fault.phase == Phase::Unsent {
        fault.phase = Phase::MaybeSent;
    }
    fault
}

impl Upstream for Endpoint {
    fn send(&self, call: Call) -> BoxFuture<'_, Result<Answer, Fault>> {
        Box::pin(self.exchange(call))
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("host", &self.target.host)
            .field("port", &self.target.port)
            .finish_non_exhaustive()
    }
}
