//! Kept answers in memory, for as long as the store lives. Bounded; what finds no room is lost and counted.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use turnkeep_engine::ports::{KeptAnswer, KeptKey};

/// Answers kept.
const ANSWERS: usize = 4096;
/// Bytes of them.
const BYTES: usize = 192 << 20;

#[derive(Default)]
pub(crate) struct MemoryKept {
    answers: Mutex<BTreeMap<KeptKey, KeptAnswer>>,
    lost: AtomicU64,
}

impl MemoryKept {
    pub fn keep(&self, answer: KeptAnswer) {
        let mut answers = self.answers.lock();
        answers.remove(&answer.key);
        let bytes: usize = answers.values().map(|kept| kept.content.len()).sum();
        if answers.len() >= ANSWERS || bytes + answer.content.len() > BYTES {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        answers.insert(answer.key.clone(), answer);
    }

    pub fn forget(&self, key: &KeptKey) {
        self.answers.lock().remove(key);
    }

    /// Those whose time is not over, the soonest to end first; the others go.
    pub fn load(&self, now_ms: u64) -> Vec<KeptAnswer> {
        self.prune(now_ms);
        let mut answers: Vec<KeptAnswer> = self.answers.lock().values().cloned().collect();
        answers.sort_by_key(|answer| answer.until_ms);
        answers
    }

    pub fn prune(&self, now_ms: u64) -> u64 {
        let mut answers = self.answers.lock();
        let had = answers.len();
        answers.retain(|_, answer| answer.until_ms > now_ms);
        (had - answers.len()) as u64
    }

    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}
