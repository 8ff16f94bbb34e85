//! The engine as its owner sees it: start a turn, stop, and what it shares with the views of the operator.

use crate::admission::Admission;
use crate::bonds::Bonds;
use crate::conversations::Desk;
use crate::drive::Drive;
use crate::fetched::Fetches;
use crate::incident::ring::{Bounds, Ring};
use crate::incident::tape::Tape;
use crate::incident::trace::{Head, RouteFacts};
use crate::kept::{At, Kept};
use crate::machine::TurnFacts;
use crate::pipe::{ReplyReader, reply_pipe};
use crate::ports::{
    AnswerStore, ConversationStore, Echo, FaultLog, KeepAnswer, KeptAnswer, KeptConversation, Ledger, Permit, Random,
    Reservation, WallClock,
};
use crate::recorder::Room;
use crate::route::{Route, Rules};
use crate::tally::Tally;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::HeaderMap;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use turnkeep_base::{CallerScope, TurnId};
use turnkeep_dialect::request::ClientRequest;

/// What a turn's caller asked for and is allowed, beside the request itself.
#[derive(Default)]
pub struct Terms {
    /// The client's own id of its session, if it sends one; at most 256 bytes.
    pub session: Option<String>,
    /// The same, where `session` is the name that a program gave its conversation; at most 256 bytes.
    pub session_within: Option<String>,
    /// The value of `idempotency-key`; at most 256 bytes.
    pub idempotency: Option<String>,
    /// Held and cached answers are not wanted (`x-turnkeep-cache: bypass`).
    pub bypass: bool,
    /// How long an answer of this model may be used again, if its cache is on.
    pub cache: Option<Duration>,
    /// The key's labels, as a JSON object of strings.
    pub labels: Arc<str>,
    /// What was set aside of the caller's limits.
    pub reservation: Option<Box<dyn Reservation>>,
    /// The body as the client sent it, where the request was filled up from what is stored for the caller: answers repeat
    /// this one's fields, and an idempotency key stands for it.
    pub shown: Option<Bytes>,
    /// It is made in the background: the answer has the gateway's own id, and its reader leaves only to cancel it.
    pub background: bool,
    /// Stores the answer.
    pub keep: Option<Box<dyn KeepAnswer>>,
}

/// A turn that has been authenticated, read and resolved.
pub struct TurnInput {
    /// Its id.
    pub id: TurnId,
    /// For whom.
    pub caller: CallerScope,
    /// What the caller asked for and is allowed beside the request itself.
    pub terms: Terms,
    /// The request.
    pub request: ClientRequest,
    /// The configured model's name, for metrics: `*` where names pass through.
    pub model_label: Arc<str>,
    /// Where it may go, in order.
    pub routes: Arc<[Route]>,
    /// What URLs in the request name, for upstreams that take bytes only; empty where none of its routes is to such one.
    pub fetched: Arc<Fetches>,
    /// The client's headers that may cross to a same-dialect upstream.
    pub headers: HeaderMap,
    /// The client asked for the beta form of the Messages API (`?beta=true`).
    pub beta: bool,
    /// The caller's key, as it is while the turn runs.
    pub permit: Arc<dyn Permit>,
    /// A shorter whole time that the caller asked for.
    pub timeout: Option<Duration>,
    /// When the last byte of the request had come.
    pub received: Instant,
    /// Held as long as the turn: its body's share of the memory that bodies may take.
    pub memory: Option<Box<dyn std::any::Any + Send + Sync>>,
}

/// Routes that a trace names.
const ROUTES: usize = 64;

/// A name as a trace has it.
fn bounded(name: &str) -> String {
    const BYTES: usize = 256;
    let end = (0..=BYTES.min(name.len())).rev().find(|&at| name.is_char_boundary(at)).unwrap_or(0);
    name.get(..end).unwrap_or_default().to_owned()
}

/// Counts a turn as open for as long as it lives, whatever becomes of its task.
struct OpenTurn(Arc<Engine>);

impl OpenTurn {
    fn of(engine: Arc<Engine>) -> Self {
        engine.count(1);
        OpenTurn(engine)
    }
}

impl Drop for OpenTurn {
    fn drop(&mut self) {
        self.0.count(-1);
    }
}

/// The engine.
pub struct Engine {
    /// Admission and selection.
    pub admission: Arc<Admission>,
    /// The usage ledger.
    pub ledger: Arc<dyn Ledger>,
    /// Where the proofs of faults go.
    pub faults: Arc<dyn FaultLog>,
    /// Makes the receipts that later turns prove.
    pub echo: Arc<dyn Echo>,
    /// The key of the fingerprints by which content is known again; the same for as long as the store lives.
    pub hash_key: [u8; 32],
    /// Wall time.
    pub clock: Arc<dyn WallClock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
    /// The counters.
    pub tally: Arc<Tally>,
    /// What leads a caller's turns to accounts.
    pub bonds: Bonds,
    /// The answers that outlive their turns.
    pub kept: Arc<Kept>,
    /// The conversations that upstreams keep.
    pub conversations: Arc<Desk>,
    /// The traces of the turns that run, and of the latest that have ended.
    pub incidents: Arc<Ring>,
    /// A digest of the running configuration, for traces.
    digest: RwLock<Option<Arc<str>>>,
    pub(crate) recording: Room,
    rules: RwLock<Rules>,
    stop: watch::Sender<bool>,
    idle: watch::Sender<u64>,
}

/// What an engine is made of.
pub struct EngineParts {
    /// Admission and selection.
    pub admission: Arc<Admission>,
    /// The usage ledger.
    pub ledger: Arc<dyn Ledger>,
    /// Where the proofs of faults go.
    pub faults: Arc<dyn FaultLog>,
    /// Where kept answers survive a restart.
    pub answer_store: Arc<dyn AnswerStore>,
    /// Where upstreams' conversations survive a restart.
    pub conversation_store: Arc<dyn ConversationStore>,
    /// Makes the receipts that later turns prove.
    pub echo: Arc<dyn Echo>,
    /// The key of the fingerprints by which content is known again; the same for as long as the store lives.
    pub hash_key: [u8; 32],
    /// Wall time.
    pub clock: Arc<dyn WallClock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
    /// The counters.
    pub tally: Arc<Tally>,
    /// The numbers of a turn.
    pub rules: Rules,
}

impl Engine {
    /// An engine over its ports.
    pub fn new(parts: EngineParts) -> Arc<Self> {
        let (stop, _) = watch::channel(false);
        let (idle, _) = watch::channel(0);
        let EngineParts {
            admission,
            ledger,
            faults,
            answer_store,
            conversation_store,
            echo,
            hash_key,
            clock,
            random,
            tally,
            rules,
        } = parts;
        Arc::new(Engine {
            conversations: Desk::new(admission.clone(), conversation_store, clock.clone()),
            admission,
            ledger,
            faults,
            kept: Kept::new(answer_store),
            bonds: Bonds::default(),
            incidents: Ring::new(Bounds::default()),
            digest: RwLock::new(None),
            recording: Room::default(),
            echo,
            hash_key,
            clock,
            random,
            tally,
            rules: RwLock::new(rules),
            stop,
            idle,
        })
    }

    /// The numbers for a turn that begins now.
    pub fn rules(&self) -> Rules {
        *self.rules.read()
    }

    /// Other numbers, for turns that begin from now on.
    pub fn set_rules(&self, rules: Rules) {
        *self.rules.write() = rules;
    }

    /// The digest of the configuration that turns run under from now on, secrets left out of it; for their traces.
    pub fn set_config_digest(&self, digest: impl Into<Arc<str>>) {
        *self.digest.write() = Some(digest.into());
    }

    /// The tape of a turn that begins now.
    pub(crate) fn tape(&self, input: &TurnInput, facts: TurnFacts, jitter: u64) -> Arc<Tape> {
        let route = |route: &Route| RouteFacts {
            upstream: route.upstream.name.to_string(),
            model: bounded(&route.model),
            tier: route.tier,
            dialect: route.upstream.dialect().map(|dialect| dialect.name().to_owned()),
        };
        let head = Head {
            turn: input.id.to_string(),
            build: env!("CARGO_PKG_VERSION").to_owned(),
            config: self.digest.read().as_ref().map(ToString::to_string),
            began_ms: self.clock.unix_ms(),
            caller: input.caller.key().to_string(),
            model: bounded(&input.request.model),
            dialect: input.request.dialect.name().to_owned(),
            routes: input.routes.iter().take(ROUTES).map(route).collect(),
            accounts: BTreeMap::new(),
            clock_us: 0,
            facts,
            jitter,
        };
        self.incidents.begin(input.id, self.admission.origin(), self.hash_key, head)
    }

    /// Takes up the answers that an earlier run kept.
    pub fn take_up_kept(&self, answers: Vec<KeptAnswer>) {
        let at = At { now: self.admission.present(), wall_ms: self.clock.unix_ms() };
        self.kept.take_up(at, answers);
    }

    /// Takes up the conversations that an earlier run kept. The accounts are known by now.
    pub fn take_up_conversations(&self, kept: Vec<KeptConversation>) {
        self.conversations.take_up(self.admission.present(), kept);
    }

    /// Bytes of the answers under way that are recorded.
    pub fn recorded_bytes(&self) -> usize {
        self.recording.used()
    }

    /// A new turn's id.
    pub fn turn_id(&self) -> TurnId {
        TurnId::new(self.clock.unix_ms(), self.random.bits())
    }

    /// Starts a turn in a task of its own. Dropping the reader is the client's leaving.
    pub fn start(self: &Arc<Self>, input: TurnInput) -> ReplyReader {
        let (turn, reader) = self.prepare(input);
        tokio::spawn(turn);
        reader
    }

    /// A turn from its start to the last of its closings, for a task to run. Dropped in the middle, it closes what it has
    /// opened.
    pub fn prepare(self: &Arc<Self>, input: TurnInput) -> (BoxFuture<'static, ()>, ReplyReader) {
        let (writer, reader) = reply_pipe(input.id);
        let open = OpenTurn::of(self.clone());
        let mut drive = Drive::new(self.clone(), input, writer, self.stop.subscribe());
        let turn = async move {
            let outcome = AssertUnwindSafe(drive.run()).catch_unwind().await;
            if outcome.is_err() {
                drive.after_panic().await;
            }
            drive.deliver().await;
            drop(drive);
            drop(open);
        };
        (turn.boxed(), reader)
    }

    fn count(&self, by: i64) {
        let now = if by > 0 {
            self.tally.turns_open.fetch_add(1, Ordering::Relaxed) + 1
        } else {
            // Whoever sees that it has ended sees what it counted.
            self.tally.turns_open.fetch_sub(1, Ordering::Release) - 1
        };
        if now == 0 {
            self.idle.send_modify(|times| *times = times.wrapping_add(1));
        }
    }

    /// Waits until no turn is open.
    pub async fn idle(&self) {
        let mut idle = self.idle.subscribe();
        while self.tally.turns_open.load(Ordering::Relaxed) > 0 {
            if idle.changed().await.is_err() {
                return;
            }
        }
    }

    /// Ends every open turn in its dialect's error form.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }
}
