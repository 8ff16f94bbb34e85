//! Affinity and continuity: what is remembered, for how long, and what goes when there is no room. Both are compared with
//! a list that is searched from end to end.

mod support;

use proptest::prelude::*;
use std::time::Duration;
use turnkeep_base::receipt::Level;
use turnkeep_base::{AccountId, Fingerprint, Mint, Receipt, TurnId};
use turnkeep_policy::Moment;
use turnkeep_policy::affinity::{self, Affinities};
use turnkeep_policy::continuity::{self, Continuity, Owner};

const MINUTE: Duration = Duration::from_secs(60);

fn key(n: u32) -> Fingerprint {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&n.to_le_bytes());
    Fingerprint(bytes)
}

fn id(n: u32) -> AccountId {
    support::account("u", n).id
}

fn receipt() -> Receipt {
    Mint::for_the_wiring().receipt(TurnId::new(0, 0), Level::Acked)
}

fn owner(n: u32, session: Option<&str>) -> Owner {
    Owner { account: id(n), session: session.map(Into::into) }
}

/// The list; the most recently used one is its last.
struct List<V> {
    places: usize,
    entries: Vec<(Fingerprint, V, Duration, Moment)>,
}

impl<V: Clone + PartialEq> List<V> {
    fn put(&mut self, now: Moment, key: Fingerprint, value: V, idle: Duration) -> Option<V> {
        self.entries.retain(|(.., until)| *until > now);
        let old = self.entries.iter().position(|(other, ..)| *other == key).map(|at| self.entries.remove(at).1);
        self.entries.push((key, value, idle, now.after(idle)));
        self.entries.retain(|(.., until)| *until > now);
        while self.entries.len() > self.places {
            self.entries.remove(0);
        }
        old
    }

    fn find(&mut self, now: Moment, key: Fingerprint) -> Option<V> {
        self.entries.retain(|(.., until)| *until > now);
        let at = self.entries.iter().position(|(other, ..)| *other == key)?;
        let mut entry = self.entries.remove(at);
        entry.3 = now.after(entry.2);
        self.entries.push(entry.clone());
        Some(entry.1)
    }

    fn len(&self, now: Moment) -> usize {
        self.entries.iter().filter(|(.., until)| *until > now).count()
    }
}

#[derive(Clone, Debug)]
enum Step {
    Pass(u64),
    Put { key: u32, account: u32, minutes: u64 },
    Find(u32),
    Forget(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => prop_oneof![0..20u64, 0..3000u64].prop_map(Step::Pass),
        6 => (0..24u32, 0..5u32, 1..90u64).prop_map(|(key, account, minutes)| Step::Put { key, account, minutes }),
        5 => (0..24u32).prop_map(Step::Find),
        1 => (0..5u32).prop_map(Step::Forget),
    ];
    prop::collection::vec(step, 1..150)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bindings_are_those_of_a_list_that_is_searched_from_end_to_end(steps in steps(), places in 0..12usize) {
        let mut affinities = Affinities::new(places);
        let mut list = List { places, entries: Vec::new() };
        let mut now = Moment(7);
        for step in steps {
            match step {
                Step::Pass(minutes) => now = now.after(MINUTE * minutes as u32),
                Step::Put { key: n, account, minutes } => {
                    let ttl = MINUTE * minutes as u32;
                    let old = list.put(now, key(n), id(account), ttl);
                    prop_assert_eq!(affinities.bind(now, key(n), id(account), ttl), old != Some(id(account)));
                }
                Step::Find(n) => prop_assert_eq!(affinities.find(now, &key(n)).cloned(), list.find(now, key(n))),
                Step::Forget(n) => {
                    let before = list.entries.iter().filter(|(_, account, _, until)| *account == id(n) && *until > now);
                    let live = before.count();
                    list.entries.retain(|(_, account, ..)| *account != id(n));
                    prop_assert!(affinities.forget_account(&id(n)) >= live);
                }
            }
            prop_assert_eq!(affinities.len(now), list.len(now));
            prop_assert!(affinities.len(now) <= places);
        }
        for n in 0..24 {
            prop_assert_eq!(affinities.find(now, &key(n)).cloned(), list.find(now, key(n)));
        }
    }

    #[test]
    fn owners_are_those_of_a_list_that_is_searched_from_end_to_end(steps in steps(), places in 0..12usize) {
        let mut continuity = Continuity::new(places);
        let mut list = List { places, entries: Vec::new() };
        let mut now = Moment(7);
        for step in steps {
            match step {
                Step::Pass(minutes) => now = now.after(MINUTE * minutes as u32),
                Step::Put { key: n, account, minutes } => {
                    let owner = owner(account, minutes.is_multiple_of(2).then_some("s"));
                    list.put(now, key(n), owner.clone(), continuity::IDLE);
                    continuity.commit(&receipt(), now, key(n), owner);
                }
                Step::Find(n) => prop_assert_eq!(continuity.find(now, &key(n)).cloned(), list.find(now, key(n))),
                Step::Forget(n) => {
                    list.entries.retain(|(_, owner, ..)| owner.account != id(n));
                    continuity.forget_account(&id(n));
                }
            }
            prop_assert_eq!(continuity.len(now), list.len(now));
            prop_assert!(continuity.len(now) <= places);
        }
        for n in 0..24 {
            prop_assert_eq!(continuity.find(now, &key(n)).cloned(), list.find(now, key(n)));
        }
    }
}

#[test]
fn a_binding_that_is_used_lasts_and_one_that_is_not_ends_with_its_time() {
    let mut affinities = Affinities::new(affinity::ENTRIES);
    let mut now = Moment(0);
    assert!(affinities.bind(now, key(1), id(1), 5 * MINUTE));
    assert!(affinities.bind(now, key(2), id(1), affinity::TTL));
    for _ in 0..100 {
        now = now.after(4 * MINUTE);
        assert_eq!(affinities.find(now, &key(1)), Some(&id(1)));
    }
    assert_eq!(affinities.find(now, &key(2)), None);
    assert!(!affinities.bind(now, key(1), id(1), 5 * MINUTE), "the same account is no move");
    assert!(affinities.bind(now, key(1), id(2), 5 * MINUTE));
    assert_eq!(affinities.find(now.after(5 * MINUTE), &key(1)), None);
}

#[test]
fn a_time_that_goes_back_brings_nothing_back() {
    let mut affinities = Affinities::new(4);
    affinities.bind(Moment(0), key(1), id(1), MINUTE);
    assert_eq!(affinities.len(Moment(60_000)), 0);
    assert_eq!(affinities.find(Moment(10), &key(1)), None);
    affinities.bind(Moment(10), key(2), id(1), MINUTE);
    assert_eq!(affinities.find(Moment(119_999), &key(2)), Some(&id(1)));
}

#[test]
fn a_full_table_takes_the_new_and_forgets_the_least_recently_used() {
    let mut affinities = Affinities::new(affinity::ENTRIES);
    let now = Moment(0);
    for n in 0..affinity::ENTRIES as u32 {
        affinities.bind(now, key(n), id(n % 50), affinity::TTL);
    }
    affinities.find(now, &key(0));
    affinities.bind(now, key(u32::MAX), id(0), affinity::TTL);
    assert_eq!(affinities.len(now), affinity::ENTRIES);
    assert_eq!(affinities.find(now, &key(0)), Some(&id(0)));
    assert_eq!(affinities.find(now, &key(1)), None);
}

#[test]
fn what_belongs_to_an_account_that_is_gone_is_forgotten_and_nothing_else_is() {
    let mut affinities = Affinities::new(100);
    let mut continuity = Continuity::new(100);
    let now = Moment(0);
    for n in 0..60 {
        affinities.bind(now, key(n), id(n % 3), affinity::TTL);
        continuity.commit(&receipt(), now, key(n), owner(n % 3, None));
    }
    assert_eq!((affinities.forget_account(&id(1)), continuity.forget_account(&id(1))), (20, 20));
    assert_eq!((affinities.forget_account(&id(1)), continuity.forget_account(&id(9))), (0, 0));
    for n in 0..60 {
        assert_eq!(affinities.find(now, &key(n)).is_some(), n % 3 != 1);
        assert_eq!(continuity.find(now, &key(n)).is_some(), n % 3 != 1);
    }
}

#[test]
fn a_conversation_is_remembered_for_a_day_after_its_last_use() {
    let mut continuity = Continuity::new(continuity::ENTRIES);
    let almost = continuity::IDLE - Duration::from_millis(1);
    let now = Moment(5);
    continuity.commit(&receipt(), now, key(1), owner(1, Some("s-1")));
    let now = now.after(almost);
    assert_eq!(continuity.find(now, &key(1)), Some(&owner(1, Some("s-1"))));
    let now = now.after(almost);
    assert_eq!(continuity.find(now, &key(1)), Some(&owner(1, Some("s-1"))));
    assert_eq!(continuity.find(now.after(continuity::IDLE), &key(1)), None);
}

#[test]
fn a_sessions_id_that_is_too_long_is_not_kept_but_the_account_is() {
    let mut continuity = Continuity::new(2);
    let fits = "x".repeat(continuity::MAX_SESSION);
    continuity.commit(&receipt(), Moment(0), key(1), owner(1, Some(&fits)));
    continuity.commit(&receipt(), Moment(0), key(2), owner(1, Some(&format!("{fits}x"))));
    assert_eq!(continuity.find(Moment(0), &key(1)), Some(&owner(1, Some(&fits))));
    assert_eq!(continuity.find(Moment(0), &key(2)), Some(&owner(1, None)));
}
