//! What nobody waits for, on its way to the writer: proofs of faults, and entries of turns that no upstream was asked for.
//! Whoever hands one over never waits: it is put here, in a bounded number, and the writer takes all of them along with
//! its next transaction. They have places of their own, so that a storm of faults takes no turn's place in the writer's
//! queue. What finds no room is lost and counted.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

/// Things that may wait in one queue.
pub(crate) const WAITING: usize = 4096;

pub(crate) struct SideQueue<T> {
    waiting: Mutex<Waiting<T>>,
    lost: AtomicU64,
}

struct Waiting<T> {
    records: VecDeque<T>,
    closed: bool,
}

impl<T> Default for SideQueue<T> {
    fn default() -> Self {
        let waiting = Waiting { records: VecDeque::new(), closed: false };
        SideQueue { waiting: Mutex::new(waiting), lost: AtomicU64::new(0) }
    }
}

impl<T> SideQueue<T> {
    /// Puts one in. True if it is alone there, so that the writer must be told; who comes after it need not.
    pub fn push(&self, record: T) -> bool {
        let mut waiting = self.waiting.lock();
        if waiting.closed || waiting.records.len() >= WAITING {
            drop(waiting);
            self.lose(1);
            return false;
        }
        waiting.records.push_back(record);
        waiting.records.len() == 1
    }

    /// All of them, oldest first.
    pub fn take(&self) -> VecDeque<T> {
        std::mem::take(&mut self.waiting.lock().records)
    }

    /// Puts back what could not be written, before those that came since. Beyond the bound the newest are lost.
    pub fn put_back(&self, mut older: VecDeque<T>) {
        let mut waiting = self.waiting.lock();
        older.append(&mut waiting.records);
        let over = older.len().saturating_sub(WAITING);
        older.truncate(WAITING);
        waiting.records = older;
        drop(waiting);
        self.lose(over);
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.waiting.lock().records.is_empty()
    }

    /// Refuses what comes from now on. What waits can still be taken.
    pub fn close(&self) {
        self.waiting.lock().closed = true;
    }

    /// Counts the ones that wait as lost; nobody will write them.
    pub fn give_up(&self) -> usize {
        self.close();
        let left = self.take().len();
        self.lose(left);
        left
    }

    /// How many were lost.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Counts what was not written.
    pub fn lose(&self, count: usize) {
        self.lost.fetch_add(count as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::tests::record;

    #[test]
    fn only_the_first_to_wait_asks_for_the_writer() {
        let queue = SideQueue::default();
        assert_eq!([queue.push(record(1)), queue.push(record(2))], [true, false]);
        assert_eq!(queue.take().len(), 2);
        assert!(queue.push(record(3)));
    }

    #[test]
    fn what_finds_no_room_is_lost_and_counted_and_what_waited_stays() {
        let queue = SideQueue::default();
        for at_ms in 0..=WAITING as u64 {
            queue.push(record(at_ms));
        }
        assert_eq!(queue.lost(), 1);
        let taken = queue.take();
        queue.push(record(9_999));
        queue.push(record(10_000));
        queue.put_back(taken);
        let kept = queue.take();
        assert_eq!((kept.len(), kept[0].at_ms, kept[WAITING - 1].at_ms), (WAITING, 0, WAITING as u64 - 1));
        assert_eq!(queue.lost(), 3);
    }

    #[test]
    fn a_closed_queue_takes_nothing_and_gives_what_it_had() {
        let queue = SideQueue::default();
        queue.push(record(1));
        queue.close();
        assert!(!queue.push(record(2)));
        assert_eq!((queue.lost(), queue.give_up(), queue.lost(), queue.is_empty()), (1, 1, 2, true));
    }
}
