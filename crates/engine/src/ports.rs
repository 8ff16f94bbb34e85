//! What the engine asks of the world. Each port is implemented in a room that the engine never sees.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Method, StatusCode};
use std::borrow::Cow;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use turnkeep_base::{
    AccountId, AttemptId, ClientError, Dialect, Fault, FaultKind, Fingerprint, NanoUsd, Receipt, Secret, TurnId, Usage,
};
use turnkeep_dialect::event::Event;
use turnkeep_dialect::json::Invalid;
use turnkeep_dialect::recorded::Recorded;
use turnkeep_dialect::tool_names::ToolNames;
use turnkeep_dialect::turn::Turn;
use turnkeep_policy::conversations::{Conversation, RefusalProof};

/// One exchange with an upstream, ready to be sent.
#[derive(Debug)]
pub struct Call {
    /// `POST` for turns; `GET` for a list of models.
    pub method: Method,
    /// Below the upstream's base URL, with a leading slash and, where there is one, the query.
    pub path: Cow<'static, str>,
    /// Without credentials, host or length: those are the driver's.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// Whose connections are used: accounts do not share them.
    pub account: AccountId,
    /// The account's credential; the driver puts it where its provider wants it.
    pub secret: Secret,
}

/// An upstream's answer, its head read and its body still to come.
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, decompressed.
    pub body: Box<dyn AnswerBody>,
}

/// The body of an answer. Dropping it before its end cancels the exchange at the upstream: an HTTP/1 connection is
/// closed, an HTTP/2 stream is reset.
pub trait AnswerBody: Send {
    /// The next bytes, `None` at the end. A fault ends the body.
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Fault>>>;
}

/// One endpoint of a provider.
pub trait Upstream: Send + Sync {
    /// Sends a call and waits for the head of the answer. Dropping the future cancels the exchange. The fault's phase
    /// says whether anything may have been sent.
    fn send(&self, call: Call) -> BoxFuture<'_, Result<Answer, Fault>>;
}

/// How a turn is to be written for an upstream with a protocol of its own.
#[derive(Clone, Copy, Debug)]
pub struct Writing<'a> {
    /// The upstream's name of the model.
    pub model: &'a str,
    /// A conversation goes on: the turn's messages are only what follows its last answer. System prompt, tools and what else
    /// the turn says are those that it was begun with.
    pub goes_on: bool,
    /// The answer is wanted as a stream. A driver may stream in any case.
    pub stream: bool,
}

/// What a driver has made of a turn, in its own form; sent as it is.
#[derive(Debug)]
pub struct NativeWritten {
    /// The message or the document.
    pub body: Bytes,
    /// The fields of the client's request that the upstream has no place for, by their names, hints alone: content that
    /// cannot be carried is an error.
    pub dropped: Vec<String>,
    /// How the client knows the tools that are sent under another name.
    pub names: ToolNames,
}

/// One turn for an upstream with a protocol of its own.
#[derive(Debug)]
pub struct Ask {
    /// What [`Native::write`] made.
    pub body: Bytes,
    /// The upstream's name of the model.
    pub model: Arc<str>,
    /// Whose connections, processes and conversations are used.
    pub account: AccountId,
    /// The account's credential; empty for a kind that has none of its own.
    pub secret: Secret,
    /// Whose turn it is, as its scope is written: for what callers must not share.
    pub caller: Arc<str>,
    /// The conversation that goes on; `None`: a new one.
    pub resume: Option<Conversation>,
    /// Its position is to be read before the send, as an earlier one may have moved it. One that has moved is
    /// `conversation_gone`.
    pub reread: bool,
    /// What is left of the turn's time: for protocols that tell their servers.
    pub time_left: Duration,
    /// `traceparent` and `tracestate`, where the client sent them.
    pub trace: HeaderMap,
}

/// A send that came to nothing, or may have come to something.
#[derive(Debug)]
pub struct SendFault {
    /// What went wrong.
    pub fault: Fault,
    /// The upstream has certainly not begun.
    pub refused: Option<RefusalProof>,
}

impl SendFault {
    /// Nothing is known of what the upstream has done.
    pub fn unsure(fault: Fault) -> Self {
        SendFault { fault, refused: None }
    }
}

/// What happens in an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Happening {
    /// A step of the answer, in the order that [`turnkeep_dialect::event`] tells.
    Event(Event),
    /// A sign that the upstream is at work, which the client is not shown: the clocks begin anew.
    Alive,
    /// What the turn has cost in the provider's own units (ACUs), in thousandths, so far.
    Units(u64),
}

/// An answer under way, as events. Dropping it before its end cancels the turn at the upstream.
pub trait NativeAnswer: Send {
    /// The next thing that happens; `None` when nothing more comes. An answer whose last event is not
    /// [`Event::End`] is truncated. A fault ends it.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Happening, Fault>>>;

    /// The conversation as it stands after [`Event::End`], if it can be gone on with.
    fn conversation(&self) -> Option<Conversation>;
}

/// An endpoint that speaks no client's dialect: a turn goes in, events come out.
pub trait Native: Send + Sync {
    /// Writes a turn. Content that cannot be carried is an error with its path, in the words of the client's dialect.
    fn write(&self, turn: &Turn<'_>, how: Writing<'_>) -> Result<NativeWritten, Invalid>;

    /// Sends a turn and waits until the upstream has taken it, or refused it. Dropping the future cancels it.
    fn send(&self, ask: Ask) -> BoxFuture<'_, Result<Box<dyn NativeAnswer>, SendFault>>;

    /// The conversation can be gone on with, as far as is known here: the process that keeps it is the one that runs.
    fn stands(&self, conversation: &Conversation) -> bool;

    /// Nobody goes on with this conversation of the account's: what is kept for it may go. Never waits.
    fn forget(&self, account: &AccountId, conversation: Conversation);
}

/// A ledger entry, written before an attempt is dispatched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptOpened {
    /// The attempt.
    pub attempt: AttemptId,
    /// The caller's key, by name.
    pub caller: Arc<str>,
    /// The key's labels, as a JSON object of strings.
    pub labels: Arc<str>,
    /// The account it goes to.
    pub account: AccountId,
    /// The model the client named.
    pub model: Arc<str>,
    /// The model the upstream is asked for.
    pub upstream_model: Arc<str>,
    /// The client's dialect.
    pub dialect: Dialect,
    /// Unix milliseconds.
    pub opened_ms: u64,
    /// Input tokens guessed from the request, for an entry that is never closed.
    pub estimated_input: u64,
    /// Output tokens that it is taken to have made, for an entry that is never closed.
    pub estimated_output: u64,
    /// What both would cost, for an entry that is never closed; `None` for a model without a price.
    pub estimated_cost: Option<NanoUsd>,
    /// The mutable conversation that it goes on with. It is taken from now on: with the entry it goes from the store, and
    /// is there again only if it is kept again.
    pub conversation: Option<ConversationKey>,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// The upstream's answer was complete.
    Completed,
    /// It was cut short on our side: the client left, or the gateway stopped.
    Interrupted,
    /// It failed with this fault.
    Failed(FaultKind),
}

impl AttemptOutcome {
    /// The word in the ledger.
    pub fn name(self) -> &'static str {
        match self {
            AttemptOutcome::Completed => "completed",
            AttemptOutcome::Interrupted => "interrupted",
            AttemptOutcome::Failed(kind) => kind.name(),
        }
    }
}

/// The end of a ledger entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptClosed {
    /// The attempt.
    pub attempt: AttemptId,
    /// How it ended.
    pub outcome: AttemptOutcome,
    /// The tokens it cost.
    pub usage: Usage,
    /// The provider reported them; otherwise they are an estimate.
    pub exact: bool,
    /// What they cost; `None` for a model without a price.
    pub cost: Option<NanoUsd>,
    /// What the attempt cost in the provider's own units (Devin's ACUs), in thousandths, as far as it was told; `None`
    /// where nothing was.
    pub milli_units: Option<u64>,
    /// Unix milliseconds.
    pub closed_ms: u64,
}

/// How an answer came about that no upstream was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// From the response cache.
    Hit,
    /// An answer that was held because it had not arrived.
    Held,
    /// The answer of another turn that ran already.
    Joined,
}

impl Again {
    /// The word in the ledger, and in `x-turnkeep-cache`.
    pub fn name(self) -> &'static str {
        match self {
            Again::Hit => "hit",
            Again::Held => "held",
            Again::Joined => "joined",
        }
    }
}

/// A ledger entry for a turn that no upstream was asked for. It cost nothing, and is closed from the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnsweredAgain {
    /// The turn.
    pub turn: TurnId,
    /// How.
    pub how: Again,
    /// The caller's key, by name.
    pub caller: Arc<str>,
    /// The key's labels, as a JSON object of strings.
    pub labels: Arc<str>,
    /// The model the client named.
    pub model: Arc<str>,
    /// The client's dialect.
    pub dialect: Dialect,
    /// Unix milliseconds.
    pub at_ms: u64,
}

/// The store could not do it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("store: {0}")]
pub struct StoreError(pub String);

/// The usage ledger: one entry per attempt.
pub trait Ledger: Send + Sync {
    /// Writes the entry so that it survives the death of this process, and in the same step takes the conversation that it
    /// names from the store. Waits for that, without a batching delay.
    fn open(&self, entry: AttemptOpened) -> BoxFuture<'_, Result<(), StoreError>>;
    /// Hands the end of an entry over, waiting only for a place in a bounded queue. Closing twice changes nothing.
    fn close(&self, entry: AttemptClosed) -> BoxFuture<'_, Result<(), StoreError>>;
    /// Hands an entry over for a turn that no upstream was asked for. Never waits: without room it is lost, and counted.
    fn again(&self, entry: AnsweredAgain);
}

/// Why an answer is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeptFor {
    /// The response cache.
    Cache,
    /// It was paid for and has not arrived.
    Held,
    /// Its request had an idempotency key.
    Idempotent,
}

impl KeptFor {
    /// The word in the store.
    pub fn name(self) -> &'static str {
        match self {
            KeptFor::Cache => "cache",
            KeptFor::Held => "held",
            KeptFor::Idempotent => "idempotent",
        }
    }

    /// The one with this word.
    pub fn from_name(word: &str) -> Option<Self> {
        [KeptFor::Cache, KeptFor::Held, KeptFor::Idempotent].into_iter().find(|kept| kept.name() == word)
    }
}

/// Which kept answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeptKey {
    /// Why it is kept.
    pub kept: KeptFor,
    /// Whose it is, as [`turnkeep_base::CallerScope`] is written.
    pub caller: Arc<str>,
    /// Of the request, or of the idempotency key.
    pub key: Fingerprint,
}

/// An answer that outlives its turn, as it is written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptAnswer {
    /// Which.
    pub key: KeptKey,
    /// Until when, Unix milliseconds.
    pub until_ms: u64,
    /// The answer and what is known of it, in the engine's own form. It holds content: it may reach a disk only sealed.
    pub content: Bytes,
}

/// Where kept answers survive a restart, if they may.
pub trait AnswerStore: Send + Sync {
    /// Writes one down, in place of one with the same key. Never waits; without room, or without a master key, it does
    /// nothing, and the answer lives as long as this process.
    fn keep(&self, answer: KeptAnswer);
    /// Forgets one. Never waits.
    fn forget(&self, key: KeptKey);
}

/// By what a conversation that its upstream keeps is found.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConversationKey {
    /// Whose it is, as [`turnkeep_base::CallerScope`] is written.
    pub caller: Arc<str>,
    /// Of the history that it goes on from.
    pub key: Fingerprint,
}

/// A conversation that its upstream keeps, as it is written down.
#[derive(Clone, PartialEq, Eq)]
pub struct KeptConversation {
    /// By what it is found.
    pub key: ConversationKey,
    /// Until when, Unix milliseconds.
    pub until_ms: u64,
    /// In the engine's own form. It holds the handle, which only its owner may know: it may reach a disk only sealed.
    pub content: Bytes,
}

/// Without the content.
impl std::fmt::Debug for KeptConversation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let KeptConversation { key, until_ms, content } = self;
        let mut out = f.debug_struct("KeptConversation");
        out.field("key", key).field("until_ms", until_ms).field("bytes", &content.len());
        out.finish()
    }
}

/// Where conversations survive a restart, if they may. What is kept here is in no turn: see
/// [`AttemptOpened::conversation`]. What is kept before an entry is opened is written before it, too.
pub trait ConversationStore: Send + Sync {
    /// Writes one down, in the place of one with the same key. Never waits; without room, or without a master key, it does
    /// nothing, and the conversation lives as long as this process.
    fn keep_conversation(&self, kept: KeptConversation);
    /// Forgets all of these, those of a sweep as one. Never waits.
    fn forget_conversations(&self, keys: Vec<ConversationKey>);
}

/// What a caller stores beyond single turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StoredKind {
    /// A response.
    Response,
    /// A conversation.
    Conversation,
    /// An item's place: the response that holds it.
    Item,
    /// An idempotency key's background response.
    Retry,
}

impl StoredKind {
    /// The word in the store.
    pub fn name(self) -> &'static str {
        match self {
            StoredKind::Response => "response",
            StoredKind::Conversation => "conversation",
            StoredKind::Item => "item",
            StoredKind::Retry => "retry",
        }
    }
}

/// Which stored thing. The owner is a part of it: another caller's is not found.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StoredKey {
    /// What it is.
    pub kind: StoredKind,
    /// Whose it is, as [`turnkeep_base::CallerScope`] is written.
    pub caller: Arc<str>,
    /// Of its id.
    pub key: Fingerprint,
}

/// A stored thing as it is written down.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredThing {
    /// Which.
    pub key: StoredKey,
    /// When it was made, Unix milliseconds.
    pub made_ms: u64,
    /// Until when, Unix milliseconds. Its use moves this on.
    pub until_ms: u64,
    /// It holds content: it may reach a disk only sealed.
    pub content: Bytes,
}

/// Without the content.
impl std::fmt::Debug for StoredThing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let StoredThing { key, made_ms, until_ms, content } = self;
        let mut out = f.debug_struct("StoredThing");
        out.field("key", key).field("made_ms", made_ms).field("until_ms", until_ms).field("bytes", &content.len());
        out.finish()
    }
}

/// Where callers' stored things are. Bounded over all callers, in number and in bytes: over a bound the caller with the
/// largest share loses what it has not used for longest. With a master key they survive a restart, without one they live
/// in memory.
pub trait ContentStore: Send + Sync {
    /// Writes things down, all or none, each in the place of one with the same key. Those whose time is over are not
    /// kept. Answers when they can be read.
    fn put_stored(&self, things: Vec<StoredThing>) -> BoxFuture<'_, Result<(), StoreError>>;
    /// Reads one whose time is not over.
    fn get_stored(&self, key: StoredKey) -> BoxFuture<'_, Result<Option<StoredThing>, StoreError>>;
    /// It was used: from now on it ends at `until_ms`. What is not there stays so.
    fn touch_stored(&self, key: StoredKey, until_ms: u64) -> BoxFuture<'_, Result<(), StoreError>>;
    /// Removes one, and tells whether it was there.
    fn remove_stored(&self, key: StoredKey) -> BoxFuture<'_, Result<bool, StoreError>>;
}

/// How a turn ended, for whoever stores its answer.
#[derive(Clone, Debug)]
pub enum Closed {
    /// The answer is complete. `None`: it was too long to be recorded.
    Completed {
        /// What the client is sent.
        recorded: Option<Arc<Recorded>>,
        /// It was made for another turn, whose closing has stored it or is about to.
        again: bool,
    },
    /// It failed.
    Failed(ClientError),
    /// It was cut short: the client left, or the gateway stopped.
    Interrupted,
}

/// Stores the answer of a turn.
pub trait KeepAnswer: Send + Sync {
    /// The turn is closed; called once. The end of the answer is written when this is done, or after a second.
    fn closed(self: Box<Self>, end: Closed) -> BoxFuture<'static, ()>;
}

/// Makes the receipt of a reply whose arrival a later turn of the same caller proves, by holding our answer.
pub trait Echo: Send + Sync {
    /// The reply of this turn has arrived.
    fn receipt(&self, turn: TurnId) -> Receipt;
}

/// What a turn has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// All tokens of all attempts.
    pub tokens: u64,
    /// Their cost; models without a price add nothing.
    pub nano_usd: NanoUsd,
}

/// What a turn has set aside of its caller's limits. Dropped, it gives everything back; settled, it keeps what was spent.
pub trait Reservation: Send + Sync {
    /// Puts what was spent in place of the estimate. Called once, when the turn closes.
    fn settle(self: Box<Self>, spent: Spent);
}

/// The proof of one fault and what it did, as it is written down for `explain`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultRecord {
    /// Unix milliseconds.
    pub at_ms: u64,
    /// The turn.
    pub turn: TurnId,
    /// The attempt; `None` for what befell the turn before any, or between two.
    pub attempt: Option<AttemptId>,
    /// The account that was asked.
    pub account: Option<AccountId>,
    /// The model that was asked for; the upstream's name where an account was asked.
    pub model: Arc<str>,
    /// The fault's name, or another word for what happened: `pool_exhausted`, `corroborated`.
    pub fault: String,
    /// Whose fault.
    pub origin: String,
    /// `unsent`, `maybe_sent` or `answered`.
    pub phase: String,
    /// The status of the upstream's reply.
    pub status: Option<u16>,
    /// The provider's code, at most 120 bytes.
    pub code: Option<String>,
    /// The provider's words or the error's, redacted, at most 512 bytes.
    pub detail: String,
    /// Where in the reply, in bytes from its start.
    pub offset: Option<u64>,
    /// The clock that fired and who had set it.
    pub clock: Option<String>,
    /// The longest wait that the reply declared, in milliseconds.
    pub wait_ms: Option<u64>,
    /// What the account suffered, in words; empty: nothing.
    pub effect: String,
    /// When the effect ends, Unix milliseconds.
    pub until_ms: Option<u64>,
}

/// Where the proofs of faults are kept.
pub trait FaultLog: Send + Sync {
    /// Hands a proof over. Never waits: where there is no room, the proof is lost and the loss is counted.
    fn note(&self, record: FaultRecord);
}

/// Whether a caller may still have attempts. Asked before each of them, so it answers at once.
pub trait Permit: Send + Sync {
    /// The caller's key is still there.
    fn holds(&self) -> bool;
}

/// What a URL in a request holds.
#[derive(Clone, PartialEq, Eq)]
pub struct Fetched {
    /// As `image/png`; the bytes begin as such a thing does.
    pub media_type: &'static str,
    /// The bytes in base 64.
    pub base64: Arc<str>,
    /// How many bytes they are.
    pub bytes: u64,
}

impl std::fmt::Debug for Fetched {
    /// Without the content.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fetched").field("media_type", &self.media_type).field("bytes", &self.bytes).finish()
    }
}

/// Why a URL's content could not be had. The text names the host at most, never a path or a query.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct FetchError {
    /// What was wrong, in words.
    pub why: String,
    /// The URL leads where no client's URL may: it was refused before anything was sent to the place.
    pub refused: bool,
}

/// Fetches what a client's URL names, for upstreams that take bytes only. It goes nowhere but to public hosts and to
/// places that the operator has allowed.
pub trait Fetch: Send + Sync {
    /// The content, for a caller by its key's name: one may not have all the places of fetches. Dropping the future ends
    /// the fetch.
    fn fetch<'a>(&'a self, caller: &'a str, url: &'a str) -> BoxFuture<'a, Result<Fetched, FetchError>>;
}

/// Wall time, for what is written down. Running timers are the runtime's own monotonic clock.
pub trait WallClock: Send + Sync {
    /// Unix milliseconds.
    fn unix_ms(&self) -> u64;
}

/// Randomness, for ids and jitter.
pub trait Random: Send + Sync {
    /// 128 random bits.
    fn bits(&self) -> u128;
}
