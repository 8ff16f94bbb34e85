//! The proof of a fault and what it did, as it is written down. What is kept is bounded and free of secrets: the
//! classifiers and the scrubbing of credentials have been there before.

use crate::engine::Engine;
use crate::machine::corroborate::Likeness;
use crate::ports::FaultRecord;
use std::sync::Arc;
use turnkeep_base::{AccountId, AttemptId, Clock, ClockKind, Fault, Phase, TurnId, verdict};
use turnkeep_policy::Moment;
use turnkeep_policy::accounts::{Applied, Judged, Scope};

/// The proof of an attempt's fault.
pub(crate) fn of_attempt(
    engine: &Engine,
    attempt: AttemptId,
    account: AccountId,
    model: Arc<str>,
    fault: &Fault,
    judged: &Judged,
) -> FaultRecord {
    let (effect, until) = effects(&judged.applied);
    let at_ms = engine.clock.unix_ms();
    let left = |end| u64::try_from(engine.admission.present().until(end).as_millis()).unwrap_or(u64::MAX);
    FaultRecord {
        attempt: Some(attempt),
        account: Some(account),
        effect,
        until_ms: until.map(|end| at_ms.saturating_add(left(end))),
        ..of_turn(engine, attempt.turn, model, fault)
    }
}

/// The proof of a fault that no attempt had a part in.
pub(crate) fn of_turn(engine: &Engine, turn: TurnId, model: Arc<str>, fault: &Fault) -> FaultRecord {
    let wait = fault.declared.longest();
    FaultRecord {
        at_ms: engine.clock.unix_ms(),
        turn,
        attempt: None,
        account: None,
        model,
        fault: fault.kind.name().to_owned(),
        origin: verdict::verdict(fault).origin.name().to_owned(),
        phase: phase(fault.phase).to_owned(),
        status: fault.evidence.status,
        code: fault.evidence.code.clone(),
        detail: fault.evidence.detail.clone(),
        offset: fault.evidence.offset,
        clock: fault.clock.map(clock),
        wait_ms: wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        effect: String::new(),
        until_ms: None,
    }
}

/// What befell a turn that is no fault of the table: admission's refusal, a charge that was taken back.
pub(crate) fn of_event(
    engine: &Engine,
    turn: TurnId,
    model: Arc<str>,
    word: &str,
    detail: String,
    effect: &str,
) -> FaultRecord {
    FaultRecord {
        at_ms: engine.clock.unix_ms(),
        turn,
        attempt: None,
        account: None,
        model,
        fault: word.to_owned(),
        origin: String::new(),
        phase: phase(Phase::Unsent).to_owned(),
        status: None,
        code: None,
        detail,
        offset: None,
        clock: None,
        wait_ms: None,
        effect: effect.to_owned(),
        until_ms: None,
    }
}

/// The note that a second account's same answer has convicted the request.
pub(crate) fn corroborated(
    engine: &Engine,
    turn: TurnId,
    account: AccountId,
    model: Arc<str>,
    said: &Likeness,
    taken_back: bool,
) -> FaultRecord {
    let detail = format!("a second account gave the same answer: {said}");
    let effect = if taken_back { "the charge was taken back" } else { "nothing was left to take back" };
    FaultRecord { account: Some(account), ..of_event(engine, turn, model, "corroborated", detail, effect) }
}

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Unsent => "unsent",
        Phase::MaybeSent => "maybe_sent",
        Phase::Answered => "answered",
    }
}

fn clock(clock: Clock) -> String {
    let name = match clock.kind {
        ClockKind::Connect => "connect",
        ClockKind::FirstContent => "first_content",
        ClockKind::Between => "between",
        ClockKind::Total => "total",
        ClockKind::MaxTurn => "max_turn",
        ClockKind::Provider => "the provider's own",
    };
    let by = if clock.set_by_caller { "the caller" } else { "the gateway" };
    format!("{name}, set by {by}")
}

/// What was applied, in words, and when the last of it ends.
fn effects(applied: &[Applied]) -> (String, Option<Moment>) {
    let mut until: Option<Moment> = None;
    let words = applied.iter().map(|applied| match applied {
        Applied::Recorded(why) => format!("recorded only: {why}"),
        Applied::Budget { used, of } => format!("error budget {used} of {of}"),
        Applied::Errored { episode, retry_at } => {
            until = until.max(Some(*retry_at));
            format!("errored, episode {episode}")
        }
        Applied::Suspended => "suspended until the operator enables it".to_owned(),
        Applied::Cooled { scope, until: end } => {
            until = until.max(Some(*end));
            match scope {
                Scope::Account => "the account cools".to_owned(),
                Scope::Model(model) => format!("the account cools for {model}"),
                Scope::Quota => "the account's quota cools".to_owned(),
                Scope::Rate => "the account's request rate cools".to_owned(),
            }
        }
        Applied::Sample => "health sample".to_owned(),
        Applied::Misconfigured => "shown as misconfigured".to_owned(),
    });
    let words: Vec<String> = words.collect();
    (words.join("; "), until)
}
