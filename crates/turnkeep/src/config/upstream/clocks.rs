//! The times of an upstream, and what becomes of its work when a client leaves.

use super::kind::Kind;
use crate::config::read::{Item, Known};
use std::time::Duration;
use turnkeep_engine::route::OnClientGone;

/// The clocks of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Name, TCP and TLS together.
    pub connect: Duration,
    /// From the sent request to the first content.
    pub first_content: Duration,
    /// Between two events with content.
    pub between: Duration,
    /// A whole turn until its answer commits.
    pub total: Duration,
    /// A whole turn after that.
    pub max_turn: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            connect: Duration::from_secs(10),
            first_content: Duration::from_secs(120),
            between: Duration::from_secs(60),
            total: Duration::from_secs(600),
            max_turn: Duration::from_secs(3600),
        }
    }
}

impl Timeouts {
    /// The clocks of a kind when nothing else is said. Agents that work by themselves say nothing for long.
    pub fn of(kind: Kind) -> Timeouts {
        match kind {
            Kind::Acp | Kind::Devin => {
                let half_hour = Duration::from_secs(30 * 60);
                let hour = Duration::from_secs(60 * 60);
                Timeouts { first_content: half_hour, between: half_hour, total: hour, ..Timeouts::default() }
            }
            Kind::Openai | Kind::OpenaiResponses | Kind::Anthropic | Kind::Gemini | Kind::Connect | Kind::Cascade => {
                Timeouts::default()
            }
        }
    }
}

const TIMEOUTS: Known =
    Known { table: "timeouts", keys: &["connect", "first_content", "between", "total", "max_turn"], later: &[] };

/// `started`: the upstream is a process that the gateway starts.
pub(super) fn read_timeouts(item: &Item<'_>, kind: Option<Kind>, started: bool) -> Timeouts {
    let mut timeouts = kind.map(Timeouts::of).unwrap_or_default();
    let Some(fields) = item.table(&TIMEOUTS) else { return timeouts };
    let read_one = |key: &str, target: &mut Duration| {
        let least = Duration::from_millis(1);
        if let Some(time) = fields.get(key).and_then(|i| i.duration(least, Duration::from_secs(86_400))) {
            *target = time;
        }
    };
    match fields.get("connect") {
        Some(item) if kind == Some(Kind::Acp) => {
            item.fail::<()>("kind \"acp\" is a program that the gateway starts, and connects to nothing; remove it");
        }
        Some(item) if started => {
            item.fail::<()>(
                "bounds the way to an address, and a process that the gateway starts (command) has none; remove it",
            );
        }
        Some(_) | None => read_one("connect", &mut timeouts.connect),
    }
    read_one("first_content", &mut timeouts.first_content);
    read_one("between", &mut timeouts.between);
    read_one("total", &mut timeouts.total);
    read_one("max_turn", &mut timeouts.max_turn);
    timeouts
}

const GONE: Known = Known { table: "on_client_gone", keys: &["finish"], later: &[] };
const FINISH: Known = Known { table: "finish", keys: &["max_tokens", "max_seconds"], later: &[] };

pub(super) fn read_on_client_gone(item: &Item<'_>) -> Option<OnClientGone> {
    if !item.is_table() {
        let shape = "{ finish = { max_tokens = 2000, max_seconds = 30 } }";
        return match item.text()? {
            "cancel" => Some(OnClientGone::Cancel),
            "finish" => item.fail(format!("to finish needs bounds; write {shape}")),
            other => item.fail(format!("{other:?} is not known; it takes \"cancel\" or {shape}")),
        };
    }
    let fields = item.table(&GONE)?;
    let finish = fields.require("finish", "finish = { max_tokens = 2000, max_seconds = 30 }")?.table(&FINISH)?;
    let tokens = finish.require("max_tokens", "max_tokens = 2000").and_then(|item| item.integer(1, u32::MAX));
    let seconds = finish.require("max_seconds", "max_seconds = 30").and_then(|item| item.integer(1, 86_400));
    let max_time = Duration::from_secs(u64::from(seconds?));
    Some(OnClientGone::Finish { max_tokens: u64::from(tokens?), max_time })
}
