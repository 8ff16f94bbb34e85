//! `turnkeep explain turn`: what happened to a turn.

use super::fault;
use crate::cli::ExplainTurnArgs;
use crate::commands::Failure;
use crate::commands::open_store::{moment, open_existing};
use crate::config::Config;
use serde_json::{Value, json};
use std::io::Write;
use turnkeep_base::TurnId;
use turnkeep_base::price::shown_usd;
use turnkeep_engine::ports::Again;
use turnkeep_store::{LedgerEntry, Store};

pub(super) async fn run(args: &ExplainTurnArgs, out: &mut impl Write) -> Result<(), Failure> {
    let id: TurnId = args.id.parse().map_err(|error| Failure::Usage(format!("{:?}: {error}", args.id)))?;
    let config = Config::load(&args.file.config)?;
    let store = open_existing(&config)?;
    let result = explain(args, id, &store, out).await;
    store.shutdown().await.map_err(Failure::operation)?;
    result
}

async fn explain(args: &ExplainTurnArgs, id: TurnId, store: &dyn Store, out: &mut impl Write) -> Result<(), Failure> {
    let attempts = store.attempts_of_turn(id).await.map_err(Failure::operation)?;
    let faults = store.faults_of_turn(id).await.map_err(Failure::operation)?;
    if attempts.is_empty() && faults.is_empty() {
        let words = format!(
            "nothing is kept of {id}: it never reached an account and met no fault, it is older than store.keep, or this is \
             not its gateway's store"
        );
        return Err(Failure::Operation(words));
    }
    if args.json {
        let attempts: Vec<Value> = attempts.iter().map(attempt_json).collect();
        let faults: Vec<Value> = faults.iter().map(fault::to_json).collect();
        writeln!(out, "{}", json!({"turn": id.to_string(), "attempts": attempts, "faults": faults}))?;
        return Ok(());
    }
    match attempts.first() {
        Some(first) => writeln!(out, "{id}: model {}, caller {}, in {}", first.model, first.caller, first.dialect)?,
        None => writeln!(out, "{id}: it was never sent to an account")?,
    }
    for attempt in &attempts {
        let number = attempt.attempt.number;
        if let Some(how) = answered_again(attempt) {
            writeln!(out, "{how}, and so no account was asked")?;
            continue;
        }
        write!(out, "attempt {number} on {} as {}", attempt.account, attempt.upstream_model)?;
        write!(out, ", sent {}: ", moment(Some(attempt.opened_ms)))?;
        match &attempt.closed {
            None => writeln!(out, "still running")?,
            Some(end) => {
                let lasted = end.closed_ms.saturating_sub(attempt.opened_ms);
                let count = if end.exact { "" } else { " (estimated)" };
                let (input, output) = (end.usage.input, end.usage.output);
                let cost = end.cost.map_or_else(String::new, |cost| format!(", {} USD", shown_usd(cost)));
                writeln!(out, "{} after {lasted} ms, {input} tokens in, {output} out{count}{cost}", end.outcome)?;
            }
        }
    }
    if !faults.is_empty() {
        writeln!(out, "\nfaults, in order:")?;
    }
    for record in &faults {
        fault::write(record, true, out)?;
    }
    Ok(())
}

/// How a turn came by an answer that was made before; such an entry is no attempt.
fn answered_again(entry: &LedgerEntry) -> Option<&'static str> {
    let outcome = entry.closed.as_ref().filter(|_| entry.attempt.number == 0)?.outcome.as_str();
    if outcome == Again::Held.name() {
        Some("the answer was held: it was made for the same request before and had not arrived")
    } else if outcome == Again::Joined.name() {
        Some("the answer is that of another turn of the same request, which ran already")
    } else {
        Some("the answer was kept: from the response cache, or under the idempotency key")
    }
}

fn attempt_json(attempt: &LedgerEntry) -> Value {
    let closed = attempt.closed.as_ref().map(|end| {
        json!({
            "outcome": end.outcome,
            "exact": end.exact,
            "input_tokens": end.usage.input,
            "output_tokens": end.usage.output,
            "cost_usd": end.cost.map(shown_usd),
            "at": moment(Some(end.closed_ms)),
        })
    });
    json!({
        "number": attempt.attempt.number,
        "account": attempt.account.to_string(),
        "model": attempt.model,
        "upstream_model": attempt.upstream_model,
        "caller": attempt.caller,
        "dialect": attempt.dialect,
        "opened": moment(Some(attempt.opened_ms)),
        "closed": closed,
    })
}
