//! What it costs to take a conversation and to close its lease, with 10 000 records of 100 callers:
//! `cargo run --release -p turnkeep-policy --example lease_speed`.
//!
//! The table is full and stands behind a lock, as in the gateway. A line is a case and its figures between tabs: the median
//! over batches of 250 and the 99th percentile of the batches, in nanoseconds of the thread for one taking and closing; the
//! records that are kept; and how many of the 100 000 turns found none and began one. `turnkeep-bench conversations` reads
//! them.

#![allow(clippy::print_stdout)]

use rustix::time::{ClockId, clock_gettime};
use std::sync::{Arc, Mutex, PoisonError};
use turnkeep_base::{AccountId, Fingerprint};
use turnkeep_policy::Moment;
use turnkeep_policy::conversations::{
    AGE, CheckIn, Clean, Conversation, ConversationLease, Conversations, Handling, LeaseEnd, Loan, Record,
};

const RECORDS: u64 = 10_000;
/// Those that turns go on with; the others are what they left behind.
const LIVE: u64 = RECORDS / 4;
const CALLERS: u64 = 100;
const BATCHES: usize = 400;
const PER_BATCH: u64 = 250;

struct Desk(Mutex<Conversations>);

impl Desk {
    fn table(&self) -> std::sync::MutexGuard<'_, Conversations> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(self: &Arc<Self>, now: Moment, caller: &Arc<str>, key: Fingerprint) -> Option<ConversationLease<Clean>> {
        let mut table = self.table();
        let loan = table.take(now, caller, key, |record| record.epoch == 1).ok();
        drop(table.changes());
        drop(table);
        let loan = loan?;
        Some(ConversationLease::new(loan, self.clone()))
    }
}

impl CheckIn for Desk {
    fn check_in(&self, loan: Loan, end: LeaseEnd) {
        let mut table = self.table();
        table.check_in(NOW, loan, end, |record| record.epoch == 1);
        // As a gateway tells its store.
        drop(table.changes());
    }
}

const NOW: Moment = Moment(1);

/// A key as good as a hash.
fn key(number: u64) -> Fingerprint {
    let mixed = u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    Fingerprint((mixed ^ (mixed >> 64)).to_le_bytes())
}

/// CPU time of this thread, nanoseconds.
fn cpu() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(now.tv_sec * 1_000_000_000 + now.tv_nsec).unwrap_or_default()
}

fn conversation(number: u64) -> Conversation {
    Conversation { handle: format!("resp_{number:048}").into(), position: Some(number), instance: None }
}

fn record(conversation: Conversation, handling: Handling, account: &AccountId) -> Record {
    let (account, model) = (account.clone(), "m".into());
    Record { conversation, handling, account, epoch: 1, model, ends: NOW.after(AGE), reread: false }
}

fn main() {
    let callers: Vec<Arc<str>> = (0..CALLERS).map(|number| format!("key-{number}/user").into()).collect();
    for (what, handling) in [("mutable", Handling::Mutable), ("immutable", Handling::Immutable)] {
        for end in ["advanced", "restored"] {
            let mut table = Conversations::default();
            let account = AccountId { upstream: "u".into(), account: "a".into() };
            // The key that each conversation stands under.
            let mut stands: Vec<u64> = (0..RECORDS).collect();
            for (number, caller) in (0..RECORDS).zip(callers.iter().cycle()) {
                table.begin(
                    Moment(0),
                    caller.clone(),
                    key(number),
                    record(conversation(number), handling, &account),
                    |_| true,
                );
            }
            drop(table.changes());
            let desk = Arc::new(Desk(Mutex::new(table)));
            let (mut next, mut missed) = (RECORDS, 0_u64);
            let mut batches: Vec<u64> = (0..BATCHES)
                .map(|_| {
                    // What a turn brings, made beforehand.
                    let turns: Vec<(usize, Conversation)> = (0..PER_BATCH)
                        .map(|_| {
                            next += 1;
                            ((next.wrapping_mul(7919) % LIVE) as usize, conversation(next))
                        })
                        .collect();
                    let mut number = next - PER_BATCH;
                    let began = cpu();
                    for (at, conversation) in turns {
                        number += 1;
                        let (Some(place), Some(caller)) = (stands.get_mut(at), callers.get(at % CALLERS as usize))
                        else {
                            continue;
                        };
                        match desk.take(NOW, caller, key(*place)) {
                            Some(lease) if end == "advanced" => {
                                *place = number;
                                lease.sent().completed().advance(key(number), conversation);
                            }
                            Some(lease) => lease.restore(),
                            // It was the oldest of the caller with the most; the turn begins another one.
                            None => {
                                missed += 1;
                                let record = record(conversation, handling, &account);
                                desk.table().begin(NOW, caller.clone(), key(*place), record, |_| true);
                            }
                        }
                    }
                    (cpu() - began) / PER_BATCH
                })
                .collect();
            batches.sort_unstable();
            let at = |share: usize| batches.get(BATCHES * share / 100).copied().unwrap_or_default();
            let kept = desk.table().len(NOW);
            println!("lease\t{what}\t{end}\t{}\t{}\t{kept}\t{missed}", at(50), at(99));
        }
    }
}
