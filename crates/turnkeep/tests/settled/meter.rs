//! The ledger against the upstream's own meter, attempt by attempt.
//!
//! The requests of one turn, in the order in which the lab read them, are laid beside the turn's entries in the order of
//! their attempts. Each request has exactly one entry; an entry without a request was never sent, or is of an attempt that
//! was cut short while it was being sent.

use crate::random_turns::{Drawn, Went, breaks_the_answer};
use std::collections::BTreeSet;
use turnkeep_base::{AttemptId, Usage};
use turnkeep_lab::Recorded;
use turnkeep_store::LedgerEntry;

/// Dollars per million tokens in and out, and the same in billionths of a dollar for one.
pub const PRICE: &str = "price = { input = 3.0, output = 15.0 }";
const NANO_USD: (u64, u64) = (3_000, 15_000);

/// One turn, as everybody saw it.
pub struct Seen<'a> {
    pub drawn: &'a Drawn,
    pub went: Went,
    /// What the lab read of it.
    pub requests: Vec<&'a Recorded>,
    /// Its entries.
    pub entries: Vec<&'a LedgerEntry>,
    /// Entries that were open when the gateway was killed.
    pub cut: &'a BTreeSet<AttemptId>,
}

/// How many attempts ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    pub exact: u64,
    pub refused: u64,
    pub estimated: u64,
    pub cut: u64,
    pub unsent: u64,
    pub unseen: u64,
    pub sent_again: u64,
}

impl Seen<'_> {
    /// Asserts that requests and entries agree, and adds up how.
    pub fn settle(&self, sums: &mut Sums) {
        let Some(how) = self.laid_beside(&self.requests, &self.entries) else {
            let requests: Vec<String> = self.requests.iter().map(|request| shown_request(request)).collect();
            let entries: Vec<String> = self.entries.iter().map(|entry| self.shown_entry(entry)).collect();
            panic!("{:?} went {:?}\n{}\n{}", self.drawn, self.went, requests.join("\n"), entries.join("\n"));
        };
        for add in how {
            add(sums);
        }
    }

    fn shown_entry(&self, entry: &LedgerEntry) -> String {
        let (number, account) = (entry.attempt.number, &entry.account.account);
        let cut = self.cut.contains(&entry.attempt);
        format!("entry {number} of {account}, cut {cut}, guessed {}: {:?}", entry.estimated_input, entry.closed)
    }

    /// A way to give each request one entry; the rest need none.
    fn laid_beside(&self, requests: &[&Recorded], entries: &[&LedgerEntry]) -> Option<Vec<fn(&mut Sums)>> {
        let Some((entry, later)) = entries.split_first() else { return requests.is_empty().then(Vec::new) };
        if let Some((request, others)) = requests.split_first()
            && let Some(how) = self.agree(request, entry)
            && let Some(mut rest) = self.laid_beside(others, later)
        {
            rest.push(how);
            return Some(rest);
        }
        if let Some((request, others)) = requests.split_first()
            && self.was_sent_again(request, others)
            && let Some(mut rest) = self.laid_beside(others, entries)
        {
            rest.push(|sums| sums.sent_again += 1);
            return Some(rest);
        }
        let how = self.needs_no_request(entry)?;
        let mut rest = self.laid_beside(requests, later)?;
        rest.push(how);
        Some(rest)
    }

    /// A request on a connection that was used before, closed without a byte of an answer: the same attempt sends it once
    /// more on a fresh one.
    fn was_sent_again(&self, request: &Recorded, others: &[&Recorded]) -> bool {
        let fault = |word: &str| {
            let name = request.account.as_deref().unwrap_or_default().trim_start_matches("secret-");
            self.drawn.faults.contains(&format!("{word}-{name}"))
        };
        let next =
            others.first().is_some_and(|next| next.account == request.account && next.connection != request.connection);
        next && (fault("close") || fault("reset"))
    }

    fn agree(&self, request: &Recorded, entry: &LedgerEntry) -> Option<fn(&mut Sums)> {
        let closed = entry.closed.as_ref()?;
        let name = &*entry.account.account;
        if request.account.as_deref() != Some(&format!("secret-{name}")) || !costs(entry) {
            return None;
        }
        let (completed, interrupted) = (closed.outcome == "completed", closed.outcome == "interrupted");
        if self.cut.contains(&entry.attempt) {
            let (input, output) = (entry.estimated_input, entry.estimated_output);
            let estimate = Usage { input, output, ..Usage::default() };
            return (interrupted && !closed.exact && closed.usage == estimate).then_some(|sums| sums.cut += 1);
        }
        // A client that leaves may do so just before what the upstream has said is read.
        let stayed = matches!(self.went, Went::Told(_));
        if interrupted && !stayed && !closed.exact {
            return Some(|sums| sums.estimated += 1);
        }
        let broken = |fault: &String| breaks_the_answer(&fault[..fault.len() - 2]) && fault.ends_with(name);
        match (request.reported, request.status) {
            (Some(meter), Some(200)) if !self.drawn.faults.iter().any(broken) => {
                let ours = (closed.usage.total_input(), closed.usage.output);
                (completed && closed.exact && ours == meter).then_some(|sums| sums.exact += 1)
            }
            (None, Some(400..)) => {
                (!completed && closed.exact && closed.usage == Usage::default()).then_some(|sums| sums.refused += 1)
            }
            (_, Some(_)) => {
                let counts = closed.usage.total_input() > 0;
                (!completed && !closed.exact && counts).then_some(|sums| sums.estimated += 1)
            }
            (_, None) => None,
        }
    }

    fn needs_no_request(&self, entry: &LedgerEntry) -> Option<fn(&mut Sums)> {
        let closed = entry.closed.as_ref()?;
        if self.cut.contains(&entry.attempt) {
            return (closed.outcome == "interrupted" && !closed.exact).then_some(|sums| sums.cut += 1);
        }
        if closed.exact && closed.usage == Usage::default() && closed.outcome != "completed" {
            return Some(|sums| sums.unsent += 1);
        }
        let left = self.went == Went::Left && closed.outcome == "interrupted" && !closed.exact;
        left.then_some(|sums| sums.unseen += 1)
    }
}

fn shown_request(request: &Recorded) -> String {
    let Recorded { account, status, reported, client_closed_after, .. } = request;
    format!("request of {account:?}: {status:?}, reported {reported:?}, abandoned {client_closed_after}")
}

/// Whether an entry's cost is that of its tokens.
fn costs(entry: &LedgerEntry) -> bool {
    entry.closed.as_ref().is_some_and(|closed| {
        let usage = closed.usage;
        closed.cost == Some(usage.total_input() * NANO_USD.0 + usage.output * NANO_USD.1)
    })
}
