//! How the drive loop ends things: the attempt, the turn, the delivery, and all of them after a panic.

use super::{Charged, Drive, Waiting};
use crate::ending::client_error;
use crate::evidence;
use crate::machine::corroborate::Likeness;
use crate::machine::{AttemptEnd, Downstream, Ending, Event, TurnEnd};
use crate::tally::TurnLabels;
use std::future::poll_fn;
use turnkeep_base::limit::RECEIPT_WAIT;
use turnkeep_base::{Evidence, Fault, FaultKind, Phase};
use turnkeep_policy::accounts::Unavailable;

impl Drive {
    pub(super) async fn close_attempt(&mut self, end: AttemptEnd) {
        if let AttemptEnd::Failed(fault) = &end {
            self.counted.push(fault.kind);
        }
        if let Some(at) = self.dispatched_at.take() {
            self.upstream_time += at.elapsed();
        }
        if end == AttemptEnd::Completed
            && let Some(answering) = &mut self.answering
        {
            answering.hear_end();
        }
        let facts = self.answering.as_ref().map(|answering| answering.facts().clone()).unwrap_or_default();
        if let Some(lease) = &self.lease {
            self.answered_by = Some(lease.route().model.to_string());
        }
        let said = match &end {
            AttemptEnd::Failed(fault) => Likeness::of(fault),
            AttemptEnd::Completed | AttemptEnd::Interrupted | AttemptEnd::Unsent => None,
        };
        if let Some(attempt) = self.attempt.take() {
            let who = self.lease.as_ref().map(|lease| (lease.account(), lease.id().clone()));
            let charge = attempt.close(&self.engine, self.lease.take(), end, self.declared_late.take(), &facts).await;
            if let (Some(said), Some((account, id)), Some(charge)) = (said, who, charge) {
                self.charges.push(Charged { said, account, id, charge });
            }
        } else {
            self.lease = None;
        }
    }

    /// A second account has said the same: what this turn charged for it is taken back.
    pub(super) fn take_back(&mut self, said: &Likeness) {
        self.engine.tally.corroborated.add();
        for charged in std::mem::take(&mut self.charges) {
            if charged.said != *said {
                self.charges.push(charged);
                continue;
            }
            let taken_back = self.engine.admission.take_back(charged.account, charged.charge);
            let model = self.input.request.model.as_str().into();
            let note = evidence::corroborated(&self.engine, self.input.id, charged.id, model, said, taken_back);
            self.engine.faults.note(note);
        }
    }

    /// The client has left. What the upstream has already answered is still heard: a limit that it declares holds for
    /// the account whoever is listening; a judgement is not made.
    pub(super) fn hear_out(&mut self) {
        let Waiting::Head(head) = &mut self.waiting else { return };
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        let late = match head.as_mut().poll(&mut cx) {
            std::task::Poll::Ready(Ok(answer)) => {
                self.waiting = Waiting::Nothing;
                if answer.status.is_success() {
                    return;
                }
                let Event::Answering = self.head(answer) else { return };
                self.answering.as_mut().and_then(|answering| answering.whole_error(&mut cx))
            }
            std::task::Poll::Ready(Err(_)) => {
                self.waiting = Waiting::Nothing;
                None
            }
            // The head alone says what it declares.
            std::task::Poll::Pending => self.error_head.lock().take().map(|(status, headers)| {
                let upstream = self.reply_options().upstream;
                crate::answer::of_head(upstream, status, &headers, self.engine.clock.unix_ms())
            }),
        };
        self.declared_late = late.map(|mut fault| {
            self.scrub(&mut fault, None);
            fault
        });
    }

    pub(super) fn close_turn(&mut self, end: TurnEnd) {
        let tally = &self.engine.tally;
        let model: std::sync::Arc<str> = self.input.request.model.as_str().into();
        if let TurnEnd::Failed(Ending::Fault(fault)) = &end
            && !self.counted.contains(&fault.kind)
        {
            tally.fault_kind(fault.kind);
            self.engine.faults.note(evidence::of_turn(&self.engine, self.input.id, model.clone(), fault));
        }
        if let TurnEnd::Failed(Ending::Unavailable(unavailable)) = &end {
            let word = unavailable_word(*unavailable);
            let detail =
                client_error(&Ending::Unavailable(*unavailable), self.input.request.dialect, self.now(), None).message;
            self.engine.faults.note(evidence::of_event(&self.engine, self.input.id, model.clone(), word, detail, ""));
        }
        let (replays, hops) = self.machine.replays_and_hops();
        tally.transient_replays.add_many(u64::from(replays));
        tally.failover_hops.add_many(u64::from(hops));
        tally.quota_failover_hops.add_many(u64::from(self.machine.quota_hops()));
        match &end {
            TurnEnd::Failed(Ending::Unavailable(Unavailable::EgressClosed { .. })) => {
                tally.fault_kind(FaultKind::EgressThrottled);
            }
            TurnEnd::Failed(Ending::Unavailable(_)) => tally.pool_exhausted.add(),
            TurnEnd::Failed(Ending::Fault(_)) if self.machine.dispatches() > 1 => tally.failover_exhausted.add(),
            TurnEnd::Failed(_) | TurnEnd::Completed => {}
            TurnEnd::Interrupted => {
                // Gone, or too slow; the gateway's own stop is neither.
                if self.writer.is_gone() || !*self.stop.borrow() {
                    tally.fault_kind(FaultKind::ClientGone);
                    let why = Evidence::text("the client closed, reset or stopped reading");
                    let fault = Fault::new(FaultKind::ClientGone, Phase::Unsent, why);
                    self.engine.faults.note(evidence::of_turn(&self.engine, self.input.id, model, &fault));
                    match self.machine.downstream() {
                        Downstream::Touched => tally.client_gone_mid_answer.add(),
                        Downstream::Untouched | Downstream::Opened => tally.client_gone_before_answer.add(),
                    }
                }
            }
        }
        tally.turn.observe(self.input.received.elapsed());
        self.end = Some(end);
    }

    /// After a panic in the loop: the attempt and the turn are closed, and the client is told.
    pub(crate) async fn after_panic(&mut self) {
        self.waiting = Waiting::Nothing;
        if let Some(answering) = &mut self.answering {
            answering.cancel();
        }
        let fault = Fault::new(FaultKind::GatewayBug, Phase::MaybeSent, Evidence::text("a panic in the turn's loop"));
        tracing::error!(turn = %self.input.id, "a turn's loop panicked");
        self.close_attempt(AttemptEnd::Failed(fault.clone())).await;
        if self.end.is_none() {
            self.close_turn(TurnEnd::Failed(Ending::Fault(fault.clone())));
            self.write_error(&Ending::Fault(fault));
        }
        self.writer.end();
    }

    /// The delivery closing. First version: the connection layer's having taken every byte stands for the receipt.
    pub(crate) async fn deliver(&mut self) {
        let completed = matches!(self.end, Some(TurnEnd::Completed));
        let taken = {
            let writer = &mut self.writer;
            let receipt = poll_fn(|cx| writer.poll_receipt(cx));
            matches!(tokio::time::timeout(RECEIPT_WAIT, receipt).await, Ok(Ok(_)))
        };
        let delivery = match (completed, taken) {
            (true, true) => {
                self.engine.tally.delivered.add();
                "delivered"
            }
            (true, false) => {
                self.engine.tally.undelivered.add();
                "undelivered"
            }
            (false, _) => "none",
        };
        let (outcome, fault) = match &self.end {
            Some(TurnEnd::Completed) => ("completed", None),
            Some(TurnEnd::Interrupted) => ("interrupted", None),
            Some(TurnEnd::Failed(Ending::Fault(fault))) => ("failed", Some(fault.kind.name())),
            Some(TurnEnd::Failed(Ending::Unavailable(unavailable))) => ("failed", Some(unavailable_word(*unavailable))),
            Some(TurnEnd::Failed(Ending::Uncarriable)) => ("failed", Some("invalid_request")),
            Some(TurnEnd::Failed(Ending::Shutdown)) | None => ("failed", Some("shutting_down")),
        };
        self.engine.tally.turn_ended(TurnLabels {
            dialect: self.input.request.dialect,
            upstream: self.upstream.to_string(),
            model: self.input.model_label.to_string(),
            outcome,
            delivery,
        });
        tracing::info!(
            turn = %self.input.id,
            caller = %self.input.caller,
            dialect = self.input.request.dialect.name(),
            model = %self.input.request.model,
            upstream = %self.upstream,
            stream = self.input.request.stream,
            outcome,
            fault,
            delivery,
            attempts = self.machine.dispatches(),
            ms = self.input.received.elapsed().as_millis() as u64,
            "turn"
        );
    }
}

/// The word for an admission's refusal in logs and proofs.
fn unavailable_word(unavailable: Unavailable) -> &'static str {
    match unavailable {
        Unavailable::EgressClosed { .. } => FaultKind::EgressThrottled.name(),
        Unavailable::AllCooling { .. }
        | Unavailable::AllBusy { .. }
        | Unavailable::AllErrored { .. }
        | Unavailable::RetriesSpent
        | Unavailable::NoneEntitled
        | Unavailable::NoAccounts
        | Unavailable::QueueFull
        | Unavailable::DeadlinePassed => "pool_exhausted",
    }
}
