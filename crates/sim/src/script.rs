//! A plan's faults as a lab's script.

use crate::plan::{Family, Fault, Plan, What};
use turnkeep_lab::{ErrorSpec, Fault as LabFault, Point, Rule, Script};

/// Errors of JSON-RPC, and the protocol's own for a login that is wanted.
const INTERNAL: i64 = -32603;
const INVALID_PARAMS: i64 = -32602;
const AUTH_REQUIRED: i64 = -32000;

/// The credential of an account.
pub fn secret(family: Family, account: u8, rotated: u32) -> String {
    format!("secret-{}-{account}-{rotated}", family.name())
}

/// What an account's credentials have in common.
fn secrets(family: Family, account: u8) -> String {
    format!("secret-{}-{account}-*", family.name())
}

/// The script of a family's upstream.
pub fn of(plan: &Plan, family: Family) -> Script {
    let mut script = healthy();
    script.rule.push(Rule { word_delay_ms: plan.pace_ms, ..Rule::default() });
    script.rule.iter_mut().for_each(|rule| rule.word_delay_ms = plan.pace_ms);
    let its = plan.faults.iter().filter(|fault| fault.family == family);
    let rules = its.map(rule).collect::<Vec<_>>();
    script.rule.splice(0..0, rules);
    script
}

/// Without faults. Questions that ask for a long answer get one.
pub fn healthy() -> Script {
    let long =
        |words: u32| Rule { body_contains: Some(format!("tell {words} words")), words: Some(words), ..Rule::default() };
    let refused = Rule { body_contains: Some(" nobody answers this".into()), ..shell() };
    Script::of([refused, long(300), long(2000)])
}

/// The script of an agent's account.
pub fn of_agent(plan: &Plan, account: u8) -> Script {
    let mut script = healthy_agent();
    script.rule.push(Rule::default());
    script.rule.iter_mut().for_each(|rule| rule.word_delay_ms = plan.pace_ms);
    let its = plan.faults.iter().filter(|fault| fault.family == Family::Acp && fault.account == account);
    let rules = its.map(agent_rule).collect::<Vec<_>>();
    script.rule.splice(0..0, rules);
    script
}

/// Without faults, as [`healthy`].
pub fn healthy_agent() -> Script {
    let refused =
        Rule { body_contains: Some(" nobody answers this".into()), error: coded(INTERNAL), ..Rule::default() };
    let mut script = healthy();
    script.rule.remove(0);
    script.rule.insert(0, refused);
    script
}

/// An error of JSON-RPC.
fn coded(code: i64) -> Option<ErrorSpec> {
    Some(ErrorSpec { code: Some(code.to_string()), ..ErrorSpec::default() })
}

fn agent_rule(fault: &Fault) -> Rule {
    let Fault { nth, what, .. } = *fault;
    let base = Rule { path: Some("session/prompt".into()), nth: Some(nth), times: Some(1), ..Rule::default() };
    let error = |code: i64| Rule { error: coded(code), ..base.clone() };
    let broken = |fault: LabFault| Rule { fault: Some(fault), ..base.clone() };
    let mid = |fault: LabFault| Rule { fault_at: Some(Point::AfterWords(nth % 9)), ..broken(fault) };
    match what {
        What::Limited(_) | What::LimitedBare | What::Quota => error(429),
        What::Rejected => error(AUTH_REQUIRED),
        What::Suspended => error(403),
        What::NoModel | What::Invalid => error(INVALID_PARAMS),
        What::Status500 | What::Status503 | What::Overloaded | What::FailsAnyway | What::Shell => error(INTERNAL),
        What::Html => broken(LabFault::BadSse),
        What::BadJson => broken(LabFault::BadJson),
        What::ResetBefore | What::CloseBefore => broken(LabFault::ResetBeforeReply),
        What::ResetMid => mid(LabFault::ResetMidStream),
        What::CloseMid => mid(LabFault::CloseMidStream),
        What::NoTerminal => broken(LabFault::NoTerminal),
        What::Hang => Rule { fault_at: Some(hang(nth)), ..broken(LabFault::Hang) },
        What::ErrorInStream => broken(LabFault::ErrorInStream),
        What::Slow(ms) => Rule { word_delay_ms: ms, ..base },
        What::Late(ms) => Rule { before_headers_delay_ms: ms, ..base },
    }
}

/// Everything fails.
pub fn outage() -> Script {
    Script::of([Rule { error: Some(ErrorSpec { status: Some(500), ..ErrorSpec::default() }), ..Rule::default() }])
}

/// The call of a family that brings a turn to a conversation that is there.
fn send(family: Family) -> Option<String> {
    (family == Family::Cascade).then(|| "/turnkeep.cascade.v1.CascadeService/Send".to_owned())
}

/// A refusal without a word of why.
fn shell() -> Rule {
    Rule { status: Some(403), raw: Some("Forbidden".into()), ..Rule::default() }
}

fn rule(fault: &Fault) -> Rule {
    let Fault { family, account, nth, what } = *fault;
    let base = Rule { account: Some(secrets(family, account)), nth: Some(nth), times: Some(1), ..Rule::default() };
    let error = |status: u16, code: Option<&str>, retry_after: Option<u64>| {
        Some(ErrorSpec { status: Some(status), code: code.map(str::to_owned), retry_after, ..ErrorSpec::default() })
    };
    let broken = |fault: LabFault| Rule { fault: Some(fault), ..base.clone() };
    match what {
        // Some come late, when others of the account are under way.
        What::Limited(seconds) => {
            Rule { error: error(429, None, Some(seconds)), before_headers_delay_ms: u64::from(nth % 3) * 1500, ..base }
        }
        What::LimitedBare => Rule { error: error(429, None, None), ..base },
        What::Rejected => Rule { error: error(401, Some("invalid_api_key"), None), ..base },
        What::Quota => Rule { error: error(429, Some("insufficient_quota"), None), ..base },
        What::Suspended => Rule { error: error(403, Some("account_suspended"), None), ..base },
        What::NoModel => Rule { error: error(404, Some("model_not_found"), None), ..base },
        What::Invalid => Rule { error: error(400, None, None), ..base },
        What::Status500 => Rule { error: error(500, None, None), ..base },
        What::FailsAnyway => Rule {
            path: send(family),
            method: Some("POST".into()),
            error: error(503, None, None),
            takes_anyway: true,
            done: true,
            ..base
        },
        What::Shell => Rule { account: base.account, nth: base.nth, times: base.times, ..shell() },
        What::Status503 => Rule { error: error(503, None, None), ..base },
        What::Overloaded => Rule { error: error(529, None, None), ..base },
        What::Html => broken(LabFault::Html),
        What::ResetBefore => broken(LabFault::ResetBeforeReply),
        What::CloseBefore => broken(LabFault::CloseBeforeReply),
        What::ResetMid => Rule { fault_at: Some(Point::AfterWords(nth % 9)), ..broken(LabFault::ResetMidStream) },
        What::CloseMid => Rule { fault_at: Some(Point::AfterWords(nth % 9)), ..broken(LabFault::CloseMidStream) },
        What::NoTerminal => broken(LabFault::NoTerminal),
        What::Hang => Rule { fault_at: Some(hang(nth)), ..broken(LabFault::Hang) },
        What::BadJson => broken(LabFault::BadJson),
        What::ErrorInStream => broken(LabFault::ErrorInStream),
        What::Slow(ms) => Rule { word_delay_ms: ms, ..base },
        What::Late(ms) => Rule { before_headers_delay_ms: ms, ..base },
    }
}

fn hang(nth: u32) -> Point {
    match nth % 3 {
        0 => Point::BeforeHeaders,
        1 => Point::AfterPreamble,
        _ => Point::AfterWords(2),
    }
}
