//! The connections to one base URL: lends one, sends a request on it, and replays once what died on a connection that had
//! gone stale. What is in a request or an answer is not known here.

use crate::classify;
use crate::connect::{Connected, Connector};
use crate::dial::Egress;
use crate::error_tables::Reach;
use crate::line::LineState;
use crate::pool::{Lease, MAX_IDLE_AGE, Pool, Speaks};
use crate::pools::Pools;
use crate::proxy::{Proxy, Speech};
use crate::request::Draft;
use crate::spec::EndpointError;
use crate::target::Target;
use crate::tls;
use http::{HeaderValue, Response};
use hyper::body::Incoming;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use turnkeep_base::{AccountId, Fault, FaultKind, Phase};

/// A connection that has waited longer is not used for what must not be sent twice.
const STATEFUL_IDLE: Duration = Duration::from_secs(5);

/// What an origin is made of, in the words of the configuration.
pub(crate) struct OriginSpec<'a> {
    pub(crate) name: &'a Arc<str>,
    pub(crate) base_url: &'a str,
    pub(crate) ca_pem: Option<&'a [u8]>,
    pub(crate) proxy: Option<&'a str>,
    pub(crate) connect_timeout: Duration,
    pub(crate) max_connections: usize,
    pub(crate) egress: &'a Egress,
    /// HTTP/2 and nothing else, without TLS too, where both sides know it beforehand.
    pub(crate) http2_only: bool,
}

/// How careful a send must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Care {
    /// Sending it twice does nothing twice: once more, on a fresh connection, if a kept one was stale.
    ReplaySafe,
    /// Only on a connection that is fresh or has waited less than 5 s, and once more only if it certainly was not taken.
    Stateful,
}

/// The connections to one base URL, apart for every account.
pub(crate) struct Origin {
    pub(crate) name: Arc<str>,
    pub(crate) egress: Arc<str>,
    pub(crate) target: Target,
    pub(crate) pools: Pools,
    connector: Connector,
    /// Set when requests go to an HTTP proxy as they are; in it is the proxy's login.
    via_proxy: Option<Option<HeaderValue>>,
    max_connections: usize,
    http2_only: bool,
}

/// An exchange that failed before its answer's head.
struct Failed {
    fault: Fault,
    /// Nothing of an answer was heard, and it was the connection that failed or that took no more requests.
    stale: bool,
}

impl Origin {
    /// Takes a spec apart; opens no connection.
    pub(crate) fn new(spec: &OriginSpec<'_>) -> Result<Origin, EndpointError> {
        let name = spec.name;
        let wrong = |key: &'static str| move |what: String| EndpointError { upstream: Arc::clone(name), key, what };
        let target = Target::parse(spec.base_url).map_err(wrong("base_url"))?;
        let proxy = spec.proxy.map(Proxy::parse).transpose().map_err(wrong("proxy"))?;
        let config = match (target.tls, spec.ca_pem) {
            (true, roots) => Some(tls::config(roots, spec.http2_only).map_err(wrong("ca"))?),
            (false, Some(_)) => return Err(wrong("ca")("roots are of no use to an http:// URL".into())),
            (false, None) => None,
        };
        let tls = config.map(|config| Connector::tls_to(&target, config)).transpose().map_err(wrong("base_url"))?;
        let via_proxy = match &proxy {
            Some(proxy) if proxy.speech == Speech::Http && !target.tls => Some(proxy.authorization.clone()),
            Some(_) | None => None,
        };
        if spec.http2_only && via_proxy.is_some() {
            let what = "an HTTP proxy does not carry gRPC to an http:// URL; use https:// or a SOCKS proxy";
            return Err(wrong("proxy")(what.into()));
        }
        if spec.connect_timeout.is_zero() {
            return Err(wrong("timeouts.connect")("it is zero".into()));
        }
        let egress = match &proxy {
            Some(proxy) => format!("proxy {}:{}", proxy.host, proxy.port).into(),
            None => "direct".into(),
        };
        Ok(Origin {
            name: Arc::clone(name),
            egress,
            target,
            connector: Connector { proxy, tls, timeout: spec.connect_timeout, egress: spec.egress.clone() },
            via_proxy,
            max_connections: spec.max_connections,
            pools: Pools::new(spec.max_connections),
            http2_only: spec.http2_only,
        })
    }

    /// Sends a request and waits for the answer's head, which comes with the lease of its connection.
    pub(crate) async fn exchange(
        &self,
        account: &AccountId,
        mut draft: Draft,
        care: Care,
    ) -> Result<(Response<Incoming>, Lease), Fault> {
        let pool = self.pools.of(account);
        let idle = match care {
            Care::ReplaySafe => MAX_IDLE_AGE,
            Care::Stateful => STATEFUL_IDLE,
        };
        let mut lease = pool.reuse(idle).await;
        let mut may_be_sent = false;
        let mut replayed = false;
        loop {
            let (lease, reused) = match lease.take() {
                Some(lease) => (lease, true),
                None => self.open(&pool, idle, !replayed).await.map_err(|fault| sent_before(fault, may_be_sent))?,
            };
            // Kept only where it may be needed: a fresh connection gets no second chance.
            let spare = reused.then(|| draft.clone());
            let failed = match self.send(lease, draft).await {
                Ok(answered) => return Ok(answered),
                Err(failed) => failed,
            };
            let again = match care {
                Care::ReplaySafe => failed.stale,
                Care::Stateful => failed.stale && failed.fault.phase == Phase::Unsent,
            };
            let Some(spare) = spare.filter(|_| again) else {
                return Err(sent_before(failed.fault, may_be_sent));
            };
            may_be_sent |= failed.fault.phase != Phase::Unsent;
            tracing::debug!(upstream = %self.name, fault = %failed.fault, "a stale connection; once more on a fresh one");
            draft = spare;
            replayed = true;
        }
    }

    /// The same over a connection of its own, where nothing can have gone stale, and never again.
    pub(crate) async fn exchange_once(
        &self,
        account: &AccountId,
        draft: Draft,
    ) -> Result<(Response<Incoming>, Lease), Fault> {
        let pool = self.pools.of(account);
        let (lease, _) = self.open(&pool, MAX_IDLE_AGE, false).await?;
        self.send(lease, draft).await.map_err(|failed| failed.fault)
    }

    async fn send(&self, mut lease: Lease, draft: Draft) -> Result<(Response<Incoming>, Lease), Failed> {
        let request = draft.finish(&self.target, self.via_proxy.as_ref(), lease.speaks());
        match lease.send(request).await {
            Ok(response) => Ok((response, lease)),
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
    async fn open(&self, pool: &Arc<Pool>, idle: Duration, share: bool) -> Result<(Lease, bool), Fault> {
        let deadline = Instant::now() + self.connector.timeout;
        let may_share = share && (self.target.tls || self.http2_only) && pool.speaks() != Some(Speaks::Http1);
        let _turn = if may_share {
            match timeout_at(deadline, pool.opening.lock()).await {
                Ok(turn) => Some(turn),
                Err(_) => return Err(classify::connect_clock(&self.target.host.to_string(), "waiting to connect to")),
            }
        } else {
            None
        };
        if may_share && let Some(lease) = pool.reuse(idle).await {
            return Ok((lease, true));
        }
        let Some(place) = pool.place() else {
            let text = format!("the account has {} connections open already", self.max_connections);
            return Err(classify::unsent(FaultKind::GatewayExhausted, text));
        };
        let connected = self.connector.connect(&self.target, deadline).await?;
        let line: Arc<LineState> = Arc::default();
        let opened = match connected {
            Connected::Plain(stream) if self.http2_only => pool.open_http2(stream, place, Arc::clone(&line)).await,
            Connected::Plain(stream) => pool.open_http1(stream, place, Arc::clone(&line)).await,
            Connected::Tls(stream, true) => pool.open_http2(stream, place, Arc::clone(&line)).await,
            Connected::Tls(_, false) if self.http2_only => {
                let text = "the server did not agree to HTTP/2, without which there is no gRPC";
                return Err(classify::unsent(FaultKind::HttpProtocolError, text));
            }
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
