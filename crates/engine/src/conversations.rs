//! The conversations that upstreams keep, for all turns: one table behind one short lock. A turn takes one out of it as a
//! lease ([`turnkeep_policy::conversations::lease`]); the lease's end comes back here from wherever it is let go of.

use crate::admission::Admission;
use crate::tally::Counter;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use tokio::time::Instant;
use turnkeep_base::Fingerprint;
use turnkeep_policy::Moment;
use turnkeep_policy::conversations::{
    CheckIn, CheckedIn, Clean, ConversationLease, Conversations, LeaseEnd, Loan, Record,
};

/// All conversations of one gateway.
pub struct Desk {
    table: Mutex<Conversations>,
    admission: Arc<Admission>,
    /// Turns that found the conversation they go on with.
    pub hits: Counter,
    /// Turns whose history could have gone on in one, and found none.
    pub misses: Counter,
    /// Conversations that came back as they were.
    pub restored: Counter,
    /// Conversations that stand under a new history.
    pub advanced: Counter,
    /// Conversations that nobody goes on with.
    pub dropped: Counter,
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").finish_non_exhaustive()
    }
}

impl Desk {
    pub(crate) fn new(admission: Arc<Admission>) -> Arc<Desk> {
        Arc::new(Desk {
            table: Mutex::default(),
            admission,
            hits: Counter::default(),
            misses: Counter::default(),
            restored: Counter::default(),
            advanced: Counter::default(),
            dropped: Counter::default(),
        })
    }

    /// The owner of a conversation is the account that it was.
    fn stands(&self, record: &Record) -> bool {
        self.admission.epoch_of(&record.account) == Some(record.epoch)
    }

    /// Lends the caller's conversation under this key.
    pub(crate) fn take(
        self: &Arc<Self>,
        now: Moment,
        caller: &Arc<str>,
        key: Fingerprint,
    ) -> Option<ConversationLease<Clean>> {
        let found = self.table.lock().take(now, caller, key, |record| self.stands(record));
        match found {
            Ok(loan) => {
                self.hits.add();
                Some(ConversationLease::new(loan, self.clone()))
            }
            Err(_) => {
                self.misses.add();
                None
            }
        }
    }

    /// Keeps a conversation that a turn has begun.
    pub(crate) fn begin(&self, now: Moment, caller: Arc<str>, key: Fingerprint, record: Record) {
        self.table.lock().begin(now, caller, key, record);
    }

    /// How many are kept.
    pub fn size(&self, now: Moment) -> usize {
        self.table.lock().len(now)
    }
}

impl CheckIn for Desk {
    fn check_in(&self, loan: Loan, end: LeaseEnd) {
        let now = self.admission.moment(Instant::now());
        let became = self.table.lock().check_in(now, loan, end, |record| self.stands(record));
        match became {
            CheckedIn::Restored => self.restored.add(),
            CheckedIn::Advanced => self.advanced.add(),
            CheckedIn::Dropped => self.dropped.add(),
        }
    }
}
