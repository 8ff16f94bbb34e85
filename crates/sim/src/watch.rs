//! The invariants (`docs/simulation.md`), looked at after every step of a run and, those of a system at rest, at its end.
//! They are told from what clients, upstreams and the store have seen, and from the gateway's own views of its accounts.

use crate::client::Outcome;
use crate::gateway::Running;
use crate::plan::{Family, Plan};
use crate::reply::End;
use crate::store::Seen;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use turnkeep_base::limit::{MAX_DISPATCHES, RECEIPT_WAIT};
use turnkeep_base::verdict::row;
use turnkeep_base::{AttemptId, FaultKind, Origin, TurnId};
use turnkeep_policy::accounts::{Scope, Snapshot, Status};
use turnkeep_store::LedgerEntry;

/// Beyond a turn's deadline, at most.
const LATE: Duration = Duration::from_secs(5);
/// The longest turn of the default configuration.
const LONGEST_TURN: Duration = Duration::from_secs(60 * 60);
/// Violations that are kept.
const KEPT: usize = 50;

/// What has been found.
#[derive(Debug, Default)]
pub struct Watch {
    found: Mutex<BTreeSet<String>>,
    /// Faults that were gone through, and what they are by account.
    judged: Mutex<(usize, BTreeMap<(String, String), u64>)>,
    states: Mutex<BTreeMap<String, &'static str>>,
}

impl Watch {
    /// Something does not hold.
    pub fn broken(&self, invariant: u8, what: impl std::fmt::Display) {
        let mut found = self.found.lock();
        if found.len() < KEPT {
            found.insert(format!("invariant {invariant}: {what}"));
        }
    }

    /// What does not hold, each thing once.
    pub fn found(&self) -> Vec<String> {
        self.found.lock().iter().cloned().collect()
    }

    /// After a step.
    pub fn step(&self, running: &Running, seen: &Mutex<Seen>) {
        let admission = &running.gateway.engine().admission;
        self.judge(&seen.lock());
        let now = admission.present();
        for account in admission.snapshots() {
            if account.in_flight > account.max_in_flight {
                self.broken(
                    1,
                    format_args!("{} has {} in flight of {}", account.id, account.in_flight, account.max_in_flight),
                );
            }
            self.standing(&account, now);
        }
    }

    /// Counts what each account was blamed for.
    fn judge(&self, seen: &Seen) {
        let mut judged = self.judged.lock();
        let (from, by_account) = &mut *judged;
        for record in seen.faults.iter().skip(*from) {
            if let Some(account) = &record.account {
                *by_account.entry((account.to_string(), record.fault.clone())).or_default() += 1;
            }
        }
        *from = seen.faults.len();
    }

    /// Whole-account penalties, each with the fault of the account's own that it is for.
    fn standing(&self, account: &Snapshot, now: turnkeep_policy::Moment) {
        let id = account.id.to_string();
        let blamed = |kind: FaultKind| {
            self.judged.lock().1.get(&(id.clone(), kind.name().to_owned())).copied().unwrap_or_default()
        };
        let standing = &account.standing;
        match standing.status() {
            Status::Active | Status::Disabled => {}
            Status::Errored { .. } if blamed(FaultKind::CredentialRejected) >= 3 => {}
            Status::Errored { .. } => {
                self.broken(3, format_args!("{id} is errored without three rejections of its credential"))
            }
            Status::Suspended { .. } if blamed(FaultKind::AccountSuspended) >= 1 => {}
            Status::Suspended { .. } => self.broken(3, format_args!("{id} is suspended, and nobody has said so")),
        }
        let used = standing.budget_used(now);
        if used > 0 && blamed(FaultKind::CredentialRejected) + blamed(FaultKind::AccountSuspended) == 0 {
            self.broken(2, format_args!("{id} has used {used} of its budget, and no fault of its own"));
        }
        for (scope, cooldown) in standing.cooldowns().running(now) {
            if *scope == Scope::Account && row(cooldown.cause).origin != Origin::Account {
                self.broken(2, format_args!("{id} cools down as a whole for {}", cooldown.cause.name()));
            }
            if blamed(cooldown.cause) == 0 {
                self.broken(12, format_args!("{id} cools down for {}, which it never had", cooldown.cause.name()));
            }
        }
        self.states.lock().insert(id, standing.status().name());
    }

    /// What a client was told.
    pub fn told(&self, outcome: &Outcome, plan: &Plan) {
        let at = format!("{}.{}", outcome.talk, outcome.turn);
        if let Some(what) = &outcome.illegal
            && (outcome.read_whole || !what.starts_with("the body ended"))
        {
            self.broken(9, format_args!("client {at} was told what is not legal: {what}"));
        }
        for other in (0..plan.callers).filter(|other| *other != outcome.caller) {
            if outcome.text.contains(&format!("of c{other}:")) {
                self.broken(15, format_args!("client {at} was told what caller {other} has asked"));
            }
        }
        self.answer(outcome, &at);
    }

    /// An echo says what was asked, from its first word, and a whole one to its last.
    fn answer(&self, outcome: &Outcome, at: &str) {
        let text = outcome.text.as_str();
        // A long answer counts its words.
        if text.is_empty() || text.starts_with("word1") {
            return self.counted(text, at);
        }
        const BEGINS: &str = "You said: \"";
        let said = text.strip_prefix(BEGINS);
        if said.is_none() && !BEGINS.starts_with(text) {
            return self
                .broken(9, format_args!("client {at} was told {:?}, which no upstream begins with", short(text)));
        }
        if matches!(outcome.end, End::Finished(_)) && !text.ends_with("answering.") {
            self.broken(9, format_args!("client {at} was told that this is all: {:?}", short(text)));
        }
        if text.matches(BEGINS).count() > 1 && !text.contains("Devin") {
            self.broken(9, format_args!("client {at} was told it twice: {:?}", short(text)));
        }
    }

    /// The words of a long answer come each once and in their order.
    fn counted(&self, text: &str, at: &str) {
        let words = text.split_whitespace().zip(1_u64..);
        // The last one may have been cut.
        let last = text.split_whitespace().count() as u64;
        for (word, number) in words.filter(|(_, number)| *number < last) {
            if word.strip_prefix("word").and_then(|count| count.parse().ok()) != Some(number) {
                return self.broken(9, format_args!("client {at} was told {word:?} as the word {number}"));
            }
        }
    }

    /// The ledger, of a system at rest: what gateways have written, and what is committed.
    pub fn ledger(&self, seen: &Seen, committed: &[LedgerEntry], lives_crashed: bool) {
        let mut opens = BTreeMap::<AttemptId, u32>::new();
        let mut turns = BTreeMap::<TurnId, u32>::new();
        let mut begun = BTreeMap::new();
        for (attempt, _, at) in &seen.opens {
            begun.entry(*attempt).or_insert(*at);
            *opens.entry(*attempt).or_default() += 1;
            *turns.entry(attempt.turn).or_default() += 1;
        }
        let mut closes = BTreeMap::<AttemptId, u32>::new();
        for (close, at) in &seen.closes {
            *closes.entry(close.attempt).or_default() += 1;
            let took = begun.get(&close.attempt).map_or(Duration::ZERO, |begun| at.saturating_duration_since(*begun));
            if took > LONGEST_TURN + LATE + RECEIPT_WAIT {
                self.broken(11, format_args!("{} took {took:?}", close.attempt));
            }
        }
        for (attempt, count) in opens.iter().filter(|(_, count)| **count > 1) {
            self.broken(7, format_args!("{attempt} was opened {count} times"));
        }
        for (attempt, count) in closes.iter().filter(|(_, count)| **count > 1) {
            self.broken(8, format_args!("{attempt} was closed {count} times"));
        }
        for (attempt, _) in opens.iter().filter(|(attempt, _)| !closes.contains_key(attempt) && !lives_crashed) {
            self.broken(8, format_args!("{attempt} was never closed"));
        }
        for (turn, count) in turns.iter().filter(|(_, count)| **count > u32::from(MAX_DISPATCHES)) {
            self.broken(11, format_args!("{turn} had {count} attempts"));
        }
        let known: BTreeSet<AttemptId> = committed.iter().map(|entry| entry.attempt).collect();
        for (attempt, _) in opens.iter().filter(|(attempt, _)| !known.contains(attempt)) {
            self.broken(13, format_args!("{attempt} was committed, and is not in the ledger"));
        }
        for entry in committed.iter().filter(|entry| entry.closed.is_none()) {
            self.broken(8, format_args!("{} is open in the ledger of a system at rest", entry.attempt));
        }
    }

    /// The exact entries of a family are ones that its upstream has reported.
    pub fn meter(&self, family: Family, committed: &[LedgerEntry], mut reported: Vec<(u64, u64)>) {
        let exact = committed.iter().filter(|entry| &*entry.account.upstream == family.name());
        for entry in exact {
            let Some(closed) = entry.closed.as_ref().filter(|closed| closed.exact && closed.outcome == "completed")
            else {
                continue;
            };
            let usage = closed.usage;
            let told = (usage.input + usage.cache_read + usage.cache_write, usage.output + usage.reasoning);
            match reported.iter().position(|other| *other == told) {
                Some(at) => {
                    reported.swap_remove(at);
                }
                None => self.broken(
                    7,
                    format_args!("{} has {told:?} tokens, which its upstream never reported", entry.attempt),
                ),
            }
        }
    }

    /// Nothing is under way any more.
    pub fn rest(&self, running: &Running) {
        let engine = running.gateway.engine();
        for account in engine.admission.snapshots().iter().filter(|account| account.in_flight > 0) {
            self.broken(1, format_args!("{} has {} in flight at rest", account.id, account.in_flight));
        }
        if engine.admission.waiting() > 0 {
            self.broken(10, format_args!("{} turns wait at rest", engine.admission.waiting()));
        }
        let open = engine.tally.turns_open.load(std::sync::atomic::Ordering::Acquire);
        if open > 0 {
            self.broken(10, format_args!("{open} turns are open at rest"));
        }
        if engine.recorded_bytes() > 0 {
            self.broken(10, format_args!("{} bytes of recordings at rest", engine.recorded_bytes()));
        }
        let kept = &engine.conversations;
        let closed = kept.restored.get() + kept.advanced.get() + kept.dropped.get();
        if kept.hits.get() > closed {
            self.broken(
                4,
                format_args!("{} conversations were taken, and {closed} put back or dropped", kept.hits.get()),
            );
        }
    }

    /// What was said in one conversation of an upstream's: each question once, and all of one caller.
    pub fn conversation(&self, what: &str, said: &[String]) {
        let mut questions = BTreeMap::<String, u32>::new();
        let mut callers = BTreeSet::<String>::new();
        for text in said {
            let text = without_echoes(text);
            for word in text.split_whitespace().filter(|word| word.starts_with('q') && word.ends_with('x')) {
                *questions.entry(word.to_owned()).or_default() += 1;
            }
            let words: Vec<&str> = text.split_whitespace().collect();
            callers.extend(
                words
                    .windows(2)
                    .filter(|pair| pair[0] == "of" && pair[1].starts_with('c'))
                    .map(|pair| pair[1].to_owned()),
            );
        }
        for (question, count) in questions.iter().filter(|(_, count)| **count > 1) {
            self.broken(4, format_args!("{what} was told {question} {count} times"));
        }
        if callers.len() > 1 {
            self.broken(15, format_args!("{what} has heard several callers: {callers:?}"));
        }
    }
}

/// A text without what upstreams have repeated of earlier questions, which a history holds too.
fn without_echoes(text: &str) -> String {
    let mut parts = text.split("You said: \"");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |kept, part| kept + part.split_once("answering.").map_or("", |(_, after)| after))
}

/// The beginning and the end of a text.
fn short(text: &str) -> String {
    let all: Vec<char> = text.chars().collect();
    match all.len() {
        0..=160 => text.to_owned(),
        length => all[..80].iter().chain(&['…']).chain(&all[length - 80..]).collect(),
    }
}
