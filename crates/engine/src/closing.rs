//! The attempt closing applied: exactly once for every entry that was begun, on every path, a panic's unwinding too. What
//! it does is `turnkeep_policy::settle`'s to say.

use crate::admission::SlotLease;
use crate::engine::Engine;
use crate::evidence;
use crate::incident::tape::Tape;
use crate::machine::AttemptEnd;
use crate::ports::{AttemptClosed, AttemptOpened, AttemptOutcome, Ledger, Spent, WallClock};
use std::sync::Arc;
use turnkeep_base::{AttemptId, Fault, Price, seeded};
use turnkeep_dialect::reply::Facts;
use turnkeep_policy::accounts::{Bearing, ChargeRef, Judged};
use turnkeep_policy::settle::{self, AttemptEffects, AttemptFacts, OnAccount, Outcome};

/// An attempt whose ledger entry was begun and not closed. Dropping it closes the entry, as interrupted unless its end is
/// known already.
pub(crate) struct OpenAttempt {
    attempt: AttemptId,
    upstream: Arc<str>,
    estimated_input: u64,
    price: Option<Price>,
    ledger: Arc<dyn Ledger>,
    clock: Arc<dyn WallClock>,
    tape: Arc<Tape>,
    end: End,
}

/// How far an entry's end has come.
enum End {
    /// The entry may not be written yet: who gives up waiting for it takes it back.
    Unwritten,
    /// It is written, and has no end.
    Open,
    /// Its end is known and may not have been handed over.
    Known(AttemptClosed),
    /// Nothing is left to do.
    Done,
}

/// What an attempt's closing came to.
pub(crate) struct ClosedAttempt {
    /// What the judgement charged, for a corroboration to take it back.
    pub(crate) charge: Option<ChargeRef>,
    /// For the caller's limits.
    pub(crate) spent: Spent,
}

impl OpenAttempt {
    pub(crate) fn new(engine: &Engine, entry: &AttemptOpened, price: Option<Price>, tape: Arc<Tape>) -> Self {
        OpenAttempt {
            attempt: entry.attempt,
            upstream: entry.account.upstream.clone(),
            estimated_input: entry.estimated_input,
            price,
            ledger: engine.ledger.clone(),
            clock: engine.clock.clone(),
            tape,
            end: End::Unwritten,
        }
    }

    /// The entry is written.
    pub(crate) fn written(&mut self) {
        self.end = End::Open;
    }

    /// Nobody waits for the entry any more: the ledger takes it back, and nothing was sent.
    pub(crate) fn withdrawn(mut self) {
        self.end = End::Done;
    }

    fn settle(&self, end: settle::AttemptEnd<'_>, facts: &Facts) -> AttemptEffects {
        let facts = AttemptFacts {
            end,
            reported: facts.usage,
            content_bytes: facts.content_bytes,
            estimated_input: self.estimated_input,
            price: self.price,
        };
        let effects = settle::attempt(&facts);
        self.tape.attempt(&facts, &effects);
        effects
    }

    /// Closes the attempt: the slot comes back, the account is judged, the proof is kept, the entry gets its end. `late`
    /// is what the upstream had answered when the client left; `units` what it said of the cost in its own units.
    pub(crate) async fn close(
        mut self,
        engine: &Engine,
        lease: Option<SlotLease>,
        end: AttemptEnd,
        late: Option<Fault>,
        facts: &Facts,
        units: Option<u64>,
    ) -> ClosedAttempt {
        let fault = match &end {
            AttemptEnd::Failed(fault) => Some(fault),
            AttemptEnd::Interrupted => late.as_ref(),
            AttemptEnd::Completed | AttemptEnd::Unsent => None,
        };
        let effects = self.settle(
            match &end {
                AttemptEnd::Completed => settle::AttemptEnd::Completed,
                AttemptEnd::Failed(fault) => settle::AttemptEnd::Failed(fault),
                AttemptEnd::Interrupted => settle::AttemptEnd::Interrupted { late: late.as_ref() },
                AttemptEnd::Unsent => settle::AttemptEnd::Unsent,
            },
            facts,
        );
        let tally = &engine.tally;
        if let AttemptEnd::Failed(fault) = &end {
            tally.fault(fault, &self.upstream);
        }
        let mut charge = None;
        match (lease, effects.account, fault) {
            (Some(lease), OnAccount::Succeed { tokens }, _) => lease.succeed(Some(tokens)),
            (Some(lease), OnAccount::Judge { bearing, tokens }, Some(fault)) => {
                charge = self.judge(engine, lease, fault, bearing, tokens).charge;
            }
            // Dropped, a lease gives its slot back and nothing else happens.
            (Some(lease), OnAccount::Release, _) if seeded::is("a-slot-leaked-by-a-client-that-left") => {
                std::mem::forget(lease);
            }
            (Some(_), OnAccount::Judge { .. }, None) | (Some(_), OnAccount::Release, _) | (None, _, _) => {}
        }
        if effects.sent {
            let outcome = outcome(effects.outcome);
            let fault = if outcome == AttemptOutcome::Completed { "none" } else { outcome.name() };
            tally.attempt(&self.upstream, fault);
        }
        tally.usage(&effects.usage);
        tally.cost_nano_usd.add_many(effects.cost.unwrap_or(0));
        let entry = self.entry(&effects, units);
        self.end = End::Known(entry.clone());
        if seeded::is("an-attempt-closed-twice") {
            let _ = self.ledger.close(entry.clone()).await;
        }
        let closed = match effects.outcome {
            Outcome::Failed(_) if seeded::is("an-attempt-never-closed") => Ok(()),
            Outcome::Failed(_) | Outcome::Completed | Outcome::Interrupted => self.ledger.close(entry).await,
        };
        self.end = End::Done;
        if let Err(error) = closed {
            tracing::error!(attempt = %self.attempt, %error, "a ledger entry could not be closed; it will be at the next start");
        }
        ClosedAttempt { charge, spent: spent(&effects) }
    }

    /// Judges the account, gives its slot back and keeps the proof.
    fn judge(&self, engine: &Engine, lease: SlotLease, fault: &Fault, bearing: Bearing, tokens: u64) -> Judged {
        let (account, model) = (lease.id().clone(), lease.route().model.clone());
        let key = lease.account();
        let mut judged = lease.judge(fault, bearing, Some(tokens));
        self.tape.judged(key, fault, &mut judged);
        engine.faults.note(evidence::of_attempt(engine, self.attempt, account, model, fault, &judged));
        judged
    }

    fn entry(&self, effects: &AttemptEffects, milli_units: Option<u64>) -> AttemptClosed {
        AttemptClosed {
            attempt: self.attempt,
            outcome: outcome(effects.outcome),
            usage: effects.usage,
            exact: effects.exact,
            cost: effects.cost,
            milli_units,
            closed_ms: self.clock.unix_ms(),
        }
    }
}

fn outcome(outcome: Outcome) -> AttemptOutcome {
    match outcome {
        Outcome::Completed => AttemptOutcome::Completed,
        Outcome::Interrupted => AttemptOutcome::Interrupted,
        Outcome::Failed(kind) => AttemptOutcome::Failed(kind),
    }
}

fn spent(effects: &AttemptEffects) -> Spent {
    Spent { tokens: effects.usage.total(), nano_usd: effects.cost.unwrap_or(0) }
}

impl Drop for OpenAttempt {
    fn drop(&mut self) {
        let closed = match std::mem::replace(&mut self.end, End::Done) {
            End::Done | End::Unwritten => return,
            End::Known(closed) => closed,
            End::Open => {
                let nothing_read = Facts::default();
                self.entry(&self.settle(settle::AttemptEnd::Interrupted { late: None }, &nothing_read), None)
            }
        };
        let ledger = self.ledger.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { ledger.close(closed).await });
        }
    }
}
