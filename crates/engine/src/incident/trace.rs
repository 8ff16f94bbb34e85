//! A trace: the head, and the steps in the order in which they were taken. It is a file's content, as JSON.

use super::effect::Done;
use super::event::{Occurrence, Piece};
use super::settled::{
    AttemptClosing, AttemptSeen, CheckInFacts, DeliveryClosing, HoldDeed, Holding, JudgedFacts, TurnClosing,
};
use crate::machine::TurnFacts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use turnkeep_policy::accounts::Tier;

/// The form of a trace. Another number is another form.
pub const FORMAT: &str = "turnkeep-incident/1";

/// A turn's trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// [`FORMAT`].
    pub format: String,
    /// What the turn was.
    pub head: Head,
    /// Whether it had ended when the trace was taken out.
    pub state: State,
    /// Steps are missing from here on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
    /// What happened, in order.
    pub steps: Vec<Step>,
}

/// What a turn was when it began, and who was asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// The turn's id.
    pub turn: String,
    /// The version of the gateway that ran it.
    pub build: String,
    /// A digest of the configuration that it ran under, secrets left out; none where its owner told none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    /// When it began, Unix milliseconds.
    pub began_ms: u64,
    /// The name of the caller's key.
    pub caller: String,
    /// The model that was asked for, cut to 256 bytes.
    pub model: String,
    /// The client's dialect.
    pub dialect: String,
    /// Where it could go, in order; at most 64.
    pub routes: Vec<RouteFacts>,
    /// The accounts of its slots, by their numbers in the steps.
    pub accounts: BTreeMap<u32, String>,
    /// How far into a millisecond of the gateway's clock it began, in us. The machine counts whole milliseconds.
    pub clock_us: u64,
    /// What the machine knew at the start.
    pub facts: TurnFacts,
    /// The randomness of its backoffs.
    pub jitter: u64,
}

/// One way that the turn could go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteFacts {
    /// The upstream's name.
    pub upstream: String,
    /// The upstream's name for the model.
    pub model: String,
    /// How far it is from what was asked for.
    pub tier: Tier,
    /// The dialect that it speaks; none where it is a protocol of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
}

/// Whether a turn had ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It ran still.
    Running,
    /// It, its delivery too, was closed.
    Ended,
}

/// Where a trace breaks off before its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cut {
    /// When, in us after the turn began.
    pub us: u64,
    /// Why.
    pub by: CutBy,
}

/// Why a trace breaks off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CutBy {
    /// The turn took more steps than are kept of one.
    Steps,
    /// Its steps took more bytes than are kept of one.
    Bytes,
    /// All the turns that ran took more room together than there is.
    Room,
    /// The turn's loop panicked.
    Panic,
}

impl CutBy {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            CutBy::Steps => "the turn took more steps than are kept of one",
            CutBy::Bytes => "the turn's steps took more bytes than are kept of one",
            CutBy::Room => "the turns that ran then took more room together than there is",
            CutBy::Panic => "the turn's loop panicked",
        }
    }
}

/// One step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// When, in us after the turn began.
    pub us: u64,
    /// What.
    pub what: What,
}

/// What a step was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// The machine took an event, and did this.
    Machine(Box<MachineStep>),
    /// The machine took pieces of an answer one after the other, all alike, and read on after each.
    Pieces(Box<Pieces>),
    /// Something was done with the conversation that the turn was lent.
    Hold(Box<HoldStep>),
    /// The end of its lease was taken in.
    CheckIn(CheckInFacts),
    /// The attempt was closed.
    Attempt(Box<AttemptStep>),
    /// The account was judged.
    Judged(Box<JudgedFacts>),
    /// The turn was closed.
    Turn(TurnClosing),
    /// The delivery was closed.
    Delivery(DeliveryClosing),
}

/// The machine's step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineStep {
    /// What happened.
    pub event: Occurrence,
    /// What it did, in order.
    #[serde(rename = "did")]
    pub done: Vec<Done>,
}

/// Pieces of an answer that were read one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pieces {
    /// What each of them was.
    pub each: Piece,
    /// How many.
    pub count: u64,
    /// The gaps before the second and those that follow, in us: all of them, or as many as are kept of one turn.
    pub gaps: Vec<u32>,
    /// When the last one was read, in us after the turn began.
    pub last_us: u64,
}

/// A step of a hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HoldStep {
    /// What was done.
    pub deed: HoldDeed,
    /// Where it led.
    pub left: Holding,
}

/// An attempt's closing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttemptStep {
    /// What was known.
    pub facts: AttemptSeen,
    /// What was done.
    pub closing: AttemptClosing,
}

impl Step {
    /// Bytes that it takes in memory.
    pub(super) fn bytes(&self) -> usize {
        let faults = size_of::<super::fault::FaultFacts>();
        size_of::<Step>()
            + match &self.what {
                What::Machine(step) => {
                    let done =
                        step.done.capacity() * size_of::<Done>() + step.done.iter().map(Done::heap).sum::<usize>();
                    size_of::<MachineStep>() + step.event.heap() + done
                }
                What::Pieces(pieces) => size_of::<Pieces>() + pieces.gaps.capacity() * 4,
                What::Hold(step) => size_of::<HoldStep>() + step.deed.heap(),
                What::Attempt(step) => {
                    let late = step.facts.late.as_ref().map_or(0, |late| faults + late.heap());
                    size_of::<AttemptStep>() + step.facts.end.heap() + late
                }
                What::Judged(judged) => {
                    // An error's grounds: a few units and cooldowns, and the numbers.
                    let grounds = judged.grounds.as_ref().map_or(0, |grounds| {
                        size_of_val(&**grounds) + 16 * (grounds.budget.len() + 2 * grounds.cooldowns.len())
                    });
                    size_of::<JudgedFacts>() + judged.fault.heap() + grounds + judged.judgement.applied.len() * 64
                }
                What::CheckIn(_) | What::Turn(_) | What::Delivery(_) => 0,
            }
    }
}
