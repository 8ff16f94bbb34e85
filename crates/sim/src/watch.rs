//! The invariants (`docs/simulation.md`), looked at after every step of a run and, those of a system at rest, at its end.
//! They are told from what clients, upstreams and the store have seen, and from the gateway's own views of its accounts.

mod accounts;
pub mod heard;
mod restart;

use crate::client::Outcome;
use crate::gateway::Running;
use crate::marks::Mark;
use crate::plan::{Family, Plan};
use crate::reply::End;
use crate::store::{Event, Seen};
use accounts::{Accounts, counts};
use parking_lot::Mutex;
use restart::Before;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;
use turnkeep_base::limit::{MAX_ATTEMPTS, MAX_DISPATCHES, RECEIPT_WAIT};
use turnkeep_base::{AccountId, AttemptId, FaultKind, TurnId};
use turnkeep_engine::incident::replay;
use turnkeep_engine::ports::AttemptOutcome;
use turnkeep_http::Gateway;
use turnkeep_policy::Moment;
use turnkeep_policy::accounts::{Snapshot, Status};
use turnkeep_store::LedgerEntry;

/// Beyond a turn's deadline, at most.
const LATE: Duration = Duration::from_secs(5);
/// The longest turn of the default configuration.
const LONGEST_TURN: Duration = Duration::from_secs(60 * 60);
/// The longest attempt of a plan: 2 000 words at 200 ms each, read by a client that waits 60 times for 2 s, of an upstream that
/// comes 90 s late; and the clocks that end one whose upstream says nothing any more.
const STALLED: Duration = Duration::from_secs(15 * 60);
/// How soon a write that nobody waits for is committed.
const COMMITTED_WITHIN: Duration = Duration::from_millis(10);
/// How soon a slot that is free finds whoever waits for it.
const WAKES_WITHIN: Duration = Duration::from_secs(3);
/// Violations that are kept.
const KEPT: usize = 50;

/// What has been found.
#[derive(Debug, Default)]
pub struct Watch {
    found: Mutex<BTreeSet<String>>,
    accounts: Mutex<Accounts>,
    /// Since when turns wait though nothing runs.
    idle: Mutex<Option<Instant>>,
    /// Conversations that upstreams said are gone, and that were dropped, over all lives.
    gone: Mutex<(u64, u64)>,
    /// How the last life has ended, until the next one begins.
    before: Mutex<Option<Before>>,
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
    pub fn step(&self, running: &Running, snapshots: &[Snapshot], seen: &Mutex<Seen>) {
        let admission = &running.gateway.engine().admission;
        let at = Instant::now();
        let mut accounts = self.accounts.lock();
        accounts.take(&seen.lock(), self);
        let now = admission.present();
        for account in snapshots {
            if account.in_flight > account.max_in_flight {
                self.broken(
                    1,
                    format_args!("{} has {} in flight of {}", account.id, account.in_flight, account.max_in_flight),
                );
            }
            accounts.look(account, now, at, self);
        }
        self.waiters(admission.waiting(), snapshots, now, at);
    }

    /// Nobody waits for a slot while nothing runs and every account could serve.
    fn waiters(&self, waiting: usize, accounts: &[Snapshot], now: Moment, at: Instant) {
        let free = |account: &Snapshot| {
            account.in_flight == 0
                && matches!(account.standing.status(), Status::Active)
                && account.standing.cooldowns().running(now).next().is_none()
        };
        let mut idle = self.idle.lock();
        if waiting == 0 || !accounts.iter().all(free) {
            *idle = None;
            return;
        }
        let since = *idle.get_or_insert(at);
        if at.saturating_duration_since(since) > WAKES_WITHIN {
            self.broken(16, format_args!("{waiting} turns wait, and every account is free"));
        }
    }

    /// What a client was told.
    pub fn told(&self, outcome: &Outcome, plan: &Plan) {
        let at = format!("{}.{}", outcome.talk, outcome.turn);
        if let Some(what) = &outcome.illegal
            && (outcome.read_whole || !what.starts_with("the body ended"))
        {
            self.broken(9, format_args!("client {at} was told what is not legal: {what}"));
        }
        if outcome.stays && !outcome.read_whole {
            self.broken(9, format_args!("client {at} stayed, and its reply has no end: {:?}", outcome.end));
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
        if matches!(outcome.end, End::Finished(_)) && !ENDS.iter().any(|end| text.ends_with(end)) {
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
        let mut counted = BTreeMap::<TurnId, u8>::new();
        let mut begun = BTreeMap::new();
        let mut closes = BTreeMap::<AttemptId, u32>::new();
        for (at, event) in seen.since(0) {
            match event {
                Event::Opens(attempt) => *opens.entry(*attempt).or_default() += 1,
                Event::Opened(attempt, id) => {
                    begun.entry(*attempt).or_insert((*at, id));
                    *turns.entry(attempt.turn).or_default() += 1;
                }
                Event::Closed(close) => {
                    *closes.entry(close.attempt).or_default() += 1;
                    let Some((begun, id)) = begun.get(&close.attempt) else { continue };
                    let took = at.saturating_duration_since(*begun);
                    let longest = if works_long(id) { LONGEST_TURN } else { STALLED };
                    if took > longest + LATE + RECEIPT_WAIT {
                        self.broken(11, format_args!("{} took {took:?}", close.attempt));
                    }
                }
                Event::Fault(record) => {
                    let works_long = record.account.as_ref().is_some_and(works_long);
                    let longest = record.clock.as_ref().is_some_and(|clock| clock.starts_with("max_turn"));
                    if longest && !works_long {
                        self.broken(11, format_args!("{} ran into its deadline: {:?}", record.turn, record.clock));
                    }
                    let kind = FaultKind::ALL.iter().find(|kind| kind.name() == record.fault);
                    if record.attempt.is_some() && record.phase == "answered" && kind.is_some_and(|kind| counts(*kind))
                    {
                        *counted.entry(record.turn).or_default() += 1;
                    }
                }
                Event::Again(_)
                | Event::GoesOn(_)
                | Event::Died
                | Event::Ended
                | Event::Jumped
                | Event::Rotated(_)
                | Event::Removed(_) => {}
            }
        }
        for (turn, count) in counted.iter().filter(|(_, count)| **count > MAX_ATTEMPTS) {
            self.broken(11, format_args!("{turn} had {count} attempts that count"));
        }
        for (attempt, count) in opens.iter().filter(|(_, count)| **count > 1) {
            self.broken(7, format_args!("{attempt} was opened {count} times"));
        }
        for (attempt, count) in closes.iter().filter(|(_, count)| **count > 1) {
            self.broken(8, format_args!("{attempt} was closed {count} times"));
        }
        for (attempt, _) in begun.iter().filter(|(attempt, _)| !closes.contains_key(attempt) && !lives_crashed) {
            self.broken(8, format_args!("{attempt} was never closed"));
        }
        for (turn, count) in turns.iter().filter(|(_, count)| **count > u32::from(MAX_DISPATCHES)) {
            self.broken(11, format_args!("{turn} had {count} attempts"));
        }
        let known: BTreeSet<AttemptId> = committed.iter().map(|entry| entry.attempt).collect();
        for (attempt, _) in begun.iter().filter(|(attempt, _)| !known.contains(attempt)) {
            self.broken(13, format_args!("{attempt} was committed, and is not in the ledger"));
        }
        for entry in committed.iter().filter(|entry| entry.closed.is_none()) {
            self.broken(8, format_args!("{} is open in the ledger of a system at rest", entry.attempt));
        }
    }

    /// A turn that completed is in the ledger with its usage, whether or not its reply has arrived.
    pub fn undelivered(&self, seen: &Seen, committed: &[LedgerEntry], deliveries: &BTreeMap<String, String>) {
        // Answered with what was made for another turn; or its end was lost with the process that was about to write it.
        let mut excused = BTreeSet::<String>::new();
        let (mut closing, mut open) = (Vec::<(Instant, TurnId)>::new(), BTreeSet::<TurnId>::new());
        for (at, event) in seen.since(0) {
            match event {
                Event::Again(turn) => drop(excused.insert(turn.to_string())),
                Event::Opened(attempt, _) => drop(open.insert(attempt.turn)),
                Event::Closed(close) => {
                    open.remove(&close.attempt.turn);
                    closing.push((*at, close.attempt.turn));
                }
                Event::Died => {
                    let lost = closing.drain(..).filter(|(closed, _)| *closed + COMMITTED_WITHIN > *at);
                    excused.extend(lost.map(|(_, turn)| turn.to_string()));
                    excused.extend(std::mem::take(&mut open).iter().map(ToString::to_string));
                }
                Event::Opens(_)
                | Event::GoesOn(_)
                | Event::Fault(_)
                | Event::Ended
                | Event::Jumped
                | Event::Rotated(_)
                | Event::Removed(_) => {}
            }
        }
        let mut completed = BTreeMap::<String, u64>::new();
        for entry in committed {
            let closed = entry.closed.as_ref().filter(|closed| closed.outcome == AttemptOutcome::Completed.name());
            if let Some(closed) = closed {
                *completed.entry(entry.attempt.turn.to_string()).or_default() += closed.usage.total();
            }
        }
        for (turn, way) in deliveries.iter().filter(|(turn, way)| *way == "undelivered" && !excused.contains(*turn)) {
            match completed.get(turn) {
                Some(0) => self.broken(6, format_args!("{turn} completed, and its usage is not in the ledger")),
                None => {
                    self.broken(6, format_args!("{turn} completed and is {way}, and no attempt of it has completed"))
                }
                Some(_) => {}
            }
        }
    }

    /// The exact entries of a family are ones that its upstream has reported.
    pub fn meter(&self, family: Family, committed: &[LedgerEntry], mut reported: Vec<(u64, u64)>) {
        let exact = committed.iter().filter(|entry| &*entry.account.upstream == family.name());
        for entry in exact {
            let Some(closed) = entry.closed.as_ref().filter(|closed| closed.exact && closed.usage.total() > 0) else {
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
        self.replays(&running.gateway);
        let (traced, _) = engine.incidents.len();
        if traced > 0 {
            self.broken(10, format_args!("{traced} traces run at rest"));
        }
        if engine.recorded_bytes() > 0 {
            self.broken(10, format_args!("{} bytes of recordings at rest", engine.recorded_bytes()));
        }
        let kept = &engine.conversations;
        let closed = kept.restored.get() + kept.advanced.get() + kept.dropped.get();
        let (gone, dropped) = *self.gone.lock();
        if gone > dropped + kept.dropped.get() {
            self.broken(4, format_args!("{gone} conversations were gone, and {dropped} dropped"));
        }
        if kept.hits.get() > closed {
            self.broken(
                4,
                format_args!("{} conversations were taken, and {closed} put back or dropped", kept.hits.get()),
            );
        }
    }

    /// A life of the gateway ends, in order or not: what it has dropped still counts, and what it knew is looked for in the
    /// next one.
    pub fn ends(&self, gateway: &Gateway, orderly: bool) {
        self.gone.lock().1 += gateway.engine().conversations.dropped.get();
        self.replays(gateway);
        *self.before.lock() = Some(Before::of(gateway, &self.accounts.lock(), orderly));
    }

    /// Every turn that has ended decides the same when its trace is run again.
    pub fn replays(&self, gateway: &Gateway) {
        let incidents = &gateway.engine().incidents;
        for trace in incidents.ended().into_iter().filter_map(|turn| incidents.trace(turn)) {
            if let Some((step, line)) = replay(&trace).divergence() {
                self.broken(18, format_args!("{} replayed differs at step {step}: {line:?}", trace.head.turn));
            }
        }
    }

    /// The next life has begun.
    pub fn begins(&self, gateway: &Gateway) {
        if let Some(before) = self.before.lock().take() {
            before.compare(gateway, self);
        }
    }

    /// How tries of accounts that were out of service have ended.
    pub fn tries(&self) -> BTreeSet<Mark> {
        self.accounts.lock().tries()
    }

    /// What upstreams have said of conversations that are gone.
    pub fn count_gone(&self, seen: &Seen) {
        let mut going = BTreeSet::new();
        let mut gone = 0;
        for (_, event) in seen.since(0) {
            match event {
                Event::GoesOn(attempt) => {
                    going.insert(*attempt);
                }
                Event::Fault(record) if record.fault == FaultKind::ConversationGone.name() => {
                    gone += u64::from(record.attempt.is_some_and(|attempt| going.contains(&attempt)));
                }
                Event::Again(_)
                | Event::Opens(_)
                | Event::Opened(..)
                | Event::Closed(_)
                | Event::Fault(_)
                | Event::Died
                | Event::Ended
                | Event::Jumped
                | Event::Rotated(_)
                | Event::Removed(_) => {}
            }
        }
        self.gone.lock().0 = gone;
    }

    /// A receipt is only for a reply that came whole; an answer that came is not held.
    pub fn delivered(&self, outcomes: &[Outcome], deliveries: &BTreeMap<String, String>) {
        let heads: BTreeSet<&str> = outcomes.iter().filter_map(|one| Some(one.head.as_ref()?.0.as_str())).collect();
        let unknown =
            deliveries.iter().filter(|(turn, way)| *way == "delivered" && !heads.contains(turn.as_str())).count();
        // Who leaves by itself may have had it all in its host's buffers.
        let left = outcomes.iter().filter(|one| one.head.is_none() && (one.leaves || one.refused)).count();
        if unknown > left {
            self.broken(5, format_args!("{unknown} replies count as delivered, and {left} clients can have had them"));
        }
        let mut read = BTreeSet::new();
        for outcome in outcomes {
            let Some((turn, _)) = &outcome.head else { continue };
            let at = format!("{}.{}", outcome.talk, outcome.turn);
            let delivered = deliveries.get(turn).is_some_and(|delivery| delivery == "delivered");
            // What has arrived may be lost unread when a gateway goes away.
            if delivered && outcome.resets && !outcome.read_whole && !outcome.refused {
                self.broken(5, format_args!("{turn} counts as delivered, and client {at} had reset it before its end"));
            }
            if outcome.cache == "held" && read.contains(&(outcome.caller, &outcome.asked)) {
                self.broken(5, format_args!("client {at} was served an answer that was held though it had arrived"));
            }
            if outcome.read_whole && matches!(outcome.end, End::Finished(_)) {
                read.insert((outcome.caller, &outcome.asked));
            }
        }
    }
}

fn works_long(id: &AccountId) -> bool {
    Family::ALL.iter().any(|family| family.works_long() && *family.name() == *id.upstream)
}

/// What repeated questions end with, by who repeats them.
const ENDS: [&str; 2] = ["answering.", "the lab's agent."];

/// A text without what upstreams have repeated of earlier questions, which a history holds too.
fn without_echoes(text: &str) -> String {
    let mut parts = text.split("You said: \"");
    let first = parts.next().unwrap_or_default().to_owned();
    let after = |part: &str| {
        let ends = ENDS.iter().filter_map(|end| Some(part.find(end)? + end.len()));
        ends.min().and_then(|at| part.get(at..)).unwrap_or_default().to_owned()
    };
    parts.fold(first, |kept, part| kept + &after(part))
}

/// The beginning and the end of a text.
fn short(text: &str) -> String {
    let all: Vec<char> = text.chars().collect();
    match all.len() {
        0..=160 => text.to_owned(),
        length => all[..80].iter().chain(&['…']).chain(&all[length - 80..]).collect(),
    }
}
