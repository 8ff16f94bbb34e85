//! Puts the rooms together: from a configuration and an open store to a gateway that can serve. Nothing is decided
//! here; every part gets what it needs and knows nothing of the others.

mod accounts;
mod files;
mod follow;
mod keys;
mod standing;

use crate::commands::{Failure, open_store};
use crate::config::{Config, Kind, Listen, Model, StoreUrl};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio::time::Instant;
use turnkeep_base::{AccountId, Secret};
use turnkeep_engine::Engine;
use turnkeep_engine::admission::Admission;
use turnkeep_engine::ports::{Ledger, Random, WallClock};
use turnkeep_engine::route::{Clocks, Route, UpstreamEntry};
use turnkeep_engine::tally::Tally;
use turnkeep_http::callers::{KeyDigest, Known};
use turnkeep_http::catalog::{Catalog, ModelEntry};
use turnkeep_http::{Bound, Gateway, GatewayParts, Health, Limits, Listener};
use turnkeep_policy::accounts::Pool;
use turnkeep_store::{MemoryStore, Role, SqliteStore, Store, StoreOptions, SystemClock};
use turnkeep_upstream::{Endpoint, EndpointSpec};

/// The variable that keeps every connection on this machine, for tests and demonstrations.
pub const EGRESS_VARIABLE: &str = "TURNKEEP_EGRESS";

/// Whether [`EGRESS_VARIABLE`] keeps this process on the machine.
pub fn loopback_only() -> bool {
    std::env::var(EGRESS_VARIABLE).is_ok_and(|value| value == "loopback")
}

/// How long turns that were told to end may take to do so.
const END_WAIT: Duration = Duration::from_secs(5);

/// A gateway with its listeners bound, not yet serving.
pub struct Wired {
    gateway: Arc<Gateway>,
    listeners: Vec<Listener>,
    /// Where it listens.
    pub bound: Vec<Bound>,
    store: Arc<dyn Store>,
    admission: Arc<Admission>,
    grace: Duration,
    configured: BTreeMap<KeyDigest, Known>,
    /// A caller key that was made because there was none; to be shown once.
    pub made_key: Option<Secret>,
    /// Attempts of earlier runs that were closed as interrupted.
    pub recovered: usize,
}

/// The operating system's randomness.
struct SystemRandom;

impl Random for SystemRandom {
    fn bits(&self) -> u128 {
        let mut bytes = [0u8; 16];
        // Without randomness from the system there are still no two turns with the same id: the time and a counter.
        if getrandom::fill(&mut bytes).is_err() {
            static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
            let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            bytes[..8].copy_from_slice(&count.to_le_bytes());
        }
        u128::from_le_bytes(bytes)
    }
}

struct StoreHealth(Arc<dyn Store>);

impl Health for StoreHealth {
    fn check(&self) -> futures_util::future::BoxFuture<'_, Result<(), String>> {
        Box::pin(async { self.0.health().await.map_err(|error| error.to_string()) })
    }
}

/// The store as the engine sees it.
struct StoreLedger(Arc<dyn Store>);

impl Ledger for StoreLedger {
    fn open(
        &self,
        entry: turnkeep_engine::ports::AttemptOpened,
    ) -> futures_util::future::BoxFuture<'_, Result<(), turnkeep_engine::ports::StoreError>> {
        self.0.open(entry)
    }

    fn close(
        &self,
        entry: turnkeep_engine::ports::AttemptClosed,
    ) -> futures_util::future::BoxFuture<'_, Result<(), turnkeep_engine::ports::StoreError>> {
        self.0.close(entry)
    }
}

/// Wires a gateway.
///
/// # Errors
/// Usage: the configuration cannot work. Operation: a file, an address or the store is not to be had.
pub async fn wire(config: &Config) -> Result<Wired, Failure> {
    let limits = Limits::default();
    wire_within(config, Limits { connections: files::connections(limits.connections), ..limits }).await
}

/// Wires a gateway within these limits; the configuration's `max_body` stands over theirs.
///
/// # Errors
/// As [`wire`].
pub async fn wire_within(config: &Config, limits: Limits) -> Result<Wired, Failure> {
    let clock: Arc<dyn WallClock> = Arc::new(SystemClock);
    let (store, recovered) = open(config, clock.clone())?;
    let accounts = accounts::gather(config, store.as_ref()).await?;
    let upstreams = upstreams(config, &accounts, loopback_only())?;
    let (specs, secrets): (Vec<_>, Vec<_>) = accounts.into_iter().map(|account| (account.spec, account.secret)).unzip();
    let ids: Vec<AccountId> = specs.iter().map(|spec| spec.id.clone()).collect();
    let admission = Admission::new(Pool::new(specs), secrets, Instant::now());
    standing::restore(&admission, store.as_ref(), &ids, clock.unix_ms()).await?;

    let keys::Loaded { callers, configured, made } = keys::load(config, store.as_ref()).await?;
    let tally = Arc::new(Tally::default());
    let ledger: Arc<dyn Ledger> = Arc::new(StoreLedger(store.clone()));
    let engine = Engine::new(admission.clone(), ledger, clock, Arc::new(SystemRandom), tally);

    let (listeners, bound) = listen(config).await?;
    let gateway = Gateway::new(GatewayParts {
        engine,
        callers,
        catalog: catalog(config, &upstreams),
        limits: Limits { max_body: usize::try_from(config.server.max_body).unwrap_or(usize::MAX), ..limits },
        health: Arc::new(StoreHealth(store.clone())),
        metrics_open: config.server.listen.iter().all(Listen::is_local),
    });
    let grace = config.server.shutdown_grace;
    Ok(Wired { gateway, listeners, bound, store, admission, grace, configured, made_key: made, recovered })
}

fn open(config: &Config, clock: Arc<dyn WallClock>) -> Result<(Arc<dyn Store>, usize), Failure> {
    let master_key = open_store::master_key(&config.store);
    let master_key = master_key.map_err(|why| Failure::Usage(format!("store.master_key: {why}")))?;
    match &config.store.url {
        StoreUrl::Memory => {
            let store = MemoryStore::new(clock, master_key.as_ref()).map_err(Failure::operation)?;
            Ok((Arc::new(store), 0))
        }
        StoreUrl::Sqlite(path) => {
            let options = StoreOptions { role: Role::Gateway, master_key, clock };
            let store = SqliteStore::open(path, options).map_err(Failure::operation)?;
            let recovered = store.recovered();
            Ok((Arc::new(store), recovered))
        }
    }
}

type Upstreams = BTreeMap<String, Arc<UpstreamEntry>>;

fn upstreams(config: &Config, accounts: &[accounts::Gathered], loopback_only: bool) -> Result<Upstreams, Failure> {
    let mut out = Upstreams::new();
    for upstream in &config.upstreams {
        let most = accounts.iter().filter(|account| *account.spec.id.upstream == *upstream.name);
        let most = most.map(|account| account.spec.max_in_flight).max().unwrap_or(1);
        let endpoint = endpoint(upstream, loopback_only, most as usize)?;
        let dialect = endpoint.kind().dialect();
        let clocks = Clocks {
            first_content: upstream.timeouts.first_content,
            between: upstream.timeouts.between,
            total: upstream.timeouts.total,
            max_turn: upstream.timeouts.max_turn,
        };
        let entry = UpstreamEntry { name: upstream.name.as_str().into(), dialect, clocks, port: Arc::new(endpoint) };
        out.insert(upstream.name.clone(), Arc::new(entry));
    }
    Ok(out)
}

/// The driver of a configured upstream.
pub(crate) fn endpoint(
    upstream: &crate::config::Upstream,
    loopback_only: bool,
    max_in_flight: usize,
) -> Result<Endpoint, Failure> {
    let kind = match upstream.kind {
        Kind::Openai => turnkeep_upstream::Kind::OpenAi,
        Kind::Anthropic => turnkeep_upstream::Kind::Anthropic,
    };
    let mut spec = EndpointSpec::new(upstream.name.as_str(), kind, upstream.base_url.as_str());
    spec.headers = upstream.headers.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect();
    spec.ca_pem = upstream.ca.as_deref().map(read_file).transpose()?;
    spec.proxy = upstream.proxy.as_ref().map(|proxy| proxy.expose().to_owned());
    spec.connect_timeout = upstream.timeouts.connect;
    spec.max_connections = spec.max_connections.max(max_in_flight);
    spec.loopback_only = loopback_only;
    Endpoint::new(spec).map_err(|error| Failure::Usage(error.to_string()))
}

fn read_file(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::Usage(format!("{} cannot be read: {error}", path.display())))
}

fn catalog(config: &Config, upstreams: &Upstreams) -> Catalog {
    let mut models = Vec::new();
    let mut any = Vec::new();
    for model in &config.models {
        if model.is_any() {
            let known = model.routes.iter().filter_map(|route| {
                let upstream = upstreams.get(&route.upstream)?;
                Some((upstream.clone(), route.model.as_deref().map(Arc::from)))
            });
            any.extend(known);
        } else {
            models.push(ModelEntry {
                name: model.name.clone(),
                aliases: model.aliases.clone(),
                routes: routes(model, upstreams),
            });
        }
    }
    Catalog::new(models, any)
}

fn routes(model: &Model, upstreams: &Upstreams) -> Vec<Route> {
    let route = |route: &crate::config::Route| {
        let upstream = upstreams.get(&route.upstream)?.clone();
        Some(Route { upstream, model: model.upstream_model(route, &model.name).into() })
    };
    model.routes.iter().filter_map(route).collect()
}

async fn listen(config: &Config) -> Result<(Vec<Listener>, Vec<Bound>), Failure> {
    let tls = match &config.server.tls {
        Some(tls) => {
            let config = turnkeep_http::tls_config(&tls.cert, &tls.key);
            Some(config.map_err(|error| Failure::Usage(format!("server.tls: {error}")))?)
        }
        None => None,
    };
    let mut listeners = Vec::new();
    for place in &config.server.listen {
        let failed = |error: std::io::Error| Failure::Operation(format!("cannot listen on {place}: {error}"));
        match place {
            Listen::Tcp { host, port } => {
                let addresses: Vec<SocketAddr> =
                    tokio::net::lookup_host((host.as_str(), *port)).await.map_err(failed)?.collect();
                let listener = bind(&addresses).map_err(failed)?;
                listeners.push(Listener::Tcp(listener, tls.clone()));
            }
            Listen::Unix(path) => {
                let listener = bind_unix(path).map_err(failed)?;
                listeners.push(Listener::Unix(listener, path.clone()));
            }
        }
    }
    let bound = listeners.iter().map(Listener::bound).collect::<Result<_, _>>().map_err(Failure::operation)?;
    Ok((listeners, bound))
}

/// Listens on the first address that can be had, with room for many connections at once.
fn bind(addresses: &[SocketAddr]) -> std::io::Result<TcpListener> {
    let mut last = std::io::Error::from(std::io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        let socket = if address.is_ipv4() { tokio::net::TcpSocket::new_v4() } else { tokio::net::TcpSocket::new_v6() }?;
        #[cfg(unix)]
        socket.set_reuseaddr(true)?;
        match socket.bind(*address).and_then(|()| socket.listen(4096)) {
            Ok(listener) => return Ok(listener),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// A socket file that an earlier run left is replaced; one that somebody listens on is not.
fn bind_unix(path: &Path) -> std::io::Result<UnixListener> {
    match UnixListener::bind(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            if !std::fs::symlink_metadata(path)?.file_type().is_socket() {
                let why = "there is a file that is no socket; it is left as it is";
                return Err(std::io::Error::new(std::io::ErrorKind::AlreadyExists, why));
            }
            if std::os::unix::net::UnixStream::connect(path).is_ok() {
                return Err(error);
            }
            std::fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        other => other,
    }
}

impl Wired {
    /// Serves until `stop` is done; then lets turns finish, ends the rest, writes everything down.
    ///
    /// # Errors
    /// Operation: the store could not be closed in order.
    pub async fn serve(self, stop: impl Future<Output = ()>) -> Result<(), Failure> {
        let (stopping, stopped) = watch::channel(false);
        let saver = tokio::spawn(standing::keep(self.admission.clone(), self.store.clone()));
        let following = tokio::spawn(follow::follow(
            self.gateway.clone(),
            self.admission.clone(),
            self.store.clone(),
            self.configured,
        ));
        let serving = tokio::spawn(turnkeep_http::serve(self.gateway.clone(), self.listeners, stopped));
        stop.await;
        tracing::info!(grace_s = self.grace.as_secs(), "stopping: no new turns, the running ones may finish");
        // The listeners stay while turns end, so that readiness probes and new turns are told, not turned away.
        self.gateway.drain();
        let engine = self.gateway.engine().clone();
        if tokio::time::timeout(self.grace, engine.idle()).await.is_err() {
            tracing::warn!("the grace is over; the turns that still run are ended");
            engine.stop();
            if tokio::time::timeout(END_WAIT, engine.idle()).await.is_err() {
                tracing::error!("some turns did not end in time");
            }
        }
        stopping.send_replace(true);
        // Connections that are still open are idle ones; they close with the process.
        let _ = tokio::time::timeout(END_WAIT, serving).await;
        // A turn may have started between the last look and the end of its listener.
        engine.stop();
        if tokio::time::timeout(END_WAIT, engine.idle()).await.is_err() {
            tracing::error!("some turns did not end in time");
        }
        saver.abort();
        following.abort();
        standing::save(&self.admission, self.store.as_ref()).await;
        self.store.shutdown().await.map_err(Failure::operation)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test ends by panicking")]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_left_socket_is_replaced_and_a_file_that_is_no_socket_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("left.sock");
        drop(bind_unix(&socket).unwrap());
        let listening = bind_unix(&socket).unwrap();
        assert_eq!(bind_unix(&socket).unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
        drop(listening);

        let file = folder.path().join("precious");
        std::fs::write(&file, "words").unwrap();
        assert!(bind_unix(&file).unwrap_err().to_string().contains("no socket"));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "words");
    }
}
