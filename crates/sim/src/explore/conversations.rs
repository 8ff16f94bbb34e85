//! Two keys of one caller, a mutable conversation and an immutable one that stand under them, two loans, an account that is
//! replaced, and time.

use super::Machine;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use turnkeep_base::{AccountId, Fingerprint};
use turnkeep_policy::Moment;
use turnkeep_policy::conversations::{
    CheckedIn, Conversation, Conversations as Table, Handling, LeaseEnd, Loan, Record,
};

/// What can happen. Loans are told by their age: 0 is the oldest that is out.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A turn has begun a conversation, which stands under this key.
    Begin(u8, Handling),
    /// A turn asks for the one under this key.
    Take(u8),
    /// A loan comes back so.
    End(usize, Ends),
    /// The account is another one from now on.
    Replaced,
    /// Time passes, in minutes.
    Wait(u64),
}

/// How a loan ends.
#[derive(Clone, Copy, Debug)]
pub enum Ends {
    /// Unsent or refused.
    Restored,
    /// The turn completed; it stands under this key now.
    Advanced(u8),
    /// Cut short.
    Interrupted,
    /// The upstream does not know it any more.
    Gone,
    /// Spoilt.
    Dead,
}

/// The machine.
#[derive(Default)]
pub struct Conversations {
    table: Table,
    now: Moment,
    epoch: u64,
    made: u64,
    out: Vec<Loan>,
    /// Mutable handles that no turn may be lent any more.
    spent: BTreeSet<Arc<str>>,
    /// The epoch in which each handle was begun.
    begun: BTreeMap<Arc<str>, u64>,
}

impl Machine for Conversations {
    type Event = Event;
    const EVENTS: &'static [Event] = &[
        Event::Begin(1, Handling::Mutable),
        Event::Begin(2, Handling::Mutable),
        Event::Begin(1, Handling::Immutable),
        Event::Take(1),
        Event::Take(2),
        Event::End(0, Ends::Restored),
        Event::End(1, Ends::Restored),
        Event::End(0, Ends::Advanced(1)),
        Event::End(0, Ends::Advanced(2)),
        Event::End(1, Ends::Advanced(2)),
        Event::End(0, Ends::Interrupted),
        Event::End(1, Ends::Interrupted),
        Event::End(0, Ends::Gone),
        Event::End(0, Ends::Dead),
        Event::Replaced,
        Event::Wait(31),
    ];

    fn happen(&mut self, event: Event) -> Option<Result<(), String>> {
        let caller: Arc<str> = "c".into();
        let epoch = self.epoch;
        let stands = move |record: &Record| record.epoch == epoch;
        match event {
            Event::Begin(key, handling) => {
                self.made += 1;
                let handle: Arc<str> = format!("h{}", self.made).into();
                self.begun.insert(handle.clone(), self.epoch);
                let record = Record {
                    conversation: Conversation { handle, position: None, instance: None },
                    handling,
                    account: AccountId { upstream: "u".into(), account: "a".into() },
                    epoch: self.epoch,
                    model: "m".into(),
                    ends: self.now.after(Duration::from_secs(24 * 60 * 60)),
                    reread: false,
                };
                self.table.begin(self.now, caller, print(key), record, stands);
            }
            Event::Take(_) if self.out.len() >= 2 => return None,
            Event::Take(key) => {
                if let Ok(loan) = self.table.take(self.now, &caller, print(key), stands)
                    && let Err(what) = self.lent(loan)
                {
                    return Some(Err(what));
                }
            }
            Event::End(at, _) if at >= self.out.len() => return None,
            Event::End(at, ends) => {
                let loan = self.out.remove(at);
                let record = loan.record().clone();
                let handle = record.conversation.handle.clone();
                let mutable = record.handling == Handling::Mutable;
                let conversation = match ends {
                    Ends::Advanced(_) if !mutable => {
                        self.made += 1;
                        let handle: Arc<str> = format!("h{}", self.made).into();
                        self.begun.insert(handle.clone(), record.epoch);
                        Conversation { handle, ..record.conversation.clone() }
                    }
                    Ends::Advanced(_) | Ends::Restored | Ends::Interrupted | Ends::Gone | Ends::Dead => {
                        record.conversation.clone()
                    }
                };
                let end = match ends {
                    Ends::Restored => LeaseEnd::Restored { reread: false },
                    Ends::Advanced(key) => LeaseEnd::Advanced { key: print(key), conversation },
                    Ends::Interrupted => LeaseEnd::Interrupted,
                    Ends::Gone => LeaseEnd::Dead { gone: true },
                    Ends::Dead => LeaseEnd::Dead { gone: false },
                };
                let became = self.table.check_in(self.now, loan, end, stands);
                if mutable && became == CheckedIn::Dropped {
                    self.spent.insert(handle);
                }
                if mutable
                    && matches!(ends, Ends::Interrupted | Ends::Gone | Ends::Dead)
                    && became != CheckedIn::Dropped
                {
                    return Some(Err(format!("invariant 4: after {ends:?} a conversation became {became:?}")));
                }
            }
            Event::Replaced => {
                self.epoch += 1;
                let epoch = self.epoch;
                self.table.sweep(|record| record.epoch == epoch);
            }
            Event::Wait(minutes) => self.now = self.now.after(Duration::from_secs(minutes * 60)),
        }
        drop(self.table.changes());
        Some(Ok(()))
    }

    fn looks(&self) -> String {
        // Handles by the order in which they are met: what they are called changes nothing.
        let mut names: Vec<Arc<str>> = Vec::new();
        let mut name = |handle: &Arc<str>| match names.iter().position(|known| known == handle) {
            Some(at) => at,
            None => {
                names.push(handle.clone());
                names.len() - 1
            }
        };
        let mut out = String::new();
        let mut table = self.table.clone();
        let (caller, epoch) = (Arc::from("c"), self.epoch);
        for key in [1, 2] {
            match table.take(self.now, &caller, print(key), |record| record.epoch == epoch) {
                Ok(loan) => {
                    let record = loan.record();
                    let left = self.now.until(record.ends);
                    let handle = name(&record.conversation.handle);
                    let spent = self.spent.contains(&record.conversation.handle);
                    out += &format!("{key} {handle} {:?} {left:?} {spent} ", record.handling);
                }
                Err(miss) => out += &format!("{key} {miss:?} "),
            }
        }
        for loan in &self.out {
            let (record, current) = (loan.record(), loan.record().epoch == self.epoch);
            let spent = self.spent.contains(&record.conversation.handle);
            let (handle, left) = (name(&record.conversation.handle), self.now.until(record.ends));
            out += &format!("out {handle} {:?} {current} {spent} {left:?} {:?} ", record.handling, loan.key());
        }
        out
    }
}

impl Conversations {
    /// A loan was given out: may it have been?
    fn lent(&mut self, loan: Loan) -> Result<(), String> {
        let record = loan.record();
        let handle = &record.conversation.handle;
        if record.handling == Handling::Mutable {
            if self.out.iter().any(|other| other.record().conversation.handle == *handle) {
                return Err(format!("invariant 4: {handle} is in two turns at once"));
            }
            if self.spent.contains(handle) {
                return Err(format!("invariant 4: {handle} was dropped, and is lent again"));
            }
        }
        if self.begun.get(handle) != Some(&self.epoch) {
            return Err(format!("invariant 4: {handle} of an older epoch is lent"));
        }
        self.out.push(loan);
        Ok(())
    }
}

fn print(key: u8) -> Fingerprint {
    Fingerprint([key; 16])
}
