//! Proofs of faults in memory, the newest of them. They have a lock of their own: whoever notes one must not wait
//! behind a sum over the whole ledger.

use crate::fault;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use turnkeep_base::{AccountId, TurnId};
use turnkeep_engine::ports::FaultRecord;

/// Proofs kept.
const KEPT: usize = 10_000;

/// Proofs read of one turn.
const OF_TURN: usize = 1_000;

#[derive(Default)]
pub(crate) struct MemoryFaults {
    rows: Mutex<Rows>,
    lost: AtomicU64,
}

#[derive(Default)]
struct Rows {
    records: VecDeque<FaultRecord>,
    closed: bool,
}

impl MemoryFaults {
    /// Keeps one; the oldest gives way.
    pub fn note(&self, record: FaultRecord) {
        let record = fault::bounded(record);
        let mut rows = self.rows.lock();
        if rows.closed {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if rows.records.len() >= KEPT {
            rows.records.pop_front();
        }
        rows.records.push_back(record);
    }

    /// The account's, newest first. Of one time the later noted is the newer.
    pub fn of_account(&self, id: &AccountId, limit: usize) -> Vec<FaultRecord> {
        let rows = self.rows.lock();
        let mut found: Vec<_> = rows.records.iter().rev().filter(|row| row.account.as_ref() == Some(id)).collect();
        found.sort_by_key(|row| std::cmp::Reverse(row.at_ms));
        found.into_iter().take(limit).cloned().collect()
    }

    /// The turn's, oldest first.
    pub fn of_turn(&self, turn: TurnId) -> Vec<FaultRecord> {
        let rows = self.rows.lock();
        let mut found: Vec<_> = rows.records.iter().filter(|row| row.turn == turn).collect();
        found.sort_by_key(|row| row.at_ms);
        found.into_iter().take(OF_TURN).cloned().collect()
    }

    /// Deletes those from before that time; answers how many.
    pub fn prune(&self, before_ms: u64) -> usize {
        let mut rows = self.rows.lock();
        let had = rows.records.len();
        rows.records.retain(|row| row.at_ms >= before_ms);
        had - rows.records.len()
    }

    /// Refuses what comes from now on.
    pub fn close(&self) {
        self.rows.lock().closed = true;
    }

    /// How many came after that.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::tests::record;

    #[test]
    fn beyond_the_bound_the_oldest_gives_way() {
        let faults = MemoryFaults::default();
        for at_ms in 0..=KEPT as u64 {
            faults.note(record(at_ms));
        }
        assert!(faults.of_turn(TurnId::new(0, 0)).is_empty());
        assert_eq!(faults.of_turn(TurnId::new(1, 0)), [record(1)]);
    }
}
