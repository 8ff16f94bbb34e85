//! The one thread that writes. It takes everything that waits right now into one transaction and never waits for more:
//! under load the cost of a commit is shared, and a lone write is not delayed. Only the ends of attempts and
//! the proofs of faults, which nobody waits for, may wait [`CLOSE_WAIT`] for a transaction of others to travel with.
//!
//! A write that fails is answered in words and the thread goes on. The end of an attempt has nobody to be told, so one
//! that could not be written is kept, in a bounded number, and tried again with the next transaction, or alone after
//! [`RETRY`]. Proofs are kept in the same way; they are written last, and their failure costs nothing else its commit.

use crate::checkpoint::Checkpointer;
use crate::conversation_sql;
use crate::error::{RecordError, plain};
use crate::kept_queue::{Change, KeptQueue};
use crate::ledger_sql::Closed;
use crate::seal::SealKey;
use crate::side_queue::SideQueue;
use crate::trouble::Trouble;
use crate::{fault_sql, kept_sql, ledger_sql};
use rusqlite::Connection;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use turnkeep_base::AttemptId;
use turnkeep_engine::ports::{AnsweredAgain, AttemptClosed, AttemptOpened, FaultRecord, StoreError, WallClock};

/// Writes that may wait; whoever comes then waits for a place.
pub(crate) const QUEUE: usize = 1024;

/// Ends of attempts kept for another try while the store cannot write. The oldest goes first.
const KEPT_CLOSES: usize = 16 * 1024;

/// How long an end or a proof waits for another write to share a transaction with.
const CLOSE_WAIT: Duration = Duration::from_millis(5);

/// How long what could not be written waits for another try, if nothing else is written in between.
const RETRY: Duration = Duration::from_secs(1);

/// Kept answers of one transaction, which has nothing else in it: a turn waits behind one of them at most.
const ANSWERS: usize = 64;

/// Bytes of kept answers of one transaction, and beyond them what is left of the last answer.
const ANSWER_BYTES: usize = 1 << 20;

/// Transactions of kept answers that a flush waits for: more than can have waited before it.
const FLUSHED: usize = 512;

/// Commits between two checkpoints of the write-ahead log.
const COMMITS_PER_CHECKPOINT: u32 = 256;

/// How long a commit stays in the log alone where there are fewer. A checkpoint brings the log to the disk first, so
/// this is how much a power cut may take.
const CHECKPOINT_AFTER: Duration = if cfg!(test) { Duration::from_millis(100) } else { Duration::from_secs(5) };

pub(crate) type Reply = oneshot::Sender<Result<(), StoreError>>;

/// A write of several statements, done whole or not at all, and the answer to whoever asked for it.
pub(crate) trait Job: Send {
    /// Does it, within a savepoint. False undoes it.
    fn run(&mut self, conn: &Connection) -> bool;
    /// Gives the answer, once the transaction is over; an error means that nothing of it was written.
    fn finish(self: Box<Self>, ended: Result<(), StoreError>);
}

/// A [`Job`] made of a closure.
pub(crate) struct Task<T, F> {
    work: Option<F>,
    result: Option<Result<T, RecordError>>,
    reply: oneshot::Sender<Result<T, RecordError>>,
}

impl<T, F> Task<T, F> {
    pub fn new(work: F, reply: oneshot::Sender<Result<T, RecordError>>) -> Self {
        Task { work: Some(work), result: None, reply }
    }
}

impl<T: Send, F: FnOnce(&Connection) -> Result<T, RecordError> + Send> Job for Task<T, F> {
    fn run(&mut self, conn: &Connection) -> bool {
        self.result = self.work.take().map(|work| work(conn));
        matches!(self.result, Some(Ok(_)))
    }

    fn finish(self: Box<Self>, ended: Result<(), StoreError>) {
        let never_ran = || Err(RecordError::Store(StoreError("the write did not run".into())));
        let answer = match ended {
            Ok(()) => self.result.unwrap_or_else(never_ran),
            Err(error) => Err(error.into()),
        };
        // Whoever asked may have gone.
        let _ = self.reply.send(answer);
    }
}

pub(crate) enum Command {
    Open(Box<AttemptOpened>, Reply),
    Close(Closing),
    /// Takes an open entry back: nobody waited for it, so its attempt was not dispatched.
    Withdraw(AttemptId),
    /// Something waits in one of the queues beside this one.
    Wake,
    Job(Box<dyn Job>),
    /// Answers when all that was queued before is written, whichever queue it was in.
    Flush(Reply),
    Stop(Reply),
    /// Runs before the next transaction and outside of any, for a test to make trouble or end it.
    #[cfg(test)]
    Bare(Box<dyn FnOnce(&Connection) + Send>),
}

/// The end of an attempt, and how it was opened if that could not be written.
pub(crate) struct Closing {
    pub entry: AttemptClosed,
    pub opened: Option<Box<AttemptOpened>>,
}

/// What the writer takes from without being sent it, and what it counts.
#[derive(Default)]
pub(crate) struct Beside {
    pub faults: SideQueue<FaultRecord>,
    pub again: SideQueue<AnsweredAgain>,
    pub answers: KeptQueue,
    /// Upstreams' conversations. They are written before the entries of the same transaction: an entry takes its
    /// conversation from what was kept before it.
    pub conversations: SideQueue<conversation_sql::Change>,
    /// Ends that could not be written in time, and those that no entry was found for.
    pub lost_closes: AtomicU64,
}

impl Beside {
    fn is_empty(&self) -> bool {
        self.faults.is_empty() && self.again.is_empty() && self.answers.is_empty() && self.conversations.is_empty()
    }
}

pub(crate) struct Writer {
    pub conn: Connection,
    pub queue: mpsc::Receiver<Command>,
    pub checkpointer: Checkpointer,
    /// Empty the log at the end. Not for a tool: it would make a gateway beside it wait.
    pub tidy: bool,
    pub beside: Arc<Beside>,
    pub kept: VecDeque<Closing>,
    /// Seals kept answers. Without it there are none.
    pub seal: Option<SealKey>,
    pub clock: Arc<dyn WallClock>,
    pub trouble: Trouble,
}

/// The ends of a transaction's writes, given out when it is over.
#[derive(Default)]
struct Answers {
    opens: Vec<(AttemptId, Reply)>,
    jobs: Vec<Box<dyn Job>>,
    flushes: Vec<Reply>,
    stops: Vec<Reply>,
}

/// What of the queues beside the commands a transaction has written.
#[derive(Default)]
struct Side {
    proofs: Vec<FaultRecord>,
    again: Vec<AnsweredAgain>,
    conversations: Vec<conversation_sql::Change>,
}

/// What is to be done after a transaction.
#[derive(Default)]
struct After {
    /// Opened entries that nobody waited for.
    withdrawn: Vec<AttemptId>,
    flushes: Vec<(Reply, Result<(), StoreError>)>,
    stops: Vec<Reply>,
    failed: bool,
}

impl Writer {
    /// Runs until told to stop or until every sender is gone; what was queued before is written.
    pub fn run(mut self) {
        let mut batch = Vec::with_capacity(64);
        let mut stops = Vec::new();
        let mut commits = 0;
        let Ok(clock) = tokio::runtime::Builder::new_current_thread().enable_time().build() else {
            tracing::error!("the store's writer has no clock; nothing can be written");
            return;
        };
        let mut due: Option<Instant> = None;
        let mut checkpoint: Option<Instant> = None;
        loop {
            let wake = due.into_iter().chain(checkpoint).min();
            let received = clock.block_on(async {
                match wake {
                    None => Some(self.queue.recv_many(&mut batch, QUEUE).await),
                    Some(due) => tokio::time::timeout_at(due, self.queue.recv_many(&mut batch, QUEUE)).await.ok(),
                }
            });
            if received == Some(0) {
                break;
            }
            if received.is_none() && due.is_none_or(|due| due > Instant::now()) {
                // One that waits already will take these commits too.
                self.checkpointer.ask();
                (commits, checkpoint) = (0, None);
                continue;
            }
            if received.is_some() && self.put_off(&mut batch) {
                due = due.or_else(|| Some(Instant::now() + CLOSE_WAIT));
                continue;
            }
            #[cfg(test)]
            self.run_bare(&mut batch);
            let mut after = self.transaction(&mut batch);
            if !after.withdrawn.is_empty() {
                batch.extend(after.withdrawn.drain(..).map(Command::Withdraw));
                after.failed |= self.transaction(&mut batch).failed;
            }
            // While nothing can be written, answers wait too: they must not make turns wait behind one more failure.
            let mut written = !after.failed && self.write_answers();
            for _ in 0..FLUSHED {
                if !written || after.flushes.is_empty() || self.beside.answers.is_empty() {
                    break;
                }
                written = self.write_answers();
            }
            for (flush, result) in after.flushes {
                // Whoever asked may have gone.
                let _ = flush.send(result);
            }
            let mut new_stops = after.stops;
            due = match (written && !self.beside.answers.is_empty(), self.kept.is_empty() && self.beside.is_empty()) {
                // After what has been queued since.
                (true, _) => Some(Instant::now()),
                (false, false) => Some(Instant::now() + RETRY),
                (false, true) => None,
            };
            commits += 1;
            if commits >= COMMITS_PER_CHECKPOINT && self.checkpointer.ask() {
                (commits, checkpoint) = (0, None);
            } else {
                checkpoint = checkpoint.or_else(|| Some(Instant::now() + CHECKPOINT_AFTER));
            }
            if !new_stops.is_empty() {
                self.queue.close();
                stops.append(&mut new_stops);
            }
        }
        self.end(stops);
    }

    /// Keeps a batch of nothing but ends and word of other queues for the next transaction. False when there is more in it, or too many wait.
    fn put_off(&mut self, batch: &mut Vec<Command>) -> bool {
        let unhurried = batch.iter().all(|command| matches!(command, Command::Close(_) | Command::Wake));
        if !unhurried || self.kept.len() + batch.len() > QUEUE {
            return false;
        }
        for command in batch.drain(..) {
            if let Command::Close(closing) = command {
                self.kept.push_back(closing);
            }
        }
        true
    }

    /// Writes a batch and answers it.
    fn transaction(&mut self, batch: &mut Vec<Command>) -> After {
        let mut answers = Answers::default();
        // Ends that failed before come first: they are older.
        let mut closes = Vec::from(std::mem::take(&mut self.kept));
        let mut side = Side::default();
        let result = self.write(batch, &mut closes, &mut side, &mut answers);
        match &result {
            Ok(()) => self.trouble.over(),
            Err(error) => {
                self.undo();
                self.trouble.failed(error);
                // What the failed transaction did not reach.
                for command in batch.drain(..) {
                    match command {
                        Command::Open(entry, reply) => answers.opens.push((entry.attempt, reply)),
                        Command::Close(closing) => closes.push(closing),
                        Command::Withdraw(_) | Command::Wake => {}
                        Command::Job(job) => answers.jobs.push(job),
                        Command::Flush(reply) => answers.flushes.push(reply),
                        Command::Stop(reply) => answers.stops.push(reply),
                        #[cfg(test)]
                        Command::Bare(_) => {}
                    }
                }
                self.keep(closes);
                self.beside.faults.put_back(side.proofs.into());
                self.beside.again.put_back(side.again.into());
                self.beside.conversations.put_back(side.conversations.into());
            }
        }
        let mut after = After { stops: answers.stops, failed: result.is_err(), ..After::default() };
        for (attempt, reply) in answers.opens {
            if reply.send(result.clone()).is_err() && result.is_ok() {
                after.withdrawn.push(attempt);
            }
        }
        for job in answers.jobs {
            job.finish(result.clone());
        }
        after.flushes = answers.flushes.into_iter().map(|reply| (reply, result.clone())).collect();
        after
    }

    #[cfg(test)]
    fn run_bare(&self, batch: &mut Vec<Command>) {
        for command in std::mem::take(batch) {
            if let Command::Bare(work) = command {
                work(&self.conn);
            } else {
                batch.push(command);
            }
        }
    }

    fn undo(&self) {
        if !self.conn.is_autocommit() {
            // Nothing helps if this fails too; the next transaction will say so.
            let _ = self.conn.execute_batch("ROLLBACK");
        }
    }

    fn write(
        &self,
        batch: &mut Vec<Command>,
        closes: &mut Vec<Closing>,
        side: &mut Side,
        answers: &mut Answers,
    ) -> Result<(), StoreError> {
        let conn = &self.conn;
        let words = |error: rusqlite::Error| plain(&error);
        execute(conn, "BEGIN IMMEDIATE").map_err(words)?;
        let mut lost = 0;
        for closing in closes.iter() {
            lost += self.close(closing)?;
        }
        self.write_conversations(&mut side.conversations)?;
        // Taken one by one, so that a failure in the middle leaves the rest to be answered.
        let mut rest = std::mem::take(batch).into_iter();
        let mut failed = Ok(());
        for command in rest.by_ref() {
            match command {
                Command::Open(_, reply) if reply.is_closed() => {}
                Command::Open(entry, reply) => match open(conn, &entry) {
                    Ok(()) => answers.opens.push((entry.attempt, reply)),
                    Err(error) if conn.is_autocommit() => {
                        answers.opens.push((entry.attempt, reply));
                        failed = Err(plain(&error));
                    }
                    // This entry alone is at fault. If nobody listens any more there is nobody to tell.
                    Err(error) => {
                        let _ = reply.send(Err(plain(&error)));
                    }
                },
                Command::Close(closing) => {
                    failed = self.close(&closing).map(|count| lost += count);
                    closes.push(closing);
                }
                Command::Withdraw(attempt) => failed = ledger_sql::withdraw(conn, attempt).map_err(words),
                Command::Wake => {}
                Command::Job(mut job) => {
                    failed = run_job(conn, job.as_mut());
                    answers.jobs.push(job);
                }
                Command::Flush(reply) => answers.flushes.push(reply),
                Command::Stop(reply) => answers.stops.push(reply),
                #[cfg(test)]
                Command::Bare(_) => {}
            }
            if failed.is_err() {
                break;
            }
        }
        batch.extend(rest);
        failed?;
        self.write_beside(&self.beside.again, &mut side.again, |waiting, written| {
            while let Some(entry) = waiting.front() {
                ledger_sql::again(conn, entry)?;
                written.extend(waiting.pop_front());
            }
            Ok(())
        })?;
        self.write_beside(&self.beside.faults, &mut side.proofs, |waiting, written| {
            fault_sql::put(conn, waiting, written, fault_sql::ROWS)
        })?;
        execute(conn, "COMMIT").map_err(words)?;
        self.beside.lost_closes.fetch_add(lost, Ordering::Relaxed);
        Ok(())
    }

    /// Writes what has become of upstreams' conversations, moving it to `written`. One that the database will never take is
    /// lost; any other failure loses the transaction, for no entry may be written before them.
    fn write_conversations(&self, written: &mut Vec<conversation_sql::Change>) -> Result<(), StoreError> {
        let mut waiting = self.beside.conversations.take();
        let Some(seal) = &self.seal else { return Ok(()) };
        while let Some(change) = waiting.pop_front() {
            let done = match &change {
                conversation_sql::Change::Keep(kept) => match conversation_sql::sealed(seal, kept) {
                    Ok(sealed) => conversation_sql::put(&self.conn, &sealed),
                    Err(_) => {
                        // What stood there before is older than what could not be sealed.
                        self.beside.conversations.lose(1);
                        conversation_sql::remove(&self.conn, &kept.key)
                    }
                },
                conversation_sql::Change::Forget(keys) => {
                    keys.iter().try_for_each(|key| conversation_sql::remove(&self.conn, key))
                }
            };
            match done {
                Ok(()) => written.push(change),
                Err(error) if never(&error) && !self.conn.is_autocommit() => self.beside.conversations.lose(1),
                Err(error) => {
                    waiting.push_front(change);
                    self.beside.conversations.put_back(waiting);
                    return Err(plain(&error));
                }
            }
        }
        Ok(())
    }

    /// Writes the end of an attempt; answers how many were lost, which is none or this one. One that the database will
    /// never take is lost, so that it does not stop all others.
    fn close(&self, closing: &Closing) -> Result<u64, StoreError> {
        match ledger_sql::close(&self.conn, &closing.entry, closing.opened.as_deref()) {
            Ok(Closed::Written) => Ok(0),
            Ok(Closed::NoEntry) => {
                tracing::warn!(attempt = %closing.entry.attempt, "an attempt ended that has no entry in the ledger");
                Ok(1)
            }
            Err(error) if never(&error) && !self.conn.is_autocommit() => {
                tracing::error!(attempt = %closing.entry.attempt, %error, "the end of an attempt cannot be written");
                Ok(1)
            }
            Err(error) => Err(plain(&error)),
        }
    }

    /// Writes what waits in a queue, moving it to `written`. What fails by itself goes back to wait, and the
    /// transaction goes on; it is an error only if the whole transaction is lost.
    fn write_beside<T>(
        &self,
        queue: &SideQueue<T>,
        written: &mut Vec<T>,
        put: impl FnOnce(&mut VecDeque<T>, &mut Vec<T>) -> rusqlite::Result<()>,
    ) -> Result<(), StoreError> {
        let mut waiting = queue.take();
        if waiting.is_empty() {
            return Ok(());
        }
        let result = put(&mut waiting, written);
        if !waiting.is_empty() {
            queue.put_back(waiting);
        }
        match result {
            Ok(()) => Ok(()),
            Err(error) if self.conn.is_autocommit() => Err(plain(&error)),
            Err(error) => {
                tracing::warn!(%error, "the store could not write down everything beside the turns");
                Ok(())
            }
        }
    }

    /// Writes the oldest kept answers that wait, in a transaction of their own. False if that failed; they then wait for
    /// the next try.
    fn write_answers(&mut self) -> bool {
        let changes = self.beside.answers.take(ANSWERS, ANSWER_BYTES);
        let Some(seal) = self.seal.as_ref().filter(|_| !changes.is_empty()) else { return true };
        let result = put_answers(&self.conn, seal, &changes, self.clock.unix_ms());
        match result {
            Ok(lost) => self.beside.answers.lose(lost),
            Err(error) => {
                self.undo();
                self.trouble.failed(&plain(&error));
                self.beside.answers.put_back(changes);
                return false;
            }
        }
        true
    }

    fn keep(&mut self, closes: Vec<Closing>) {
        self.kept.extend(closes);
        let over = self.kept.len().saturating_sub(KEPT_CLOSES);
        self.kept.drain(..over);
        self.beside.lost_closes.fetch_add(over as u64, Ordering::Relaxed);
    }

    /// One more try for what was kept, then everything into the database file, and the log beside it goes.
    fn end(mut self, stops: Vec<Reply>) {
        let mut result = Ok(());
        self.beside.faults.close();
        self.beside.again.close();
        self.beside.answers.close();
        self.beside.conversations.close();
        if !self.kept.is_empty() || !self.beside.is_empty() {
            let mut written = !self.transaction(&mut Vec::new()).failed;
            while written && !self.beside.answers.is_empty() {
                written = self.write_answers();
            }
            let left = self.kept.len();
            if left > 0 {
                self.beside.lost_closes.fetch_add(left as u64, Ordering::Relaxed);
                result = Err(StoreError(format!("{left} ledger entries could not be closed")));
            }
        }
        self.beside.again.give_up();
        self.beside.conversations.give_up();
        let answers = self.beside.answers.take(usize::MAX, usize::MAX);
        self.beside.answers.lose(answers.len());
        let unwritten = self.beside.faults.give_up();
        if unwritten > 0 {
            tracing::warn!(unwritten, "faults were lost, as the store could not write them down");
        }
        self.checkpointer.stop();
        let checkpointed = match self.tidy {
            true => self.conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())),
            false => Ok(()),
        };
        let closed = self.conn.close().map_err(|(_, error)| error);
        let result = result.and(checkpointed.and(closed).map_err(|error| plain(&error)));
        for stop in stops {
            // Whoever asked may have gone.
            let _ = stop.send(result.clone());
        }
    }
}

/// Writes an entry, and takes the conversation that its attempt goes on with.
fn open(conn: &Connection, entry: &AttemptOpened) -> rusqlite::Result<()> {
    if let Some(taken) = &entry.conversation {
        conversation_sql::remove(conn, taken)?;
    }
    ledger_sql::open(conn, entry)
}

/// In one transaction. Answers how many were left out because they alone could not be written.
fn put_answers(conn: &Connection, seal: &SealKey, changes: &[Change], now_ms: u64) -> rusqlite::Result<usize> {
    let mut lost = 0;
    execute(conn, "BEGIN IMMEDIATE")?;
    for change in changes {
        let sealed = match change {
            Change::Keep(answer) => kept_sql::sealed(seal, answer),
            Change::Forget(_) => Ok(Vec::new()),
        };
        let Ok(sealed) = sealed else {
            lost += 1;
            continue;
        };
        match kept_sql::apply(conn, change, &sealed, now_ms) {
            Ok(()) => {}
            Err(error) if never(&error) && !conn.is_autocommit() => lost += 1,
            Err(error) => return Err(error),
        }
    }
    execute(conn, "COMMIT")?;
    Ok(lost)
}

/// The row itself is at fault; another try would fail as well.
fn never(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode as Code;
    matches!(error.sqlite_error_code(), Some(Code::ConstraintViolation | Code::TypeMismatch | Code::TooBig))
}

fn execute(conn: &Connection, sql: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(sql)?.execute([]).map(drop)
}

/// `Err` only if the whole transaction is lost.
fn run_job(conn: &Connection, job: &mut dyn Job) -> Result<(), StoreError> {
    let words = |error: rusqlite::Error| plain(&error);
    conn.execute_batch("SAVEPOINT job").map_err(words)?;
    let kept = job.run(conn);
    if conn.is_autocommit() {
        return Err(StoreError("the disk failed, or is full: the transaction was undone".into()));
    }
    conn.execute_batch(if kept { "RELEASE job" } else { "ROLLBACK TO job; RELEASE job" }).map_err(words)
}
