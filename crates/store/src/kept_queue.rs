//! Kept answers on their way to the writer, in the order in which they were kept and forgotten. Nobody waits for them,
//! so they are bounded by number and by bytes: an answer that finds no room lives as long as this process, and is
//! counted. To forget one takes next to nothing and has room of its own, for an answer that was delivered must not be
//! given again after a restart.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use turnkeep_engine::ports::{KeptAnswer, KeptKey};

/// Answers that may wait.
const ANSWERS: usize = 1024;
/// Bytes of the answers that may wait.
const BYTES: usize = 32 << 20;
/// Answers and keys to forget that may wait.
const CHANGES: usize = 16 * 1024;

/// What is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Keep(KeptAnswer),
    Forget(KeptKey),
}

impl Change {
    fn bytes(&self) -> usize {
        match self {
            Change::Keep(answer) => answer.content.len(),
            Change::Forget(_) => 0,
        }
    }

    fn is_answer(&self) -> bool {
        match self {
            Change::Keep(_) => true,
            Change::Forget(_) => false,
        }
    }
}

#[derive(Default)]
pub(crate) struct KeptQueue {
    waiting: Mutex<Waiting>,
    lost: AtomicU64,
}

#[derive(Default)]
struct Waiting {
    changes: VecDeque<Change>,
    answers: usize,
    bytes: usize,
    closed: bool,
}

impl Waiting {
    fn add(&mut self, change: Change) {
        self.answers += usize::from(change.is_answer());
        self.bytes += change.bytes();
        self.changes.push_back(change);
    }

    fn pop(&mut self) -> Option<Change> {
        let change = self.changes.pop_front()?;
        self.answers -= usize::from(change.is_answer());
        self.bytes -= change.bytes();
        Some(change)
    }
}

impl KeptQueue {
    /// Puts a change in. True if it is alone there, so that the writer must be told.
    pub fn push(&self, change: Change) -> bool {
        let mut waiting = self.waiting.lock();
        let room = match &change {
            Change::Keep(answer) => waiting.answers < ANSWERS && waiting.bytes + answer.content.len() <= BYTES,
            Change::Forget(_) => true,
        };
        if waiting.closed || !room || waiting.changes.len() >= CHANGES {
            drop(waiting);
            self.lose(1);
            return false;
        }
        waiting.add(change);
        waiting.changes.len() == 1
    }

    /// The oldest ones: at most `count`, and none after those that make up `bytes`.
    pub fn take(&self, count: usize, bytes: usize) -> Vec<Change> {
        let mut waiting = self.waiting.lock();
        let (mut taken, mut size) = (Vec::new(), 0);
        while taken.len() < count && size < bytes {
            let Some(change) = waiting.pop() else { break };
            size += change.bytes();
            taken.push(change);
        }
        taken
    }

    /// Puts back what could not be written, before what came since. It may for a while be more than there is room for.
    pub fn put_back(&self, older: Vec<Change>) {
        let mut waiting = self.waiting.lock();
        let since = std::mem::take(&mut waiting.changes);
        (waiting.answers, waiting.bytes) = (0, 0);
        for change in older.into_iter().chain(since) {
            waiting.add(change);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.lock().changes.is_empty()
    }

    /// Refuses what comes from now on. What waits can still be taken.
    pub fn close(&self) {
        self.waiting.lock().closed = true;
    }

    /// Counts what was not written.
    pub fn lose(&self, count: usize) {
        self.lost.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnkeep_base::Fingerprint;
    use turnkeep_engine::ports::KeptFor;

    fn key(number: usize) -> KeptKey {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        KeptKey { kept: KeptFor::Held, caller: "laptop".into(), key: Fingerprint(bytes) }
    }

    fn answer(number: usize, bytes: usize) -> Change {
        Change::Keep(KeptAnswer { key: key(number), until_ms: 1, content: vec![0; bytes].into() })
    }

    #[test]
    fn without_room_an_answer_is_lost_and_counted_and_one_can_still_be_forgotten() {
        let queue = KeptQueue::default();
        assert!(queue.push(answer(0, BYTES)));
        assert!(!queue.push(answer(1, 1)));
        assert!(!queue.push(Change::Forget(key(0))));
        assert_eq!(queue.lost(), 1);
        assert_eq!(queue.take(9, 1), [answer(0, BYTES)]);
        assert_eq!(queue.take(9, 1), [Change::Forget(key(0))]);
        assert!(queue.is_empty() && queue.push(answer(2, BYTES)));
        for number in 0..ANSWERS {
            queue.push(answer(number, 0));
        }
        assert_eq!(queue.lost(), 2);
    }

    #[test]
    fn what_could_not_be_written_goes_before_what_came_since() {
        let queue = KeptQueue::default();
        queue.push(answer(1, 5));
        let taken = queue.take(1, 9);
        queue.push(Change::Forget(key(1)));
        queue.put_back(taken);
        assert_eq!(queue.take(9, 9), [answer(1, 5), Change::Forget(key(1))]);
        queue.close();
        assert!(!queue.push(answer(2, 1)) && queue.is_empty() && queue.lost() == 1);
    }
}
