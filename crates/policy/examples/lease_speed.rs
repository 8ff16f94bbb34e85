//! What taking and closing a lease costs with a full table: `cargo run --release -p turnkeep-policy --example lease_speed`.
//! It ends with a failure above 5 microseconds.
#![allow(clippy::print_stdout, reason = "the result of a measurement")]

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use turnkeep_base::{AccountId, Fingerprint};
use turnkeep_policy::Moment;
use turnkeep_policy::conversations::{
    AGE, BOUNDS, CheckIn, Conversation, ConversationLease, Conversations, Handling, LeaseEnd, Loan, Record,
};

/// The most that one may take.
const GOAL: Duration = Duration::from_micros(5);
const CALLERS: u64 = 50;
const ROUNDS: u64 = 200_000;

struct Desk(std::sync::Mutex<Conversations>);

impl CheckIn for Desk {
    fn check_in(&self, loan: Loan, end: LeaseEnd) {
        if let Ok(mut table) = self.0.lock() {
            table.check_in(Moment(1), loan, end, |_| true);
            black_box(table.changes());
        }
    }
}

fn key(number: u64) -> Fingerprint {
    Fingerprint((u128::from(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)) << 64 | u128::from(number)).to_le_bytes())
}

fn main() -> ExitCode {
    let callers: Vec<Arc<str>> = (0..CALLERS).map(|number| format!("caller-{number}").into()).collect();
    let of = |number: u64| callers[(number % CALLERS) as usize].clone();
    let mut table = Conversations::default();
    let records = BOUNDS.count as u64;
    for number in 0..records {
        let record = Record {
            conversation: Conversation {
                handle: format!("conversation-{number}").into(),
                position: Some(1),
                instance: None,
            },
            handling: Handling::Mutable,
            account: AccountId { upstream: "up".into(), account: "a".into() },
            epoch: 1,
            model: "m".into(),
            ends: Moment(0).after(AGE),
            reread: false,
        };
        table.begin(Moment(0), of(number), key(number), record, |_| true);
        table.changes();
    }
    let desk = Arc::new(Desk(table.into()));
    let began = Instant::now();
    let mut taken = 0u64;
    for round in 0..ROUNDS {
        let number = round % records;
        let (from, to) = (number + round / records * records, number + (round / records + 1) * records);
        let found = match desk.0.lock() {
            Ok(mut table) => {
                let found = table.take(Moment(1), &of(number), key(from), |_| true);
                black_box(table.changes());
                found
            }
            Err(_) => return ExitCode::FAILURE,
        };
        let Ok(loan) = found else { continue };
        taken += 1;
        let lease = ConversationLease::new(loan, desk.clone()).sent().completed();
        let conversation = lease.record().map(|record| record.conversation.clone());
        if let Some(conversation) = conversation {
            lease.advance(key(to), conversation);
        }
    }
    let each = began.elapsed() / u32::try_from(ROUNDS).unwrap_or(u32::MAX);
    println!("{taken} of {ROUNDS} leases of {records} records taken and advanced, {each:?} each (goal: {GOAL:?})");
    if taken == ROUNDS && each <= GOAL { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
