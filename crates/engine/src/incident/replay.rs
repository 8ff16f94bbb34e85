//! A trace run again: its events through the machine on the trace's own times, and each decision beside it through the
//! code that makes it. Nothing is sent, written or waited for. It stops at the first decision that is another one.
//!
//! What it cannot run again it passes over and counts: an account that was no longer there to be judged, an end of a
//! conversation that met a full table. Which account was picked, and when things happened, it takes from the trace.

use super::effect::Done;
use super::event::Occurrence;
use super::settled::{Holding, Judgement};
use super::trace::{Cut, MachineStep, Pieces, State, Step, Trace, What};
use crate::machine::{Effect, Event, Machine};
use std::fmt;
use turnkeep_policy::Moment;
use turnkeep_policy::conversations::again::Again;
use turnkeep_policy::settle;

/// One step, and both decisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// When, in us after the turn began.
    pub us: u64,
    /// What happened, or was decided on.
    pub event: String,
    /// What the trace has.
    pub recorded: String,
    /// What this build gives; none where it cannot be run again.
    pub replayed: Option<String>,
    /// They are the same, or it cannot be run again.
    pub same: bool,
}

/// A trace that was run again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// The steps, in order. Where the two part, the last one is the first that differs.
    pub lines: Vec<Line>,
    /// Steps that the trace has.
    pub steps: usize,
    /// Steps that could not be run again.
    pub passed_over: usize,
    /// Where the trace breaks off, if it does and was run as far.
    pub cut: Option<Cut>,
    /// The turn ran still when the trace was taken out.
    pub running: bool,
}

impl Replayed {
    /// The first step that differs, with its number from 1.
    pub fn divergence(&self) -> Option<(usize, &Line)> {
        let last = self.lines.last().filter(|line| !line.same)?;
        Some((self.lines.len(), last))
    }
}

/// Runs a trace again, up to the first decision that is another one.
pub fn replay(trace: &Trace) -> Replayed {
    let mut run = Run { machine: Machine::new(trace.head.facts, trace.head.jitter), again: Again::default(), trace };
    let mut replayed = Replayed {
        lines: Vec::new(),
        steps: trace.steps.len(),
        passed_over: 0,
        cut: None,
        running: trace.state == State::Running,
    };
    for step in &trace.steps {
        let line = run.step(step);
        let same = line.same;
        replayed.passed_over += usize::from(line.replayed.is_none());
        replayed.lines.push(line);
        if !same {
            return replayed;
        }
    }
    replayed.cut = trace.cut;
    replayed
}

struct Run<'a> {
    machine: Machine,
    again: Again,
    trace: &'a Trace,
}

/// The machine's clock began with the turn.
const BEGAN: Moment = Moment(0);
/// Everything that is hashed in a trace is hashed already.
const NO_KEY: [u8; 32] = [0; 32];

impl Run<'_> {
    fn step(&mut self, step: &Step) -> Line {
        let us = step.us;
        match &step.what {
            What::Machine(step) => self.machine_step(us, step),
            What::Pieces(pieces) => self.pieces(us, pieces),
            What::Hold(step) => {
                let (state, end) = step.deed.act(&mut self.again);
                let event = format!("conversation: {}", deed(&step.deed));
                line(us, event, &step.left, Some(&Holding { state, end }), holding)
            }
            What::CheckIn(facts) => {
                let arrival = &facts.arrival;
                let event = format!("conversation's end ({:?}, {:?})", arrival.handling, arrival.end);
                line(us, event, &facts.became, arrival.check_in().as_ref(), |became| format!("{became:?}"))
            }
            What::Attempt(step) => {
                let event = format!("attempt closes: {}", step.facts.end);
                line(us, event, &step.closing, Some(&step.facts.settle()), compact)
            }
            What::Judged(judged) => {
                let name = self.account(judged.account.0);
                let event = format!("{name} is judged: {}", judged.fault);
                line(us, event, &judged.judgement, judged.judge().as_ref(), judgement)
            }
            What::Turn(closing) => {
                let event = format!("turn closes: {:?}", closing.facts.outcome);
                line(us, event, &closing.effects, Some(&settle::turn(&closing.facts)), compact)
            }
            What::Delivery(closing) => {
                let receipt = match closing.receipt {
                    Some(level) => format!("{level:?}"),
                    None => "no receipt".into(),
                };
                let event = format!("delivery closes: {receipt}");
                let again = settle::delivery(&closing.facts);
                line(us, event, &closing.effects, Some(&again), compact)
            }
        }
    }

    fn account(&self, number: u32) -> String {
        self.trace.head.accounts.get(&number).map_or_else(|| format!("account {number}"), |name| shown(name))
    }

    fn now(&self, us: u64) -> Moment {
        Moment(self.trace.head.clock_us.saturating_add(us) / 1_000)
    }

    fn feed(&mut self, us: u64, event: Event) -> Vec<Done> {
        let mut effects: Vec<Effect> = Vec::new();
        self.machine.on(event, self.now(us), &mut effects);
        effects.iter().map(|effect| Done::of(effect, &self.machine, BEGAN, &NO_KEY)).collect()
    }

    fn machine_step(&mut self, us: u64, step: &MachineStep) -> Line {
        let event = if let Occurrence::Slot { account, route, .. } = &step.event {
            format!("slot on {} by route {route}", self.account(account.0))
        } else {
            step.event.to_string()
        };
        if let Occurrence::Timer(timer) = &step.event
            && let Some(other) = self.other_timer(us, *timer)
        {
            return Line { us, event, recorded: format!("timer {timer:?} is due"), replayed: Some(other), same: false };
        }
        let done = self.feed(us, step.event.event());
        line(us, event, &step.done, Some(&done), |done| list(done))
    }

    /// What this build's timers say instead of "this one is due now".
    fn other_timer(&self, us: u64, timer: crate::timers::Timer) -> Option<String> {
        match self.machine.next_timer() {
            Some((at, next)) if next == timer && at <= self.now(us) => None,
            Some((at, next)) => {
                Some(format!("timer {next:?} is next, at {} ms; it is {} ms now", at.0, self.now(us).0))
            }
            None => Some("no timer is set".into()),
        }
    }

    /// All the pieces whose times are kept, and the last one: what the machine does depends on no other.
    fn pieces(&mut self, us: u64, pieces: &Pieces) -> Line {
        let event = format!("read {}x: {}", pieces.count, pieces.each);
        let mut times = vec![us];
        for &gap in pieces.gaps.iter().take(usize::try_from(pieces.count).unwrap_or(usize::MAX).saturating_sub(1)) {
            times.push(times.last().copied().unwrap_or(us).saturating_add(u64::from(gap)));
        }
        if pieces.count > times.len() as u64 {
            times.push(pieces.last_us);
        }
        let read_on = vec![Done::ReadOn];
        for at in times {
            let done = self.feed(at, pieces.each.event());
            if done != read_on {
                return line(at, event, &read_on, Some(&done), |done| list(done));
            }
        }
        line(us, event, &read_on, Some(&read_on), |done| list(done))
    }
}

fn line<T: PartialEq>(
    us: u64,
    event: String,
    recorded: &T,
    replayed: Option<&T>,
    words: impl Fn(&T) -> String,
) -> Line {
    let same = replayed.is_none_or(|replayed| replayed == recorded);
    Line { us, event, recorded: words(recorded), replayed: replayed.map(words), same }
}

fn list<T: fmt::Display>(things: &[T]) -> String {
    let words: Vec<String> = things.iter().map(ToString::to_string).collect();
    if words.is_empty() { "nothing".into() } else { words.join(", ") }
}

fn deed(deed: &super::settled::HoldDeed) -> String {
    use super::settled::HoldDeed;
    match deed {
        HoldDeed::Lent { handling, .. } => format!("lent ({handling:?})"),
        HoldDeed::Sent => "sent".into(),
        HoldDeed::Refused { fault, .. } => format!("refused: {fault}"),
        HoldDeed::Heard(fault) => format!("heard: {fault}"),
        HoldDeed::AttemptEnded(end) => format!("attempt {end}"),
        HoldDeed::Advanced => "advanced".into(),
        HoldDeed::LetGo => "let go".into(),
    }
}

fn holding(left: &Holding) -> String {
    match left.end {
        None => format!("{:?}", left.state),
        Some(end) => format!("{:?}, ended {end:?}", left.state),
    }
}

fn judgement(judgement: &Judgement) -> String {
    let applied: Vec<String> = judgement.applied.iter().map(ruled).collect();
    let charge = if judgement.shell_charge { ", charged for shells" } else { "" };
    format!("{}{charge}", if applied.is_empty() { "nothing".into() } else { applied.join(", ") })
}

fn ruled(ruled: &super::settled::Ruled) -> String {
    use super::settled::Ruled;
    match ruled {
        Ruled::Recorded(why) => format!("recorded only: {}", shown(why)),
        Ruled::Budget { used, of } => format!("budget {used} of {of}"),
        Ruled::Errored { episode, retry } => format!("errored ({episode}), try in {retry}"),
        Ruled::Suspended => "suspended".into(),
        Ruled::Cooled { what, left } => format!("{what:?} cools {left}"),
        Ruled::Sample => "health sample".into(),
        Ruled::Misconfigured => "misconfigured".into(),
    }
}

/// A text of the file's, for a terminal: no control characters, and no more than a line of it.
fn shown(text: &str) -> String {
    text.chars().map(|char| if char.is_control() { '?' } else { char }).take(160).collect()
}

/// Facts as short words: the fields that say something.
fn compact<T: serde::Serialize>(facts: &T) -> String {
    let mut out = String::new();
    if let Ok(value) = serde_json::to_value(facts) {
        words_of(&value, &mut out);
    }
    if out.is_empty() { "nothing".into() } else { out }
}

fn words_of(value: &serde_json::Value, out: &mut String) {
    use serde_json::Value;
    let Value::Object(fields) = value else { return };
    for (name, value) in fields {
        let said = match value {
            Value::Null | Value::Bool(false) => continue,
            Value::Bool(true) => name.clone(),
            Value::Number(number) if number.as_u64() == Some(0) => continue,
            Value::Number(number) => format!("{name} {number}"),
            Value::String(text) => format!("{name} {}", shown(text)),
            Value::Array(_) => continue,
            Value::Object(_) => {
                let mut inner = String::new();
                words_of(value, &mut inner);
                if inner.is_empty() {
                    continue;
                }
                format!("{name} ({inner})")
            }
        };
        if !out.is_empty() {
            out.push_str(", ");
        }
        out.push_str(&said);
    }
}
