//! The delivery closing applied: exactly once for each turn, with the reply's receipt or without one, on every path. What
//! it does is `turnkeep_policy::settle`'s to say.

use super::{Drive, LEAST_TAKEN};
use crate::bonds::AwaitedEcho;
use crate::kept::At;
use crate::machine::{Ending, PACE, TurnEnd};
use crate::ports::Again;
use crate::tally::TurnLabels;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use turnkeep_base::limit::RECEIPT_WAIT;
use turnkeep_base::{AccountId, Fingerprint, Receipt};
use turnkeep_dialect::identity;
use turnkeep_dialect::recorded::{self, Recorded};
use turnkeep_policy::settle::{self, DeliveryFacts, Source};

/// Who answered, and for which of its models.
#[derive(Clone, Debug)]
pub(super) struct Answerer {
    pub(super) account: AccountId,
    pub(super) model: Arc<str>,
    /// The turn would have gone elsewhere but for the moment.
    pub(super) spilled: bool,
}

impl Drive {
    /// Waits for the reply's receipt and closes the delivery. A turn that did not complete has none to wait for.
    pub(crate) async fn deliver(&mut self) {
        let completed = matches!(self.end, Some(TurnEnd::Completed));
        let mut echo = None;
        let receipt = if completed { self.receipt(&mut echo).await } else { None };
        self.close_delivery(receipt);
        if let Some(echo) = &echo {
            self.engine.bonds.give_up(echo);
        }
        // Dropped only now: who waits for it finds the delivery closed.
        drop(echo);
    }

    async fn receipt(&mut self, echo: &mut Option<AwaitedEcho>) -> Option<Receipt> {
        if let Some(known) = self.known_receipt() {
            return known;
        }
        *echo = self.await_echo();
        if self.recorded.is_some() && self.kept_reply.is_none() {
            let bytes = self.bytes_print();
            self.leading.extend(self.engine.kept.arriving(&self.scope, bytes));
        }
        let mut stop = self.stop.clone();
        let writer = &mut self.writer;
        let proven = async {
            match echo {
                Some(echo) => match (&mut echo.proven).await {
                    Ok(receipt) => receipt,
                    Err(_) => std::future::pending().await,
                },
                None => std::future::pending().await,
            }
        };
        tokio::pin!(proven);
        // Until the connection has it whole the reader's pace is its bound; only then does the wait for proof begin.
        let mut pace = writer.pace();
        let mut taken = false;
        loop {
            let wait = if taken { RECEIPT_WAIT } else { PACE };
            let arrives = poll_fn(|cx| match writer.poll_receipt(cx) {
                Poll::Ready(receipt) => Poll::Ready(Some(receipt.ok())),
                Poll::Pending if taken => Poll::Pending,
                Poll::Pending => writer.poll_taken(cx).map(|()| None),
            });
            tokio::select! {
                biased;
                arrived = arrives => match arrived {
                    Some(receipt) => return receipt,
                    None => taken = true,
                },
                receipt = proven.as_mut() => return Some(receipt),
                _ = stop.wait_for(|stopped| *stopped) => return None,
                () = tokio::time::sleep(wait) => {
                    let before = std::mem::replace(&mut pace, writer.pace());
                    if taken {
                        return None;
                    }
                    if pace.is_under(before, LEAST_TAKEN) {
                        writer.abort();
                        return None;
                    }
                }
            }
        }
    }

    /// The receipt, if it is there or never will be.
    fn known_receipt(&mut self) -> Option<Option<Receipt>> {
        match self.writer.poll_receipt(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(known) => Some(known.ok()),
            Poll::Pending => None,
        }
    }

    /// A later turn that holds our answer proves that it arrived.
    fn await_echo(&mut self) -> Option<AwaitedEcho> {
        let history = self.answered_history()?;
        self.engine.bonds.await_echo(self.input.id, self.scope.clone(), history)
    }

    /// The history with our answer at its end.
    pub(super) fn answered_history(&mut self) -> Option<Fingerprint> {
        if let Some(known) = self.answered {
            return Some(known);
        }
        let recorded = self.recorded.clone()?;
        let key = self.engine.hash_key;
        let history = self.history()?;
        self.answered = identity::answered(&key, history, &recorded);
        self.answered
    }

    /// Closes the delivery; a second time changes nothing.
    pub(super) fn close_delivery(&mut self, receipt: Option<Receipt>) {
        if std::mem::replace(&mut self.delivery_closed, true) {
            return;
        }
        let recorded = self.recorded.take();
        let facts = DeliveryFacts {
            outcome: self.outcome(),
            receipt: receipt.is_some(),
            source: self.kept_reply.as_ref().map_or(Source::Upstream, |kept| match kept.how {
                Again::Hit => Source::Cache,
                Again::Held | Again::Joined => Source::Late,
            }),
            recorded: recorded.is_some(),
            cacheable: self.input.terms.cache.is_some()
                && recorded.as_ref().is_some_and(|recorded| recorded::may_be_cached(&recorded.facts)),
        };
        let effects = settle::delivery(&facts);
        self.tape.delivered(receipt.as_ref().map(Receipt::level), &facts, &effects);
        let delivery = match effects.delivered {
            Some(true) => {
                self.engine.tally.delivered.add();
                "delivered"
            }
            Some(false) => {
                self.engine.tally.undelivered.add();
                "undelivered"
            }
            None => "none",
        };
        if let Some(receipt) = &receipt {
            self.recorded = recorded.clone();
            self.with_receipt(receipt, &effects);
            self.recorded = None;
        } else if effects.delivered == Some(false) && facts.source == Source::Upstream {
            tracing::info!(turn = %self.input.id, held = effects.hold, "undelivered: no binding, history or cache entry is written");
        }
        if effects.hold
            && let Some(recorded) = &recorded
        {
            let request = self.request_print();
            self.engine.kept.hold(self.at(), &self.scope, request, recorded);
        }
        drop(recorded);
        self.recorder.give_up();
        // Those who wait for what becomes of it look again only now.
        self.leading.clear();
        self.note_end(delivery);
    }

    /// What only a receipt allows.
    fn with_receipt(&mut self, receipt: &Receipt, effects: &settle::DeliveryEffects) {
        let now = self.now();
        if let Some(answerer) = self.answerer.clone().filter(|_| self.keeps()) {
            // A turn that went elsewhere for once does not move the binding.
            if effects.bind
                && !answerer.spilled
                && let Some(asked) = self.history().map(|history| (history.prefix, history.opening))
            {
                let key = self.affinity_key(asked, &answerer.account.upstream, &answerer.model);
                self.engine.bonds.bind(receipt, now, key, answerer.account.clone());
            }
            if effects.commit
                && let Some(history) = self.answered_history()
            {
                let key = self.continuity_key(history);
                self.engine.bonds.commit(receipt, now, key, answerer.account);
            }
        }
        if let (true, Some(ttl), Some(recorded)) = (effects.cache, self.input.terms.cache, self.recorded.clone()) {
            let request = self.request_print();
            self.engine.kept.cache(receipt, self.at(), &self.scope, request, ttl, &recorded);
        }
        if effects.spend && self.keeps() && self.engine.kept.concerns(now, &self.scope) {
            let request = self.request_print();
            self.engine.kept.spend(receipt, &self.scope, request);
        }
    }

    pub(super) fn at(&self) -> At {
        At { now: self.now(), wall_ms: self.engine.clock.unix_ms() }
    }

    /// The turn's line in the counters and the log.
    fn note_end(&self, delivery: &'static str) {
        let (outcome, fault) = match &self.end {
            Some(TurnEnd::Completed) => ("completed", None),
            Some(TurnEnd::Interrupted) => ("interrupted", None),
            Some(TurnEnd::Failed(Ending::Fault(fault))) => ("failed", Some(fault.kind.name())),
            Some(TurnEnd::Failed(Ending::Unavailable(unavailable))) => {
                ("failed", Some(super::end::unavailable_word(*unavailable)))
            }
            Some(TurnEnd::Failed(Ending::Uncarriable)) => ("failed", Some("invalid_request")),
            Some(TurnEnd::Failed(Ending::Shutdown)) | None => ("failed", Some("shutting_down")),
        };
        let request = &self.input.request;
        self.engine.tally.turn_ended(TurnLabels {
            dialect: request.dialect,
            upstream: self.upstream.to_string(),
            model: self.input.model_label.to_string(),
            outcome,
            delivery,
        });
        tracing::info!(
            turn = %self.input.id,
            caller = %self.input.caller,
            dialect = request.dialect.name(),
            model = %request.model,
            upstream = %self.upstream,
            stream = request.stream,
            outcome,
            fault,
            delivery,
            cache = self.cache_word,
            attempts = self.machine.dispatches(),
            ms = self.input.received.elapsed().as_millis() as u64,
            "turn"
        );
    }
}

/// What the client of a complete answer was sent.
pub(super) fn recorded_of(drive: &mut Drive) -> Option<Arc<Recorded>> {
    let bytes = drive.recorder.finish()?;
    let facts = drive.answering.as_ref()?.facts().clone();
    let request = &drive.input.request;
    Some(Arc::new(Recorded { dialect: request.dialect, stream: request.stream, bytes, facts }))
}
