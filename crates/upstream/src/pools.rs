//! The pools of an endpoint, one for each account that has called, and no more of them than is sane.
//!
//! A pool that is forgotten lives on in the exchanges that use it: they end as if nothing had happened, and their
//! connections close with the last of them.

use crate::pool::Pool;
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;
use turnkeep_base::AccountId;

/// Accounts whose connections are kept. Beyond it those without a connection are dropped first, and where there is none
/// such, an account's connections are used once.
const MAX_POOLS: usize = 4096;

pub(crate) struct Pools {
    by_account: RwLock<HashMap<Arc<str>, Arc<Pool>>>,
    /// Of each pool.
    max_connections: usize,
    most: usize,
}

impl Pools {
    pub(crate) fn new(max_connections: usize) -> Pools {
        Pools { by_account: RwLock::default(), max_connections, most: MAX_POOLS }
    }

    /// The pool of an account.
    pub(crate) fn of(&self, account: &AccountId) -> Arc<Pool> {
        if let Some(pool) = self.by_account.read().get(&account.account) {
            return Arc::clone(pool);
        }
        let mut pools = self.by_account.write();
        if let Some(pool) = pools.get(&account.account) {
            return Arc::clone(pool);
        }
        if pools.len() >= self.most {
            // One that an exchange has just taken and not opened yet is in use as well.
            pools.retain(|_, pool| pool.open() > 0 || Arc::strong_count(pool) > 1);
        }
        let pool = Pool::new(self.max_connections);
        if pools.len() < self.most {
            pools.insert(Arc::clone(&account.account), Arc::clone(&pool));
        }
        pool
    }

    /// Drops an account's pool; false if there was none.
    pub(crate) fn forget(&self, account: &AccountId) -> bool {
        let pool = self.by_account.write().remove(&account.account);
        // After the lock: it wakes the tasks of the connections.
        pool.inspect(|pool| pool.close_idle()).is_some()
    }

    pub(crate) fn sum(&self, count: impl Fn(&Pool) -> usize) -> usize {
        self.by_account.read().values().map(|pool| count(pool)).sum()
    }

    pub(crate) fn close_idle(&self) {
        let pools: Vec<Arc<Pool>> = self.by_account.read().values().cloned().collect();
        pools.iter().for_each(|pool| pool.close_idle());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(name: &str) -> AccountId {
        AccountId { upstream: "lab".into(), account: name.into() }
    }

    #[test]
    fn the_pools_are_bounded_and_those_in_use_stay() {
        let pools = Pools { most: 2, ..Pools::new(1) };
        let used = pools.of(&account("used"));
        let place = used.place().unwrap();
        drop(pools.of(&account("idle")));
        let held = pools.of(&account("held"));
        assert!(Arc::ptr_eq(&used, &pools.of(&account("used"))));
        assert!(Arc::ptr_eq(&held, &pools.of(&account("held"))), "it took the place of the idle one");
        let once = pools.of(&account("once"));
        assert!(!Arc::ptr_eq(&once, &pools.of(&account("once"))), "no room: not kept");
        drop((place, held));
        assert!(pools.forget(&account("used")) && !pools.forget(&account("used")));
        assert_eq!(pools.by_account.read().len(), 1);
    }
}
