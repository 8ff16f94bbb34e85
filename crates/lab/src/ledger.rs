//! What the lab saw: requests, connections, and replies the peer gave up on.
//!
//! Counters live in a watch channel, so that a test can wait for a number without polling.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, Method, Version};
use serde_json::{Value, json};
use tokio::sync::watch;

/// How many requests are kept.
pub const MAX_RECORDED: usize = 10_000;
/// How many bytes of bodies are kept in all; the oldest go first.
pub const MAX_RECORDED_BODY_BYTES: usize = 256 * 1024 * 1024;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// Number of the request in this lab, from 0.
    pub sequence: u64,
    /// Number of the connection it came on, from 1.
    pub connection: u64,
    /// Its method.
    pub method: Method,
    /// Path and query.
    pub target: String,
    /// Its HTTP version.
    pub version: Version,
    /// Names (in lower case) and values, in the order of arrival (repeated names stand together).
    pub headers: Vec<(String, Bytes)>,
    /// The body; empty when it was dropped to keep within [`MAX_RECORDED_BODY_BYTES`].
    pub body: Bytes,
    /// The credential as sent: `x-api-key`, else the bearer token.
    pub account: Option<String>,
    /// The peer closed, reset or cancelled before the reply had ended.
    pub client_closed_after: bool,
    /// The status it was to be answered with.
    pub status: Option<u16>,
    /// Input and output tokens, those of a cache and of reasoning included, of a turn whose whole reply left.
    pub reported: Option<(u64, u64)>,
}

impl Recorded {
    /// The first value of a header, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(have, _)| have.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(value).ok()
    }
}

/// Running numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    pub requests: usize,
    pub in_flight: usize,
    pub aborted: usize,
    pub connections: usize,
}

#[derive(Debug, Default)]
struct Ring {
    kept: VecDeque<Recorded>,
    body_bytes: usize,
    next: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    ring: Mutex<Ring>,
    pub(crate) counts: watch::Sender<Counts>,
}

impl Ledger {
    pub(crate) fn recorded(&self) -> Vec<Recorded> {
        self.ring().kept.iter().cloned().collect()
    }

    /// The requests so far, oldest first, as a document for programs that run the lab as a process.
    pub(crate) fn transcript(&self) -> Value {
        let shown = |request: &Recorded| {
            let body = serde_json::from_slice(&request.body);
            let body = body.unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&request.body).into_owned()));
            json!({
                "method": request.method.as_str(), "target": request.target, "status": request.status,
                "account": request.account, "client_left": request.client_closed_after, "body": body,
            })
        };
        let is_turn = |request: &&Recorded| !request.target.starts_with("/lab/");
        Value::Array(self.ring().kept.iter().filter(is_turn).map(shown).collect())
    }

    pub(crate) async fn wait(&self, mut reached: impl FnMut(&Counts) -> bool) {
        // The sender lives in self, so the channel cannot close here.
        let _ = self.counts.subscribe().wait_for(|counts| reached(counts)).await;
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, mut request: Recorded) -> u64 {
        let sequence = {
            let mut ring = self.ring();
            let sequence = ring.next;
            ring.next += 1;
            request.sequence = sequence;
            ring.body_bytes += request.body.len();
            ring.kept.push_back(request);
            if ring.kept.len() > MAX_RECORDED
                && let Some(old) = ring.kept.pop_front()
            {
                ring.body_bytes -= old.body.len();
            }
            let Ring { kept, body_bytes, .. } = &mut *ring;
            for old in kept {
                if *body_bytes <= MAX_RECORDED_BODY_BYTES {
                    break;
                }
                *body_bytes -= old.body.len();
                old.body = Bytes::new();
            }
            sequence
        };
        self.counts.send_modify(|counts| counts.requests += 1);
        sequence
    }

    fn mark(&self, sequence: Option<u64>, change: impl FnOnce(&mut Recorded)) {
        let mut ring = self.ring();
        if let Some(found) = ring.kept.iter_mut().rev().find(|kept| Some(kept.sequence) == sequence) {
            change(found);
        }
    }
}

/// An open connection, for as long as it lives.
pub(crate) struct OpenConnection(Arc<Ledger>);

impl OpenConnection {
    pub(crate) fn new(ledger: Arc<Ledger>) -> Self {
        ledger.counts.send_modify(|counts| counts.connections += 1);
        Self(ledger)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.counts.send_modify(|counts| counts.connections -= 1);
    }
}

/// A request being answered. Dropped before it was [ended](Turn::end), the peer has left.
pub(crate) struct Turn {
    ledger: Arc<Ledger>,
    sequence: Option<u64>,
    ended: bool,
}

impl Turn {
    pub(crate) fn new(ledger: Arc<Ledger>) -> Self {
        ledger.counts.send_modify(|counts| counts.in_flight += 1);
        Self { ledger, sequence: None, ended: false }
    }

    pub(crate) fn record(&mut self, request: Recorded) -> u64 {
        let sequence = self.ledger.record(request);
        self.sequence = Some(sequence);
        sequence
    }

    /// What it is answered with.
    pub(crate) fn answered(&self, status: u16) {
        self.ledger.mark(self.sequence, |request| request.status = Some(status));
    }

    /// The whole reply has left, and said so many tokens in and out.
    pub(crate) fn reported(&self, input: u64, output: u64) {
        self.ledger.mark(self.sequence, |request| request.reported = Some((input, output)));
    }

    /// The reply's end was written, or the lab ends it by its own fault.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !self.ended {
            self.ledger.mark(self.sequence, |request| request.client_closed_after = true);
        }
        let aborted = usize::from(!self.ended);
        self.ledger.counts.send_modify(|counts| {
            counts.in_flight -= 1;
            counts.aborted += aborted;
        });
    }
}

/// Names and values in order of arrival.
pub(crate) fn header_list(headers: &HeaderMap) -> Vec<(String, Bytes)> {
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), Bytes::copy_from_slice(value.as_bytes()))).collect()
}
