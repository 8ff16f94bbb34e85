//! The conversations that upstreams keep, by what their callers would send to go on with them.
//!
//! A *mutable* conversation advances in place: it is taken whole, off the shelf, and so is in one turn at most. An
//! *immutable* one can be branched: it is lent to any number of turns. A turn holds what it was lent in a typed lease
//! ([`lease`]); how that ends is checked in here, exactly once, and one match says what becomes of the conversation.
//!
//! It does not know what a handle is to its upstream, does not send anything, and keeps no text: a key is a keyed hash of
//! all that was said, made elsewhere. Nothing on it is visible to any caller but its own.

pub mod again;
pub mod hold;
pub mod lease;
#[cfg(test)]
mod tests;

pub use lease::{CheckIn, Clean, Completed, ConversationLease, CountedEnd, LeaseEnd, RefusalProof, Sent};

use crate::moment::Moment;
use crate::shelf::{Gone, Shelf, ShelfBounds};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use turnkeep_base::seeded;
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Handling {
    /// It advances in place (a Cascade conversation, an ACP or Devin session): one turn at a time.
    Mutable,
    /// Each turn makes another one and leaves it as it is (a Responses chain).
    Immutable,
}

impl Handling {
    /// All of them.
    pub const ALL: [Handling; 2] = [Handling::Mutable, Handling::Immutable];

    /// Its name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Handling::Mutable => "mutable",
            Handling::Immutable => "immutable",
        }
    }
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
    /// When it ends however much it is used.
    pub ends: Moment,
    /// A refused send may have moved it: its position is to be read again before the next one.
    pub reread: bool,
}

impl Record {
    fn until(&self, now: Moment) -> Moment {
        now.after(IDLE).min(self.ends)
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckedIn {
    /// It stands as it was before.
    Restored,
    /// It stands under the history with the new answer.
    Advanced,
    /// Nobody goes on with it.
    Dropped,
}

/// What has changed for whoever writes conversations down, and for their drivers; in the order in which it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// This stands under the key, until then unless it is used.
    Stands {
        /// Whose it is.
        caller: Arc<str>,
        /// The key.
        key: Fingerprint,
        /// The conversation.
        record: Record,
        /// Its end.
        until: Moment,
    },
    /// Nothing stands under the key. A mutable conversation that is lent is not told: it may come back.
    Nothing {
        /// Whose it was.
        caller: Arc<str>,
        /// The key.
        key: Fingerprint,
    },
    /// Nobody goes on with this mutable conversation: what its upstream keeps for it may go. An immutable one is not told:
    /// a turn that it is lent to may still go on from it.
    Lost(Record),
}

/// The conversations, bounded.
#[derive(Clone, Debug)]
pub struct Conversations {
    shelf: Shelf<Box<Record>>,
    changes: Vec<Change>,
}

impl Default for Conversations {
    fn default() -> Self {
        Conversations::new(BOUNDS)
    }
}

impl Conversations {
    /// None yet.
    pub fn new(bounds: ShelfBounds) -> Conversations {
        Conversations { shelf: Shelf::new(bounds), changes: Vec::new() }
    }

    /// How many are kept. Mutable ones that are in a turn are not among them.
    pub fn len(&mut self, now: Moment) -> usize {
        self.expire(now);
        self.shelf.len()
    }

    /// Another one would push out what is kept.
    pub fn is_full(&self) -> bool {
        self.shelf.is_full()
    }

    /// One stands under this key of the caller's.
    pub fn has(&self, now: Moment, caller: &Arc<str>, key: Fingerprint) -> bool {
        self.shelf.get(now, caller, &key).is_some()
    }

    /// None is kept.
    pub fn is_empty(&self) -> bool {
        self.shelf.is_empty()
    }

    /// What has changed since this was last asked. To be asked after each of the others, so that it stays short.
    pub fn changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
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
        self.expire(now);
        let record = *self.shelf.take(caller, &key).ok_or(Miss::Unknown)?;
        if !stands(&record) && !seeded::is("an-older-epoch-is-lent") {
            self.drop_from(caller.clone(), key, record);
            return Err(Miss::Stale);
        }
        match record.handling {
            Handling::Mutable if seeded::is("two-turns-in-one-conversation") => {
                self.put(now, caller.clone(), key, record.clone());
            }
            Handling::Mutable => {}
            // Put back at once: it is lent, not taken, and was used now.
            Handling::Immutable => drop(self.put(now, caller.clone(), key, record.clone())),
        }
        Ok(Loan { caller: caller.clone(), key, record })
    }

    /// Keeps a conversation that a turn has begun, in the place of what stands under its key. False if it is not kept: its
    /// handle is too long, `stands` (as in [`Conversations::take`]) says that it is of no use already, or there is no room.
    pub fn begin(
        &mut self,
        now: Moment,
        caller: Arc<str>,
        key: Fingerprint,
        record: Record,
        stands: impl FnOnce(&Record) -> bool,
    ) -> bool {
        if record.conversation.handle.len() > MAX_HANDLE || !stands(&record) {
            self.lose(record);
            return false;
        }
        self.put(now, caller, key, record)
    }

    /// Takes up what an earlier run has kept, for so long as was left of it.
    pub fn take_up(&mut self, now: Moment, caller: Arc<str>, key: Fingerprint, record: Record, left: Duration) {
        let (bytes, until) = (record.bytes(), now.after(left).min(record.until(now)));
        let (replaced, gone) = self.shelf.put_telling(now, caller, key, bytes, until, Box::new(record));
        self.note_gone(replaced, gone);
    }

    /// Drops all that do not stand: accounts have changed.
    pub fn sweep(&mut self, mut stands: impl FnMut(&Record) -> bool) {
        let gone = self.shelf.retain_telling(|record| seeded::is("an-older-epoch-is-lent") || stands(record));
        self.note_gone(None, gone);
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
        self.expire(now);
        let Loan { caller, key, mut record } = loan;
        let stands = stands(&record) || seeded::is("an-older-epoch-is-lent");
        let put_back = seeded::is("a-gone-conversation-is-put-back") && matches!(end, LeaseEnd::Dead { .. });
        let end = if put_back { LeaseEnd::Restored { reread: false } } else { end };
        match (record.handling, end) {
            (Handling::Mutable, LeaseEnd::Restored { reread }) => {
                // A newer one under its key has replaced it: another turn went on from the same history.
                if !stands || self.shelf.get(now, &caller, &key).is_some() {
                    self.drop_from(caller, key, record);
                    return CheckedIn::Dropped;
                }
                record.reread |= reread;
                if self.put(now, caller, key, record) { CheckedIn::Restored } else { CheckedIn::Dropped }
            }
            (Handling::Mutable, LeaseEnd::Advanced { key: next, conversation }) => {
                if conversation.handle != record.conversation.handle {
                    self.lose(record.clone());
                }
                let record = Record { conversation, reread: false, ..record };
                let keeps = stands && record.conversation.handle.len() <= MAX_HANDLE;
                if !keeps || next != key {
                    self.note_nothing(caller.clone(), key);
                }
                if !keeps {
                    self.lose(record);
                    return CheckedIn::Dropped;
                }
                if self.put(now, caller, next, record) { CheckedIn::Advanced } else { CheckedIn::Dropped }
            }
            (Handling::Mutable, LeaseEnd::Interrupted | LeaseEnd::Dead { .. }) => {
                self.drop_from(caller, key, record);
                CheckedIn::Dropped
            }
            (Handling::Immutable, LeaseEnd::Advanced { .. }) if !stands => self.forget_branch(&caller, key, &record),
            (Handling::Immutable, LeaseEnd::Advanced { key, conversation }) => {
                if conversation.handle.len() > MAX_HANDLE {
                    return CheckedIn::Dropped;
                }
                // Each answer of a chain is a conversation of its own.
                let ends = now.after(AGE);
                let next = Record { conversation, ends, reread: false, ..record };
                if self.put(now, caller, key, next) { CheckedIn::Advanced } else { CheckedIn::Dropped }
            }
            (Handling::Immutable, LeaseEnd::Dead { gone: true }) => self.forget_branch(&caller, key, &record),
            // Nothing that a turn does to a branch changes what it branched from.
            (
                Handling::Immutable,
                LeaseEnd::Restored { .. } | LeaseEnd::Interrupted | LeaseEnd::Dead { gone: false },
            ) => {
                if stands {
                    CheckedIn::Restored
                } else {
                    self.forget_branch(&caller, key, &record)
                }
            }
        }
    }

    /// Removes an immutable conversation, unless another one stands in its place by now.
    fn forget_branch(&mut self, caller: &Arc<str>, key: Fingerprint, record: &Record) -> CheckedIn {
        let kept = self.shelf.get(Moment(0), caller, &key);
        if kept.is_some_and(|kept| kept.conversation.handle == record.conversation.handle) {
            self.shelf.take(caller, &key);
            self.note_nothing(caller.clone(), key);
        }
        CheckedIn::Dropped
    }

    fn expire(&mut self, now: Moment) {
        let gone = self.shelf.expire_telling(now);
        self.note_gone(None, gone);
    }

    /// False if it is not kept.
    fn put(&mut self, now: Moment, caller: Arc<str>, key: Fingerprint, record: Record) -> bool {
        let (bytes, until) = (record.bytes(), record.until(now));
        let (replaced, gone) = self.shelf.put_telling(now, caller.clone(), key, bytes, until, Box::new(record.clone()));
        let kept = !gone.iter().any(|(name, _)| name.0 == caller && name.1 == key);
        let replaced = replaced.filter(|old| old.conversation.handle != record.conversation.handle);
        if kept {
            self.changes.push(Change::Stands { caller, key, record, until });
        }
        self.note_gone(replaced, gone);
        kept
    }

    fn note_gone(&mut self, replaced: Option<Box<Record>>, gone: Gone<Box<Record>>) {
        if let Some(record) = replaced {
            self.lose(*record);
        }
        for ((caller, key), record) in gone {
            self.note_nothing(caller, key);
            self.lose(*record);
        }
    }

    /// Its place is empty, unless another one has taken it.
    fn note_nothing(&mut self, caller: Arc<str>, key: Fingerprint) {
        if self.shelf.get(Moment(0), &caller, &key).is_none() {
            self.changes.push(Change::Nothing { caller, key });
        }
    }

    fn lose(&mut self, record: Record) {
        match record.handling {
            Handling::Mutable => self.changes.push(Change::Lost(record)),
            Handling::Immutable => {}
        }
    }

    fn drop_from(&mut self, caller: Arc<str>, key: Fingerprint, record: Record) {
        self.note_nothing(caller, key);
        self.lose(record);
    }
}
