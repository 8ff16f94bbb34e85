//! Which account a client's session is bound to, so that its turns find the provider's prompt cache warm. A binding is a
//! wish: who serves is admission's decision (`accounts::Need::preferred`), and a turn that was served elsewhere because
//! the bound account had no room leaves the binding as it is (`accounts::Pick::spilled`).
//!
//! The key is the caller's business: a keyed hash of the caller, upstream, model, the turn's fixed prefix and the client's
//! session. Bindings are in memory only; losing one costs a cold cache. One takes about 250 bytes (measured over
//! 200 000 of 50 accounts), so that a full table is 2.5 MB; every operation costs the logarithm of their number.

use crate::moment::Moment;
use crate::recent::{OfAccount, Recent};
use std::time::Duration;
use turnkeep_base::{AccountId, Fingerprint};

/// Bindings that are kept, unless something else is asked for.
pub const ENTRIES: usize = 10_000;
/// How long an unused binding lasts where the provider's cache life is not known.
pub const TTL: Duration = Duration::from_secs(60 * 60);

impl OfAccount for AccountId {
    fn account(&self) -> &AccountId {
        self
    }
}

/// The bindings, bounded: when there is no room, the least recently used one goes.
#[derive(Clone, Debug)]
pub struct Affinities {
    bindings: Recent<AccountId>,
}

impl Affinities {
    /// No bindings yet, and room for so many.
    pub fn new(entries: usize) -> Affinities {
        Affinities { bindings: Recent::new(entries) }
    }

    /// Binds, for as long as it is used again within `ttl` each time. True when there was no binding or one to another
    /// account.
    pub fn bind(&mut self, now: Moment, key: Fingerprint, account: AccountId, ttl: Duration) -> bool {
        let old = self.bindings.put(now, key, account.clone(), ttl);
        old.is_none_or(|old| old != account)
    }

    /// The account that is bound; its time begins anew.
    pub fn find(&mut self, now: Moment, key: &Fingerprint) -> Option<&AccountId> {
        self.bindings.find(now, key)
    }

    /// Drops all bindings to an account that is gone. Gives their number.
    pub fn forget_account(&mut self, account: &AccountId) -> usize {
        self.bindings.forget_account(account)
    }

    /// How many there are now.
    pub fn len(&mut self, now: Moment) -> usize {
        self.bindings.len(now)
    }
}
