//! The engine's ports on the store in a file: what a turn itself writes.

use crate::fault;
use crate::kept_queue::Change;
use crate::sqlite::{SqliteStore, shut_down};
use crate::writer::{Closing, Command};
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;
use turnkeep_engine::ports::{
    AnswerStore, AnsweredAgain, AttemptClosed, AttemptOpened, FaultLog, FaultRecord, KeptAnswer, KeptKey, Ledger,
    StoreError,
};

/// Takes the entry back if the future that opened it is dropped before it had its answer. It is remembered all the same:
/// its attempt may go on without it, where the operator has said so, and then its end writes it whole.
struct Unanswered<'a> {
    store: &'a SqliteStore,
    entry: Option<Box<AttemptOpened>>,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take() {
            // With a full queue the writer still sees that nobody listens, unless it answered in this instant; then
            // the entry is closed as interrupted at the next start.
            let _ = self.store.queue.try_send(Command::Withdraw(entry.attempt));
            self.store.unopened.put(entry);
        }
    }
}

impl Ledger for SqliteStore {
    fn open(&self, entry: AttemptOpened) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let entry = Box::new(entry);
            let (reply, answer) = oneshot::channel();
            self.send(Command::Open(entry.clone(), reply)).await?;
            let mut unanswered = Unanswered { store: self, entry: Some(entry) };
            let result = answer.await.unwrap_or_else(|_| Err(shut_down()));
            match unanswered.entry.take() {
                Some(entry) if result.is_err() => self.unopened.put(entry),
                Some(_) | None => {}
            }
            result
        })
    }

    fn close(&self, entry: AttemptClosed) -> BoxFuture<'_, Result<(), StoreError>> {
        let opened = self.unopened.take(entry.attempt);
        Box::pin(self.send(Command::Close(Closing { entry, opened })))
    }

    fn again(&self, entry: AnsweredAgain) {
        if self.beside.again.push(entry) {
            self.wake();
        }
    }
}

impl AnswerStore for SqliteStore {
    fn keep(&self, answer: KeptAnswer) {
        if self.sealed && self.beside.answers.push(Change::Keep(answer)) {
            self.wake();
        }
    }

    fn forget(&self, key: KeptKey) {
        if self.sealed && self.beside.answers.push(Change::Forget(key)) {
            self.wake();
        }
    }
}

impl FaultLog for SqliteStore {
    fn note(&self, record: FaultRecord) {
        if self.beside.faults.push(fault::bounded(record)) {
            self.wake();
        }
    }
}

impl SqliteStore {
    /// A full queue means that the writer has a transaction before it, which takes along what waits beside.
    fn wake(&self) {
        let _ = self.queue.try_send(Command::Wake);
    }
}
