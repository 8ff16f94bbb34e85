//! What is kept for how long. Deleting goes in small batches, each a write of its own, so that a turn's entry never
//! waits behind more than one of them.

use crate::error::RecordError;
use crate::sqlite::SqliteStore;
use crate::{fault_sql, ledger_sql};
use rusqlite::Connection;
use turnkeep_base::{AttemptId, TurnId};
use turnkeep_engine::ports::StoreError;

/// Rows of one batch: a millisecond or so.
pub(crate) const BATCH: usize = 256;

/// The time part of a turn's id has 48 bits.
const LAST_MS: u64 = (1 << 48) - 1;

/// How long things are kept, in milliseconds, counted back from `now_ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// Turns and their content. This version writes none of them down, so nothing is deleted by it.
    pub turns_ms: u64,
    /// Proofs of faults.
    pub evidence_ms: u64,
    /// Ledger entries, by the time of their turn. Entries that are open stay whatever their age.
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
}

impl Keep {
    /// Proofs older than this go; Unix milliseconds.
    pub(crate) fn faults_from(&self) -> u64 {
        self.now_ms.saturating_sub(self.evidence_ms)
    }

    /// Entries before this one go.
    pub(crate) fn ledger_from(&self) -> AttemptId {
        let from_ms = self.now_ms.saturating_sub(self.ledger_ms).min(LAST_MS);
        AttemptId { turn: TurnId::new(from_ms, 0), number: 0 }
    }
}

pub(crate) async fn sqlite(store: &SqliteStore, keep: Keep) -> Result<Pruned, StoreError> {
    let (faults_from, ledger_from) = (keep.faults_from(), keep.ledger_from());
    let faults = batches(store, move |conn| fault_sql::prune(conn, faults_from, BATCH)).await?;
    let ledger = batches(store, move |conn| ledger_sql::prune(conn, ledger_from, BATCH)).await?;
    Ok(Pruned { faults, ledger })
}

/// Deletes one batch after the other until one is not full.
async fn batches(
    store: &SqliteStore,
    delete: impl Fn(&Connection) -> rusqlite::Result<usize> + Send + Copy + 'static,
) -> Result<u64, RecordError> {
    let mut all = 0;
    loop {
        let deleted = store.write(move |conn| Ok(delete(conn)?)).await?;
        all += deleted as u64;
        if deleted < BATCH {
            return Ok(all);
        }
    }
}
