//! The table of conversations beside a model that is a list, over random events; and every short sequence of events.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test code outside of #[test] functions")]

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use turnkeep_base::{AccountId, Fingerprint};
use turnkeep_policy::Moment;
use turnkeep_policy::conversations::{
    AGE, BOUNDS, Change, CheckedIn, Conversation, Conversations, Handling, IDLE, LeaseEnd, Loan, Miss, Record,
};

const CALLERS: [&str; 2] = ["ann", "bob"];
const KEYS: u8 = 4;

fn key(number: u8) -> Fingerprint {
    Fingerprint([number; 16])
}

fn conversation(handle: &str) -> Conversation {
    Conversation { handle: handle.into(), position: None, instance: None }
}

fn record(handle: &str, handling: Handling, epoch: u64, ends: Moment) -> Record {
    let account = AccountId { upstream: "up".into(), account: "a".into() };
    let conversation = conversation(handle);
    Record { conversation, handling, account, epoch, model: "m".into(), ends, reread: false }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A turn begins a conversation.
    Begin {
        caller: usize,
        key: u8,
        mutable: bool,
    },
    /// A turn looks for one.
    Take {
        caller: usize,
        key: u8,
    },
    /// One of the leases ends.
    End {
        which: usize,
        how: How,
    },
    /// The account is replaced.
    Replace,
    /// Conversations of replaced accounts are swept out.
    Sweep,
    Pass(u64),
}

#[derive(Clone, Copy, Debug)]
enum How {
    Restored { reread: bool },
    Advanced { key: u8 },
    Interrupted,
    Dead { gone: bool },
}

/// What stands in a place.
#[derive(Clone, Debug, PartialEq)]
struct Place {
    record: Record,
    until: Moment,
}

/// The model: places by caller and key, leases by number.
#[derive(Default)]
struct Model {
    places: BTreeMap<(usize, u8), Place>,
    lost: BTreeSet<Arc<str>>,
    begun: BTreeSet<Arc<str>>,
}

struct Run {
    table: Conversations,
    model: Model,
    /// Live leases: what is lent, and from where.
    live: Vec<(usize, u8, Loan)>,
    /// What a store would hold by the changes that were told.
    written: BTreeMap<(usize, u8), Record>,
    now: Moment,
    epoch: u64,
    number: u32,
}

impl Run {
    fn new() -> Run {
        Run {
            table: Conversations::new(BOUNDS),
            model: Model::default(),
            live: Vec::new(),
            written: BTreeMap::new(),
            now: Moment(1),
            epoch: 1,
            number: 0,
        }
    }

    fn handle(&mut self) -> String {
        self.number += 1;
        format!("h{}", self.number)
    }

    fn expire(&mut self) {
        let now = self.now;
        let over: Vec<_> =
            self.model.places.iter().filter(|(_, place)| place.until <= now).map(|(at, _)| *at).collect();
        for at in over {
            let place = self.model.places.remove(&at).unwrap();
            self.lose(&place.record);
        }
    }

    fn lose(&mut self, record: &Record) {
        if record.handling == Handling::Mutable {
            assert!(self.model.lost.insert(record.conversation.handle.clone()), "lost twice");
        }
    }

    fn put(&mut self, at: (usize, u8), record: Record) -> bool {
        let until = self.now.after(IDLE).min(record.ends);
        let old = self.model.places.remove(&at);
        if let Some(old) = old.filter(|old| old.record.conversation.handle != record.conversation.handle) {
            self.lose(&old.record);
        }
        if until <= self.now {
            self.lose(&record);
            return false;
        }
        self.model.places.insert(at, Place { record, until });
        true
    }

    fn step(&mut self, step: Step) {
        let epoch = self.epoch;
        let stands = |record: &Record| record.epoch == epoch;
        match step {
            Step::Begin { caller, key: number, mutable } => {
                let handle = self.handle();
                let handling = if mutable { Handling::Mutable } else { Handling::Immutable };
                let record = record(&handle, handling, self.epoch, self.now.after(AGE));
                self.model.begun.insert(handle.as_str().into());
                self.expire();
                let kept = self.table.begin(self.now, CALLERS[caller].into(), key(number), record.clone(), stands);
                assert_eq!(kept, self.put((caller, number), record));
            }
            Step::Take { caller, key: number } => {
                self.expire();
                let found = self.table.take(self.now, &CALLERS[caller].into(), key(number), stands);
                let place = self.model.places.get(&(caller, number)).cloned();
                match (found, place) {
                    (Err(Miss::Unknown), None) => {}
                    (Err(Miss::Stale), Some(place)) => {
                        assert!(!stands(&place.record));
                        self.model.places.remove(&(caller, number));
                        self.lose(&place.record);
                    }
                    (Ok(loan), Some(place)) => {
                        assert!(stands(&place.record));
                        assert_eq!(*loan.record(), place.record);
                        self.model.places.remove(&(caller, number));
                        if place.record.handling == Handling::Immutable {
                            self.put((caller, number), place.record);
                        }
                        self.live.push((caller, number, loan));
                    }
                    (found, place) => panic!("{found:?} {place:?}"),
                }
            }
            Step::End { which, how } => {
                if self.live.is_empty() {
                    return;
                }
                let (caller, number, loan) = self.live.swap_remove(which % self.live.len());
                self.expire();
                self.end(caller, number, loan, how);
            }
            Step::Replace => self.epoch += 1,
            Step::Sweep => {
                self.table.sweep(stands);
                let over: Vec<_> =
                    self.model.places.iter().filter(|(_, place)| !stands(&place.record)).map(|(at, _)| *at).collect();
                for at in over {
                    let place = self.model.places.remove(&at).unwrap();
                    self.lose(&place.record);
                }
            }
            Step::Pass(ms) => self.now = Moment(self.now.0 + ms),
        }
        self.hear();
        self.agree();
    }

    fn end(&mut self, caller: usize, number: u8, loan: Loan, how: How) {
        let mut record = loan.record().clone();
        let mutable = record.handling == Handling::Mutable;
        let epoch = self.epoch;
        let stands = record.epoch == epoch;
        let at = (caller, number);
        let handle = match how {
            How::Advanced { .. } if !mutable => {
                let handle = self.handle();
                self.model.begun.insert(handle.as_str().into());
                handle
            }
            How::Restored { .. } | How::Advanced { .. } | How::Interrupted | How::Dead { .. } => {
                record.conversation.handle.to_string()
            }
        };
        let end = match how {
            How::Restored { reread } => LeaseEnd::Restored { reread },
            How::Advanced { key: next } => LeaseEnd::Advanced { key: key(next), conversation: conversation(&handle) },
            How::Interrupted => LeaseEnd::Interrupted,
            How::Dead { gone } => LeaseEnd::Dead { gone },
        };
        let became = self.table.check_in(self.now, loan, end, |record| record.epoch == epoch);
        let same = self
            .model
            .places
            .get(&at)
            .is_some_and(|place| place.record.conversation.handle == record.conversation.handle);
        let expected = match (how, mutable) {
            (How::Restored { reread }, true) => {
                if stands && !self.model.places.contains_key(&at) {
                    record.reread |= reread;
                    if self.put(at, record) { CheckedIn::Restored } else { CheckedIn::Dropped }
                } else {
                    self.lose(&record);
                    CheckedIn::Dropped
                }
            }
            (How::Advanced { key }, _) if stands => {
                record.conversation = conversation(&handle);
                record.reread = false;
                if !mutable {
                    record.ends = self.now.after(AGE);
                }
                if self.put((caller, key), record) { CheckedIn::Advanced } else { CheckedIn::Dropped }
            }
            (How::Advanced { .. } | How::Interrupted | How::Dead { .. }, true) => {
                self.lose(&record);
                CheckedIn::Dropped
            }
            (How::Dead { gone: true } | How::Advanced { .. }, false) => {
                if same {
                    self.model.places.remove(&at);
                }
                CheckedIn::Dropped
            }
            (How::Restored { .. } | How::Interrupted | How::Dead { gone: false }, false) if stands => {
                CheckedIn::Restored
            }
            (How::Restored { .. } | How::Interrupted | How::Dead { gone: false }, false) => {
                if same {
                    self.model.places.remove(&at);
                }
                CheckedIn::Dropped
            }
        };
        assert_eq!(became, expected, "{how:?} mutable {mutable} stands {stands}");
    }

    /// Follows what is told as a store and a driver would.
    fn hear(&mut self) {
        let mut lost = BTreeSet::new();
        for change in self.table.changes() {
            let place = |caller: &Arc<str>, key: &Fingerprint| {
                (CALLERS.iter().position(|name| **name == **caller).unwrap(), key.0[0])
            };
            match change {
                Change::Stands { caller, key, record, until } => {
                    assert!(until > self.now && until <= self.now.after(IDLE) && until <= record.ends);
                    self.written.insert(place(&caller, &key), record);
                }
                Change::Nothing { caller, key } => drop(self.written.remove(&place(&caller, &key))),
                Change::Lost(record) => {
                    assert_eq!(record.handling, Handling::Mutable);
                    assert!(lost.insert(record.conversation.handle), "told twice");
                }
            }
        }
        // What was lost is told at the latest with the next event that looks at it.
        let before: BTreeSet<Arc<str>> = self.model.lost.clone();
        for handle in &lost {
            assert!(before.contains(handle), "{handle} was not lost");
        }
    }

    fn agree(&mut self) {
        // Over but not looked at yet counts for neither.
        let now = self.now;
        self.expire();
        assert_eq!(self.table.len(now), self.model.places.len());
        self.hear();
        // A mutable conversation is in one place, or in one turn, or lost: never in two of these.
        let mut seen = BTreeSet::new();
        let places = self.model.places.values().map(|place| &place.record);
        let lent = self.live.iter().map(|(_, _, loan)| loan.record());
        for record in places.chain(lent).filter(|record| record.handling == Handling::Mutable) {
            assert!(seen.insert(record.conversation.handle.clone()), "{} is twice", record.conversation.handle);
            assert!(!self.model.lost.contains(&record.conversation.handle), "lost, and there");
        }
        // What is written down beyond what stands is a mutable one in a turn: its entry takes that.
        for (at, record) in &self.written {
            let stands = self.model.places.get(at).is_some_and(|place| {
                place.record.conversation == record.conversation && place.record.reread == record.reread
            });
            let lent = self.live.iter().any(|(caller, number, loan)| {
                (*caller, *number) == *at
                    && loan.record().conversation.handle == record.conversation.handle
                    && record.handling == Handling::Mutable
            });
            assert!(stands || lent, "{at:?} {record:?} is written down and does not stand");
        }
        assert!(self.model.places.keys().all(|at| self.written.contains_key(at)), "it stands and is not written down");
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let how = prop_oneof![
        2 => any::<bool>().prop_map(|reread| How::Restored { reread }),
        3 => (0..KEYS).prop_map(|key| How::Advanced { key }),
        1 => Just(How::Interrupted),
        1 => any::<bool>().prop_map(|gone| How::Dead { gone }),
    ];
    let place = || (0..CALLERS.len(), 0..KEYS);
    let step = prop_oneof![
        3 => (place(), any::<bool>()).prop_map(|((caller, key), mutable)| Step::Begin { caller, key, mutable }),
        6 => place().prop_map(|(caller, key)| Step::Take { caller, key }),
        5 => (any::<usize>(), how).prop_map(|(which, how)| Step::End { which, how }),
        1 => Just(Step::Replace),
        1 => Just(Step::Sweep),
        1 => (0..2 * IDLE.as_millis() as u64).prop_map(Step::Pass),
        1 => Just(Step::Pass(AGE.as_millis() as u64 - 1)),
    ];
    prop::collection::vec(step, 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn leases_end_as_in_a_list_whatever_happens_and_no_mutable_conversation_is_twice(steps in steps()) {
        let mut run = Run::new();
        steps.into_iter().for_each(|step| run.step(step));
        while !run.live.is_empty() {
            run.step(Step::End { which: 0, how: How::Interrupted });
        }
    }
}

/// Each event that can happen in a small world: one caller, two keys.
fn all() -> Vec<Step> {
    let mut all = vec![Step::Replace, Step::Sweep, Step::Pass(IDLE.as_millis() as u64)];
    for key in 0..2 {
        all.push(Step::Take { caller: 0, key });
        all.extend([true, false].map(|mutable| Step::Begin { caller: 0, key, mutable }));
        all.push(Step::End { which: 0, how: How::Advanced { key } });
    }
    for how in [How::Restored { reread: true }, How::Interrupted, How::Dead { gone: true }, How::Dead { gone: false }] {
        all.extend([0, 1].map(|which| Step::End { which, how }));
    }
    all
}

#[test]
fn every_sequence_of_five_events_keeps_the_rules_of_leases() {
    let all = all();
    let mut tried = 0;
    // The first of them begins a conversation: before that there is nothing to take or end.
    for first in [true, false].map(|mutable| Step::Begin { caller: 0, key: 0, mutable }) {
        for number in 0..all.len().pow(4) {
            let mut run = Run::new();
            run.step(first);
            let mut rest = number;
            for _ in 0..4 {
                run.step(all[rest % all.len()]);
                rest /= all.len();
            }
            tried += 1;
        }
    }
    assert_eq!(tried, 2 * all.len().pow(4));
}

#[test]
fn ten_thousand_leases_are_kept_and_the_next_pushes_out_the_oldest_of_the_largest_share() {
    let mut table = Conversations::default();
    let name = |number: usize| {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        Fingerprint(bytes)
    };
    let ends = Moment(0).after(AGE);
    for number in 0..BOUNDS.count + 5 {
        let record = record(&format!("h{number}"), Handling::Mutable, 1, ends);
        assert!(table.begin(Moment(0), "ann".into(), name(number), record, |_| true));
        let changes = table.changes();
        let lost = changes.iter().filter(|change| matches!(change, Change::Lost(_))).count();
        assert_eq!(lost, usize::from(number >= BOUNDS.count), "{number}");
    }
    assert_eq!(table.len(Moment(0)), BOUNDS.count);
    assert_eq!(table.take(Moment(0), &"ann".into(), name(4), |_| true).err(), Some(Miss::Unknown));
    assert!(table.take(Moment(0), &"ann".into(), name(5), |_| true).is_ok());
}
