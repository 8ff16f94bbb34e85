//! Puts the rooms together: from a configuration and an open store to a gateway that can serve. Nothing is decided
//! here; every part gets what it needs and knows nothing of the others.

mod accounts;
mod bare;
mod drivers;
mod files;
mod health;
mod hosts;
mod keys;
mod listening;
mod live;
mod reload;
mod remembered;
mod standing;
mod surroundings;
mod upstreams;
mod whereabouts;
mod world;

use crate::commands::{Failure, open_store};
use crate::config::{Config, Listen, StoreUrl};
use crate::secrets::Keeper;
use futures_util::future::BoxFuture;
use health::{Notices, Parts};
use live::Live;
use reload::Source;
use standing::Book;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use turnkeep_base::{Mint, Secret};
use turnkeep_engine::admission::Admission;
use turnkeep_engine::ports::{
    AnswerStore, ContentStore, ConversationKey, ConversationStore, FaultLog, FaultRecord, KeptAnswer, KeptConversation,
    KeptKey, Ledger, StoreError, StoredKey, StoredThing, WallClock,
};
use turnkeep_engine::tally::Tally;
use turnkeep_engine::{Engine, EngineParts};
use turnkeep_http::limits::Meters;
use turnkeep_http::{Bound, Delivery, Gateway, GatewayParts, Limits, Listener, Receipts};
use turnkeep_store::{MemoryStore, Role, SqliteStore, Store, StoreOptions};

pub(crate) use drivers::{Driver, Outside};
pub(crate) use surroundings::of as surroundings_of;
pub(crate) use upstreams::driver;
pub use world::{EGRESS_VARIABLE, World, egress};

/// How long turns that were told to end may take to do so.
const END_WAIT: Duration = Duration::from_secs(5);

/// A gateway with its listeners bound, not yet serving.
pub struct Wired {
    gateway: Arc<Gateway>,
    listeners: Vec<Listener>,
    /// Where it listens.
    pub bound: Vec<Bound>,
    store: Arc<dyn Store>,
    book: Book,
    grace: Duration,
    live: Live,
    source: Source,
    /// A caller key that was made because there was none; to be shown once.
    pub made_key: Option<Secret>,
    /// Attempts of earlier runs that were closed as interrupted.
    pub recovered: usize,
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

    fn again(&self, entry: turnkeep_engine::ports::AnsweredAgain) {
        self.0.again(entry);
    }
}

impl AnswerStore for StoreLedger {
    fn keep(&self, answer: KeptAnswer) {
        self.0.keep(answer);
    }

    fn forget(&self, key: KeptKey) {
        self.0.forget(key);
    }
}

impl ConversationStore for StoreLedger {
    fn keep_conversation(&self, kept: KeptConversation) {
        self.0.keep_conversation(kept);
    }

    fn forget_conversations(&self, keys: Vec<ConversationKey>) {
        self.0.forget_conversations(keys);
    }
}

/// The store as callers' stored things see it.
struct StoreContent(Arc<dyn Store>);

impl ContentStore for StoreContent {
    fn put_stored(&self, things: Vec<StoredThing>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.0.put_stored(things)
    }

    fn get_stored(&self, key: StoredKey) -> BoxFuture<'_, Result<Option<StoredThing>, StoreError>> {
        self.0.get_stored(key)
    }

    fn touch_stored(&self, key: StoredKey, until_ms: u64) -> BoxFuture<'_, Result<(), StoreError>> {
        self.0.touch_stored(key, until_ms)
    }

    fn remove_stored(&self, key: StoredKey) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.0.remove_stored(key)
    }
}

/// Where the proofs of faults go: into the store. A credential that a provider rejects is fetched anew, where a command
/// gives it.
struct StoreFaults {
    store: Arc<dyn Store>,
    keeper: Arc<Keeper>,
}

impl FaultLog for StoreFaults {
    fn note(&self, record: FaultRecord) {
        if record.fault == turnkeep_base::FaultKind::CredentialRejected.name()
            && let Some(account) = &record.account
        {
            self.keeper.refresh_now(account);
        }
        self.store.note(record);
    }
}

/// Wires a gateway.
///
/// # Errors
/// Usage: the configuration cannot work. Operation: a file, an address or the store is not to be had.
pub async fn wire(config: Config) -> Result<Wired, Failure> {
    let limits = Limits::default();
    wire_within(config, Limits { connections: files::connections(limits.connections), ..limits }).await
}

/// Wires a gateway within these limits; the configuration's `max_body` stands over theirs.
///
/// # Errors
/// As [`wire`].
pub async fn wire_within(config: Config, limits: Limits) -> Result<Wired, Failure> {
    wire_in(config, limits, World::system()).await
}

/// Wires a gateway within these limits and surroundings.
///
/// # Errors
/// As [`wire`].
pub async fn wire_in(config: Config, limits: Limits, world: World) -> Result<Wired, Failure> {
    let World { clock, random, egress, launch, store, listeners } = world;
    let store = match store {
        Some(store) => store,
        None => open(&config, clock.clone())?,
    };
    let recovered = store.recovered();
    let admission = Admission::new(config.tuning.clone(), Instant::now());
    let told = admission.clone();
    let keeper = Keeper::new(move |account, secret| {
        told.set_secret(account, secret);
    });
    let receipts = Receipts::new(Mint::for_the_wiring());
    let bare = bare::wanted(&egress);
    let ledger: Arc<dyn Ledger> = if bare { Arc::new(bare::NoLedger) } else { Arc::new(StoreLedger(store.clone())) };
    let engine = Engine::new(EngineParts {
        admission: admission.clone(),
        ledger,
        answer_store: Arc::new(StoreLedger(store.clone())),
        conversation_store: Arc::new(StoreLedger(store.clone())),
        echo: Arc::new(receipts.clone()),
        hash_key: store.fingerprint_key(),
        faults: Arc::new(StoreFaults { store: store.clone(), keeper: keeper.clone() }),
        clock: clock.clone(),
        random,
        tally: Arc::new(Tally::default()),
        rules: live::rules(&config),
    });
    let keys::Loaded { callers, made } = keys::load(&config, store.as_ref()).await?;
    let (listeners, bound) = listening::listen(&config, listeners).await?;
    let notices = Arc::new(Notices::default());
    let gateway = Gateway::new(GatewayParts {
        engine,
        callers,
        catalog: turnkeep_http::catalog::Catalog::default(),
        limits,
        health: Arc::new(Parts { store: store.clone(), keeper: keeper.clone(), notices: notices.clone() }),
        metrics_open: config.server.listen.iter().all(Listen::is_local),
        receipts,
        delivery: if bare { Delivery::Forced } else { config.server.delivery },
        meters: Meters::new(clock.clone()),
        content: Arc::new(StoreContent(store.clone())),
    });
    let book = Book::new(admission.clone(), store.clone(), clock);
    let grace = config.server.shutdown_grace;
    let parts = live::Parts {
        gateway: gateway.clone(),
        book: book.clone(),
        store: store.clone(),
        keeper,
        notices,
        outside: Outside { egress, launch },
    };
    let live = Live::begin(parts, config).await?;
    remembered::take_up(&gateway, store.as_ref()).await?;
    let made_key = made;
    Ok(Wired { gateway, listeners, bound, store, book, grace, live, source: Source::Nothing, made_key, recovered })
}

fn open(config: &Config, clock: Arc<dyn WallClock>) -> Result<Arc<dyn Store>, Failure> {
    let master_key = open_store::master_key(&config.store);
    let master_key = master_key.map_err(|why| Failure::Usage(format!("store.master_key: {why}")))?;
    match &config.store.url {
        StoreUrl::Memory => {
            let store = MemoryStore::new(clock, master_key.as_ref()).map_err(Failure::operation)?;
            Ok(Arc::new(store))
        }
        StoreUrl::Sqlite(path) => {
            let options = StoreOptions { role: Role::Gateway, master_key, clock };
            let store = SqliteStore::open(path, options).map_err(Failure::operation)?;
            Ok(Arc::new(store))
        }
    }
}

impl Wired {
    /// Follows this file: a change of it, or SIGHUP, takes the configuration up anew while the gateway serves.
    pub fn following(mut self, file: PathBuf) -> Self {
        self.source = Source::File(file);
        self
    }

    /// Takes up the configurations that are brought, while the gateway serves.
    pub fn fed(mut self, configs: mpsc::Receiver<Config>) -> Self {
        self.source = Source::Brought(configs);
        self
    }

    /// The gateway, for whoever embeds it.
    pub fn gateway(&self) -> &Arc<Gateway> {
        &self.gateway
    }

    /// Serves until `stop` is done; then lets turns finish, ends the rest, writes everything down.
    ///
    /// # Errors
    /// Operation: the store could not be closed in order.
    pub async fn serve(self, stop: impl Future<Output = ()>) -> Result<(), Failure> {
        let (stopping, stopped) = watch::channel(false);
        // Dropped in the middle, as by a program that embeds it, it takes along whatever it has begun.
        let (mut keeping, mut serving) = (JoinSet::new(), JoinSet::new());
        keeping.spawn(self.book.clone().keep());
        keeping.spawn(reload::follow(self.live, self.source));
        serving.spawn(turnkeep_http::serve(self.gateway.clone(), self.listeners, stopped));
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
        let _ = tokio::time::timeout(END_WAIT, serving.join_next()).await;
        // A turn may have started between the last look and the end of its listener.
        engine.stop();
        if tokio::time::timeout(END_WAIT, engine.idle()).await.is_err() {
            tracing::error!("some turns did not end in time");
        }
        // What they have in hand is older than what follows.
        keeping.shutdown().await;
        self.book.save_all().await;
        self.store.shutdown().await.map_err(Failure::operation)
    }
}
