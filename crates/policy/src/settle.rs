//! The three closings as pure functions: what was observed goes in, what must be done comes out. Each is asked once for
//! each attempt, turn and delivery, on every path; the engine applies the answers.
//!
//! Nothing here knows a store, a socket or an account by name. Which fault costs an account what is the blame table's
//! (`turnkeep_base::verdict`); this decides only whether it is judged at all.

use crate::accounts::Bearing;
use turnkeep_base::seeded;
use turnkeep_base::verdict::counts;
use turnkeep_base::{Fault, FaultKind, NanoUsd, Price, Usage};

/// Bytes of text that are taken for one token where nothing better is known.
pub const BYTES_PER_TOKEN: u64 = 4;

/// Tokens of output that an answer is taken for whose request names no bound.
pub const USUAL_OUTPUT: u64 = 1_024;

/// What is set aside for a turn of so many bytes: all the output that it allows, of each of its choices.
pub fn reserved(request_bytes: u64, max_output: Option<u64>, choices: u64) -> Usage {
    let output = max_output.unwrap_or(USUAL_OUTPUT).saturating_mul(choices.max(1));
    Usage { input: request_bytes / BYTES_PER_TOKEN, output, ..Usage::default() }
}

/// What an attempt is taken to have used whose end is never known. Clients allow far more output than they get, so of that
/// no more than is usual.
pub fn presumed(request_bytes: u64, max_output: Option<u64>, choices: u64) -> Usage {
    reserved(request_bytes, Some(max_output.unwrap_or(USUAL_OUTPUT).min(USUAL_OUTPUT)), choices)
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AttemptEnd<'a> {
    /// The upstream's answer was complete.
    Completed,
    /// It failed.
    Failed(&'a Fault),
    /// It was cut short on our side; `late` is what the upstream had refused it with by then.
    Interrupted {
        /// A refusal that was read after the client had left.
        late: Option<&'a Fault>,
    },
    /// It was never sent.
    Unsent,
}

/// What is known of an attempt at its end.
#[derive(Clone, Copy, Debug)]
pub struct AttemptFacts<'a> {
    /// How it ended.
    pub end: AttemptEnd<'a>,
    /// The usage that the upstream reported, the last one seen.
    pub reported: Option<Usage>,
    /// Bytes of content that were read.
    pub content_bytes: u64,
    /// Input tokens guessed from the request.
    pub estimated_input: u64,
    /// What the model's tokens cost.
    pub price: Option<Price>,
}

/// How an attempt stands in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The answer was complete.
    Completed,
    /// Cut short on our side.
    Interrupted,
    /// Failed.
    Failed(FaultKind),
}

/// What becomes of the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnAccount {
    /// It has served.
    Succeed {
        /// Tokens for its own limit.
        tokens: u64,
    },
    /// The fault is applied to it.
    Judge {
        /// How far.
        bearing: Bearing,
        /// Tokens for its own limit.
        tokens: u64,
    },
    /// Its slot comes back and nothing else happens.
    Release,
}

/// What an attempt's closing does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptEffects {
    /// For the ledger.
    pub outcome: Outcome,
    /// For the ledger and the caller's budget.
    pub usage: Usage,
    /// The provider reported it; otherwise it is an estimate.
    pub exact: bool,
    /// What it cost.
    pub cost: Option<NanoUsd>,
    /// For the account.
    pub account: OnAccount,
    /// It was sent, and so counts as an attempt.
    pub sent: bool,
}

/// Closes an attempt. A complete answer is the account's success, whatever becomes of its delivery.
pub fn attempt(facts: &AttemptFacts<'_>) -> AttemptEffects {
    let free = (Usage::default(), true);
    let (outcome, (usage, exact)) = match facts.end {
        AttemptEnd::Completed => (Outcome::Completed, measured(facts, true)),
        AttemptEnd::Failed(fault) if may_have_cost(facts, fault) => {
            (Outcome::Failed(fault.kind), measured(facts, false))
        }
        AttemptEnd::Failed(fault) => (Outcome::Failed(fault.kind), free),
        // What the upstream refused cost nothing; what it was at work on is estimated.
        AttemptEnd::Interrupted { late: Some(_) } | AttemptEnd::Unsent => (Outcome::Interrupted, free),
        AttemptEnd::Interrupted { late: None } => {
            (Outcome::Interrupted, measured(facts, seeded::is("an-interrupted-answer-is-exact")))
        }
    };
    let tokens = usage.input.saturating_add(usage.output);
    let account = match facts.end {
        AttemptEnd::Completed => OnAccount::Succeed { tokens },
        AttemptEnd::Failed(_) => OnAccount::Judge { bearing: Bearing::Full, tokens },
        AttemptEnd::Interrupted { late: Some(_) } => OnAccount::Judge { bearing: Bearing::DeclaredOnly, tokens },
        AttemptEnd::Interrupted { late: None } | AttemptEnd::Unsent => OnAccount::Release,
    };
    let cost = facts.price.map(|price| price.cost(&usage));
    AttemptEffects { outcome, usage, exact, cost, account, sent: facts.end != AttemptEnd::Unsent }
}

/// The upstream may have worked on the request, and charge for it: something came back, or it was sent and not refused, by
/// its kind or by an error's status.
fn may_have_cost(facts: &AttemptFacts<'_>, fault: &Fault) -> bool {
    let refused = !counts(fault) || fault.evidence.status.is_some_and(|status| status >= 300);
    facts.content_bytes > 0 || facts.reported.is_some() || !refused
}

/// What the provider reported for a whole answer is exact; a part of an answer is estimated.
fn measured(facts: &AttemptFacts<'_>, whole: bool) -> (Usage, bool) {
    let guessed_output = facts.content_bytes.div_ceil(BYTES_PER_TOKEN);
    match facts.reported {
        Some(usage) if whole => (usage, true),
        Some(usage) => (Usage { output: usage.output.max(guessed_output), ..usage }, false),
        None => (Usage { input: facts.estimated_input, output: guessed_output, ..Usage::default() }, false),
    }
}

/// How a turn came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnOutcome {
    /// The answer was complete.
    Completed,
    /// The client left, or read too slowly, before it was.
    Left,
    /// The gateway stopped before it was.
    Stopped,
    /// It failed.
    Failed,
}

/// What is known of a turn at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnFacts {
    /// How it ended.
    pub outcome: TurnOutcome,
    /// Something the model made had gone to the client before it left.
    pub committed: bool,
    /// Answers may be kept for its caller, and this one was recorded whole.
    pub recorded: bool,
    /// Its request had an idempotency key.
    pub idempotent: bool,
}

/// What is counted when a turn closes without a delivery to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftAt {
    /// Before the answer began.
    BeforeAnswer,
    /// In the middle of it.
    MidAnswer,
}

/// What a turn's closing does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnEffects {
    /// The client had left.
    pub left: Option<LeftAt>,
    /// The answer is remembered under its idempotency key.
    pub remember: bool,
    /// Turns that have joined this one get its answer.
    pub publish: bool,
}

/// Closes a turn, before the terminal frame is written. Only a complete answer is kept.
pub fn turn(facts: &TurnFacts) -> TurnEffects {
    let (completed, left) = match facts.outcome {
        TurnOutcome::Completed => (true, None),
        TurnOutcome::Left if facts.committed => (false, Some(LeftAt::MidAnswer)),
        TurnOutcome::Left => (false, Some(LeftAt::BeforeAnswer)),
        TurnOutcome::Stopped | TurnOutcome::Failed => (false, None),
    };
    let keep = (completed || seeded::is("half-an-answer-is-kept")) && facts.recorded;
    TurnEffects { left, remember: keep && facts.idempotent, publish: keep }
}

/// Where an answer came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// An upstream made it for this turn.
    Upstream,
    /// It was made for the same request of the same caller, which did not get it: held, or joined.
    Late,
    /// It had been delivered before.
    Cache,
}

/// What is known of a delivery at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeliveryFacts {
    /// The turn's outcome.
    pub outcome: TurnOutcome,
    /// There is a receipt.
    pub receipt: bool,
    /// Where the answer came from.
    pub source: Source,
    /// Answers may be kept for its caller, and this one was recorded whole.
    pub recorded: bool,
    /// The model's cache is on, and the answer is one that may be used again.
    pub cacheable: bool,
}

/// What a delivery's closing does. Everything but `hold` and the counter of the undelivered takes a receipt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeliveryEffects {
    /// `Some(true)`: counted as delivered; `Some(false)`: as undelivered.
    pub delivered: Option<bool>,
    /// The account is bound to what was asked.
    pub bind: bool,
    /// The history with this answer leads to the account.
    pub commit: bool,
    /// The answer goes into the response cache.
    pub cache: bool,
    /// The answer is held for the same request.
    pub hold: bool,
    /// An answer that is held for this request is spent.
    pub spend: bool,
}

/// Closes a delivery.
pub fn delivery(facts: &DeliveryFacts) -> DeliveryEffects {
    let completed = match facts.outcome {
        TurnOutcome::Completed => true,
        TurnOutcome::Left | TurnOutcome::Stopped | TurnOutcome::Failed => false,
    };
    if !completed {
        return DeliveryEffects::default();
    }
    let made = facts.source == Source::Upstream;
    DeliveryEffects {
        delivered: Some(facts.receipt),
        bind: facts.receipt && made,
        commit: facts.receipt && made,
        cache: facts.receipt && facts.source != Source::Cache && facts.recorded && facts.cacheable,
        // A kept answer that does not arrive stays where it is.
        hold: (!facts.receipt || seeded::is("what-arrived-is-held")) && made && facts.recorded,
        spend: facts.receipt,
    }
}

#[cfg(test)]
mod tests;
