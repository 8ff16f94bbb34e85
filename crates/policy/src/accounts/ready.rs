//! The index of one upstream's accounts, so that finding who serves costs the logarithm of their number. Accounts that
//! serve the same models, and whose keys are held back from the same models, share a shelf; on it each account has one
//! place, and those that may serve are in the order of preference.

use super::spec::AccountKey;
use crate::moment::Moment;
use std::collections::{BTreeMap, BTreeSet};

/// The order among the eligible: fewest in flight for the limit, fewest recent samples, most rate headroom, least
/// recently used. Accounts that are equal in all of that are a group, in which the tie decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub(super) load: u64,
    pub(super) samples: usize,
    /// When all of its rate is there again; 0 when it is there now.
    pub(super) full_at: Moment,
    pub(super) last_used: u64,
    pub(super) spread: u64,
    pub(super) key: AccountKey,
}

/// What of a rank counts before the tie.
pub(super) type Group = (u64, usize, Moment, u64);

impl Rank {
    pub(super) fn group(&self) -> Group {
        (self.load, self.samples, self.full_at, self.last_used)
    }

    /// The order for one tie: within a group, the next on the circle from where the tie points.
    pub(super) fn for_tie(&self, tie: u64) -> (Group, u64, AccountKey) {
        (self.group(), self.spread.wrapping_sub(spread(tie)), self.key)
    }
}

/// A place on the circle that breaks ties.
pub(super) fn spread(of: u64) -> u64 {
    let mixed = of.wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb)
}

/// Which shelf: the list of models, and those that the account's key is held back from now, in order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Shelf {
    pub(super) models: u32,
    pub(super) held: Vec<String>,
}

/// An account's place on its shelf, for the models that it is not held back from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Ready(Rank),
    /// Errored, and its time has come.
    Trial(Moment),
    Busy,
    Rate(Moment),
    Cooling(Moment),
    Errored(Moment),
    /// Errored, and its try is under way.
    Trying,
}

/// What an account is for one model that it is held back from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    Blocked,
    Cooling(Moment),
    /// As its place says.
    Errored,
}

/// Where an account is filed; `holds` are in the order of the shelf's held models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filed {
    pub(super) shelf: Shelf,
    pub(super) place: Place,
    pub(super) holds: Vec<Hold>,
}

/// A moment and whose it is.
pub(super) type Timed = BTreeSet<(Moment, AccountKey)>;

/// One shelf's accounts by place.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    pub(super) ready: BTreeSet<Rank>,
    pub(super) trials: Timed,
    pub(super) busy: BTreeSet<AccountKey>,
    pub(super) rate: Timed,
    pub(super) cooling: Timed,
    pub(super) errored: Timed,
    pub(super) trying: BTreeSet<AccountKey>,
    pub(super) held: Vec<HeldModel>,
    count: usize,
}

/// One held model's accounts.
#[derive(Clone, Debug, Default)]
pub(super) struct HeldModel {
    pub(super) blocked: BTreeSet<AccountKey>,
    pub(super) cooling: Timed,
    /// Errored ones that are not blocked.
    pub(super) errored: Timed,
    pub(super) trying: BTreeSet<AccountKey>,
}

/// All shelves of an upstream.
#[derive(Clone, Debug, Default)]
pub(super) struct Index(BTreeMap<Shelf, Places>);

impl Index {
    /// The shelves.
    pub(super) fn shelves(&self) -> impl Iterator<Item = (&Shelf, &Places)> {
        self.0.iter()
    }

    /// Moves an account from where it was to where it belongs now.
    pub(super) fn refile(&mut self, key: AccountKey, old: Option<&Filed>, new: Option<&Filed>) {
        if old == new {
            return;
        }
        if let (Some(old), Some(new)) = (old, new)
            && old.shelf == new.shelf
            && let Some(places) = self.0.get_mut(&new.shelf)
        {
            places.remove(key, old);
            places.insert(key, new);
            return;
        }
        if let Some(old) = old
            && let Some(places) = self.0.get_mut(&old.shelf)
        {
            places.remove(key, old);
            if places.count == 0 {
                self.0.remove(&old.shelf);
            }
        }
        if let Some(new) = new {
            if !self.0.contains_key(&new.shelf) {
                self.0.insert(new.shelf.clone(), Places::default());
            }
            if let Some(places) = self.0.get_mut(&new.shelf) {
                places.held.resize_with(new.shelf.held.len(), HeldModel::default);
                places.insert(key, new);
            }
        }
    }
}

impl Places {
    fn insert(&mut self, key: AccountKey, filed: &Filed) {
        self.count += 1;
        match filed.place {
            Place::Ready(rank) => self.ready.insert(rank),
            Place::Trial(at) => self.trials.insert((at, key)),
            Place::Busy => self.busy.insert(key),
            Place::Rate(at) => self.rate.insert((at, key)),
            Place::Cooling(at) => self.cooling.insert((at, key)),
            Place::Errored(at) => self.errored.insert((at, key)),
            Place::Trying => self.trying.insert(key),
        };
        for (held, hold) in self.held.iter_mut().zip(&filed.holds) {
            match (hold, filed.place) {
                (Hold::Blocked, _) => held.blocked.insert(key),
                (Hold::Cooling(at), _) => held.cooling.insert((*at, key)),
                (Hold::Errored, Place::Errored(at)) => held.errored.insert((at, key)),
                (Hold::Errored, _) => held.trying.insert(key),
            };
        }
    }

    fn remove(&mut self, key: AccountKey, filed: &Filed) {
        self.count = self.count.saturating_sub(1);
        match filed.place {
            Place::Ready(rank) => self.ready.remove(&rank),
            Place::Trial(at) => self.trials.remove(&(at, key)),
            Place::Busy => self.busy.remove(&key),
            Place::Rate(at) => self.rate.remove(&(at, key)),
            Place::Cooling(at) => self.cooling.remove(&(at, key)),
            Place::Errored(at) => self.errored.remove(&(at, key)),
            Place::Trying => self.trying.remove(&key),
        };
        for (held, hold) in self.held.iter_mut().zip(&filed.holds) {
            match (hold, filed.place) {
                (Hold::Blocked, _) => held.blocked.remove(&key),
                (Hold::Cooling(at), _) => held.cooling.remove(&(*at, key)),
                (Hold::Errored, Place::Errored(at)) => held.errored.remove(&(at, key)),
                (Hold::Errored, _) => held.trying.remove(&key),
            };
        }
    }

    /// Somebody is here whom `asked` accepts.
    pub(super) fn any(&self, asked: impl Fn(AccountKey) -> bool) -> bool {
        let timed = [&self.trials, &self.rate, &self.cooling, &self.errored];
        let plain = [&self.busy, &self.trying];
        self.ready.iter().any(|rank| asked(rank.key))
            || timed.into_iter().flatten().any(|&(_, key)| asked(key))
            || plain.into_iter().flatten().any(|&key| asked(key))
    }

    /// The best for this tie of those that `asked` accepts.
    pub(super) fn best(&self, tie: u64, asked: impl Fn(AccountKey) -> bool) -> Option<&Rank> {
        let first = self.ready.iter().find(|rank| asked(rank.key))?;
        let from = Rank { spread: spread(tie), key: AccountKey(0), ..*first };
        if from <= *first {
            return Some(first);
        }
        let rest = self.ready.range(from..).take_while(|rank| rank.group() == first.group());
        rest.into_iter().find(|rank| asked(rank.key)).or(Some(first))
    }
}

/// The soonest of those that `asked` accepts.
pub(super) fn soonest(timed: &Timed, asked: impl Fn(AccountKey) -> bool) -> Option<Moment> {
    timed.iter().find(|&&(_, key)| asked(key)).map(|&(at, _)| at)
}
