//! What happened to a turn, as its trace has it: the machine's events.

use super::fault::FaultFacts;
use crate::machine::Event;
use crate::route::Clocks;
use crate::timers::Timer;
use serde::{Deserialize, Serialize};
use std::fmt;
use turnkeep_dialect::reply::Progress;
use turnkeep_policy::accounts::{AccountKey, Unavailable};
use turnkeep_policy::{Moment, Span};

mirror! {
    /// How far an answer has come.
    ProgressName of Progress {
        Open = "More is to come.",
        Finishing = "It is complete, but usage may follow.",
        Done = "Nothing of it can follow.",
    }
}

/// Some of an answer was read. It says nothing of what was in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Piece {
    /// It contained something the model made.
    pub content: bool,
    /// How far the answer has come.
    pub progress: ProgressName,
    /// The upstream is at work, though nothing of it is shown.
    pub alive: bool,
}

impl Piece {
    /// As the machine takes it.
    pub fn event(self) -> Event {
        Event::Read { content: self.content, progress: self.progress.into(), alive: self.alive }
    }
}

/// One event of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Occurrence {
    /// The turn begins.
    Begin,
    /// No answer is kept for it.
    NotKept,
    /// One is.
    Kept,
    /// Its idempotency key is another request's.
    KeyReused,
    /// A slot was taken.
    Slot {
        /// The account, as the trace's list names it.
        account: AccountKey,
        /// The route's index.
        route: usize,
        /// The route's clocks.
        clocks: Box<Clocks>,
        /// Sending the turn again does nothing twice there.
        replay_safe: bool,
    },
    /// Nobody serves. Moments count from the turn's beginning, in ms.
    NoSlot(Unavailable),
    /// The request cannot be written for the picked route.
    Uncarriable,
    /// The ledger entry is written.
    Recorded,
    /// It could not be written.
    NotRecorded,
    /// The upstream answers, with a success status.
    Answering,
    /// The attempt failed.
    Fault(Box<FaultFacts>),
    /// The upstream has refused it, and certainly not begun.
    Refused(Box<FaultFacts>),
    /// Some of the answer was read.
    Read(Piece),
    /// The client's buffer is full.
    Blocked,
    /// It has room again.
    Unblocked,
    /// A timer fired.
    Timer(Timer),
    /// The client has left.
    ClientGone {
        /// For how long the attempt may go on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        finish: Option<Span>,
    },
    /// What goes on without a reader has made as much as it may.
    Enough,
    /// The client takes less than it must.
    TooSlow,
    /// The gateway stops.
    Shutdown,
}

impl Occurrence {
    /// What a trace of a turn that began then has of an event.
    pub fn of(event: &Event, began: Moment, key: &[u8; 32]) -> Occurrence {
        match event {
            Event::Begin => Occurrence::Begin,
            Event::NotKept => Occurrence::NotKept,
            Event::Kept => Occurrence::Kept,
            Event::KeyReused => Occurrence::KeyReused,
            Event::Slot { account, route, clocks, replay_safe } => Occurrence::Slot {
                account: *account,
                route: *route,
                clocks: Box::new(*clocks),
                replay_safe: *replay_safe,
            },
            Event::NoSlot(unavailable) => Occurrence::NoSlot(since(*unavailable, began)),
            Event::Uncarriable => Occurrence::Uncarriable,
            Event::Recorded => Occurrence::Recorded,
            Event::NotRecorded => Occurrence::NotRecorded,
            Event::Answering => Occurrence::Answering,
            Event::Fault(fault) => Occurrence::Fault(Box::new(FaultFacts::with_words(fault, key))),
            Event::Refused(fault) => Occurrence::Refused(Box::new(FaultFacts::with_words(fault, key))),
            Event::Read { content, progress, alive } => {
                Occurrence::Read(Piece { content: *content, progress: (*progress).into(), alive: *alive })
            }
            Event::Blocked => Occurrence::Blocked,
            Event::Unblocked => Occurrence::Unblocked,
            Event::Timer(timer) => Occurrence::Timer(*timer),
            Event::ClientGone { finish } => Occurrence::ClientGone { finish: finish.map(Span) },
            Event::Enough => Occurrence::Enough,
            Event::TooSlow => Occurrence::TooSlow,
            Event::Shutdown => Occurrence::Shutdown,
        }
    }

    /// The event, for a machine whose turn began at 0.
    pub fn event(&self) -> Event {
        match self {
            Occurrence::Begin => Event::Begin,
            Occurrence::NotKept => Event::NotKept,
            Occurrence::Kept => Event::Kept,
            Occurrence::KeyReused => Event::KeyReused,
            Occurrence::Slot { account, route, clocks, replay_safe } => {
                Event::Slot { account: *account, route: *route, clocks: **clocks, replay_safe: *replay_safe }
            }
            Occurrence::NoSlot(unavailable) => Event::NoSlot(*unavailable),
            Occurrence::Uncarriable => Event::Uncarriable,
            Occurrence::Recorded => Event::Recorded,
            Occurrence::NotRecorded => Event::NotRecorded,
            Occurrence::Answering => Event::Answering,
            Occurrence::Fault(facts) => Event::Fault(facts.fault()),
            Occurrence::Refused(facts) => Event::Refused(facts.fault()),
            Occurrence::Read(piece) => piece.event(),
            Occurrence::Blocked => Event::Blocked,
            Occurrence::Unblocked => Event::Unblocked,
            Occurrence::Timer(timer) => Event::Timer(*timer),
            Occurrence::ClientGone { finish } => Event::ClientGone { finish: finish.map(|time| time.0) },
            Occurrence::Enough => Event::Enough,
            Occurrence::TooSlow => Event::TooSlow,
            Occurrence::Shutdown => Event::Shutdown,
        }
    }

    /// Bytes that it takes in memory beside its own size.
    pub(super) fn heap(&self) -> usize {
        match self {
            Occurrence::Fault(facts) | Occurrence::Refused(facts) => size_of::<FaultFacts>() + facts.heap(),
            Occurrence::Slot { .. } => size_of::<Clocks>(),
            Occurrence::Begin
            | Occurrence::NotKept
            | Occurrence::Kept
            | Occurrence::KeyReused
            | Occurrence::NoSlot(_)
            | Occurrence::Uncarriable
            | Occurrence::Recorded
            | Occurrence::NotRecorded
            | Occurrence::Answering
            | Occurrence::Read(_)
            | Occurrence::Blocked
            | Occurrence::Unblocked
            | Occurrence::Timer(_)
            | Occurrence::ClientGone { .. }
            | Occurrence::Enough
            | Occurrence::TooSlow
            | Occurrence::Shutdown => 0,
        }
    }
}

/// A moment as milliseconds since the turn began.
fn after(at: Moment, began: Moment) -> Moment {
    Moment(at.0.saturating_sub(began.0))
}

/// With moments that count from the turn's beginning.
pub(super) fn since(unavailable: Unavailable, began: Moment) -> Unavailable {
    match unavailable {
        Unavailable::AllCooling { retry_at } => Unavailable::AllCooling { retry_at: after(retry_at, began) },
        Unavailable::AllBusy { retry_at } => Unavailable::AllBusy { retry_at: retry_at.map(|at| after(at, began)) },
        Unavailable::AllErrored { retry_at } => Unavailable::AllErrored { retry_at: after(retry_at, began) },
        Unavailable::EgressClosed { retry_at } => Unavailable::EgressClosed { retry_at: after(retry_at, began) },
        Unavailable::RetriesSpent => Unavailable::RetriesSpent,
        Unavailable::NoneEntitled => Unavailable::NoneEntitled,
        Unavailable::NoAccounts => Unavailable::NoAccounts,
        Unavailable::QueueFull => Unavailable::QueueFull,
        Unavailable::DeadlinePassed => Unavailable::DeadlinePassed,
    }
}

/// The word for why nobody serves.
pub(super) fn unavailable(unavailable: &Unavailable) -> &'static str {
    match unavailable {
        Unavailable::AllCooling { .. } => "all cooling",
        Unavailable::AllBusy { .. } => "all busy",
        Unavailable::AllErrored { .. } => "all errored",
        Unavailable::EgressClosed { .. } => "egress closed",
        Unavailable::RetriesSpent => "retries spent",
        Unavailable::NoneEntitled => "none entitled",
        Unavailable::NoAccounts => "no accounts",
        Unavailable::QueueFull => "queue full",
        Unavailable::DeadlinePassed => "deadline passed",
    }
}

impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let progress = match self.progress {
            ProgressName::Open => "",
            ProgressName::Finishing => ", finishing",
            ProgressName::Done => ", done",
        };
        let content = if self.content { "content" } else { "no content" };
        write!(f, "{content}{}{progress}", if self.alive { ", alive" } else { "" })
    }
}

impl fmt::Display for Occurrence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Occurrence::Begin => f.write_str("begins"),
            Occurrence::NotKept => f.write_str("no answer is kept"),
            Occurrence::Kept => f.write_str("an answer is kept"),
            Occurrence::KeyReused => f.write_str("idempotency key reused"),
            Occurrence::Slot { account, route, .. } => write!(f, "slot on account {} by route {route}", account.0),
            Occurrence::NoSlot(why) => write!(f, "no slot: {}", unavailable(why)),
            Occurrence::Uncarriable => f.write_str("uncarriable"),
            Occurrence::Recorded => f.write_str("ledger entry written"),
            Occurrence::NotRecorded => f.write_str("ledger entry not written"),
            Occurrence::Answering => f.write_str("answering"),
            Occurrence::Fault(fault) => write!(f, "fault: {fault}"),
            Occurrence::Refused(fault) => write!(f, "refused: {fault}"),
            Occurrence::Read(piece) => write!(f, "read: {piece}"),
            Occurrence::Blocked => f.write_str("client's buffer full"),
            Occurrence::Unblocked => f.write_str("client's buffer has room"),
            Occurrence::Timer(timer) => write!(f, "timer {timer:?}"),
            Occurrence::ClientGone { finish: None } => f.write_str("client gone"),
            Occurrence::ClientGone { finish: Some(time) } => write!(f, "client gone, may finish within {time}"),
            Occurrence::Enough => f.write_str("made enough alone"),
            Occurrence::TooSlow => f.write_str("client too slow"),
            Occurrence::Shutdown => f.write_str("gateway stops"),
        }
    }
}
