//! Bounds that hold everywhere. Each says its unit; the configuration may lower some of them.

use std::time::Duration;

/// Dispatches of one turn, replays and refused attempts included.
pub const MAX_DISPATCHES: u8 = 10;
/// Counted attempts of one turn.
pub const MAX_ATTEMPTS: u8 = 3;
/// Bytes of one request body, by default.
pub const MAX_BODY: usize = 32 << 20;
/// Bytes of one event of a stream, or of one whole JSON answer.
pub const MAX_EVENT: usize = 16 << 20;
/// Bytes of an upstream's error reply that are read.
pub const MAX_ERROR_BODY: usize = 64 << 10;
/// Bytes of evidence kept of an upstream's reply.
pub const EVIDENCE_BYTES: usize = 512;
/// Nesting of a JSON body.
pub const MAX_DEPTH: usize = 128;
/// Events that may wait for one slow client.
pub const PIPE_EVENTS: usize = 64;
/// Bytes that may wait for one slow client, one event of up to [`MAX_EVENT`] always allowed.
pub const PIPE_BYTES: usize = 256 << 10;
/// Turns that may wait for one upstream's slots.
pub const QUEUE_PLACES: usize = 256;
/// How long a request body may take to arrive.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a turn waits for a free slot.
pub const MAX_QUEUE_WAIT: Duration = Duration::from_secs(30);
/// How long a turn waits for a cooldown's end when every candidate cools.
pub const MAX_COOLING_WAIT: Duration = Duration::from_secs(2);
/// Headers and preamble are held back this long at most.
pub const STREAM_OPEN_AFTER: Duration = Duration::from_secs(10);
/// Between heartbeats of an open stream that has nothing to say.
pub const HEARTBEAT_EVERY: Duration = Duration::from_secs(15);
/// How long the ledger may take to write an entry before the turn is refused.
pub const LEDGER_WAIT: Duration = Duration::from_secs(1);
/// How long a chat stream is read on after its last finish reason, for usage and `[DONE]`.
pub const AFTER_FINISH_WAIT: Duration = Duration::from_secs(2);
/// Used-up windows that are kept of one reply.
pub const WINDOWS: usize = 8;
/// A quota's cooldown where the reply states no reset.
pub const QUOTA_COOLDOWN: Duration = Duration::from_secs(30 * 60);
/// A rate limit's cooldown where the reply states no window.
pub const RATE_COOLDOWN: Duration = Duration::from_secs(15);
/// How long it is remembered that a key may not use a model.
pub const MODEL_BLOCKED: Duration = Duration::from_secs(60 * 60);
/// The first overload's cooldown where the reply states no wait; it doubles with each in a row.
pub const OVERLOAD_COOLDOWN: Duration = Duration::from_secs(2);
/// The longest cooldown of an overload without a stated wait.
pub const LONGEST_OVERLOAD: Duration = Duration::from_secs(60);
/// Shells of 401 or 403 in a row, without a success, that count as one rejected credential.
pub const SHELLS_IN_A_ROW: u8 = 5;
/// How long the proof of a reply's arrival is waited for; after that it counts as undelivered.
pub const RECEIPT_WAIT: Duration = Duration::from_secs(60);
/// How long an answer that did not arrive is held for the same request of the same caller.
pub const HELD_FOR: Duration = Duration::from_secs(10 * 60);
/// Answers that are held at once, over all callers.
pub const HELD_ANSWERS: usize = 1_000;
/// Bytes of answers that are held at once, over all callers; the response cache has as many, and so have the answers
/// that are kept under idempotency keys.
pub const HELD_BYTES: usize = 64 << 20;
/// How long an idempotency key is remembered.
pub const IDEMPOTENT_FOR: Duration = Duration::from_secs(24 * 3600);
/// Bytes of one answer that are recorded for another use of it; a longer one is delivered and not kept.
pub const MAX_RECORDED: usize = 4 << 20;
/// Bytes of the answers under way that are recorded at once.
pub const ALL_RECORDED: usize = 256 << 20;
