//! What the machine did, as a trace has it: its effects, without a provider's words.

use super::event::{since, unavailable};
use super::fault::FaultFacts;
use crate::machine::{AttemptEnd, Effect, Ending, Machine, TurnEnd, WantedSlot};
use serde::{Deserialize, Serialize};
use std::fmt;
use turnkeep_policy::Moment;
use turnkeep_policy::accounts::Unavailable;

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptEndFacts {
    /// The answer was complete.
    Completed,
    /// Cut short on our side.
    Interrupted,
    /// Failed.
    Failed(Box<FaultFacts>),
    /// It never began.
    Unsent,
}

/// What the client is told at the end of a failed turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndingFacts {
    /// A fault.
    Fault(Box<FaultFacts>),
    /// Admission refused it. Moments count from the turn's beginning, in ms.
    Unavailable(Unavailable),
    /// The request cannot be carried to any route.
    Uncarriable,
    /// The gateway stops.
    Shutdown,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnEndFacts {
    /// The upstream's turn completed.
    Completed,
    /// The client left, or the gateway stopped.
    Interrupted,
    /// It failed.
    Failed(EndingFacts),
}

/// One effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Done {
    /// Look for an answer that is kept.
    LookUp,
    /// Ask for a slot like this.
    Acquire(Box<WantedSlot>),
    /// Open the ledger entry.
    Record,
    /// Send it.
    Dispatch,
    /// Read on.
    ReadOn,
    /// Write the headers.
    OpenHeaders,
    /// Write a sign of life.
    Heartbeat,
    /// The answer has begun.
    Commit,
    /// The wait for usage is over.
    Settle,
    /// The attempt goes on without a reader.
    GoOnAlone,
    /// See whether the client takes enough.
    MeasurePace,
    /// Drop the exchange with the upstream.
    Cancel,
    /// Close the attempt.
    CloseAttempt(AttemptEndFacts),
    /// Take back what was charged for answers of this status.
    TakeBack(u16),
    /// Close the turn.
    CloseTurn(TurnEndFacts),
    /// Write the end of the answer.
    WriteTerminal,
    /// Write the answer that was kept.
    WriteKept,
    /// Write the error.
    WriteError(EndingFacts),
    /// Nothing more will come.
    End,
    /// Nothing more will come, and what is not read is thrown away.
    Abort,
}

impl AttemptEndFacts {
    /// The facts of an end.
    pub fn of(end: &AttemptEnd, key: &[u8; 32]) -> Self {
        match end {
            AttemptEnd::Completed => AttemptEndFacts::Completed,
            AttemptEnd::Interrupted => AttemptEndFacts::Interrupted,
            AttemptEnd::Failed(fault) => AttemptEndFacts::Failed(Box::new(FaultFacts::of(fault, key))),
            AttemptEnd::Unsent => AttemptEndFacts::Unsent,
        }
    }

    pub(super) fn heap(&self) -> usize {
        match self {
            AttemptEndFacts::Failed(facts) => size_of::<FaultFacts>() + facts.heap(),
            AttemptEndFacts::Completed | AttemptEndFacts::Interrupted | AttemptEndFacts::Unsent => 0,
        }
    }
}

impl EndingFacts {
    fn of(ending: &Ending, began: Moment, key: &[u8; 32]) -> Self {
        match ending {
            Ending::Fault(fault) => EndingFacts::Fault(Box::new(FaultFacts::of(fault, key))),
            Ending::Unavailable(unavailable) => EndingFacts::Unavailable(since(*unavailable, began)),
            Ending::Uncarriable => EndingFacts::Uncarriable,
            Ending::Shutdown => EndingFacts::Shutdown,
        }
    }

    fn heap(&self) -> usize {
        match self {
            EndingFacts::Fault(facts) => size_of::<FaultFacts>() + facts.heap(),
            EndingFacts::Unavailable(_) | EndingFacts::Uncarriable | EndingFacts::Shutdown => 0,
        }
    }
}

impl Done {
    /// What a trace of a turn that began then has of an effect, which this machine has just given.
    pub fn of(effect: &Effect, machine: &Machine, began: Moment, key: &[u8; 32]) -> Done {
        match effect {
            Effect::LookUp => Done::LookUp,
            Effect::Acquire => Done::Acquire(Box::new(machine.wanted())),
            Effect::Record => Done::Record,
            Effect::Dispatch => Done::Dispatch,
            Effect::ReadOn => Done::ReadOn,
            Effect::OpenHeaders => Done::OpenHeaders,
            Effect::Heartbeat => Done::Heartbeat,
            Effect::Commit => Done::Commit,
            Effect::Settle => Done::Settle,
            Effect::GoOnAlone => Done::GoOnAlone,
            Effect::MeasurePace => Done::MeasurePace,
            Effect::Cancel => Done::Cancel,
            Effect::CloseAttempt(end) => Done::CloseAttempt(AttemptEndFacts::of(end, key)),
            Effect::TakeBack(said) => Done::TakeBack(said.status()),
            Effect::CloseTurn(TurnEnd::Completed) => Done::CloseTurn(TurnEndFacts::Completed),
            Effect::CloseTurn(TurnEnd::Interrupted) => Done::CloseTurn(TurnEndFacts::Interrupted),
            Effect::CloseTurn(TurnEnd::Failed(ending)) => {
                Done::CloseTurn(TurnEndFacts::Failed(EndingFacts::of(ending, began, key)))
            }
            Effect::WriteTerminal => Done::WriteTerminal,
            Effect::WriteKept => Done::WriteKept,
            Effect::WriteError(ending) => Done::WriteError(EndingFacts::of(ending, began, key)),
            Effect::End => Done::End,
            Effect::Abort => Done::Abort,
        }
    }

    pub(super) fn heap(&self) -> usize {
        match self {
            Done::Acquire(wanted) => size_of::<WantedSlot>() + wanted.tried.capacity() * 4,
            Done::CloseAttempt(end) => end.heap(),
            Done::CloseTurn(TurnEndFacts::Failed(ending)) | Done::WriteError(ending) => ending.heap(),
            Done::CloseTurn(TurnEndFacts::Completed | TurnEndFacts::Interrupted)
            | Done::LookUp
            | Done::Record
            | Done::Dispatch
            | Done::ReadOn
            | Done::OpenHeaders
            | Done::Heartbeat
            | Done::Commit
            | Done::Settle
            | Done::GoOnAlone
            | Done::MeasurePace
            | Done::Cancel
            | Done::TakeBack(_)
            | Done::WriteTerminal
            | Done::WriteKept
            | Done::End
            | Done::Abort => 0,
        }
    }
}

impl fmt::Display for AttemptEndFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttemptEndFacts::Completed => f.write_str("completed"),
            AttemptEndFacts::Interrupted => f.write_str("interrupted"),
            AttemptEndFacts::Failed(fault) => write!(f, "failed, {fault}"),
            AttemptEndFacts::Unsent => f.write_str("unsent"),
        }
    }
}

impl fmt::Display for EndingFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EndingFacts::Fault(fault) => write!(f, "{fault}"),
            EndingFacts::Unavailable(why) => f.write_str(unavailable(why)),
            EndingFacts::Uncarriable => f.write_str("uncarriable"),
            EndingFacts::Shutdown => f.write_str("shutdown"),
        }
    }
}

impl fmt::Display for TurnEndFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TurnEndFacts::Completed => f.write_str("completed"),
            TurnEndFacts::Interrupted => f.write_str("interrupted"),
            TurnEndFacts::Failed(ending) => write!(f, "failed, {ending}"),
        }
    }
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Done::LookUp => f.write_str("look up"),
            Done::Acquire(wanted) => {
                let WantedSlot { from_route, tried, only, larger, retry } = &**wanted;
                write!(f, "acquire(from route {from_route}")?;
                if !tried.is_empty() {
                    f.write_str(", not")?;
                    tried.iter().try_for_each(|account| write!(f, " {}", account.0))?;
                }
                if let Some(account) = only {
                    write!(f, ", only {}", account.0)?;
                }
                f.write_str(if *larger { ", larger" } else { "" })?;
                f.write_str(if *retry { ", retry)" } else { ")" })
            }
            Done::Record => f.write_str("record"),
            Done::Dispatch => f.write_str("dispatch"),
            Done::ReadOn => f.write_str("read on"),
            Done::OpenHeaders => f.write_str("open headers"),
            Done::Heartbeat => f.write_str("heartbeat"),
            Done::Commit => f.write_str("commit"),
            Done::Settle => f.write_str("settle"),
            Done::GoOnAlone => f.write_str("go on alone"),
            Done::MeasurePace => f.write_str("measure pace"),
            Done::Cancel => f.write_str("cancel"),
            Done::CloseAttempt(end) => write!(f, "close attempt({end})"),
            Done::TakeBack(status) => write!(f, "take back charges for {status}"),
            Done::CloseTurn(end) => write!(f, "close turn({end})"),
            Done::WriteTerminal => f.write_str("write terminal"),
            Done::WriteKept => f.write_str("write kept"),
            Done::WriteError(ending) => write!(f, "write error({ending})"),
            Done::End => f.write_str("end"),
            Done::Abort => f.write_str("abort"),
        }
    }
}
