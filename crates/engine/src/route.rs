//! Where a turn may go: an upstream with its clocks, and the model it is asked for.

use crate::ports::{Native, Upstream};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use turnkeep_base::limit::{HEARTBEAT_EVERY, STREAM_OPEN_AFTER};
use turnkeep_base::{Dialect, Price};
use turnkeep_policy::Tuning;
pub use turnkeep_policy::accounts::Tier;
pub use turnkeep_policy::conversations::Handling;

/// The times of one upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clocks {
    /// Until the first content of a stream.
    #[serde(with = "turnkeep_policy::span")]
    pub first_content: Duration,
    /// Between two events of a stream.
    #[serde(with = "turnkeep_policy::span")]
    pub between: Duration,
    /// The whole of a plain turn; a stream until its answer begins.
    #[serde(with = "turnkeep_policy::span")]
    pub total: Duration,
    /// A stream after its answer has begun.
    #[serde(with = "turnkeep_policy::span")]
    pub max_turn: Duration,
}

impl Default for Clocks {
    fn default() -> Self {
        Clocks {
            first_content: Duration::from_secs(120),
            between: Duration::from_secs(60),
            total: Duration::from_secs(600),
            max_turn: Duration::from_secs(60 * 60),
        }
    }
}

/// The numbers of a turn's retries, and of a stream that has nothing to say yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// Counted attempts.
    pub attempts: u8,
    /// Dispatches, refused ones included.
    pub dispatches: u8,
    /// The longest first backoff; it doubles with each.
    #[serde(with = "turnkeep_policy::span")]
    pub backoff: Duration,
    /// The longest backoff.
    #[serde(with = "turnkeep_policy::span")]
    pub longest_backoff: Duration,
    /// How long a cooldown is waited for when nobody else serves.
    #[serde(with = "turnkeep_policy::span")]
    pub max_cooling_wait: Duration,
    /// Headers and preamble are held back this long at most.
    #[serde(with = "turnkeep_policy::span")]
    pub open_after: Duration,
    /// Between signs of life of an open stream that has nothing to say.
    #[serde(with = "turnkeep_policy::span")]
    pub heartbeat: Duration,
    /// A turn whose ledger entry cannot be written goes on, and the loss is counted; otherwise it is refused.
    pub serve_unrecorded: bool,
}

impl Rules {
    /// The turn's share of the configured numbers.
    pub fn of(tuning: &Tuning, open_after: Duration, heartbeat: Duration) -> Self {
        Rules {
            attempts: tuning.attempts,
            dispatches: tuning.dispatches,
            backoff: tuning.backoff,
            longest_backoff: tuning.longest_backoff,
            max_cooling_wait: tuning.max_cooling_wait,
            open_after,
            heartbeat,
            serve_unrecorded: false,
        }
    }
}

impl Default for Rules {
    fn default() -> Self {
        Rules::of(&Tuning::default(), STREAM_OPEN_AFTER, HEARTBEAT_EVERY)
    }
}

/// What becomes of an upstream's work when the client leaves while it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnClientGone {
    /// It is cancelled.
    #[default]
    Cancel,
    /// It may finish within these bounds; the answer is held for the same request of the same caller.
    Finish {
        /// Tokens of output from the start of the answer, as counted or guessed.
        max_tokens: u64,
        /// From the moment the client left.
        max_time: Duration,
    },
}

/// What an upstream speaks, and its driver.
#[derive(Clone)]
pub enum Speech {
    /// A client's dialect over HTTP. Sending the same turn again does nothing twice.
    Dialect {
        /// Which.
        dialect: Dialect,
        /// It may keep its answers, so that a later turn goes on from one by its id (Responses).
        chains: bool,
        /// Its driver.
        port: Arc<dyn Upstream>,
    },
    /// A protocol of its own.
    Native {
        /// It keeps conversations, of this kind.
        conversations: Option<Handling>,
        /// Sending the same turn again, in a new conversation, does nothing twice.
        replay_safe: bool,
        /// Its driver.
        port: Arc<dyn Native>,
    },
}

/// Whether conversations that an upstream keeps are gone on with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reuse {
    /// Their owner is asked first and never waited for.
    #[default]
    Prefer,
    /// Their owner is waited for, for its slots and its own rate; never one that is missing or out.
    Strict,
    /// Each turn brings its whole history.
    Off,
}

/// One endpoint of a provider, ready to be asked.
pub struct UpstreamEntry {
    /// Its name in the configuration.
    pub name: Arc<str>,
    /// What it speaks, and its driver.
    pub speech: Speech,
    /// Whether its conversations are gone on with.
    pub reuse: Reuse,
    /// Its times.
    pub clocks: Clocks,
    /// What becomes of its work when a client leaves.
    pub on_client_gone: OnClientGone,
}

impl UpstreamEntry {
    /// The client's dialect that it speaks, if it speaks one.
    pub fn dialect(&self) -> Option<Dialect> {
        match self.speech {
            Speech::Dialect { dialect, .. } => Some(dialect),
            Speech::Native { .. } => None,
        }
    }

    /// The driver of a protocol of its own, if it has one.
    pub fn native(&self) -> Option<&Arc<dyn Native>> {
        match &self.speech {
            Speech::Dialect { .. } => None,
            Speech::Native { port, .. } => Some(port),
        }
    }

    /// The conversations that it keeps are gone on with, and of this kind.
    pub fn conversations(&self) -> Option<Handling> {
        let kept = match self.speech {
            Speech::Dialect { chains, .. } => chains.then_some(Handling::Immutable),
            Speech::Native { conversations, .. } => conversations,
        };
        kept.filter(|_| self.reuse != Reuse::Off)
    }

    /// Sending the same turn again does nothing twice.
    pub fn is_replay_safe(&self) -> bool {
        match self.speech {
            Speech::Dialect { .. } => true,
            Speech::Native { replay_safe, .. } => replay_safe,
        }
    }
}

impl fmt::Debug for UpstreamEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamEntry").field("name", &self.name).field("dialect", &self.dialect()).finish()
    }
}

/// One way to serve a model.
#[derive(Clone, Debug)]
pub struct Route {
    /// The upstream.
    pub upstream: Arc<UpstreamEntry>,
    /// The upstream's name for the model.
    pub model: Arc<str>,
    /// Whether it is the model's own, a fallback to another, or for requests that are too long for the model.
    pub tier: Tier,
    /// The configured name of the model that answers on it; `*` where names pass through.
    pub name: Arc<str>,
    /// What its tokens cost, if the configuration says so.
    pub price: Option<Price>,
}
