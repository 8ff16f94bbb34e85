//! The conversations that upstreams keep, by what their callers would send to go on with them.
//!
//! A *mutable* conversation advances in place: it is taken whole, off the shelf, and so is in one turn at most. An
//! *immutable* one can be branched: it is lent to any number of turns. A turn holds what it was lent in a typed lease
//! ([`lease`]); how that ends is checked in here, exactly once, and one match says what becomes of the conversation.
//!
//! It does not know what a handle is to its upstream, does not send anything, and keeps no text: a key is a keyed hash of
//! all that was said, made elsewhere. Nothing on it is visible to any caller but its own.

pub mod lease;
#[cfg(test)]
mod tests;

pub use lease::{CheckIn, Clean, Completed, ConversationLease, LeaseEnd, RefusalProof, Sent};

use crate::moment::Moment;
use crate::shelf::{Shelf, ShelfBounds};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use turnkeep_base::{AccountId, Fingerprint};

/// How long a conversation that nobody goes on with is kept.
pub const IDLE: Duration = Duration::from_secs(30 * 60);
/// How long one is kept however much it is used.
pub const AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// The most that are kept, with fair shares among callers.
pub const BOUNDS: ShelfBounds = ShelfBounds { count: 10_000, bytes: 16 << 20 };
/// The longest handle that is kept, in bytes: a conversation with a longer one cannot be gone on with.
pub const MAX_HANDLE: usize = 1024;
/// What a record is taken for beside its handle, in bytes.
const RECORD_BYTES: usize = 512;

/// Whether going on with a conversation changes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Handling {
    /// It advances in place (a Cascade conversation, an ACP or Devin session): one turn at a time.
    Mutable,
    /// Each turn makes another one and leaves it as it is (a Responses chain).
    Immutable,
}

/// A conversation as its upstream knows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Conversation {
    /// Its name at the upstream; at most [`MAX_HANDLE`] bytes. It may hold what only its owner may know.
    pub handle: Arc<str>,
    /// How far it had come, in the upstream's own count. Unknown is not zero.
    pub position: Option<u64>,
    /// The process that keeps it, where it ends with that process.
    pub instance: Option<u128>,
}

/// Without the handle.
impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Conversation { handle: _, position, instance } = self;
        f.debug_struct("Conversation").field("position", position).field("instance", instance).finish_non_exhaustive()
    }
}

/// A conversation that can be gone on with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// As its upstream knows it.
    pub conversation: Conversation,
    /// Whether going on changes it.
    pub handling: Handling,
    /// Whose it is: only this account goes on with it.
    pub account: AccountId,
    /// The account's epoch when it was begun or last advanced.
    pub epoch: u64,
    /// The upstream's name of the model that it is with.
    pub model: Arc<str>,
    /// When it was begun.
    pub created: Moment,
    /// A refused send may have moved it: its position is to be read again before the next one.
    pub reread: bool,
}

impl Record {
    fn until(&self, now: Moment) -> Moment {
        now.after(IDLE).min(self.created.after(AGE))
    }

    fn bytes(&self) -> usize {
        RECORD_BYTES + self.conversation.handle.len()
    }
}

/// A conversation that a turn was lent, and the place it came from. Made by [`Conversations::take`] alone, and not to be
/// copied: it ends in [`Conversations::check_in`].
#[derive(Debug)]
pub struct Loan {
    caller: Arc<str>,
    key: Fingerprint,
    record: Record,
}

impl Loan {
    /// The conversation and its owner.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Whose it is.
    pub fn caller(&self) -> &Arc<str> {
        &self.caller
    }

    /// The key it was found under.
    pub fn key(&self) -> Fingerprint {
        self.key
    }
}

/// Why no conversation was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Miss {
    /// None is kept under this key: another history, model, system prompt, session; or it is in another turn.
    Unknown,
    /// There was one, whose account or process is no longer what it was. It is dropped.
    Stale,
}

/// What became of a conversation that was lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckedIn {
    /// It stands as it was before.
    Restored,
    /// It stands under the history with the new answer.
    Advanced,
    /// Nobody goes on with it.
    Dropped,
}

/// The conversations, bounded.
#[derive(Clone, Debug)]
pub struct Conversations {
    shelf: Shelf<Record>,
}

impl Default for Conversations {
    fn default() -> Self {
        Conversations::new(BOUNDS)
    }
}

impl Conversations {
    /// None yet.
    pub fn new(bounds: ShelfBounds) -> Conversations {
        Conversations { shelf: Shelf::new(bounds) }
    }

    /// How many are kept. Mutable ones that are in a turn are not among them.
    pub fn len(&mut self, now: Moment) -> usize {
        self.shelf.expire(now);
        self.shelf.len()
    }

    /// None is kept.
    pub fn is_empty(&self) -> bool {
        self.shelf.is_empty()
    }

    /// Lends the caller's conversation under this key. `stands` tells whether its account and its process are still what
    /// they were; one that does not stand is dropped.
    pub fn take(
        &mut self,
        now: Moment,
        caller: &Arc<str>,
        key: Fingerprint,
        stands: impl FnOnce(&Record) -> bool,
    ) -> Result<Loan, Miss> {
        self.shelf.expire(now);
        let record = self.shelf.get(now, caller, &key).ok_or(Miss::Unknown)?;
        if !stands(record) {
            self.shelf.take(caller, &key);
            return Err(Miss::Stale);
        }
        let record = self.shelf.take(caller, &key).ok_or(Miss::Unknown)?;
        match record.handling {
            Handling::Mutable => {}
            // Put back at once: it is lent, not taken, and was used now.
            Handling::Immutable => self.put(now, caller.clone(), key, record.clone()),
        }
        Ok(Loan { caller: caller.clone(), key, record })
    }

    /// Keeps a conversation that a turn has begun, in the place of what stands under its key. False if its handle is too
    /// long to be kept.
    pub fn begin(&mut self, now: Moment, caller: Arc<str>, key: Fingerprint, record: Record) -> bool {
        if record.conversation.handle.len() > MAX_HANDLE {
            return false;
        }
        self.put(now, caller, key, record);
        true
    }

    /// Takes back what was lent. `stands` is asked as in [`Conversations::take`]: a conversation of an older epoch, or of a
    /// process that is gone, is dropped however its turn ended.
    pub fn check_in(
        &mut self,
        now: Moment,
        loan: Loan,
        end: LeaseEnd,
        stands: impl FnOnce(&Record) -> bool,
    ) -> CheckedIn {
        let Loan { caller, key, mut record } = loan;
        let stands = stands(&record);
        match (record.handling, end) {
            (_, LeaseEnd::Restored { .. } | LeaseEnd::Advanced { .. }) if !stands => {
                if record.handling == Handling::Immutable {
                    self.shelf.take(&caller, &key);
                }
                CheckedIn::Dropped
            }
            (Handling::Mutable, LeaseEnd::Restored { reread }) => {
                // A newer one under its key has replaced it: another turn went on from the same history.
                if self.shelf.get(now, &caller, &key).is_some() {
                    return CheckedIn::Dropped;
                }
                record.reread |= reread;
                self.put(now, caller, key, record);
                CheckedIn::Restored
            }
            (Handling::Mutable | Handling::Immutable, LeaseEnd::Advanced { key, conversation }) => {
                if conversation.handle.len() > MAX_HANDLE {
                    return CheckedIn::Dropped;
                }
                // Each answer of a chain is a conversation of its own.
                let created = match record.handling {
                    Handling::Mutable => record.created,
                    Handling::Immutable => now,
                };
                self.put(now, caller, key, Record { conversation, created, reread: false, ..record });
                CheckedIn::Advanced
            }
            (Handling::Mutable, LeaseEnd::Interrupted | LeaseEnd::Dead { .. }) => CheckedIn::Dropped,
            (Handling::Immutable, LeaseEnd::Dead { gone: true }) => {
                self.shelf.take(&caller, &key);
                CheckedIn::Dropped
            }
            // Nothing that a turn does to a branch changes what it branched from.
            (
                Handling::Immutable,
                LeaseEnd::Restored { .. } | LeaseEnd::Interrupted | LeaseEnd::Dead { gone: false },
            ) => CheckedIn::Restored,
        }
    }

    fn put(&mut self, now: Moment, caller: Arc<str>, key: Fingerprint, record: Record) {
        let (bytes, until) = (record.bytes(), record.until(now));
        self.shelf.put(now, caller, key, bytes, until, record);
    }
}
