//! The shelf: bounds that hold whatever is put on it, and who gives way.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use turnkeep_base::Fingerprint;
use turnkeep_policy::Moment;
use turnkeep_policy::shelf::{Name, Shelf, ShelfBounds};

const LATE: Moment = Moment(1_000_000);

fn key(n: u32) -> Fingerprint {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&n.to_le_bytes());
    Fingerprint(bytes)
}

fn name(caller: &str, n: u32) -> Name {
    (caller.into(), key(n))
}

#[derive(Clone, Debug)]
struct Item {
    name: Name,
    bytes: usize,
    until: Moment,
    value: u32,
}

type Measure = fn(&Item) -> usize;

/// A list in the order of coming, searched from end to end.
struct List {
    bounds: ShelfBounds,
    items: Vec<Item>,
}

impl List {
    fn bytes(&self) -> usize {
        self.items.iter().map(|item| item.bytes).sum()
    }

    fn expire(&mut self, now: Moment) -> Vec<Name> {
        let (over, kept) = std::mem::take(&mut self.items).into_iter().partition(|item: &Item| item.until <= now);
        self.items = kept;
        over.into_iter().map(|item| item.name).collect()
    }

    /// Also asserts that only a caller with more than an equal share gives way.
    fn put(&mut self, now: Moment, item: Item) -> Vec<Name> {
        self.items.retain(|other| other.name != item.name);
        let mut gone = self.expire(now);
        let came = item.name.clone();
        if item.bytes > self.bounds.bytes || self.bounds.count == 0 || item.until <= now {
            gone.push(came);
            return gone;
        }
        self.items.push(item);
        let measures: [(usize, Measure); 2] = [(self.bounds.count, |_| 1), (self.bounds.bytes, |item| item.bytes)];
        for (bound, measure) in measures {
            while self.items.iter().map(measure).sum::<usize>() > bound {
                let mut shares: BTreeMap<Arc<str>, usize> = BTreeMap::new();
                for item in &self.items {
                    *shares.entry(item.name.0.clone()).or_default() += measure(item);
                }
                let most = shares.values().max().copied().unwrap_or(0);
                let own = shares.get(&came.0) == Some(&most);
                let last = shares.iter().rev().find(|(_, share)| **share == most).map(|(caller, _)| caller);
                let loser = if own { Some(&came.0) } else { last };
                assert!(most * shares.len() > bound, "no more than an equal share, and yet it gives way");
                let oldest = self.items.iter().position(|item| Some(&item.name.0) == loser);
                gone.extend(oldest.map(|at| self.items.remove(at).name));
            }
        }
        gone
    }

    fn get(&self, now: Moment, name: &Name) -> Option<u32> {
        self.items.iter().find(|item| item.name == *name && item.until > now).map(|item| item.value)
    }
}

#[derive(Clone, Debug)]
enum Step {
    Pass(u64),
    Put { caller: usize, key: u32, bytes: usize, lasts: u64 },
    Take { caller: usize, key: u32 },
    Expire,
}

const CALLERS: [&str; 4] = ["a", "b", "c", "d"];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // The first caller brings most.
    let caller = || prop_oneof![3 => Just(0usize), 4 => 0..4usize];
    let bytes = prop_oneof![4 => 0..30usize, 1 => 0..130usize];
    let step = prop_oneof![
        1 => (0..60u64).prop_map(Step::Pass),
        8 => (caller(), 0..14u32, bytes, 0..300u64)
            .prop_map(|(caller, key, bytes, lasts)| Step::Put { caller, key, bytes, lasts }),
        2 => (caller(), 0..14u32).prop_map(|(caller, key)| Step::Take { caller, key }),
        1 => Just(Step::Expire),
    ];
    prop::collection::vec(step, 1..150)
}

fn sorted(mut names: Vec<Name>) -> Vec<Name> {
    names.sort();
    names
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_shelf_keeps_what_a_list_keeps_that_is_searched_from_end_to_end(
        steps in steps(), count in 0..12usize, bytes in 0..120usize
    ) {
        let bounds = ShelfBounds { count, bytes };
        let mut shelf = Shelf::new(bounds);
        let mut list = List { bounds, items: Vec::new() };
        let mut now = Moment(3);
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Pass(ms) => now = Moment(now.0 + ms),
                Step::Put { caller, key: n, bytes, lasts } => {
                    let (name, until, value) = (name(CALLERS[caller], n), Moment(now.0 + lasts), number as u32);
                    let gone = shelf.put(now, name.0.clone(), name.1, bytes, until, value);
                    let stays = !gone.contains(&name);
                    let expected = list.put(now, Item { name: name.clone(), bytes, until, value });
                    prop_assert_eq!(sorted(gone), sorted(expected));
                    prop_assert_eq!(shelf.get(now, &name.0, &name.1), stays.then_some(&value));
                }
                Step::Take { caller, key: n } => {
                    let name = name(CALLERS[caller], n);
                    let kept = list.items.iter().position(|item| item.name == name);
                    let expected = kept.map(|at| list.items.remove(at).value);
                    prop_assert_eq!(shelf.take(&name.0, &name.1), expected);
                }
                Step::Expire => prop_assert_eq!(sorted(shelf.expire(now)), sorted(list.expire(now))),
            }
            prop_assert_eq!((shelf.len(), shelf.bytes()), (list.items.len(), list.bytes()));
            prop_assert!(shelf.len() <= count && shelf.bytes() <= bytes);
            prop_assert_eq!(shelf.is_empty(), list.items.is_empty());
            for caller in CALLERS {
                let any = list.items.iter().any(|item| *item.name.0 == *caller && item.until > now);
                prop_assert_eq!(shelf.any(now, caller), any);
                for n in 0..14 {
                    prop_assert_eq!(shelf.get(now, caller, &key(n)).copied(), list.get(now, &name(caller, n)));
                }
            }
        }
    }
}

#[test]
fn one_that_brings_much_loses_its_own_oldest_and_nobody_elses() {
    let mut shelf = Shelf::new(ShelfBounds { count: 10, bytes: 1000 });
    for n in 0..3 {
        assert!(shelf.put(Moment(0), "few".into(), key(n), 10, LATE, n).is_empty());
    }
    let mut gone = Vec::new();
    for n in 0..100 {
        gone.extend(shelf.put(Moment(0), "many".into(), key(n), 10, LATE, n));
    }
    assert_eq!(gone, (0..93).map(|n| name("many", n)).collect::<Vec<_>>());
    assert!((0..3).all(|n| shelf.get(Moment(0), "few", &key(n)).is_some()));
}

#[test]
fn of_equally_large_shares_the_one_that_has_just_grown_gives_way() {
    for (first, second) in [("a", "b"), ("b", "a")] {
        let mut shelf = Shelf::new(ShelfBounds { count: 3, bytes: 1000 });
        shelf.put(Moment(0), first.into(), key(1), 1, LATE, ());
        shelf.put(Moment(0), first.into(), key(2), 1, LATE, ());
        shelf.put(Moment(0), second.into(), key(1), 1, LATE, ());
        assert_eq!(shelf.put(Moment(0), second.into(), key(2), 1, LATE, ()), [name(second, 1)]);
    }
}

#[test]
fn a_thing_larger_than_the_whole_or_over_already_is_not_kept_and_pushes_nothing_out() {
    let mut shelf = Shelf::new(ShelfBounds { count: 3, bytes: 100 });
    shelf.put(Moment(5), "a".into(), key(1), 60, LATE, "old");
    assert_eq!(shelf.put(Moment(5), "b".into(), key(1), 101, LATE, "huge"), [name("b", 1)]);
    assert_eq!(shelf.put(Moment(5), "b".into(), key(1), 1, Moment(5), "over"), [name("b", 1)]);
    assert_eq!(shelf.get(Moment(5), "a", &key(1)), Some(&"old"));
    assert!(!shelf.any(Moment(5), "b"));
    assert_eq!(shelf.put(Moment(5), "b".into(), key(1), 90, LATE, "the larger share by it alone"), [name("b", 1)]);
    assert_eq!(shelf.get(Moment(5), "a", &key(1)), Some(&"old"));
}

#[test]
fn a_thing_ends_with_its_time_and_is_told_once() {
    let mut shelf = Shelf::new(ShelfBounds { count: 3, bytes: 100 });
    shelf.put(Moment(0), "a".into(), key(1), 10, Moment(50), 1);
    assert!(shelf.any(Moment(49), "a") && shelf.get(Moment(49), "a", &key(1)).is_some());
    assert!(!shelf.any(Moment(50), "a") && shelf.get(Moment(50), "a", &key(1)).is_none());
    assert_eq!((shelf.len(), shelf.bytes()), (1, 10));
    assert_eq!(shelf.put(Moment(50), "b".into(), key(2), 10, LATE, 2), [name("a", 1)]);
    assert!(shelf.expire(Moment(60)).is_empty());
}

#[test]
fn what_replaces_another_is_told_to_nobody_and_counts_once() {
    let mut shelf = Shelf::new(ShelfBounds { count: 3, bytes: 100 });
    shelf.put(Moment(0), "a".into(), key(1), 90, Moment(50), 1);
    assert!(shelf.put(Moment(60), "a".into(), key(1), 80, LATE, 2).is_empty(), "over, but replaced");
    assert_eq!((shelf.len(), shelf.bytes(), shelf.get(Moment(60), "a", &key(1))), (1, 80, Some(&2)));
    assert_eq!(shelf.get(Moment(60), "b", &key(1)), None, "another caller does not see it");
    assert_eq!(shelf.take("b", &key(1)), None);
    assert_eq!(shelf.take("a", &key(1)), Some(2));
    assert!(shelf.is_empty() && shelf.bytes() == 0);
}
