//! The engine's ports on the store in a file: what a turn itself writes.

use crate::fault;
use crate::sqlite::{SqliteStore, shut_down};
use crate::writer::Command;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use turnkeep_base::AttemptId;
use turnkeep_engine::ports::{
    AnswerStore, AnsweredAgain, AttemptClosed, AttemptOpened, FaultLog, FaultRecord, KeptAnswer, KeptKey, Ledger,
    StoreError,
};

/// Takes the entry back if the future that opened it is dropped before it had its answer.
struct Unanswered<'a> {
    queue: &'a mpsc::Sender<Command>,
    attempt: Option<AttemptId>,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if let Some(attempt) = self.attempt {
            // With a full queue the writer still sees that nobody listens, unless it answered in this instant; then
            // the entry is closed as interrupted at the next start.
            let _ = self.queue.try_send(Command::Withdraw(attempt));
        }
    }
}

impl Ledger for SqliteStore {
    fn open(&self, entry: AttemptOpened) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let attempt = entry.attempt;
            let (reply, answer) = oneshot::channel();
            self.send(Command::Open(Box::new(entry), reply)).await?;
            let mut unanswered = Unanswered { queue: &self.queue, attempt: Some(attempt) };
            let result = answer.await.unwrap_or_else(|_| Err(shut_down()));
            unanswered.attempt = None;
            result
        })
    }

    fn close(&self, entry: AttemptClosed) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.send(Command::Close(entry)))
    }

    fn again(&self, _: AnsweredAgain) {}
}

impl AnswerStore for SqliteStore {
    fn keep(&self, _: KeptAnswer) {}
    fn forget(&self, _: KeptKey) {}
}

impl FaultLog for SqliteStore {
    fn note(&self, record: FaultRecord) {
        if self.faults.push(fault::bounded(record)) {
            // A full queue means that the writer has a transaction before it, which takes the faults along.
            let _ = self.queue.try_send(Command::Faults);
        }
    }
}
