//! Entries that could not be opened. A gateway that serves on while the store cannot write closes their attempts all the
//! same; with what is remembered here such an entry is written whole when the store can again. One that was refused with
//! its turn is closed at once as never sent, and leaves with that.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use turnkeep_base::AttemptId;
use turnkeep_engine::ports::AttemptOpened;

/// Entries remembered. Beyond it the oldest is given up; its end is then counted as lost.
const REMEMBERED: usize = 16 * 1024;

#[derive(Default)]
pub(crate) struct Unopened {
    entries: Mutex<BTreeMap<AttemptId, Box<AttemptOpened>>>,
    count: AtomicUsize,
}

impl Unopened {
    pub fn put(&self, entry: Box<AttemptOpened>) {
        let mut entries = self.entries.lock();
        entries.insert(entry.attempt, entry);
        if entries.len() > REMEMBERED {
            entries.pop_first();
        }
        self.count.store(entries.len(), Ordering::Relaxed);
    }

    /// Costs nothing while there are none.
    pub fn take(&self, attempt: AttemptId) -> Option<Box<AttemptOpened>> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut entries = self.entries.lock();
        let entry = entries.remove(&attempt);
        self.count.store(entries.len(), Ordering::Relaxed);
        entry
    }
}
