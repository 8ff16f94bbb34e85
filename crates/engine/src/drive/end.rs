//! How the drive loop ends things: the attempt, the turn, the delivery, and all of them after a panic.

use super::{DELIVERY_WAIT, Drive, Waiting};
use crate::machine::{AttemptEnd, Downstream, Ending, TurnEnd};
use crate::tally::TurnLabels;
use std::future::poll_fn;
use turnkeep_base::{Evidence, Fault, FaultKind, Phase};

impl Drive {
    pub(super) async fn close_attempt(&mut self, end: AttemptEnd) {
        if let AttemptEnd::Failed(fault) = &end {
            self.counted.push(fault.kind);
        }
        if let Some(at) = self.dispatched_at.take() {
            self.upstream_time += at.elapsed();
        }
        let facts = self.answering.as_ref().map(|answering| answering.facts().clone()).unwrap_or_default();
        if let Some(lease) = &self.lease {
            self.answered_by = Some(lease.route().model.to_string());
        }
        if let Some(attempt) = self.attempt.take() {
            attempt.close(&self.engine, self.lease.take(), end, &facts).await;
        } else {
            self.lease = None;
        }
    }

    pub(super) fn close_turn(&mut self, end: TurnEnd) {
        let tally = &self.engine.tally;
        if let TurnEnd::Failed(Ending::Fault(fault)) = &end
            && !self.counted.contains(&fault.kind)
        {
            tally.fault_kind(fault.kind);
        }
        let (replays, hops) = self.machine.replays_and_hops();
        tally.transient_replays.add_many(u64::from(replays));
        tally.failover_hops.add_many(u64::from(hops));
        tally.quota_failover_hops.add_many(u64::from(self.machine.quota_hops()));
        match &end {
            TurnEnd::Failed(Ending::Unavailable(_)) => tally.pool_exhausted.add(),
            TurnEnd::Failed(Ending::Fault(_)) if self.machine.dispatches() > 1 => tally.failover_exhausted.add(),
            TurnEnd::Failed(_) | TurnEnd::Completed => {}
            TurnEnd::Interrupted => {
                // Gone, or too slow; the gateway's own stop is neither.
                if self.writer.is_gone() || !*self.stop.borrow() {
                    tally.fault_kind(FaultKind::ClientGone);
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
            let taken = poll_fn(|cx| writer.poll_taken(cx));
            matches!(tokio::time::timeout(DELIVERY_WAIT, taken).await, Ok(Ok(())))
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
            Some(TurnEnd::Failed(Ending::Unavailable(_))) => ("failed", Some("pool_exhausted")),
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
