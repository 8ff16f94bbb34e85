//! The tapes of the turns that run, and of the latest that have ended. Bounded by turns, by steps and bytes of one turn, and
//! by bytes of all of them: the oldest that has ended gives way first; where only running ones are left, they are cut.

use super::tape::Tape;
use super::trace::{Head, Trace};
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::time::Instant;
use turnkeep_base::TurnId;

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Turns that have ended.
    pub turns: usize,
    /// Steps of one turn.
    pub steps: usize,
    /// Bytes of one turn, in memory.
    pub turn_bytes: usize,
    /// Bytes of all turns, in memory.
    pub bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { turns: 1_024, steps: 512, turn_bytes: 128 << 10, bytes: 16 << 20 }
    }
}

/// The tapes.
#[derive(Debug, Default)]
pub struct Ring {
    bounds: Bounds,
    drawn: AtomicUsize,
    shelf: Mutex<Shelf>,
}

#[derive(Debug, Default)]
struct Shelf {
    running: BTreeMap<TurnId, Arc<Tape>>,
    ended: VecDeque<Arc<Tape>>,
}

impl Ring {
    /// An empty one.
    pub fn new(bounds: Bounds) -> Arc<Ring> {
        Arc::new(Ring { bounds, ..Ring::default() })
    }

    /// How much it keeps.
    pub fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// Bytes of room that tapes have drawn; what they hold beside it are at most a few hundred bytes of each.
    pub fn drawn(&self) -> usize {
        self.drawn.load(Ordering::Relaxed)
    }

    /// How many turns are kept: those that run, and those that have ended.
    pub fn len(&self) -> (usize, usize) {
        let shelf = self.shelf.lock();
        (shelf.running.len(), shelf.ended.len())
    }

    /// The turns that have ended and are kept, the oldest first.
    pub fn ended(&self) -> Vec<TurnId> {
        self.shelf.lock().ended.iter().map(|tape| tape.turn()).collect()
    }

    /// None is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == (0, 0)
    }

    /// The tape of a turn that begins now. `origin` is what the gateway's moments count from, `key` that of its hashes.
    pub fn begin(self: &Arc<Self>, turn: TurnId, origin: Instant, key: [u8; 32], head: Head) -> Arc<Tape> {
        let tape = Arc::new(Tape::begin(turn, origin, key, head, Arc::downgrade(self)));
        self.shelf.lock().running.insert(turn, tape.clone());
        tape
    }

    /// The turn is over: its tape is kept for as long as there is room.
    pub fn end(&self, tape: &Arc<Tape>) {
        tape.end();
        let gone = {
            let mut shelf = self.shelf.lock();
            let mine = shelf.running.get(&tape.turn()).is_some_and(|running| Arc::ptr_eq(running, tape));
            if !mine {
                return;
            }
            shelf.running.remove(&tape.turn());
            shelf.ended.push_back(tape.clone());
            if shelf.ended.len() > self.bounds.turns { shelf.ended.pop_front() } else { None }
        };
        // Its bytes go outside of the lock.
        drop(gone);
    }

    /// The trace of a turn, whether it runs or has ended; `None` if it is not kept, or not any more.
    pub fn trace(&self, turn: TurnId) -> Option<Trace> {
        let tape = {
            let shelf = self.shelf.lock();
            let ended = || shelf.ended.iter().rev().find(|tape| tape.turn() == turn);
            shelf.running.get(&turn).or_else(ended).cloned()
        };
        tape.map(|tape| tape.trace())
    }

    /// Draws room for so many bytes. Turns that have ended give way, the oldest first.
    pub(super) fn draw(&self, bytes: usize) -> bool {
        let mut drawn = self.drawn.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        while drawn > self.bounds.bytes {
            let oldest = self.shelf.lock().ended.pop_front();
            let Some(oldest) = oldest else {
                self.drawn.fetch_sub(bytes, Ordering::Relaxed);
                return false;
            };
            drop(oldest);
            drawn = self.drawn();
        }
        true
    }

    pub(super) fn give_back(&self, bytes: usize) {
        self.drawn.fetch_sub(bytes, Ordering::Relaxed);
    }
}
