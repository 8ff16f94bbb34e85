//! The attempt closing: exactly once for every entry that was begun, on every path, a panic's unwinding too.

use crate::admission::SlotLease;
use crate::engine::Engine;
use crate::machine::AttemptEnd;
use crate::ports::{AttemptClosed, AttemptOpened, AttemptOutcome, Ledger, WallClock};
use std::sync::Arc;
use turnkeep_base::{AttemptId, Usage};
use turnkeep_dialect::reply::Facts;

/// Bytes of text that are taken for one token where nothing better is known.
const BYTES_PER_TOKEN: u64 = 4;

/// An attempt whose ledger entry was begun and not closed. Dropping it closes the entry as interrupted.
pub(crate) struct OpenAttempt {
    attempt: AttemptId,
    upstream: Arc<str>,
    estimated_input: u64,
    ledger: Arc<dyn Ledger>,
    clock: Arc<dyn WallClock>,
    closed: bool,
}

impl OpenAttempt {
    pub(crate) fn new(engine: &Engine, entry: &AttemptOpened) -> Self {
        OpenAttempt {
            attempt: entry.attempt,
            upstream: entry.account.upstream.clone(),
            estimated_input: entry.estimated_input,
            ledger: engine.ledger.clone(),
            clock: engine.clock.clone(),
            closed: false,
        }
    }

    /// Closes the attempt: the slot comes back, the account is judged, the entry gets its end.
    pub(crate) async fn close(mut self, engine: &Engine, lease: Option<SlotLease>, end: AttemptEnd, facts: &Facts) {
        self.closed = true;
        let tally = &engine.tally;
        let (outcome, usage, exact) = match &end {
            AttemptEnd::Completed => {
                if let Some(lease) = lease {
                    lease.succeed();
                }
                let (usage, exact) = self.usage(facts, true);
                (AttemptOutcome::Completed, usage, exact)
            }
            AttemptEnd::Failed(fault) => {
                tally.fault(fault, &self.upstream);
                if let Some(lease) = lease {
                    lease.judge(fault);
                }
                let (usage, exact) = if facts.content_bytes > 0 || facts.usage.is_some() {
                    self.usage(facts, false)
                } else {
                    (Usage::default(), true)
                };
                (AttemptOutcome::Failed(fault.kind), usage, exact)
            }
            AttemptEnd::Interrupted => {
                drop(lease);
                let (usage, exact) = self.usage(facts, false);
                (AttemptOutcome::Interrupted, usage, exact)
            }
            AttemptEnd::Unsent => {
                drop(lease);
                (AttemptOutcome::Interrupted, Usage::default(), true)
            }
        };
        // What was never sent was no attempt.
        let sent = end != AttemptEnd::Unsent;
        let fault = if outcome == AttemptOutcome::Completed { "none" } else { outcome.name() };
        if sent {
            tally.attempt(&self.upstream, fault);
        }
        tally.usage(&usage);
        let closed = AttemptClosed { attempt: self.attempt, outcome, usage, exact, closed_ms: self.clock.unix_ms() };
        if let Err(error) = self.ledger.close(closed).await {
            tracing::error!(attempt = %self.attempt, %error, "a ledger entry could not be closed; it will be at the next start");
        }
    }

    /// What the provider reported for a whole answer is exact; a part of an answer is estimated.
    fn usage(&self, facts: &Facts, whole: bool) -> (Usage, bool) {
        let guessed_output = facts.content_bytes.div_ceil(BYTES_PER_TOKEN);
        match facts.usage {
            Some(usage) if whole => (usage, true),
            Some(usage) => (Usage { output: usage.output.max(guessed_output), ..usage }, false),
            None => (Usage { input: self.estimated_input, output: guessed_output, ..Usage::default() }, false),
        }
    }
}

impl Drop for OpenAttempt {
    fn drop(&mut self) {
        if self.closed {
            return;
        }
        let usage = Usage { input: self.estimated_input, ..Usage::default() };
        let closed = AttemptClosed {
            attempt: self.attempt,
            outcome: AttemptOutcome::Interrupted,
            usage,
            exact: false,
            closed_ms: self.clock.unix_ms(),
        };
        let ledger = self.ledger.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { ledger.close(closed).await });
        }
    }
}
