//! The store of a run: what has been committed outlives a crash, what was only queued does not, and a gateway that has
//! crashed can write nothing more.
//!
//! The committed half is the store's own [`MemoryStore`]; before it stand a queue with a time of its own for each commit,
//! and a fence.

use crate::trace::Trace;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use turnkeep_base::{AccountId, AttemptId, Secret, TurnId};
use turnkeep_engine::ports::{
    AnswerStore, AnsweredAgain, AttemptClosed, AttemptOpened, ContentStore, ConversationKey, ConversationStore,
    FaultLog, FaultRecord, KeptAnswer, KeptConversation, KeptKey, Ledger, StoreError, StoredKey, StoredThing,
};
use turnkeep_store::{
    AccountRecord, AuditEntry, Keep, KeyRecord, KeySnapshot, LedgerEntry, MemoryStore, NewAccount, NewKey,
    OpenedSecret, Progress, Pruned, Recent, RecordError, SecretInput, Spend, StandingRecord, Store, Switch, UsageBy,
    UsageRow,
};

/// Writes that may wait at once.
const QUEUED: usize = 4096;

/// What the gateways of a run have asked the store for, in order, beside what it holds: for the invariants.
#[derive(Debug, Default)]
pub struct Seen(Vec<(Instant, Event)>);

/// One thing of it, and what befell the run meanwhile.
#[derive(Debug)]
pub enum Event {
    /// An attempt is to be opened.
    Opens(AttemptId),
    /// It was, and that was committed.
    Opened(AttemptId, AccountId),
    /// It goes on with a conversation that is changed by it.
    GoesOn(AttemptId),
    /// An attempt was closed.
    Closed(AttemptClosed),
    /// A turn was answered with what had been made for another.
    Again(TurnId),
    /// A fault was noted.
    Fault(FaultRecord),
    /// The process has died: what it had not written yet is lost.
    Died,
    /// The process was told to end, and has written everything down.
    Ended,
    /// The wall clock was set: what is measured by it over the end of a process says nothing.
    Jumped,
    /// An account has another secret.
    Rotated(AccountId),
    /// An account was taken out of the configuration.
    Removed(AccountId),
}

impl Seen {
    /// This has happened, now.
    pub fn note(&mut self, event: Event) {
        self.0.push((Instant::now(), event));
    }

    /// What has happened since there were so many.
    pub fn since(&self, known: usize) -> impl Iterator<Item = &(Instant, Event)> {
        self.0.iter().skip(known)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

type Write = Box<dyn FnOnce(&MemoryStore) + Send>;

/// The store as one life of the gateway has it.
pub struct Life {
    committed: Arc<MemoryStore>,
    seen: Arc<Mutex<Seen>>,
    trace: Arc<Trace>,
    fence: Arc<AtomicBool>,
    queue: mpsc::Sender<Write>,
    recovered: usize,
}

impl Life {
    /// Opens the store for the next life. Each commit takes this long.
    pub fn open(committed: Arc<MemoryStore>, seen: Arc<Mutex<Seen>>, trace: Arc<Trace>, commit: Duration) -> Life {
        let recovered = committed.recover();
        let (queue, mut writes) = mpsc::channel::<Write>(QUEUED);
        let fence = Arc::new(AtomicBool::new(false));
        let (fenced, store) = (fence.clone(), committed.clone());
        tokio::spawn(async move {
            let mut batch = Vec::new();
            while writes.recv_many(&mut batch, QUEUED).await > 0 {
                tokio::time::sleep(commit).await;
                for write in batch.drain(..) {
                    if !fenced.load(Ordering::Relaxed) {
                        write(&store);
                    }
                }
            }
        });
        Life { committed, seen, trace, fence, queue, recovered }
    }

    /// The gateway is gone: whatever is queued is lost, and nothing more is written.
    pub fn crash(&self) {
        self.fence.store(true, Ordering::Relaxed);
    }

    fn fenced(&self) -> bool {
        self.fence.load(Ordering::Relaxed)
    }

    fn push(&self, write: impl FnOnce(&MemoryStore) + Send + 'static) {
        if !self.fenced() {
            // Without room it is lost, as it is in the file's store.
            let _sent = self.queue.try_send(Box::new(write));
        }
    }

    /// A write whose answer comes when it is committed.
    fn commit<'a, T: Send + 'static, E: From<StoreError> + Send + 'static>(
        &'a self,
        work: impl FnOnce(&MemoryStore) -> BoxFuture<'_, Result<T, E>> + Send + 'static,
    ) -> BoxFuture<'a, Result<T, E>> {
        self.commit_unless(false, work)
    }

    /// `taken_back`: what nobody waits for any more is not done.
    fn commit_unless<'a, T: Send + 'static, E: From<StoreError> + Send + 'static>(
        &'a self,
        taken_back: bool,
        work: impl FnOnce(&MemoryStore) -> BoxFuture<'_, Result<T, E>> + Send + 'static,
    ) -> BoxFuture<'a, Result<T, E>> {
        Box::pin(async move {
            let (told, answer) = oneshot::channel();
            self.push(move |store| {
                if taken_back && told.is_closed() {
                    return;
                }
                // The store in memory does all of its work when it is first polled.
                let done = futures_util::FutureExt::now_or_never(work(store));
                // Nobody may wait any more.
                let _ = told.send(done.unwrap_or_else(|| Err(StoreError("not done at once".into()).into())));
            });
            answer.await.unwrap_or_else(|_| Err(StoreError("the process has crashed".into()).into()))
        })
    }

    fn read<'a, T, E>(
        &'a self,
        work: impl FnOnce(&'a MemoryStore) -> BoxFuture<'a, Result<T, E>>,
    ) -> BoxFuture<'a, Result<T, E>>
    where
        T: Send + 'a,
        E: From<StoreError> + Send + 'a,
    {
        if self.fenced() {
            return Box::pin(std::future::ready(Err(StoreError("the process has crashed".into()).into())));
        }
        work(&self.committed)
    }
}

impl Ledger for Life {
    fn open(&self, entry: AttemptOpened) -> BoxFuture<'_, Result<(), StoreError>> {
        let (attempt, account, goes_on) = (entry.attempt, entry.account.clone(), entry.conversation.is_some());
        self.seen.lock().note(Event::Opens(attempt));
        let opened = self.commit_unless(true, move |store| store.open(entry));
        Box::pin(async move {
            opened.await?;
            self.trace.note(format_args!("store opened {attempt} on {account}"));
            self.seen.lock().note(Event::Opened(attempt, account));
            if goes_on {
                self.seen.lock().note(Event::GoesOn(attempt));
            }
            Ok(())
        })
    }

    fn close(&self, entry: AttemptClosed) -> BoxFuture<'_, Result<(), StoreError>> {
        if self.fenced() {
            return Box::pin(std::future::ready(Err(StoreError("the process has crashed".into()))));
        }
        self.trace.note(format_args!(
            "store closes {} as {}, exact {}, {:?}",
            entry.attempt,
            entry.outcome.name(),
            entry.exact,
            entry.usage
        ));
        self.seen.lock().note(Event::Closed(entry.clone()));
        self.push(move |store| {
            let _ = futures_util::FutureExt::now_or_never(store.close(entry));
        });
        Box::pin(std::future::ready(Ok(())))
    }

    fn again(&self, entry: AnsweredAgain) {
        self.trace.note(format_args!("store notes a turn answered again: {}", entry.how.name()));
        self.seen.lock().note(Event::Again(entry.turn));
        self.push(move |store| store.again(entry));
    }
}

impl AnswerStore for Life {
    fn keep(&self, answer: KeptAnswer) {
        self.trace.note(format_args!("store keeps an answer for {} as {}", answer.key.caller, answer.key.kept.name()));
        self.push(move |store| store.keep(answer));
    }

    fn forget(&self, key: KeptKey) {
        self.push(move |store| store.forget(key));
    }
}

impl ConversationStore for Life {
    fn keep_conversation(&self, kept: KeptConversation) {
        self.trace.note(format_args!("store keeps a conversation of {}", kept.key.caller));
        self.push(move |store| store.keep_conversation(kept));
    }

    fn forget_conversations(&self, keys: Vec<ConversationKey>) {
        self.push(move |store| store.forget_conversations(keys));
    }
}

impl ContentStore for Life {
    fn put_stored(&self, things: Vec<StoredThing>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.commit(move |store| store.put_stored(things))
    }

    fn get_stored(&self, key: StoredKey) -> BoxFuture<'_, Result<Option<StoredThing>, StoreError>> {
        self.commit(move |store| store.get_stored(key))
    }

    fn touch_stored(&self, key: StoredKey, until_ms: u64) -> BoxFuture<'_, Result<(), StoreError>> {
        self.commit(move |store| store.touch_stored(key, until_ms))
    }

    fn remove_stored(&self, key: StoredKey) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.commit(move |store| store.remove_stored(key))
    }
}

impl FaultLog for Life {
    fn note(&self, record: FaultRecord) {
        if self.fenced() {
            return;
        }
        let account = record.account.as_ref().map(ToString::to_string).unwrap_or_default();
        self.trace.note(format_args!("fault {} of {} at {account}: {}", record.fault, record.origin, record.effect));
        self.seen.lock().note(Event::Fault(record.clone()));
        self.push(move |store| store.note(record));
    }
}

impl Store for Life {
    fn flush(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.commit(|store| store.flush())
    }

    fn health(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.commit(|store| store.health())
    }

    fn shutdown(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        // What is committed stays for the next life.
        Box::pin(async move {
            self.flush().await?;
            self.crash();
            Ok(())
        })
    }

    fn recovered(&self) -> usize {
        self.recovered
    }

    fn ledger_open_count(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.read(|store| store.ledger_open_count())
    }

    fn ledger_entries(&self, limit: usize) -> BoxFuture<'_, Result<Vec<LedgerEntry>, StoreError>> {
        self.read(|store| store.ledger_entries(limit))
    }

    fn usage(&self, since_ms: u64, by: Vec<UsageBy>) -> BoxFuture<'_, Result<Vec<UsageRow>, StoreError>> {
        self.read(|store| store.usage(since_ms, by))
    }

    fn spent(&self, since_day: u32) -> BoxFuture<'_, Result<Vec<Spend>, StoreError>> {
        self.read(|store| store.spent(since_day))
    }

    fn recent(&self, since_ms: u64) -> BoxFuture<'_, Result<Vec<Recent>, StoreError>> {
        self.read(|store| store.recent(since_ms))
    }

    fn ledger_lost(&self) -> u64 {
        self.committed.ledger_lost()
    }

    fn kept_answers(&self) -> BoxFuture<'_, Result<Vec<KeptAnswer>, StoreError>> {
        self.read(|store| store.kept_answers())
    }

    fn answers_lost(&self) -> u64 {
        self.committed.answers_lost()
    }

    fn kept_conversations(&self) -> BoxFuture<'_, Result<Vec<KeptConversation>, StoreError>> {
        self.read(|store| store.kept_conversations())
    }

    fn fingerprint_key(&self) -> [u8; 32] {
        self.committed.fingerprint_key()
    }

    fn backup(&self, to: PathBuf, progress: Progress) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.read(|store| store.backup(to, progress))
    }

    fn attempts_of_turn(&self, turn: TurnId) -> BoxFuture<'_, Result<Vec<LedgerEntry>, StoreError>> {
        self.read(|store| store.attempts_of_turn(turn))
    }

    fn faults_of_account(&self, id: &AccountId, limit: usize) -> BoxFuture<'_, Result<Vec<FaultRecord>, StoreError>> {
        self.read(|store| store.faults_of_account(id, limit))
    }

    fn faults_of_turn(&self, turn: TurnId) -> BoxFuture<'_, Result<Vec<FaultRecord>, StoreError>> {
        self.read(|store| store.faults_of_turn(turn))
    }

    fn faults_lost(&self) -> u64 {
        self.committed.faults_lost()
    }

    fn prune(&self, keep: Keep) -> BoxFuture<'_, Result<Pruned, StoreError>> {
        self.commit(move |store| store.prune(keep))
    }

    fn create_key(&self, new: NewKey) -> BoxFuture<'_, Result<(KeyRecord, Secret), RecordError>> {
        self.commit(move |store| store.create_key(new))
    }

    fn list_keys(&self) -> BoxFuture<'_, Result<Vec<KeyRecord>, StoreError>> {
        self.read(|store| store.list_keys())
    }

    fn revoke_key(&self, name: String) -> BoxFuture<'_, Result<KeyRecord, RecordError>> {
        self.commit(move |store| store.revoke_key(name))
    }

    fn rotate_key(&self, name: String, overlap: Duration) -> BoxFuture<'_, Result<(KeyRecord, Secret), RecordError>> {
        self.commit(move |store| store.rotate_key(name, overlap))
    }

    fn keys_snapshot(&self) -> BoxFuture<'_, Result<KeySnapshot, StoreError>> {
        self.read(|store| store.keys_snapshot())
    }

    fn add_account(&self, new: NewAccount) -> BoxFuture<'_, Result<AccountRecord, RecordError>> {
        self.commit(move |store| store.add_account(new))
    }

    fn list_accounts(&self) -> BoxFuture<'_, Result<Vec<AccountRecord>, StoreError>> {
        self.read(|store| store.list_accounts())
    }

    fn set_account_enabled(&self, id: AccountId, enabled: bool) -> BoxFuture<'_, Result<AccountRecord, RecordError>> {
        self.commit(move |store| store.set_account_enabled(id, enabled))
    }

    fn rotate_account_secret(
        &self,
        id: AccountId,
        secret: SecretInput,
    ) -> BoxFuture<'_, Result<AccountRecord, RecordError>> {
        self.commit(move |store| store.rotate_account_secret(id, secret))
    }

    fn remove_account(&self, id: AccountId, actor: String) -> BoxFuture<'_, Result<AccountRecord, RecordError>> {
        self.commit(move |store| store.remove_account(id, actor))
    }

    fn open_secret(&self, id: AccountId) -> BoxFuture<'_, Result<OpenedSecret, RecordError>> {
        self.read(|store| store.open_secret(id))
    }

    fn revision(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.read(|store| store.revision())
    }

    fn save_standing(&self, rows: Vec<StandingRecord>) -> BoxFuture<'_, Result<(), StoreError>> {
        if self.fenced() {
            return Box::pin(std::future::ready(Err(StoreError("the process has crashed".into()))));
        }
        for row in &rows {
            self.trace.note(format_args!("store takes the standing of {}: {:?}", row.account, row.status));
        }
        self.commit(move |store| store.save_standing(rows))
    }

    fn load_standing(&self) -> BoxFuture<'_, Result<Vec<StandingRecord>, StoreError>> {
        self.read(|store| store.load_standing())
    }

    fn switch_account(&self, id: AccountId, enabled: bool, actor: String) -> BoxFuture<'_, Result<(), StoreError>> {
        self.commit(move |store| store.switch_account(id, enabled, actor))
    }

    fn open_switches(&self) -> BoxFuture<'_, Result<Vec<Switch>, StoreError>> {
        self.read(|store| store.open_switches())
    }

    fn take_switch(&self, id: AccountId, at_ms: u64) -> BoxFuture<'_, Result<(), StoreError>> {
        self.commit(move |store| store.take_switch(id, at_ms))
    }

    fn audit(&self, entry: AuditEntry) -> BoxFuture<'_, Result<(), StoreError>> {
        self.commit(move |store| store.audit(entry))
    }

    fn audit_entries(&self, limit: usize) -> BoxFuture<'_, Result<Vec<AuditEntry>, StoreError>> {
        self.read(|store| store.audit_entries(limit))
    }

    fn put_meta(&self, name: String, value: Vec<u8>) -> BoxFuture<'_, Result<(), RecordError>> {
        self.commit(move |store| store.put_meta(name, value))
    }

    fn get_meta(&self, name: String) -> BoxFuture<'_, Result<Option<Vec<u8>>, StoreError>> {
        self.read(|store| store.get_meta(name))
    }
}
