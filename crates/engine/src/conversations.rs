//! The conversations that upstreams keep, for all turns: one table behind one short lock. A turn takes one out of it as a
//! lease ([`turnkeep_policy::conversations::lease`]); the lease's end comes back here from wherever it is let go of, by way of
//! the turn's incident tape.
//!
//! What the table says has changed is told to the store within the lock, so that it is written in the order in which it
//! happened, and to the drivers outside of it.

#[doc(hidden)]
pub mod fuzzed;
mod written;

use crate::admission::Admission;
use crate::ports::{ConversationKey, ConversationStore, KeptConversation, WallClock};
use crate::tally::Counter;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;
use turnkeep_base::Fingerprint;
use turnkeep_policy::Moment;
use turnkeep_policy::conversations::again::{Arrival, EndKind};
use turnkeep_policy::conversations::{
    AGE, Change, CheckIn, CheckedIn, Clean, ConversationLease, Conversations, CountedEnd, Handling, LeaseEnd, Loan,
    MAX_HANDLE, Record,
};

/// All conversations of one gateway.
pub struct Desk {
    table: Mutex<Table>,
    admission: Arc<Admission>,
    store: Arc<dyn ConversationStore>,
    clock: Arc<dyn WallClock>,
    /// Leases that live.
    taken: AtomicU64,
    /// Turns that found the conversation they go on with.
    pub hits: Counter,
    /// Turns whose history could have gone on in one, and found none.
    pub misses: Counter,
    /// Conversations that came back as they were.
    pub restored: Counter,
    /// Conversations that stand under a new history.
    pub advanced: Counter,
    /// Conversations that a turn was lent and that nobody goes on with.
    pub dropped: Counter,
    /// Leases by how they ended.
    pub ends: Ends,
}

/// How many leases have come to each end: a counter for each cell of the table that says what becomes of them.
#[derive(Debug, Default)]
pub struct Ends([[Counter; CountedEnd::ALL.len()]; Handling::ALL.len()]);

impl Ends {
    fn counter(&self, handling: Handling, end: CountedEnd) -> &Counter {
        &self.0[handling as usize][end as usize]
    }

    /// Of this cell.
    pub fn get(&self, handling: Handling, end: CountedEnd) -> u64 {
        self.counter(handling, end).get()
    }

    /// Every cell.
    pub fn all(&self) -> impl Iterator<Item = (Handling, CountedEnd, u64)> {
        let cells =
            Handling::ALL.into_iter().flat_map(|handling| CountedEnd::ALL.into_iter().map(move |end| (handling, end)));
        cells.map(|(handling, end)| (handling, end, self.get(handling, end)))
    }
}

#[derive(Default)]
struct Table {
    conversations: Conversations,
    /// The changes of accounts' epochs that have been looked at.
    epochs: u64,
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").finish_non_exhaustive()
    }
}

impl Desk {
    pub(crate) fn new(
        admission: Arc<Admission>,
        store: Arc<dyn ConversationStore>,
        clock: Arc<dyn WallClock>,
    ) -> Arc<Desk> {
        Arc::new(Desk {
            table: Mutex::default(),
            admission,
            store,
            clock,
            taken: AtomicU64::new(0),
            hits: Counter::default(),
            misses: Counter::default(),
            restored: Counter::default(),
            advanced: Counter::default(),
            dropped: Counter::default(),
            ends: Ends::default(),
        })
    }

    /// The owner of a conversation is the account that it was, and so is the process that keeps it.
    fn stands(&self, record: &Record) -> bool {
        let (epoch, native) = self.admission.owner(&record.account);
        epoch == Some(record.epoch) && native.is_none_or(|native| native.stands(&record.conversation))
    }

    /// Does something with the table, and tells of all that changes with it.
    fn with<T>(&self, now: Moment, work: impl FnOnce(&mut Conversations) -> T) -> T {
        let (done, lost) = {
            let mut table = self.table.lock();
            let Table { conversations, epochs } = &mut *table;
            // An account that was removed or suspended takes its conversations with it, those too that nobody asks for.
            let changes = self.admission.epoch_changes();
            if std::mem::replace(epochs, changes) != changes {
                conversations.sweep(|record| self.stands(record));
            }
            let done = work(conversations);
            (done, self.tell(now, conversations.changes()))
        };
        lost.into_iter().for_each(|record| self.forget(record));
        done
    }

    /// Tells the store. Gives what is lost.
    fn tell(&self, now: Moment, changes: Vec<Change>) -> Vec<Record> {
        let (mut lost, mut gone) = (Vec::new(), Vec::new());
        for change in changes {
            match change {
                Change::Stands { caller, key, record, until } => {
                    let key = ConversationKey { caller, key };
                    let place = self.admission.place(&record.account).filter(|(_, epoch)| *epoch == record.epoch);
                    // Its account was replaced in this moment: it is swept with what is asked next.
                    let Some((place, _)) = place else {
                        gone.push(key);
                        continue;
                    };
                    // It may stand where one of those was.
                    self.strike(std::mem::take(&mut gone));
                    let wall = self.clock.unix_ms();
                    let content = written::down(&record, place, at(wall, now, record.ends));
                    self.store.keep_conversation(KeptConversation { key, until_ms: at(wall, now, until), content });
                }
                Change::Nothing { caller, key } => gone.push(ConversationKey { caller, key }),
                Change::Lost(record) => lost.push(record),
            }
        }
        self.strike(gone);
        lost
    }

    /// Nothing is written down under these keys any more.
    fn strike(&self, keys: Vec<ConversationKey>) {
        if !keys.is_empty() {
            self.store.forget_conversations(keys);
        }
    }

    /// Nobody goes on with this conversation: its driver may let go of what is kept for it.
    pub(crate) fn forget(&self, record: Record) {
        let (_, native) = self.admission.owner(&record.account);
        if let Some(native) = native {
            native.forget(&record.account, record.conversation);
        }
    }

    /// Lends the caller's conversation under this key. The lease's end goes to `ends`, who is to bring it here.
    pub(crate) fn take(
        &self,
        now: Moment,
        caller: &Arc<str>,
        key: Fingerprint,
        ends: Arc<dyn CheckIn>,
    ) -> Option<ConversationLease<Clean>> {
        let found = self.with(now, |table| {
            let found = table.take(now, caller, key, |record| self.stands(record));
            if found.is_ok() {
                self.taken.fetch_add(1, Ordering::Relaxed);
            }
            found
        });
        match found {
            Ok(loan) => {
                self.hits.add();
                Some(ConversationLease::new(loan, ends))
            }
            Err(_) => {
                self.misses.add();
                None
            }
        }
    }

    /// Keeps a conversation that a turn has begun.
    pub(crate) fn begin(&self, now: Moment, caller: Arc<str>, key: Fingerprint, record: Record) {
        self.with(now, |table| table.begin(now, caller, key, record, |record| self.stands(record)));
    }

    /// Takes up what an earlier run has written down, for so long as was left of it. Those do not come back whose account
    /// is no longer there, is suspended or at another place, whose process is gone, or that cannot be read.
    pub(crate) fn take_up(&self, now: Moment, kept: Vec<KeptConversation>) {
        let wall = self.clock.unix_ms();
        let left = |until_ms: u64| Duration::from_millis(until_ms.saturating_sub(wall));
        let mut useless = Vec::new();
        self.with(now, |table| {
            for KeptConversation { key, until_ms, content } in kept {
                let record = written::read(
                    &content,
                    |account| self.admission.place(account),
                    |ends_ms| now.after(left(ends_ms).min(AGE)),
                );
                match record {
                    Some(record) if self.stands(&record) && !self.admission.is_suspended(&record.account) => {
                        table.take_up(now, key.caller, key.key, record, left(until_ms));
                    }
                    Some(_) | None => useless.push(key),
                }
            }
        });
        if !useless.is_empty() {
            let count = useless.len();
            tracing::info!(
                count,
                "conversations of an earlier run are dropped: their account is gone, suspended or at another place, or \
                 their process has ended"
            );
        }
        self.strike(useless);
    }

    /// Drops what its account's removal or suspension has taken with it; done with whatever is asked next, too.
    pub fn sweep(&self, now: Moment) {
        self.with(now, |_| ());
    }

    /// How many are kept. Mutable ones that are in a turn are not among them.
    pub fn size(&self, now: Moment) -> usize {
        self.with(now, |table| table.len(now))
    }

    /// How many turns hold one.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }
}

/// A moment as wall time.
fn at(wall_ms: u64, now: Moment, moment: Moment) -> u64 {
    wall_ms.saturating_add(u64::try_from(now.until(moment).as_millis()).unwrap_or(u64::MAX))
}

impl Desk {
    /// Takes back what was lent. Gives what its end met here, and what became of it.
    pub(crate) fn check_in_telling(&self, loan: Loan, end: LeaseEnd) -> (Arrival, CheckedIn) {
        let now = self.admission.moment(Instant::now());
        self.ends.counter(loan.record().handling, end.kind()).add();
        let told = self.with(now, |table| {
            let record = loan.record();
            let stands = self.stands(record);
            let fits = match &end {
                LeaseEnd::Advanced { conversation, .. } => conversation.handle.len() <= MAX_HANDLE,
                LeaseEnd::Restored { .. } | LeaseEnd::Interrupted | LeaseEnd::Dead { .. } => true,
            };
            let arrival = Arrival {
                handling: record.handling,
                end: EndKind::of(&end),
                stands,
                newer: table.has(now, loan.caller(), loan.key()),
                fits,
                over: record.ends <= now,
                full: table.is_full(),
            };
            (arrival, table.check_in(now, loan, end, |_| stands))
        });
        self.taken.fetch_sub(1, Ordering::Relaxed);
        match told.1 {
            CheckedIn::Restored => self.restored.add(),
            CheckedIn::Advanced => self.advanced.add(),
            CheckedIn::Dropped => self.dropped.add(),
        }
        told
    }
}
