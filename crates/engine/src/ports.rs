//! What the engine asks of the world. Each port is implemented in a room that the engine never sees.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Method, StatusCode};
use std::sync::Arc;
use std::task::{Context, Poll};
use turnkeep_base::{AccountId, AttemptId, Dialect, Fault, FaultKind, Secret, TurnId, Usage};

/// One exchange with an upstream, ready to be sent.
#[derive(Debug)]
pub struct Call {
    /// `POST` for turns; `GET` for a list of models.
    pub method: Method,
    /// Below the upstream's base URL, with a leading slash and, where there is one, the query.
    pub path: &'static str,
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

/// A ledger entry, written before an attempt is dispatched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptOpened {
    /// The attempt.
    pub attempt: AttemptId,
    /// The caller's key, by name.
    pub caller: Arc<str>,
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
    /// Unix milliseconds.
    pub closed_ms: u64,
}

/// The store could not do it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("store: {0}")]
pub struct StoreError(pub String);

/// The usage ledger: one entry per attempt.
pub trait Ledger: Send + Sync {
    /// Writes the entry so that it survives the death of this process. Waits for that, without a batching delay.
    fn open(&self, entry: AttemptOpened) -> BoxFuture<'_, Result<(), StoreError>>;
    /// Hands the end of an entry over, waiting only for a place in a bounded queue. Closing twice changes nothing.
    fn close(&self, entry: AttemptClosed) -> BoxFuture<'_, Result<(), StoreError>>;
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
