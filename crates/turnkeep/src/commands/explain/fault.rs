//! One fault with its proof, as text and as JSON.

use crate::commands::open_store::moment;
use serde_json::{Value, json};
use std::io::{self, Write};
use turnkeep_engine::ports::FaultRecord;

/// Writes it in a few lines.
pub(super) fn write(fault: &FaultRecord, with_account: bool, out: &mut impl Write) -> io::Result<()> {
    write!(out, "{}  {}", moment(Some(fault.at_ms)), fault.fault)?;
    if !fault.origin.is_empty() {
        write!(out, " (origin {})", fault.origin)?;
    }
    match &fault.attempt {
        Some(attempt) => write!(out, "  attempt {attempt}")?,
        None => write!(out, "  turn {}", fault.turn)?,
    }
    if with_account && let Some(account) = &fault.account {
        write!(out, "  on {account}")?;
    }
    writeln!(out, "  model {}", one_line(&fault.model))?;
    let mut proof = Vec::new();
    proof.extend(fault.status.map(|status| format!("status {status}")));
    proof.extend(fault.code.as_ref().map(|code| format!("code {}", one_line(code))));
    proof.extend(fault.offset.map(|offset| format!("at byte {offset}")));
    proof.extend(fault.clock.as_ref().map(|clock| format!("clock {clock}")));
    proof.extend(fault.wait_ms.map(|wait| format!("declared wait {} ms", wait)));
    proof.push(format!("phase {}", fault.phase));
    writeln!(out, "    proof:  {}", proof.join(", "))?;
    if !fault.detail.is_empty() {
        writeln!(out, "    words:  {}", one_line(&fault.detail))?;
    }
    let effect = if fault.effect.is_empty() { "none" } else { &fault.effect };
    match fault.until_ms {
        Some(until) => writeln!(out, "    effect: {effect}, until {}", moment(Some(until))),
        None => writeln!(out, "    effect: {effect}"),
    }
}

/// What a provider wrote does not steer the terminal, nor turn the text's direction.
fn one_line(text: &str) -> String {
    let steers = |char: char| {
        char.is_control()
            || matches!(char, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    text.chars().map(|char| if steers(char) { ' ' } else { char }).collect()
}

/// All of it.
pub(super) fn to_json(fault: &FaultRecord) -> Value {
    json!({
        "at": moment(Some(fault.at_ms)),
        "turn": fault.turn.to_string(),
        "attempt": fault.attempt.map(|attempt| attempt.to_string()),
        "account": fault.account.as_ref().map(ToString::to_string),
        "model": &*fault.model,
        "fault": fault.fault,
        "origin": fault.origin,
        "phase": fault.phase,
        "status": fault.status,
        "code": fault.code,
        "detail": fault.detail,
        "offset": fault.offset,
        "clock": fault.clock,
        "declared_wait_ms": fault.wait_ms,
        "effect": fault.effect,
        "until": fault.until_ms.map(|until| moment(Some(until))),
    })
}
