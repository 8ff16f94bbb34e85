//! Stored responses and conversations in memory: of the store in memory, and of the one in a file without a master key.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use turnkeep_engine::ports::{StoredKey, StoredThing};

/// Things kept at most, over all callers.
const THINGS: usize = 50_000;
/// Bytes of them.
const BYTES: usize = 256 << 20;
/// What a thing takes beside its content.
const OVERHEAD: usize = 512;

#[derive(Default)]
pub(crate) struct MemoryStored(Mutex<State>);

#[derive(Default)]
struct State {
    things: BTreeMap<StoredKey, (StoredThing, u64)>,
    /// By caller and use.
    by_use: BTreeMap<(Arc<str>, u64), StoredKey>,
    shares: BTreeMap<Arc<str>, (usize, usize)>,
    bytes: usize,
    used: u64,
}

impl State {
    fn remove(&mut self, key: &StoredKey) -> bool {
        let Some((thing, used)) = self.things.remove(key) else { return false };
        self.by_use.remove(&(key.caller.clone(), used));
        let size = thing.content.len() + OVERHEAD;
        self.bytes -= size;
        if let Some((count, bytes)) = self.shares.get_mut(&key.caller) {
            *count -= 1;
            *bytes -= size;
            if *count == 0 {
                self.shares.remove(&key.caller);
            }
        }
        true
    }

    fn insert(&mut self, thing: StoredThing) {
        self.remove(&thing.key);
        self.used += 1;
        let size = thing.content.len() + OVERHEAD;
        self.bytes += size;
        let (count, bytes) = self.shares.entry(thing.key.caller.clone()).or_default();
        *count += 1;
        *bytes += size;
        self.by_use.insert((thing.key.caller.clone(), self.used), thing.key.clone());
        self.things.insert(thing.key.clone(), (thing, self.used));
    }

    /// While there is too much, the caller with the largest share loses what it has not used for longest.
    fn bound(&mut self, most: usize, most_bytes: usize) {
        while self.things.len() > most || self.bytes > most_bytes {
            let by_count = self.things.len() > most;
            let share = |(count, bytes): &(usize, usize)| if by_count { *count } else { *bytes };
            let largest = self.shares.iter().max_by_key(|(_, both)| share(both)).map(|(caller, _)| caller.clone());
            let Some(caller) = largest else { return };
            let mut own = self.by_use.range((caller.clone(), 0)..=(caller, u64::MAX));
            let oldest = own.next().map(|(_, key)| key.clone());
            let Some(key) = oldest else { return };
            self.remove(&key);
        }
    }
}

impl MemoryStored {
    pub fn put(&self, things: Vec<StoredThing>, now_ms: u64) {
        let mut state = self.0.lock();
        for thing in things {
            if thing.until_ms > now_ms {
                state.insert(thing);
            }
        }
        state.bound(THINGS, BYTES);
    }

    pub fn get(&self, key: &StoredKey, now_ms: u64) -> Option<StoredThing> {
        let state = self.0.lock();
        state.things.get(key).map(|(thing, _)| thing.clone()).filter(|thing| thing.until_ms > now_ms)
    }

    pub fn touch(&self, key: &StoredKey, until_ms: u64) {
        let mut state = self.0.lock();
        if let Some(thing) = state.things.get(key).map(|(thing, _)| thing.clone()) {
            state.insert(StoredThing { until_ms, ..thing });
        }
    }

    pub fn remove(&self, key: &StoredKey) -> bool {
        self.0.lock().remove(key)
    }

    pub fn prune(&self, now_ms: u64) -> u64 {
        let mut state = self.0.lock();
        let over = state.things.iter().filter(|(_, (thing, _))| thing.until_ms <= now_ms);
        let over: Vec<StoredKey> = over.map(|(key, _)| key.clone()).collect();
        over.iter().filter(|key| state.remove(key)).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnkeep_base::Fingerprint;
    use turnkeep_engine::ports::StoredKind;

    fn thing(caller: &str, number: u8, bytes: usize) -> StoredThing {
        let key = StoredKey { kind: StoredKind::Response, caller: Arc::from(caller), key: Fingerprint([number; 16]) };
        StoredThing { key, made_ms: 1, until_ms: 100, content: vec![number; bytes].into() }
    }

    #[test]
    fn over_a_bound_the_largest_share_loses_what_was_not_used_for_longest() {
        let mut state = State::default();
        state.insert(thing("ann", 1, 10));
        for number in 1..=4 {
            state.insert(thing("bob", number, 10));
        }
        state.insert(thing("bob", 1, 10));
        state.bound(4, usize::MAX);
        let left = |state: &State| state.things.keys().map(|key| key.key.0[0]).collect::<Vec<_>>();
        assert_eq!(left(&state), [1, 1, 3, 4]);
        state.bound(100, 2 * (OVERHEAD + 10));
        assert_eq!(left(&state), [1, 1]);
        assert_eq!((state.bytes, state.by_use.len(), state.shares.len()), (2 * (OVERHEAD + 10), 2, 2));
    }
}
