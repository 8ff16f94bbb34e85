//! The embedded store: one SQLite file, one thread that writes, one connection that reads.

use crate::account::{self, AccountRecord, NewAccount, OpenedSecret, SecretInput};
use crate::backup::{self, Progress};
use crate::checkpoint::Checkpointer;
use crate::contract::{Store, own_name, removal, switched};
use crate::error::{OpenError, RecordError};
use crate::key::{self, KeyRecord, KeySnapshot, NewKey, Pepper};
use crate::memory_stored::MemoryStored;
use crate::migrate::{self, Own, store};
use crate::prune::{self, Keep, Pruned};
use crate::record::{AuditEntry, LedgerEntry, Recent, Spend, StandingRecord, Switch, UsageBy, UsageRow};
use crate::seal::{MasterKey, SealKey};
use crate::trouble::Trouble;
use crate::unopened::Unopened;
use crate::writer::{Beside, Command, QUEUE, Task, Writer};
use crate::{
    account_sql, conversation_sql, fault_sql, file, kept_sql, key_sql, ledger_sql, standing_sql, switch_sql, usage_sql,
};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use rusqlite::{Connection, OpenFlags};
use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use turnkeep_base::{AccountId, Secret, TurnId};
use turnkeep_engine::ports::{FaultRecord, KeptAnswer, KeptConversation, StoreError, WallClock};

/// How long the command line's writes wait for another process that holds the database.
const BUSY: Duration = Duration::from_secs(5);

/// The same for a gateway's. A turn's entry may have to wait behind one such wait before its own, and must be answered
/// within a second.
const GATEWAY_BUSY: Duration = Duration::from_millis(400);

/// A gateway's start reads a database of up to so many bytes through, about a second's work, and refuses a damaged one.
/// In a larger one damage is found when its pages are used.
const CHECKED: u64 = 256 << 20;

/// Who opens the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The one gateway: holds the database against a second one, and closes what an earlier run left open.
    Gateway,
    /// The command line: may read and write beside a running gateway, and leaves its open entries alone.
    Tool,
}

/// How to open a database.
#[derive(Clone)]
pub struct StoreOptions {
    /// Who opens it.
    pub role: Role,
    /// Seals secrets; without one they are kept by reference only.
    pub master_key: Option<MasterKey>,
    /// The time written down.
    pub clock: Arc<dyn WallClock>,
}

/// The store in a SQLite file. Dropping it without [`Store::shutdown`] still writes what was queued, if the process
/// lives long enough.
pub struct SqliteStore {
    pub(crate) queue: mpsc::Sender<Command>,
    pub(crate) beside: Arc<Beside>,
    pub(crate) unopened: Unopened,
    /// There is a master key, so that answers may be kept.
    pub(crate) sealed: bool,
    /// Stored responses and conversations, where there is no master key.
    pub(crate) stored: MemoryStored,
    path: PathBuf,
    reader: Arc<Mutex<Option<Connection>>>,
    pepper: Pepper,
    pub(crate) seal: Option<SealKey>,
    pub(crate) clock: Arc<dyn WallClock>,
    recovered: usize,
    lock: Mutex<Option<File>>,
    identity: file::Identity,
}

impl SqliteStore {
    /// Opens the database, or makes it, with its files readable by their owner alone; brings its schema up to date.
    /// Blocks on the disk: call it before serving, or where blocking is allowed. Needs no runtime.
    pub fn open(path: &Path, options: StoreOptions) -> Result<Self, OpenError> {
        let fail = |error: rusqlite::Error| OpenError::sqlite(path, &error);
        let thread = |error: std::io::Error| store(path, StoreError(format!("no thread: {error}")));
        file::prepare(path)?;
        let lock = match options.role {
            Role::Gateway => Some(file::take(path)?),
            Role::Tool => None,
        };
        let mut conn = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(fail)?;
        if options.role == Role::Gateway && file::size(path) <= CHECKED {
            let why = backup::damage(&conn).map_err(fail)?;
            if let Some(why) = why {
                return Err(OpenError::Damaged { path: path.to_owned(), why });
            }
        }
        migrate::migrate(&mut conn, path)?;
        // Only now: before the check the file may be another program's.
        conn.pragma_update(None, "journal_mode", "WAL").map_err(fail)?;
        // The checkpoint thread keeps the log short; this is the net under it, 64 MiB.
        conn.pragma_update(None, "wal_autocheckpoint", 16_384).map_err(fail)?;
        let Own { pepper, seal } = migrate::own(&mut conn, path, options.master_key.as_ref())?;
        let identity = file::Identity::of(path).map_err(|source| OpenError::File { path: path.to_owned(), source })?;
        let recovered = match options.role {
            Role::Gateway => ledger_sql::recover(&conn, options.clock.unix_ms()).map_err(fail)?,
            Role::Tool => 0,
        };
        // The start may wait for the command line; a turn may not.
        if options.role == Role::Gateway {
            conn.busy_timeout(GATEWAY_BUSY).map_err(fail)?;
        }
        let reader = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(fail)?;
        let second = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(fail)?;
        let checkpointer = Checkpointer::start(second).map_err(thread)?;
        let (queue, commands) = mpsc::channel(QUEUE);
        let beside = Arc::new(Beside::default());
        let writer = Writer {
            conn,
            queue: commands,
            checkpointer,
            tidy: options.role == Role::Gateway,
            beside: beside.clone(),
            kept: VecDeque::new(),
            seal: seal.clone(),
            clock: options.clock.clone(),
            trouble: Trouble::new(path.to_owned()),
        };
        std::thread::Builder::new().name("store-writer".into()).spawn(move || writer.run()).map_err(thread)?;
        Ok(SqliteStore {
            queue,
            beside,
            unopened: Unopened::default(),
            sealed: seal.is_some(),
            stored: MemoryStored::default(),
            path: path.to_owned(),
            reader: Arc::new(Mutex::new(Some(reader))),
            pepper,
            seal,
            clock: options.clock,
            recovered,
            identity,
            lock: Mutex::new(lock),
        })
    }

    /// Ends of attempts that were never written, since start.
    pub fn lost_closes(&self) -> u64 {
        self.beside.lost_closes.load(Ordering::Relaxed)
    }

    pub(crate) async fn send(&self, command: Command) -> Result<(), StoreError> {
        self.queue.send(command).await.map_err(|_| shut_down())
    }

    pub(crate) fn write<T, F>(&self, work: F) -> BoxFuture<'_, Result<T, RecordError>>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, RecordError> + Send + 'static,
    {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            self.send(Command::Job(Box::new(Task::new(work, reply)))).await?;
            answer.await.map_err(|_| shut_down())?
        })
    }

    pub(crate) fn read<T, F>(&self, work: F) -> BoxFuture<'_, Result<T, RecordError>>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, RecordError> + Send + 'static,
    {
        let reader = self.reader.clone();
        Box::pin(async move {
            let work = move || work(reader.lock().as_ref().ok_or_else(shut_down)?);
            tokio::task::spawn_blocking(work)
                .await
                .map_err(|error| StoreError(format!("a read did not end: {error}")))?
        })
    }
}

pub(crate) fn shut_down() -> StoreError {
    StoreError("the store is shut down".into())
}

pub(crate) fn connect(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let conn = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(BUSY)?;
    conn.pragma_update(None, "synchronous", "NORMAL")?;
    conn.pragma_update(None, "foreign_keys", true)?;
    conn.pragma_update(None, "trusted_schema", false)?;
    conn.set_prepared_statement_cache_capacity(64);
    Ok(conn)
}

impl Store for SqliteStore {
    fn flush(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            self.send(Command::Flush(reply)).await?;
            answer.await.unwrap_or_else(|_| Err(shut_down()))
        })
    }

    fn health(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        if !self.identity.is_at_its_path() {
            let why = "the database's file has been removed or replaced while it was open, and what is written now is lost \
                       with this process; put the file back, or start again on the new one";
            return Box::pin(std::future::ready(Err(StoreError(why.into()))));
        }
        let now = self.clock.unix_ms().to_be_bytes();
        let written = self.write(move |conn| {
            migrate::set_meta(conn, "store.health", &now)?;
            // Where the next turn's entry will go: the damage may be there alone.
            Ok(ledger_sql::probe(conn)?)
        });
        Box::pin(async move { Ok(written.await?) })
    }

    fn shutdown(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let reader = self.reader.clone();
            // A read that is running ends first; the log can only go when nobody reads.
            let gone = tokio::task::spawn_blocking(move || drop(reader.lock().take())).await;
            gone.map_err(|error| StoreError(format!("a read did not end: {error}")))?;
            let (reply, answer) = oneshot::channel();
            let result = match self.send(Command::Stop(reply)).await {
                Ok(()) => answer.await.unwrap_or(Ok(())),
                // It was shut down before.
                Err(_) => Ok(()),
            };
            drop(self.lock.lock().take());
            result
        })
    }

    fn recovered(&self) -> usize {
        self.recovered
    }

    fn ledger_open_count(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        let count = self.read(|conn| Ok(ledger_sql::open_count(conn)?));
        Box::pin(async move { Ok(count.await?) })
    }

    fn ledger_entries(&self, limit: usize) -> BoxFuture<'_, Result<Vec<LedgerEntry>, StoreError>> {
        let entries = self.read(move |conn| Ok(ledger_sql::newest(conn, limit)?));
        Box::pin(async move { Ok(entries.await?) })
    }

    fn usage(&self, since_ms: u64, by: Vec<UsageBy>) -> BoxFuture<'_, Result<Vec<UsageRow>, StoreError>> {
        let rows = self.read(move |conn| Ok(usage_sql::usage(conn, since_ms, &by)?));
        Box::pin(async move { Ok(rows.await?) })
    }

    fn spent(&self, since_day: u32) -> BoxFuture<'_, Result<Vec<Spend>, StoreError>> {
        let rows = self.read(move |conn| Ok(usage_sql::spent(conn, since_day)?));
        Box::pin(async move { Ok(rows.await?) })
    }

    fn recent(&self, since_ms: u64) -> BoxFuture<'_, Result<Vec<Recent>, StoreError>> {
        let rows = self.read(move |conn| Ok(usage_sql::recent(conn, since_ms)?));
        Box::pin(async move { Ok(rows.await?) })
    }

    fn ledger_lost(&self) -> u64 {
        self.lost_closes() + self.beside.again.lost()
    }

    fn kept_answers(&self) -> BoxFuture<'_, Result<Vec<KeptAnswer>, StoreError>> {
        let (seal, now) = (self.seal.clone(), self.clock.unix_ms());
        Box::pin(async move {
            let (answers, useless) = self.read(move |conn| Ok(kept_sql::load(conn, seal.as_ref(), now)?)).await?;
            if !useless.is_empty() {
                self.write(move |conn| Ok(kept_sql::delete(conn, &useless, now)?)).await?;
            }
            Ok(answers)
        })
    }

    fn answers_lost(&self) -> u64 {
        self.beside.answers.lost() + self.beside.conversations.lost()
    }

    fn kept_conversations(&self) -> BoxFuture<'_, Result<Vec<KeptConversation>, StoreError>> {
        let (seal, now) = (self.seal.clone(), self.clock.unix_ms());
        // As a write: after all that was kept before, and what is of no use goes in the same step.
        let all = self.write(move |conn| Ok(conversation_sql::load(conn, seal.as_ref(), now)?));
        Box::pin(async move { Ok(all.await?) })
    }

    fn fingerprint_key(&self) -> [u8; 32] {
        self.pepper.fingerprint_key()
    }

    fn backup(&self, to: PathBuf, progress: Progress) -> BoxFuture<'_, Result<u64, StoreError>> {
        let from = self.path.clone();
        Box::pin(async move {
            tokio::task::spawn_blocking(move || backup::copy(&from, &to, false, progress))
                .await
                .map_err(|error| StoreError(format!("the copy did not end: {error}")))?
                .map_err(|error| StoreError(error.to_string()))
        })
    }

    fn attempts_of_turn(&self, turn: TurnId) -> BoxFuture<'_, Result<Vec<LedgerEntry>, StoreError>> {
        let entries = self.read(move |conn| Ok(ledger_sql::of_turn(conn, turn)?));
        Box::pin(async move { Ok(entries.await?) })
    }

    fn faults_of_account(&self, id: &AccountId, limit: usize) -> BoxFuture<'_, Result<Vec<FaultRecord>, StoreError>> {
        let id = id.clone();
        let faults = self.read(move |conn| fault_sql::of_account(conn, &id, limit));
        Box::pin(async move { Ok(faults.await?) })
    }

    fn faults_of_turn(&self, turn: TurnId) -> BoxFuture<'_, Result<Vec<FaultRecord>, StoreError>> {
        let faults = self.read(move |conn| fault_sql::of_turn(conn, turn));
        Box::pin(async move { Ok(faults.await?) })
    }

    fn faults_lost(&self) -> u64 {
        self.beside.faults.lost()
    }

    fn prune(&self, keep: Keep) -> BoxFuture<'_, Result<Pruned, StoreError>> {
        Box::pin(prune::sqlite(self, keep))
    }

    fn create_key(&self, new: NewKey) -> BoxFuture<'_, Result<(KeyRecord, Secret), RecordError>> {
        let (pepper, now) = (self.pepper, self.clock.unix_ms());
        self.write(move |conn| {
            let (record, secret) = key::make(&pepper, new, now)?;
            key_sql::insert(conn, &record)?;
            Ok((record, secret))
        })
    }

    fn list_keys(&self) -> BoxFuture<'_, Result<Vec<KeyRecord>, StoreError>> {
        let keys = self.read(key_sql::list);
        Box::pin(async move { Ok(keys.await?) })
    }

    fn revoke_key(&self, name: String) -> BoxFuture<'_, Result<KeyRecord, RecordError>> {
        let now = self.clock.unix_ms();
        self.write(move |conn| {
            let mut record = key_sql::expect(conn, &name)?;
            if record.revoked_ms.is_none() {
                record.revoked_ms = Some(now);
                key_sql::put(conn, &record)?;
            }
            Ok(record)
        })
    }

    fn rotate_key(&self, name: String, overlap: Duration) -> BoxFuture<'_, Result<(KeyRecord, Secret), RecordError>> {
        let (pepper, now) = (self.pepper, self.clock.unix_ms());
        self.write(move |conn| {
            let (record, secret) = key::rotate(&pepper, key_sql::expect(conn, &name)?, overlap, now)?;
            key_sql::put(conn, &record)?;
            Ok((record, secret))
        })
    }

    fn keys_snapshot(&self) -> BoxFuture<'_, Result<KeySnapshot, StoreError>> {
        let pepper = self.pepper;
        let keys = self.read(key_sql::list);
        Box::pin(async move {
            let mut keys = keys.await?;
            keys.retain(|key| key.revoked_ms.is_none());
            Ok(KeySnapshot { pepper, keys })
        })
    }

    fn add_account(&self, new: NewAccount) -> BoxFuture<'_, Result<AccountRecord, RecordError>> {
        let kept = account::admit(self.seal.as_ref(), new, self.clock.unix_ms());
        Box::pin(async move {
            let (record, secret) = kept?;
            let written = record.clone();
            self.write(move |conn| account_sql::insert(conn, &written, &secret)).await?;
            Ok(record)
        })
    }

    fn list_accounts(&self) -> BoxFuture<'_, Result<Vec<AccountRecord>, StoreError>> {
        let accounts = self.read(account_sql::list);
        Box::pin(async move { Ok(accounts.await?) })
    }

    fn set_account_enabled(&self, id: AccountId, enabled: bool) -> BoxFuture<'_, Result<AccountRecord, RecordError>> {
        self.write(move |conn| {
            let (mut record, secret) = account_sql::expect(conn, &id)?;
            record.enabled = enabled;
            account_sql::put(conn, &record, &secret)?;
            Ok(record)
        })
    }

    fn rotate_account_secret(
        &self,
        id: AccountId,
        secret: SecretInput,
    ) -> BoxFuture<'_, Result<AccountRecord, RecordError>> {
        let kept = account::keep(self.seal.as_ref(), &id, secret);
        Box::pin(async move {
            let secret = kept?;
            self.write(move |conn| {
                let (record, _) = account_sql::expect(conn, &id)?;
                let record = account::rotated(record, &secret);
                account_sql::put(conn, &record, &secret)?;
                Ok(record)
            })
            .await
        })
    }

    fn remove_account(&self, id: AccountId, actor: String) -> BoxFuture<'_, Result<AccountRecord, RecordError>> {
        let line = removal(&id, actor, self.clock.unix_ms());
        self.write(move |conn| {
            let record = account_sql::remove(conn, &id)?;
            standing_sql::audit(conn, &line)?;
            Ok(record)
        })
    }

    fn open_secret(&self, id: AccountId) -> BoxFuture<'_, Result<OpenedSecret, RecordError>> {
        let seal = self.seal.clone();
        self.read(move |conn| {
            let (_, secret) = account_sql::expect(conn, &id)?;
            account::open(seal.as_ref(), &id, secret)
        })
    }

    fn revision(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        let revision = self.read(|conn| Ok(migrate::revision(conn)?));
        Box::pin(async move { Ok(revision.await?) })
    }

    fn save_standing(&self, rows: Vec<StandingRecord>) -> BoxFuture<'_, Result<(), StoreError>> {
        let saved = self.write(move |conn| standing_sql::save(conn, &rows));
        Box::pin(async move { Ok(saved.await?) })
    }

    fn load_standing(&self) -> BoxFuture<'_, Result<Vec<StandingRecord>, StoreError>> {
        let rows = self.read(standing_sql::load);
        Box::pin(async move { Ok(rows.await?) })
    }

    fn switch_account(&self, id: AccountId, enabled: bool, actor: String) -> BoxFuture<'_, Result<(), StoreError>> {
        let line = switched(&id, enabled, actor, self.clock.unix_ms());
        let written = self.write(move |conn| {
            switch_sql::put(conn, &id, enabled, line.at_ms)?;
            standing_sql::audit(conn, &line)
        });
        Box::pin(async move { Ok(written.await?) })
    }

    fn open_switches(&self) -> BoxFuture<'_, Result<Vec<Switch>, StoreError>> {
        let switches = self.read(switch_sql::open);
        Box::pin(async move { Ok(switches.await?) })
    }

    fn take_switch(&self, id: AccountId, at_ms: u64) -> BoxFuture<'_, Result<(), StoreError>> {
        let taken = self.write(move |conn| switch_sql::take(conn, &id, at_ms));
        Box::pin(async move { Ok(taken.await?) })
    }

    fn audit(&self, entry: AuditEntry) -> BoxFuture<'_, Result<(), StoreError>> {
        let written = self.write(move |conn| standing_sql::audit(conn, &entry));
        Box::pin(async move { Ok(written.await?) })
    }

    fn audit_entries(&self, limit: usize) -> BoxFuture<'_, Result<Vec<AuditEntry>, StoreError>> {
        let entries = self.read(move |conn| standing_sql::audit_entries(conn, limit));
        Box::pin(async move { Ok(entries.await?) })
    }

    fn put_meta(&self, name: String, value: Vec<u8>) -> BoxFuture<'_, Result<(), RecordError>> {
        self.write(move |conn| {
            own_name(&name)?;
            Ok(migrate::set_meta(conn, &name, &value)?)
        })
    }

    fn get_meta(&self, name: String) -> BoxFuture<'_, Result<Option<Vec<u8>>, StoreError>> {
        let value = self.read(move |conn| Ok(migrate::meta(conn, &name)?));
        Box::pin(async move { Ok(value.await?) })
    }
}
