//! The attempt closing: exactly once for every entry that was begun, on every path, a panic's unwinding too.

use crate::admission::SlotLease;
use crate::engine::Engine;
use crate::evidence;
use crate::machine::AttemptEnd;
use crate::ports::{AttemptClosed, AttemptOpened, AttemptOutcome, Ledger, WallClock};
use std::sync::Arc;
use turnkeep_base::verdict::counts;
use turnkeep_base::{AttemptId, Fault, Usage};
use turnkeep_dialect::reply::Facts;
use turnkeep_policy::accounts::{Bearing, ChargeRef, Judged};

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

    /// Closes the attempt: the slot comes back, the account is judged, the proof is kept, the entry gets its end. What the
    /// judgement charged comes back, for a corroboration to take it back. `late` is what the upstream had answered when
    /// the client left.
    pub(crate) async fn close(
        mut self,
        engine: &Engine,
        lease: Option<SlotLease>,
        end: AttemptEnd,
        late: Option<Fault>,
        facts: &Facts,
    ) -> Option<ChargeRef> {
        let mut charge = None;
        self.closed = true;
        let tally = &engine.tally;
        let (outcome, usage, exact) = match &end {
            AttemptEnd::Completed => {
                let (usage, exact) = self.usage(facts, true);
                if let Some(lease) = lease {
                    lease.succeed(Some(tokens(&usage)));
                }
                (AttemptOutcome::Completed, usage, exact)
            }
            AttemptEnd::Failed(fault) => {
                tally.fault(fault, &self.upstream);
                let (usage, exact) = if facts.content_bytes > 0 || facts.usage.is_some() || may_have_run(fault) {
                    self.usage(facts, false)
                } else {
                    (Usage::default(), true)
                };
                if let Some(lease) = lease {
                    charge = self.judge(engine, lease, fault, Bearing::Full, &usage).charge;
                }
                (AttemptOutcome::Failed(fault.kind), usage, exact)
            }
            AttemptEnd::Interrupted => {
                // What the upstream refused cost nothing; what it was at work on is estimated.
                let (usage, exact) = if late.is_some() { (Usage::default(), true) } else { self.usage(facts, false) };
                if let (Some(lease), Some(fault)) = (lease, late) {
                    self.judge(engine, lease, &fault, Bearing::DeclaredOnly, &usage);
                }
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
        let closed =
            AttemptClosed { attempt: self.attempt, outcome, usage, exact, cost: None, closed_ms: self.clock.unix_ms() };
        if let Err(error) = self.ledger.close(closed).await {
            tracing::error!(attempt = %self.attempt, %error, "a ledger entry could not be closed; it will be at the next start");
        }
        charge
    }

    /// Judges the account, gives its slot back and keeps the proof.
    fn judge(&self, engine: &Engine, lease: SlotLease, fault: &Fault, bearing: Bearing, usage: &Usage) -> Judged {
        let (account, model) = (lease.id().clone(), lease.route().model.clone());
        let judged = lease.judge(fault, bearing, Some(tokens(usage)));
        engine.faults.note(evidence::of_attempt(engine, self.attempt, account, model, fault, &judged));
        judged
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

/// What counts against an account's tokens per minute.
fn tokens(usage: &Usage) -> u64 {
    usage.input.saturating_add(usage.output)
}

/// The upstream may have worked on the request, and charge for it: it was not refused, by its kind or by an error's
/// status, and it was sent.
fn may_have_run(fault: &Fault) -> bool {
    counts(fault) && fault.evidence.status.is_none_or(|status| status < 300)
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
            cost: None,
            closed_ms: self.clock.unix_ms(),
        };
        let ledger = self.ledger.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { ledger.close(closed).await });
        }
    }
}
