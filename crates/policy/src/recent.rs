//! A bounded map from a fingerprint to something that belongs to an account: each entry ends when it has not been used
//! for its time, and when there is no room the least recently used one goes. It knows nothing of what the entries mean.
//!
//! Every operation costs the logarithm of the number of entries, and what it removes. Four ordered indexes hold an entry:
//! by key, by use, by end and by account.

use crate::moment::Moment;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use turnkeep_base::{AccountId, Fingerprint};

/// Something that goes when its account goes.
pub(crate) trait OfAccount {
    fn account(&self) -> &AccountId;
}

#[derive(Clone, Debug)]
struct Entry<V> {
    value: V,
    /// How long it stays unused.
    idle: Duration,
    until: Moment,
    used: u64,
}

/// The map.
#[derive(Clone, Debug)]
pub(crate) struct Recent<V> {
    places: usize,
    entries: BTreeMap<Fingerprint, Entry<V>>,
    by_use: BTreeMap<u64, Fingerprint>,
    by_end: BTreeSet<(Moment, Fingerprint)>,
    by_account: BTreeMap<AccountId, BTreeSet<Fingerprint>>,
    uses: u64,
    clock: Moment,
}

impl<V: OfAccount> Recent<V> {
    pub(crate) fn new(places: usize) -> Self {
        Recent {
            places,
            entries: BTreeMap::new(),
            by_use: BTreeMap::new(),
            by_end: BTreeSet::new(),
            by_account: BTreeMap::new(),
            uses: 0,
            clock: Moment(0),
        }
    }

    /// Puts an entry in the place of the one under this key; it is the most recently used one then. Gives the old one.
    pub(crate) fn put(&mut self, now: Moment, key: Fingerprint, value: V, idle: Duration) -> Option<V> {
        let now = self.expire(now);
        let old = self.remove(&key);
        self.uses += 1;
        let entry = Entry { value, idle, until: now.after(idle), used: self.uses };
        self.by_use.insert(entry.used, key);
        self.by_end.insert((entry.until, key));
        let account = entry.value.account();
        if let Some(keys) = self.by_account.get_mut(account) {
            keys.insert(key);
        } else {
            self.by_account.insert(account.clone(), BTreeSet::from([key]));
        }
        self.entries.insert(key, entry);
        while self.entries.len() > self.places
            && let Some((_, least)) = self.by_use.pop_first()
        {
            self.remove(&least);
        }
        old
    }

    /// The entry under this key, used now.
    pub(crate) fn find(&mut self, now: Moment, key: &Fingerprint) -> Option<&V> {
        let now = self.expire(now);
        let entry = self.entries.get_mut(key)?;
        self.by_use.remove(&entry.used);
        self.by_end.remove(&(entry.until, *key));
        self.uses += 1;
        entry.used = self.uses;
        entry.until = now.after(entry.idle);
        self.by_use.insert(entry.used, *key);
        self.by_end.insert((entry.until, *key));
        Some(&entry.value)
    }

    pub(crate) fn forget_account(&mut self, account: &AccountId) -> usize {
        let keys = self.by_account.remove(account).unwrap_or_default();
        keys.iter().for_each(|key| {
            self.remove(key);
        });
        keys.len()
    }

    pub(crate) fn len(&mut self, now: Moment) -> usize {
        self.expire(now);
        self.entries.len()
    }

    fn remove(&mut self, key: &Fingerprint) -> Option<V> {
        let entry = self.entries.remove(key)?;
        self.by_use.remove(&entry.used);
        self.by_end.remove(&(entry.until, *key));
        let account = entry.value.account();
        if let Some(keys) = self.by_account.get_mut(account) {
            keys.remove(key);
            if keys.is_empty() {
                self.by_account.remove(account);
            }
        }
        Some(entry.value)
    }

    /// Removes what has ended. Gives the time, which never goes back.
    fn expire(&mut self, now: Moment) -> Moment {
        self.clock = self.clock.max(now);
        while let Some(&(until, key)) = self.by_end.first()
            && until <= self.clock
        {
            self.remove(&key);
        }
        self.clock
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_kept_of_an_entry_that_is_gone() {
        let mut recent = Recent::new(2);
        let account = |name: &str| AccountId { upstream: "u".into(), account: name.into() };
        let minute = Duration::from_secs(60);
        for n in 0..10u8 {
            recent.put(Moment(0), Fingerprint([n; 16]), account(&n.to_string()), minute);
            let sizes = [recent.entries.len(), recent.by_use.len(), recent.by_end.len(), recent.by_account.len()];
            assert_eq!(sizes, [2.min(usize::from(n) + 1); 4]);
        }
        assert_eq!(recent.forget_account(&account("9")), 1);
        assert_eq!(recent.len(Moment(59_999)), 1);
        assert_eq!(recent.len(Moment(60_000)), 0);
        assert!(recent.by_use.is_empty() && recent.by_end.is_empty() && recent.by_account.is_empty());
    }
}
