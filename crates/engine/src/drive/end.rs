//! How the drive loop ends things: the attempt, the turn, and both after a panic.

use super::delivery::{Answerer, recorded_of};
use super::{Begun, Charged, Drive, Waiting};
use crate::closing::ClosedAttempt;
use crate::ending::client_error;
use crate::evidence;
use crate::machine::corroborate::Likeness;
use crate::machine::{AttemptEnd, Ending, Event, TurnEnd};
use crate::ports::{Closed, SendFault};
use std::task::{Context, Poll};
use turnkeep_base::{Evidence, Fault, FaultKind, Phase};
use turnkeep_policy::accounts::Unavailable;
use turnkeep_policy::settle::{self, LeftAt, TurnFacts, TurnOutcome};

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
        self.end_attempt_in_conversation(&end);
        let facts = self.answering.as_ref().map(|answering| answering.facts().clone()).unwrap_or_default();
        let units = self.answering.as_ref().and_then(|answering| answering.units());
        if let Some(lease) = &self.lease {
            self.answered_by = Some(lease.route().model.to_string());
            self.answerer = Some(Answerer {
                account: lease.id().clone(),
                model: lease.route().model.clone(),
                spilled: lease.is_spilled(),
            });
        }
        let said = match &end {
            AttemptEnd::Failed(fault) => Likeness::of(fault),
            AttemptEnd::Completed | AttemptEnd::Interrupted | AttemptEnd::Unsent => None,
        };
        // An entry that is still being written is taken back: nothing was sent, so there was no attempt.
        let unwritten = end == AttemptEnd::Unsent && matches!(self.waiting, Waiting::Entry(_));
        if unwritten {
            self.waiting = Waiting::Nothing;
            self.lease = None;
            if let Some(attempt) = self.attempt.take() {
                attempt.withdrawn();
            }
        } else if let Some(attempt) = self.attempt.take() {
            let who = self.lease.as_ref().map(|lease| (lease.account(), lease.id().clone()));
            let late = self.declared_late.take();
            let ClosedAttempt { charge, spent } =
                attempt.close(&self.engine, self.lease.take(), end, late, &facts, units).await;
            self.spent.tokens = self.spent.tokens.saturating_add(spent.tokens);
            self.spent.nano_usd = self.spent.nano_usd.saturating_add(spent.nano_usd);
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
    /// the account whoever is listening, and a conversation that it says is spoilt is; a judgement is not made.
    pub(super) fn hear_out(&mut self) {
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        let late = match &mut self.waiting {
            Waiting::Head(head) => match head.as_mut().poll(&mut cx) {
                Poll::Ready(Ok(begun)) => {
                    self.waiting = Waiting::Nothing;
                    self.heard_begun(begun, &mut cx)
                }
                Poll::Ready(Err(SendFault { fault, refused })) => {
                    self.waiting = Waiting::Nothing;
                    match refused {
                        Some(proof) => {
                            self.conversation.refused(proof, &fault);
                            Some(fault)
                        }
                        None => {
                            self.conversation.heard(&fault);
                            None
                        }
                    }
                }
                // The head alone says what it declares.
                Poll::Pending => self.error_head.lock().take().map(|(status, headers)| {
                    let upstream = self.reply_options().upstream;
                    crate::answer::of_head(upstream, status, &headers, self.engine.clock.unix_ms())
                }),
            },
            // Only an error: an answer that is under way is not read on for nobody.
            Waiting::Body => self.answering.as_mut().and_then(|answering| answering.whole_error(&mut cx)),
            Waiting::Nothing
            | Waiting::Echo(_)
            | Waiting::Lead(_)
            | Waiting::Slot(_)
            | Waiting::Entry(_)
            | Waiting::Room => return,
        };
        self.declared_late = late.map(|mut fault| {
            self.conversation.heard(&fault);
            self.scrub(&mut fault, None);
            fault
        });
    }

    /// What an answer says that began as its client left, if it is a refusal that has been read whole already.
    fn heard_begun(&mut self, begun: Begun, cx: &mut Context<'_>) -> Option<Fault> {
        let refusal = match &begun {
            Begun::Http(answer) => !answer.status.is_success(),
            Begun::Native(_) => false,
        };
        if !refusal {
            return None;
        }
        let Event::Answering = self.begun(begun) else { return None };
        self.answering.as_mut().and_then(|answering| answering.whole_error(cx))
    }

    /// How the turn ended, for the closings.
    pub(super) fn outcome(&self) -> TurnOutcome {
        match &self.end {
            Some(TurnEnd::Completed) => TurnOutcome::Completed,
            // Gone, or too slow; the gateway's own stop is neither.
            Some(TurnEnd::Interrupted) if self.writer.is_gone() || !*self.stop.borrow() => TurnOutcome::Left,
            Some(TurnEnd::Interrupted) | None => TurnOutcome::Stopped,
            Some(TurnEnd::Failed(_)) => TurnOutcome::Failed,
        }
    }

    /// The turn closing applied; a second time changes nothing. It comes before the end of the answer is written.
    pub(super) fn close_turn(&mut self, end: TurnEnd) {
        if self.end.is_some() {
            return;
        }
        if end == TurnEnd::Completed {
            self.recorded = match &self.kept_reply {
                Some(kept) => Some(kept.recorded.clone()),
                None => {
                    self.take_last();
                    recorded_of(self)
                }
            };
        }
        if self.recorded.is_none() || self.kept_reply.is_some() {
            self.recorder.give_up();
        }
        self.end = Some(end.clone());
        self.count_end(&end);
        let facts = TurnFacts {
            outcome: self.outcome(),
            committed: self.machine.committed(),
            recorded: self.recorded.is_some(),
            idempotent: self.input.terms.idempotency.is_some()
                && !self.kept_reply.as_ref().is_some_and(|kept| kept.remembered),
        };
        let effects = settle::turn(&facts);
        self.tape.closed(&facts, &effects);
        let tally = &self.engine.tally;
        if let Some(left) = effects.left {
            tally.fault_kind(FaultKind::ClientGone);
            let why = Evidence::text("the client closed, reset or stopped reading");
            let fault = Fault::new(FaultKind::ClientGone, Phase::Unsent, why);
            let model = self.input.request.model.as_str().into();
            self.engine.faults.note(evidence::of_turn(&self.engine, self.input.id, model, &fault));
            match left {
                LeftAt::MidAnswer => tally.client_gone_mid_answer.add(),
                LeftAt::BeforeAnswer => tally.client_gone_before_answer.add(),
            }
        }
        self.close_conversation(end == TurnEnd::Completed);
        if let Some(reservation) = self.reservation.take() {
            reservation.settle(self.spent);
        }
        if let Some(recorded) = self.recorded.clone() {
            if effects.remember
                && let Some(key) = self.input.terms.idempotency.as_deref().map(|key| self.idempotency_print(key))
            {
                let request = self.named_print();
                self.engine.kept.remember(self.at(), &self.scope, key, request, &recorded);
            }
            if effects.publish {
                self.leading.iter().for_each(|leading| leading.publish(&recorded));
            }
        }
        self.store_answer(&end);
        // Who waits has it, or looks again; who comes from now on does not join.
        self.leading.clear();
        self.engine.tally.turn.observe(self.input.received.elapsed());
    }

    /// Hands the answer, or what became of it, to whoever stores it.
    fn store_answer(&mut self, end: &TurnEnd) {
        let Some(keep) = self.keep.take() else { return };
        let closed = match end {
            TurnEnd::Completed => {
                Closed::Completed { recorded: self.recorded.clone(), again: self.kept_reply.is_some() }
            }
            TurnEnd::Interrupted => Closed::Interrupted,
            TurnEnd::Failed(ending) => {
                let own = match ending {
                    Ending::Uncarriable => self.uncarriable.clone(),
                    Ending::Fault(_) | Ending::Unavailable(_) | Ending::Shutdown => None,
                };
                let dialect = self.input.request.dialect;
                Closed::Failed(own.unwrap_or_else(|| client_error(ending, dialect, self.now(), None)))
            }
        };
        // A task of its own: a turn whose task is dropped stores what became of it too.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            self.storing = Some(runtime.spawn(keep.closed(closed)));
        }
    }

    fn count_end(&self, end: &TurnEnd) {
        let tally = &self.engine.tally;
        let model: std::sync::Arc<str> = self.input.request.model.as_str().into();
        if let TurnEnd::Failed(Ending::Fault(fault)) = end
            && !self.counted.contains(&fault.kind)
        {
            tally.fault_kind(fault.kind);
            self.engine.faults.note(evidence::of_turn(&self.engine, self.input.id, model.clone(), fault));
        }
        if let TurnEnd::Failed(Ending::Unavailable(unavailable)) = end {
            let word = unavailable_word(*unavailable);
            let detail =
                client_error(&Ending::Unavailable(*unavailable), self.input.request.dialect, self.now(), None).message;
            self.engine.faults.note(evidence::of_event(&self.engine, self.input.id, model.clone(), word, detail, ""));
        }
        let (replays, hops) = self.machine.replays_and_hops();
        tally.transient_replays.add_many(u64::from(replays));
        tally.failover_hops.add_many(u64::from(hops));
        tally.quota_failover_hops.add_many(u64::from(self.machine.quota_hops()));
        match end {
            TurnEnd::Failed(Ending::Unavailable(Unavailable::EgressClosed { .. })) => {
                tally.fault_kind(FaultKind::EgressThrottled);
            }
            TurnEnd::Failed(Ending::Unavailable(_)) => tally.pool_exhausted.add(),
            TurnEnd::Failed(Ending::Fault(_)) if self.machine.dispatches() > 1 => tally.failover_exhausted.add(),
            TurnEnd::Failed(_) | TurnEnd::Completed | TurnEnd::Interrupted => {}
        }
    }

    /// After a panic in the loop: the attempt and the turn are closed, and the client is told.
    pub(crate) async fn after_panic(&mut self) {
        self.tape.panicked();
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
}

/// The word for an admission's refusal in logs and proofs.
pub(super) fn unavailable_word(unavailable: Unavailable) -> &'static str {
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
