//! Who gave the last answer of a conversation that the client sends back whole: the account, and the upstream's own
//! session if it has one. Looked up by a keyed hash of the caller and the history up to that answer, so that a
//! conversation goes on where it was without any text being kept.
//!
//! It says who the owner is, not whether the owner serves or whether a session is in use; that is admission's and the
//! conversation leases' business. Entries are in memory only. One takes about 280 bytes beside its session's id
//! (measured over 200 000 of 50 accounts), so that a full table is 2.8 MB and at the most 5.3 MB more of ids; every
//! operation costs the logarithm of their number.

use crate::moment::Moment;
use crate::recent::{OfAccount, Recent};
use std::sync::Arc;
use std::time::Duration;
use turnkeep_base::{AccountId, Fingerprint, Receipt};

/// Entries that are kept, unless something else is asked for.
pub const ENTRIES: usize = 10_000;
/// How long an entry that nobody asks for is kept.
pub const IDLE: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest id of an upstream's session that is kept, in bytes. Of a longer one only the account is.
pub const MAX_SESSION: usize = 512;

/// Whose a conversation is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The account that answered.
    pub account: AccountId,
    /// The upstream's session, where it keeps one.
    pub session: Option<Arc<str>>,
}

impl OfAccount for Owner {
    fn account(&self) -> &AccountId {
        &self.account
    }
}

/// The owners, bounded: when there is no room, the least recently used one goes.
#[derive(Clone, Debug)]
pub struct Continuity {
    owners: Recent<Owner>,
}

impl Continuity {
    /// Empty, and with room for so many.
    pub fn new(entries: usize) -> Continuity {
        Continuity { owners: Recent::new(entries) }
    }

    /// Writes down who answered; in the place of what was known under this key. It takes the reply's receipt: a client that
    /// never had the answer does not go on from it.
    pub fn commit(&mut self, _: &Receipt, now: Moment, key: Fingerprint, mut owner: Owner) {
        owner.session = owner.session.filter(|session| session.len() <= MAX_SESSION);
        self.owners.put(now, key, owner, IDLE);
    }

    /// Whose the conversation with this history is; its time begins anew.
    pub fn find(&mut self, now: Moment, key: &Fingerprint) -> Option<&Owner> {
        self.owners.find(now, key)
    }

    /// Drops all that belongs to an account that is gone. Gives the number.
    pub fn forget_account(&mut self, account: &AccountId) -> usize {
        self.owners.forget_account(account)
    }

    /// How many there are now.
    pub fn len(&mut self, now: Moment) -> usize {
        self.owners.len(now)
    }
}
