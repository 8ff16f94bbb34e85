//! One request: which place it asks for, who asks, and who answers. The order is the contract's: the caller is known
//! before the body is read.

use crate::callers::{Caller, Callers, KeyDigest, Known, Scope};
use crate::catalog::Catalog;
use crate::client_body::ClientBody;
use crate::dialects::{
    Place, Verb, error_dialect, methods, named_model, no_such_verb, nothing_at, percent_decoded, place, query_value,
    unknown_verb,
};
use crate::limits::Meters;
use crate::proxies::Proxies;
use crate::receipts::{Delivery, Receipts};
use crate::reply_body::ReplyBody;
use crate::responses::{self, Library};
use crate::turns::Asks;
use crate::{headers, models, operator, read_body, respond, turns};
use arc_swap::ArcSwap;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use turnkeep_base::{AccountId, ClientError, Dialect, FaultKind};
use turnkeep_dialect::request::{InPath, Operation, StreamForm};
use turnkeep_engine::Engine;
use turnkeep_engine::ports::{ContentStore, Fetch};

/// Bounds of the client side.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of one request body.
    pub max_body: usize,
    /// Bytes of all request bodies together.
    pub all_bodies: usize,
    /// Connections at once, over all listeners.
    pub connections: usize,
    /// How long a client may take until its TLS handshake, or a request's head, has come.
    pub header_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            max_body: turnkeep_base::limit::MAX_BODY,
            all_bodies: 1 << 30,
            connections: 20_000,
            header_wait: Duration::from_secs(30),
        }
    }
}

/// What the parts around the engine tell of themselves: the store, the secrets, the configuration.
pub trait Health: Send + Sync {
    /// Whether the store can write; asked by readiness probes. `Err` says what is wrong.
    fn check(&self) -> futures_util::future::BoxFuture<'_, Result<(), String>>;
    /// Proofs of faults that found no room to be kept, since start.
    fn faults_lost(&self) -> u64;
    /// Ledger entries that are missing or have lost their end, since start.
    fn ledger_lost(&self) -> u64;
    /// Changes to kept answers that were never written down, since start.
    fn answers_lost(&self) -> u64;
    /// Why an account's secret could not be had or refreshed, if so.
    fn secret_problem(&self, account: &AccountId) -> Option<String>;
    /// The running configuration.
    fn config(&self) -> ConfigState;
}

/// How the running configuration stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigState {
    /// When it was taken up, Unix milliseconds.
    pub loaded_ms: u64,
    /// How many times another one was taken up since start.
    pub reloads: u64,
    /// How many were refused since start; a refused one changes nothing.
    pub refused: u64,
    /// Why the last one was refused; `None` once a good one was taken up.
    pub problem: Option<String>,
    /// Keys that differ from the running ones and are taken up only at the next start.
    pub needs_restart: Vec<String>,
}

/// What a gateway is made of.
pub struct GatewayParts {
    /// The engine.
    pub engine: Arc<Engine>,
    /// The keys.
    pub callers: Callers,
    /// The model names.
    pub catalog: Catalog,
    /// The bounds.
    pub limits: Limits,
    /// The store's health.
    pub health: Arc<dyn Health>,
    /// The metrics are open without a key: every listener is on loopback.
    pub metrics_open: bool,
    /// Makes the receipts of replies that arrive.
    pub receipts: Receipts,
    /// How much proof that needs.
    pub delivery: Delivery,
    /// The use that keys make of their limits.
    pub meters: Arc<Meters>,
    /// Where callers' responses and conversations are stored.
    pub content: Arc<dyn ContentStore>,
}

/// A gateway.
pub struct Gateway {
    pub(crate) engine: Arc<Engine>,
    pub(crate) callers: Callers,
    pub(crate) catalog: ArcSwap<Catalog>,
    pub(crate) limits: Limits,
    pub(crate) health: Arc<dyn Health>,
    pub(crate) metrics_open: bool,
    pub(crate) receipts: Receipts,
    pub(crate) delivery: Delivery,
    pub(crate) meters: Arc<Meters>,
    pub(crate) library: Arc<Library>,
    pub(crate) proxies: ArcSwap<Proxies>,
    /// Fetches what URLs in requests name; none while the operator has it off.
    pub(crate) fetch: ArcSwap<Option<Arc<dyn Fetch>>>,
    pub(crate) memory: Arc<Semaphore>,
    /// Bytes of one request body; [`Limits::max_body`] until another configuration is taken up.
    pub(crate) max_body: AtomicUsize,
    pub(crate) started: Instant,
    draining: AtomicBool,
}

impl Gateway {
    /// From its parts.
    pub fn new(parts: GatewayParts) -> Arc<Self> {
        let engine = &parts.engine;
        let library = Library::new(parts.content, engine.hash_key, engine.clock.clone());
        Arc::new(Gateway {
            library,
            engine: parts.engine,
            callers: parts.callers,
            catalog: ArcSwap::from_pointee(parts.catalog),
            memory: read_body::memory(parts.limits.all_bodies),
            max_body: AtomicUsize::new(parts.limits.max_body),
            limits: parts.limits,
            health: parts.health,
            metrics_open: parts.metrics_open,
            receipts: parts.receipts,
            delivery: parts.delivery,
            meters: parts.meters,
            proxies: ArcSwap::from_pointee(Proxies::default()),
            fetch: ArcSwap::from_pointee(None),
            started: Instant::now(),
            draining: AtomicBool::new(false),
        })
    }

    /// The engine.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// What the keys have used of their limits.
    pub fn meters(&self) -> &Arc<Meters> {
        &self.meters
    }

    /// The keys.
    pub fn callers(&self) -> &Callers {
        &self.callers
    }

    /// Takes other keys up, with their limits.
    pub fn take_up_keys(&self, keys: BTreeMap<KeyDigest, Known>) {
        self.meters.set(keys.values().map(|known| (&known.caller.name, known.caller.limits)));
        self.callers.replace(keys);
    }

    /// Takes other model names, another bound of bodies and other proxies up, for requests that come from now on.
    pub fn take_up(&self, catalog: Catalog, max_body: usize, proxies: Proxies) {
        self.proxies.store(Arc::new(proxies));
        self.catalog.store(Arc::new(catalog));
        self.max_body.store(max_body, Ordering::Relaxed);
    }

    /// Takes up another way to fetch what URLs in requests name, or none, for requests that come from now on.
    pub fn take_up_fetch(&self, fetch: Option<Arc<dyn Fetch>>) {
        self.fetch.store(Arc::new(fetch));
    }

    /// Responses and conversations that are not used are kept for so long from now on, and used ones three times as long.
    pub fn keep_stored_for(&self, idle: Duration) {
        self.library.keep_for(idle);
    }

    /// From now on new turns are refused.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// New turns are refused.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Answers a request.
    pub(crate) async fn answer(self: Arc<Self>, request: Request<ClientBody>) -> Response<ReplyBody> {
        let path = request.uri().path().to_owned();
        let place = place(&path);
        let verb = unknown_verb(&place, request.method());
        let dialect = match verb {
            Some(_) => Dialect::Gemini,
            None => error_dialect(&place, &path, request.uri().query(), request.headers()),
        };
        let allowed = methods(&place);
        let refuse = |error: ClientError| respond::error(dialect, &error, self.engine.turn_id());
        if let Some(word) = verb {
            return refuse(ClientError::new(404, "not_found", no_such_verb(word)));
        }
        if place == Place::Unknown {
            let message = nothing_at(request.method(), &path);
            return refuse(ClientError::new(404, "not_found", message));
        }
        if place == Place::Turn(Dialect::Responses, Operation::Generate)
            && request.method() == Method::GET
            && request.headers().contains_key(header::UPGRADE)
        {
            return responses::no_socket(self.engine.turn_id());
        }
        if !allowed.contains(request.method()) {
            let names: Vec<&str> = allowed.iter().map(Method::as_str).collect();
            let message = format!("{path} takes {}, not {}", names.join(" or "), request.method());
            let mut response = refuse(ClientError::new(405, "method_not_allowed", message));
            if let Ok(value) = HeaderValue::from_str(&names.join(", ")) {
                response.headers_mut().insert(header::ALLOW, value);
            }
            return response;
        }
        match place {
            Place::Hello | Place::Health => respond::text(StatusCode::OK, "ok\n"),
            Place::Ready => operator::ready(&self).await,
            Place::Metrics if self.metrics_open => operator::metrics(&self),
            Place::Metrics => match self.authenticate(&request, Scope::Metrics) {
                Ok(_) => operator::metrics(&self),
                Err(error) => refuse(error),
            },
            Place::ConnectMetrics => match self.authenticate(&request, Scope::Viewer) {
                Ok(_) => operator::connect_metrics(&self),
                Err(error) => refuse(error),
            },
            Place::Incident(turn) => match self.authenticate(&request, Scope::Viewer) {
                Ok(_) => operator::incident(&self, turn).unwrap_or_else(&refuse),
                Err(error) => refuse(error),
            },
            Place::Models => match self.authenticate_in(&request, Scope::Chat, dialect) {
                Ok((caller, _)) => models::list(&self, &caller, dialect, request.uri().query()).unwrap_or_else(&refuse),
                Err(error) => refuse(error),
            },
            Place::Model(name) => match self.authenticate_in(&request, Scope::Chat, dialect) {
                Ok((caller, _)) => {
                    let name =
                        if dialect == Dialect::Gemini { named_model(name).into() } else { percent_decoded(name) };
                    models::one(&self, &caller, dialect, &name).unwrap_or_else(&refuse)
                }
                Err(error) => refuse(error),
            },
            Place::Turn(dialect, operation) => match self.authenticate_in(&request, Scope::Chat, dialect) {
                Ok((caller, key)) => {
                    let asks = Asks { dialect, operation, in_path: None };
                    turns::turn(&self, caller, key, asks, request).await
                }
                Err(error) => refuse(error),
            },
            Place::InPath(verb, name) => match self.authenticate_in(&request, Scope::Chat, dialect) {
                Ok((caller, key)) => {
                    let events = query_value(request.uri().query(), "alt").is_some_and(|alt| alt == "sse");
                    let in_path = InPath {
                        model: named_model(name),
                        stream: verb == Verb::Stream,
                        form: if events { StreamForm::Events } else { StreamForm::Array },
                    };
                    let asks = Asks { dialect, operation: verb.operation(), in_path: Some(in_path) };
                    turns::turn(&self, caller, key, asks, request).await
                }
                Err(error) => refuse(error),
            },
            Place::Stored(stored) => match self.authenticate(&request, Scope::Chat) {
                Ok((caller, _)) => turns::stored(&self, &caller, stored, request).await.unwrap_or_else(&refuse),
                Err(error) => refuse(error),
            },
            Place::Unknown => refuse(ClientError::new(404, "not_found", "there is nothing here")),
        }
    }

    fn authenticate(
        &self,
        request: &Request<ClientBody>,
        scope: Scope,
    ) -> Result<(Arc<Caller>, KeyDigest), ClientError> {
        self.authenticate_in(request, scope, Dialect::Chat)
    }

    /// Finds the caller where clients of this dialect put their key.
    fn authenticate_in(
        &self,
        request: &Request<ClientBody>,
        scope: Scope,
        dialect: Dialect,
    ) -> Result<(Arc<Caller>, KeyDigest), ClientError> {
        let refused = |message: &str| {
            self.engine.tally.fault_kind(FaultKind::Unauthenticated);
            ClientError::new(401, "unauthenticated", message)
        };
        let in_header = headers::caller_key(request.headers()).map(Cow::Borrowed);
        let (key, places) = match dialect {
            Dialect::Gemini => (
                in_header.or_else(|| headers::key_in_query(request.uri().query()).map(Cow::Owned)),
                "no key: send it as `x-goog-api-key: …`, `Authorization: Bearer …` or `?key=…`",
            ),
            Dialect::Chat | Dialect::Responses | Dialect::Messages => {
                (in_header, "no key: send it as `Authorization: Bearer …` or `x-api-key: …`")
            }
        };
        let Some(key) = key else { return Err(refused(places)) };
        let Some((caller, digest)) = self.callers.find(&key, self.engine.clock.unix_ms()) else {
            return Err(refused("this key is not known to the gateway"));
        };
        if caller.may(scope) {
            return Ok((caller, digest));
        }
        let name = match scope {
            Scope::Chat => "chat",
            Scope::Metrics => "metrics",
            Scope::Viewer => "viewer",
            Scope::Admin => "admin",
        };
        Err(ClientError::new(403, "scope_missing", format!("this key lacks the scope {name:?}")))
    }
}
