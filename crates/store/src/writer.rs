//! The one thread that writes. It takes everything that waits right now into one transaction and never waits for more:
//! under load the cost of a commit is shared, and a lone write is not delayed. Only the ends of attempts and
//! the proofs of faults, which nobody waits for, may wait [`CLOSE_WAIT`] for a transaction of others to travel with.
//!
//! A write that fails is answered in words and the thread goes on. The end of an attempt has nobody to be told, so one
//! that could not be written is kept, in a bounded number, and tried again with the next transaction, or alone after
//! [`RETRY`]. Proofs are kept in the same way; they are written last, and their failure costs nothing else its commit.

use crate::checkpoint::Checkpointer;
use crate::error::{RecordError, plain};
use crate::fault_queue::FaultQueue;
use crate::{fault_sql, ledger_sql};
use rusqlite::Connection;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use turnkeep_base::AttemptId;
use turnkeep_engine::ports::{AttemptClosed, AttemptOpened, FaultRecord, StoreError};

/// Writes that may wait; whoever comes then waits for a place.
pub(crate) const QUEUE: usize = 1024;

/// Ends of attempts kept for another try while the store cannot write. The oldest goes first.
const KEPT_CLOSES: usize = 16 * 1024;

/// How long an end or a proof waits for another write to share a transaction with.
const CLOSE_WAIT: Duration = Duration::from_millis(5);

/// How long what could not be written waits for another try, if nothing else is written in between.
const RETRY: Duration = Duration::from_secs(1);

/// Commits between two checkpoints of the write-ahead log.
const COMMITS_PER_CHECKPOINT: u32 = 256;

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
    Close(AttemptClosed),
    /// Takes an open entry back: nobody waited for it, so its attempt was not dispatched.
    Withdraw(AttemptId),
    /// There are faults to be written.
    Faults,
    Job(Box<dyn Job>),
    Stop(Reply),
}

pub(crate) struct Writer {
    pub conn: Connection,
    pub queue: mpsc::Receiver<Command>,
    pub checkpointer: Checkpointer,
    /// Empty the log at the end. Not for a tool: it would make a gateway beside it wait.
    pub tidy: bool,
    pub lost_closes: Arc<AtomicU64>,
    pub kept: VecDeque<AttemptClosed>,
    pub faults: Arc<FaultQueue>,
}

/// The ends of a transaction's writes, given out when it is over.
#[derive(Default)]
struct Answers {
    opens: Vec<(AttemptId, Reply)>,
    jobs: Vec<Box<dyn Job>>,
    stops: Vec<Reply>,
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
        loop {
            let received = clock.block_on(async {
                match due {
                    None => Some(self.queue.recv_many(&mut batch, QUEUE).await),
                    Some(due) => tokio::time::timeout_at(due, self.queue.recv_many(&mut batch, QUEUE)).await.ok(),
                }
            });
            if received == Some(0) {
                break;
            }
            if received.is_some() && self.put_off(&mut batch) {
                due = due.or_else(|| Some(Instant::now() + CLOSE_WAIT));
                continue;
            }
            let (withdrawn, mut new_stops) = self.transaction(&mut batch);
            if !withdrawn.is_empty() {
                batch.extend(withdrawn.into_iter().map(Command::Withdraw));
                self.transaction(&mut batch);
            }
            let left = !self.kept.is_empty() || !self.faults.is_empty();
            due = left.then(|| Instant::now() + RETRY);
            commits += 1;
            if commits >= COMMITS_PER_CHECKPOINT && self.checkpointer.ask() {
                commits = 0;
            }
            if !new_stops.is_empty() {
                self.queue.close();
                stops.append(&mut new_stops);
            }
        }
        self.end(stops);
    }

    /// Keeps a batch of nothing but ends and word of faults for the next transaction. False when there is more in it, or too many wait.
    fn put_off(&mut self, batch: &mut Vec<Command>) -> bool {
        let unhurried = batch.iter().all(|command| matches!(command, Command::Close(_) | Command::Faults));
        if !unhurried || self.kept.len() + batch.len() > QUEUE {
            return false;
        }
        for command in batch.drain(..) {
            if let Command::Close(entry) = command {
                self.kept.push_back(entry);
            }
        }
        true
    }

    /// Writes a batch and answers it. Returns the opened entries that nobody waited for, and the requests to stop.
    fn transaction(&mut self, batch: &mut Vec<Command>) -> (Vec<AttemptId>, Vec<Reply>) {
        let mut answers = Answers::default();
        // Ends that failed before come first: they are older.
        let mut closes = Vec::from(std::mem::take(&mut self.kept));
        let mut proofs = Vec::new();
        let result = self.write(batch, &mut closes, &mut proofs, &mut answers);
        if let Err(error) = &result {
            if !self.conn.is_autocommit() {
                // Nothing helps if this fails too; the next transaction will say so.
                let _ = self.conn.execute_batch("ROLLBACK");
            }
            tracing::warn!(%error, "the store could not write");
            // What the failed transaction did not reach.
            for command in batch.drain(..) {
                match command {
                    Command::Open(entry, reply) => answers.opens.push((entry.attempt, reply)),
                    Command::Close(entry) => closes.push(entry),
                    Command::Withdraw(_) | Command::Faults => {}
                    Command::Job(job) => answers.jobs.push(job),
                    Command::Stop(reply) => answers.stops.push(reply),
                }
            }
            self.keep(closes);
            self.faults.put_back(proofs.into());
        }
        let mut withdrawn = Vec::new();
        for (attempt, reply) in answers.opens {
            if reply.send(result.clone()).is_err() && result.is_ok() {
                withdrawn.push(attempt);
            }
        }
        for job in answers.jobs {
            job.finish(result.clone());
        }
        (withdrawn, answers.stops)
    }

    fn write(
        &mut self,
        batch: &mut Vec<Command>,
        closes: &mut Vec<AttemptClosed>,
        proofs: &mut Vec<FaultRecord>,
        answers: &mut Answers,
    ) -> Result<(), StoreError> {
        let conn = &self.conn;
        let words = |error: rusqlite::Error| plain(&error);
        execute(conn, "BEGIN IMMEDIATE").map_err(words)?;
        for entry in closes.iter() {
            ledger_sql::close(conn, entry).map_err(words)?;
        }
        // Taken one by one, so that a failure in the middle leaves the rest to be answered.
        let mut rest = std::mem::take(batch).into_iter();
        let mut failed = Ok(());
        for command in rest.by_ref() {
            match command {
                Command::Open(_, reply) if reply.is_closed() => {}
                Command::Open(entry, reply) => match ledger_sql::open(conn, &entry) {
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
                Command::Close(entry) => {
                    failed = ledger_sql::close(conn, &entry).map_err(words);
                    closes.push(entry);
                }
                Command::Withdraw(attempt) => failed = ledger_sql::withdraw(conn, attempt).map_err(words),
                Command::Faults => {}
                Command::Job(mut job) => {
                    failed = run_job(conn, job.as_mut());
                    answers.jobs.push(job);
                }
                Command::Stop(reply) => answers.stops.push(reply),
            }
            if failed.is_err() {
                break;
            }
        }
        batch.extend(rest);
        failed?;
        self.write_faults(proofs)?;
        execute(conn, "COMMIT").map_err(words)
    }

    /// Writes the faults that wait, moving them to `written`. Those that fail by themselves go back to wait, and the
    /// transaction goes on; it is an error only if the whole transaction is lost.
    fn write_faults(&self, written: &mut Vec<FaultRecord>) -> Result<(), StoreError> {
        let mut waiting = self.faults.take();
        if waiting.is_empty() {
            return Ok(());
        }
        let result = fault_sql::put(&self.conn, &mut waiting, written, fault_sql::ROWS);
        if !waiting.is_empty() {
            self.faults.put_back(waiting);
        }
        match result {
            Ok(()) => Ok(()),
            Err(error) if self.conn.is_autocommit() => Err(plain(&error)),
            Err(error) => {
                tracing::warn!(%error, "the store could not write down every fault");
                Ok(())
            }
        }
    }

    fn keep(&mut self, closes: Vec<AttemptClosed>) {
        self.kept.extend(closes);
        let over = self.kept.len().saturating_sub(KEPT_CLOSES);
        self.kept.drain(..over);
        self.lost_closes.fetch_add(over as u64, Ordering::Relaxed);
    }

    /// One more try for what was kept, then everything into the database file, and the log beside it goes.
    fn end(mut self, stops: Vec<Reply>) {
        let mut result = Ok(());
        self.faults.close();
        if !self.kept.is_empty() || !self.faults.is_empty() {
            self.transaction(&mut Vec::new());
            let left = self.kept.len();
            if left > 0 {
                self.lost_closes.fetch_add(left as u64, Ordering::Relaxed);
                result = Err(StoreError(format!("{left} ledger entries could not be closed")));
            }
        }
        let unwritten = self.faults.give_up();
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
