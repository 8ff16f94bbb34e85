//! What is kept for how long. Deleting goes in small batches, each a write of its own, so that a turn's entry never
//! waits behind more than one of them.

use crate::error::RecordError;
use crate::sqlite::SqliteStore;
use crate::usage_sql::DAY_MS;
use crate::{conversation_sql, fault_sql, kept_sql, ledger_sql, stored_sql, usage_sql};
use rusqlite::Connection;
use turnkeep_base::{AttemptId, TurnId};
use turnkeep_engine::ports::StoreError;

/// Rows of one batch: a millisecond or so.
pub(crate) const BATCH: usize = 256;

/// Kept answers of one batch. One may be megabytes long.
const ANSWERS: usize = 16;

/// What callers have spent is kept at least this long: a month's budget is counted from it.
const SPEND_MS: u64 = 32 * DAY_MS;

/// The time part of a turn's id has 48 bits.
const LAST_MS: u64 = (1 << 48) - 1;

/// How long things are kept, in milliseconds, counted back from `now_ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// Content of turns: the answers that outlive their turn, each of which also has an end of its own.
    pub turns_ms: u64,
    /// Proofs of faults.
    pub evidence_ms: u64,
    /// Ledger entries, by the time of their turn. Entries that are open stay whatever their age. What callers have spent
    /// on a day is kept as long, and at least 32 days.
    pub ledger_ms: u64,
    /// Now, Unix milliseconds. A time that is wrong towards the future deletes more than was meant.
    pub now_ms: u64,
}

/// What pruning has deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Proofs of faults.
    pub faults: u64,
    /// Ledger entries.
    pub ledger: u64,
    /// Kept answers, stored responses and conversations, and upstreams' conversations.
    pub answers: u64,
    /// Days of a caller's spending.
    pub spend: u64,
}

impl Keep {
    /// Proofs older than this go; Unix milliseconds.
    pub(crate) fn faults_from(&self) -> u64 {
        self.now_ms.saturating_sub(self.evidence_ms)
    }

    /// Answers written before this go; Unix milliseconds.
    pub(crate) fn answers_from(&self) -> u64 {
        self.now_ms.saturating_sub(self.turns_ms)
    }

    /// Spending of days before this one goes; days since 1970.
    pub(crate) fn spend_from(&self) -> u64 {
        self.now_ms.saturating_sub(self.ledger_ms.max(SPEND_MS)) / DAY_MS
    }

    /// Entries before this one go.
    pub(crate) fn ledger_from(&self) -> AttemptId {
        let from_ms = self.now_ms.saturating_sub(self.ledger_ms).min(LAST_MS);
        AttemptId { turn: TurnId::new(from_ms, 0), number: 0 }
    }
}

pub(crate) async fn sqlite(store: &SqliteStore, keep: Keep) -> Result<Pruned, StoreError> {
    let (faults_from, ledger_from) = (keep.faults_from(), keep.ledger_from());
    let (answers_from, spend_from, now_ms) = (keep.answers_from(), keep.spend_from(), keep.now_ms);
    let faults = batches(store, BATCH, move |conn| fault_sql::prune(conn, faults_from, BATCH)).await?;
    let ledger = batches(store, BATCH, move |conn| ledger_sql::prune(conn, ledger_from, BATCH)).await?;
    let spend = batches(store, BATCH, move |conn| usage_sql::prune_spend(conn, spend_from, BATCH)).await?;
    let over = batches(store, ANSWERS, move |conn| kept_sql::prune(conn, now_ms, answers_from, ANSWERS)).await?;
    let too_many = batches(store, ANSWERS, move |conn| kept_sql::shrink(conn, ANSWERS)).await?;
    let ended = batches(store, ANSWERS, move |conn| stored_sql::prune(conn, now_ms, ANSWERS)).await?;
    let ended = ended + store.stored.prune(now_ms);
    let ended = ended + batches(store, BATCH, move |conn| conversation_sql::prune(conn, now_ms, BATCH)).await?;
    Ok(Pruned { faults, ledger, answers: over + too_many + ended, spend })
}

/// Deletes one batch after the other until one is not full.
async fn batches(
    store: &SqliteStore,
    full: usize,
    delete: impl Fn(&Connection) -> rusqlite::Result<usize> + Send + Copy + 'static,
) -> Result<u64, RecordError> {
    let mut all = 0;
    loop {
        let deleted = store.write(move |conn| Ok(delete(conn)?)).await?;
        all += deleted as u64;
        if deleted < full {
            return Ok(all);
        }
    }
}
