//! The engine's ports on the store in a file: what a turn itself writes.

use crate::conversation_sql;
use crate::fault;
use crate::kept_queue::Change;
use crate::sqlite::{SqliteStore, shut_down};
use crate::stored_sql;
use crate::writer::{Closing, Command};
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;
use turnkeep_engine::ports::{
    AnswerStore, AnsweredAgain, AttemptClosed, AttemptOpened, ContentStore, ConversationKey, ConversationStore,
    FaultLog, FaultRecord, KeptAnswer, KeptConversation, KeptKey, Ledger, StoreError, StoredKey, StoredThing,
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

impl ConversationStore for SqliteStore {
    fn keep_conversation(&self, kept: KeptConversation) {
        if self.sealed && self.beside.conversations.push(conversation_sql::Change::Keep(kept)) {
            self.wake();
        }
    }

    fn forget_conversations(&self, keys: Vec<ConversationKey>) {
        if self.sealed && self.beside.conversations.push(conversation_sql::Change::Forget(keys)) {
            self.wake();
        }
    }
}

impl ContentStore for SqliteStore {
    fn put_stored(&self, things: Vec<StoredThing>) -> BoxFuture<'_, Result<(), StoreError>> {
        let now = self.clock.unix_ms();
        let Some(seal) = self.seal.clone() else {
            self.stored.put(things, now);
            return Box::pin(std::future::ready(Ok(())));
        };
        Box::pin(async move {
            let live = things.iter().filter(|thing| thing.until_ms > now);
            let sealed: Vec<StoredThing> =
                live.map(|thing| stored_sql::sealed(&seal, thing)).collect::<Result<_, _>>()?;
            Ok(self.write(move |conn| Ok(stored_sql::put(conn, &sealed)?)).await?)
        })
    }

    fn get_stored(&self, key: StoredKey) -> BoxFuture<'_, Result<Option<StoredThing>, StoreError>> {
        let now = self.clock.unix_ms();
        let Some(seal) = self.seal.clone() else {
            return Box::pin(std::future::ready(Ok(self.stored.get(&key, now))));
        };
        let thing = self.read(move |conn| Ok(stored_sql::get(conn, &seal, &key, now)?));
        Box::pin(async move { Ok(thing.await?) })
    }

    fn touch_stored(&self, key: StoredKey, until_ms: u64) -> BoxFuture<'_, Result<(), StoreError>> {
        if !self.sealed {
            self.stored.touch(&key, until_ms);
            return Box::pin(std::future::ready(Ok(())));
        }
        let touched = self.write(move |conn| Ok(stored_sql::touch(conn, &key, until_ms)?));
        Box::pin(async move { Ok(touched.await?) })
    }

    fn remove_stored(&self, key: StoredKey) -> BoxFuture<'_, Result<bool, StoreError>> {
        if !self.sealed {
            return Box::pin(std::future::ready(Ok(self.stored.remove(&key))));
        }
        let removed = self.write(move |conn| Ok(stored_sql::remove(conn, &key)?));
        Box::pin(async move { Ok(removed.await?) })
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
