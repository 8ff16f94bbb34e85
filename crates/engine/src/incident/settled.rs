//! The decisions beside the machine, as a trace has them: what each was made from, and what came of it.

use super::effect::AttemptEndFacts;
use super::fault::{FaultFacts, Kind};
use serde::{Deserialize, Serialize};
use turnkeep_base::receipt::Level;
use turnkeep_base::{Fault, Price, Usage};
use turnkeep_policy::accounts::{AccountKey, Applied, Dimension, Grounds};
use turnkeep_policy::conversations::again::{Arrival, Deed, EndKind};
use turnkeep_policy::conversations::hold::HoldState;
use turnkeep_policy::conversations::{CheckedIn, Handling};
use turnkeep_policy::settle::{
    self, AttemptEffects, AttemptEnd, AttemptFacts, DeliveryEffects, DeliveryFacts, OnAccount, Outcome, TurnEffects,
};
use turnkeep_policy::{Moment, Span};

/// Counts of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tokens {
    /// Input that no cache had a part in.
    pub input: u64,
    /// Input read from the provider's cache.
    pub cache_read: u64,
    /// Input written to it.
    pub cache_write: u64,
    /// Output.
    pub output: u64,
    /// Of that, what was spent on reasoning.
    pub reasoning: u64,
}

impl From<Usage> for Tokens {
    fn from(usage: Usage) -> Self {
        let Usage { input, cache_read, cache_write, output, reasoning } = usage;
        Tokens { input, cache_read, cache_write, output, reasoning }
    }
}

impl From<Tokens> for Usage {
    fn from(tokens: Tokens) -> Self {
        let Tokens { input, cache_read, cache_write, output, reasoning } = tokens;
        Usage { input, cache_read, cache_write, output, reasoning }
    }
}

/// What one token of each kind costs, in billionths of a US dollar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceFacts {
    /// Input.
    pub input: u64,
    /// Output.
    pub output: u64,
    /// Input read from the provider's cache.
    pub cache_read: u64,
    /// Input written to it.
    pub cache_write: u64,
}

/// How an attempt stands in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeName {
    /// The answer was complete.
    Completed,
    /// Cut short on our side.
    Interrupted,
    /// Failed.
    Failed(Kind),
}

/// What an attempt's closing was decided from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttemptSeen {
    /// How it ended.
    pub end: AttemptEndFacts,
    /// What the upstream had refused it with when the client left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<Box<FaultFacts>>,
    /// The usage that the upstream reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<Tokens>,
    /// Bytes of content that were read.
    pub content_bytes: u64,
    /// Input tokens guessed from the request.
    pub estimated_input: u64,
    /// What the model's tokens cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<PriceFacts>,
}

/// What an attempt's closing came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttemptClosing {
    /// For the ledger.
    pub outcome: OutcomeName,
    /// For the ledger and the caller's budget.
    pub usage: Tokens,
    /// The provider reported it.
    pub exact: bool,
    /// In billionths of a US dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
    /// For the account.
    pub account: OnAccount,
    /// It was sent.
    pub sent: bool,
}

impl AttemptSeen {
    /// What a trace has of it.
    pub fn of(facts: &AttemptFacts<'_>, key: &[u8; 32]) -> Self {
        let boxed = |fault: &Fault| Box::new(FaultFacts::of(fault, key));
        let (end, late) = match facts.end {
            AttemptEnd::Completed => (AttemptEndFacts::Completed, None),
            AttemptEnd::Failed(fault) => (AttemptEndFacts::Failed(boxed(fault)), None),
            AttemptEnd::Interrupted { late } => (AttemptEndFacts::Interrupted, late.map(boxed)),
            AttemptEnd::Unsent => (AttemptEndFacts::Unsent, None),
        };
        let price = |price: Price| {
            let Price { input, output, cache_read, cache_write } = price;
            PriceFacts { input, output, cache_read, cache_write }
        };
        AttemptSeen {
            end,
            late,
            reported: facts.reported.map(Tokens::from),
            content_bytes: facts.content_bytes,
            estimated_input: facts.estimated_input,
            price: facts.price.map(price),
        }
    }

    /// The closing by the rules of this build.
    pub fn settle(&self) -> AttemptClosing {
        let (late, failed) = (self.late.as_ref().map(|late| late.fault()), self.failed());
        let end = match (&self.end, &failed) {
            (AttemptEndFacts::Failed(_), Some(fault)) => AttemptEnd::Failed(fault),
            (AttemptEndFacts::Completed, _) => AttemptEnd::Completed,
            (AttemptEndFacts::Unsent, _) => AttemptEnd::Unsent,
            (AttemptEndFacts::Interrupted | AttemptEndFacts::Failed(_), _) => {
                AttemptEnd::Interrupted { late: late.as_ref() }
            }
        };
        let price = self.price.map(|price| {
            let PriceFacts { input, output, cache_read, cache_write } = price;
            Price { input, output, cache_read, cache_write }
        });
        AttemptClosing::of(&settle::attempt(&AttemptFacts {
            end,
            reported: self.reported.map(Usage::from),
            content_bytes: self.content_bytes,
            estimated_input: self.estimated_input,
            price,
        }))
    }

    fn failed(&self) -> Option<Fault> {
        match &self.end {
            AttemptEndFacts::Failed(facts) => Some(facts.fault()),
            AttemptEndFacts::Completed | AttemptEndFacts::Interrupted | AttemptEndFacts::Unsent => None,
        }
    }
}

impl AttemptClosing {
    /// What a trace has of it.
    pub fn of(effects: &AttemptEffects) -> Self {
        let AttemptEffects { outcome, usage, exact, cost, account, sent } = *effects;
        let outcome = match outcome {
            Outcome::Completed => OutcomeName::Completed,
            Outcome::Interrupted => OutcomeName::Interrupted,
            Outcome::Failed(kind) => OutcomeName::Failed(Kind(kind)),
        };
        AttemptClosing { outcome, usage: usage.into(), exact, cost, account, sent }
    }
}

/// One thing that a judgement did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Ruled {
    /// It was not applied, and why.
    Recorded(String),
    /// A unit of the error budget was spent.
    Budget {
        /// Units spent.
        used: u32,
        /// Units there are.
        of: u32,
    },
    /// The account is out for a while.
    Errored {
        /// How many times in a row.
        episode: u32,
        /// How long until it may be tried.
        retry: Span,
    },
    /// The account is out until the operator acts.
    Suspended,
    /// Something cools.
    Cooled {
        /// What.
        what: Dimension,
        /// How much longer, all in all.
        left: Span,
    },
    /// A health sample.
    Sample,
    /// Shown as misconfigured.
    Misconfigured,
}

impl Ruled {
    /// What a trace has of it; `at` is when it was judged.
    pub fn of(applied: &Applied, at: Moment) -> Self {
        match applied {
            Applied::Recorded(why) => Ruled::Recorded((*why).to_owned()),
            Applied::Budget { used, of } => Ruled::Budget { used: *used, of: *of },
            Applied::Errored { episode, retry_at } => {
                Ruled::Errored { episode: *episode, retry: Span(at.until(*retry_at)) }
            }
            Applied::Suspended => Ruled::Suspended,
            Applied::Cooled { scope, until } => {
                Ruled::Cooled { what: Dimension::of(scope), left: Span(at.until(*until)) }
            }
            Applied::Sample => Ruled::Sample,
            Applied::Misconfigured => Ruled::Misconfigured,
        }
    }
}

/// What a judgement did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judgement {
    /// To the account, in order.
    pub applied: Vec<Ruled>,
    /// A unit was spent on the strength of a run of shells.
    pub shell_charge: bool,
}

/// An account judged for a fault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JudgedFacts {
    /// The account, as the trace's list names it.
    pub account: AccountKey,
    /// The fault.
    pub fault: FaultFacts,
    /// How the account stood. Without it the account was not asked: it had been removed, or the attempt judged before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grounds: Option<Box<Grounds>>,
    /// What was done.
    pub judgement: Judgement,
    /// It closed the gateway's own address for the model. Shown, and not judged again.
    pub burst: bool,
}

impl JudgedFacts {
    /// The judgement by the rules of this build; `None` where the account was not asked.
    pub fn judge(&self) -> Option<Judgement> {
        let judged = self.grounds.as_ref()?.judge(&self.fault.fault());
        let applied = judged.applied.iter().map(|applied| Ruled::of(applied, Moment(0))).collect();
        Some(Judgement { applied, shell_charge: judged.shell_charge })
    }
}

/// What was done with the conversation that a turn was lent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum HoldDeed {
    /// It was lent.
    Lent {
        /// Its kind.
        handling: Handling,
        /// Its position is to be read before the next send.
        reread: bool,
    },
    /// An attempt that goes on in it was handed to the transport.
    Sent,
    /// The upstream has certainly not begun.
    Refused {
        /// What it said.
        fault: Box<FaultFacts>,
        /// It was a server's failure, which may have begun.
        may_have_begun: bool,
    },
    /// The upstream has said this.
    Heard(Box<FaultFacts>),
    /// The attempt is over.
    AttemptEnded(AttemptEndFacts),
    /// It goes on under the history with the new answer.
    Advanced,
    /// The turn is over without.
    LetGo,
}

impl HoldDeed {
    /// Does it with what is made of the same code.
    pub fn act(&self, again: &mut turnkeep_policy::conversations::again::Again) -> (HoldState, Option<EndKind>) {
        match self {
            HoldDeed::Lent { handling, reread } => again.act(Deed::Lent { handling: *handling, reread: *reread }),
            HoldDeed::Sent => again.act(Deed::HandedOver),
            HoldDeed::Refused { fault, may_have_begun } => {
                again.act(Deed::Refused { fault: &fault.fault(), may_have_begun: *may_have_begun })
            }
            HoldDeed::Heard(fault) => again.act(Deed::Heard(&fault.fault())),
            HoldDeed::AttemptEnded(end) => match end {
                AttemptEndFacts::Completed => again.act(Deed::AttemptEnded(AttemptEnd::Completed)),
                AttemptEndFacts::Interrupted => again.act(Deed::AttemptEnded(AttemptEnd::Interrupted { late: None })),
                AttemptEndFacts::Failed(fault) => again.act(Deed::AttemptEnded(AttemptEnd::Failed(&fault.fault()))),
                AttemptEndFacts::Unsent => again.act(Deed::AttemptEnded(AttemptEnd::Unsent)),
            },
            HoldDeed::Advanced => again.act(Deed::Advanced),
            HoldDeed::LetGo => again.act(Deed::LetGo),
        }
    }

    pub(super) fn heap(&self) -> usize {
        match self {
            HoldDeed::Refused { fault, .. } | HoldDeed::Heard(fault) => size_of::<FaultFacts>() + fault.heap(),
            HoldDeed::AttemptEnded(end) => end.heap(),
            HoldDeed::Lent { .. } | HoldDeed::Sent | HoldDeed::Advanced | HoldDeed::LetGo => 0,
        }
    }
}

/// Where a deed left a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Holding {
    /// How far the hold has come.
    pub state: HoldState,
    /// How its lease ended, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<EndKind>,
}

/// An end of a lease where the conversations are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckInFacts {
    /// What it met.
    pub arrival: Arrival,
    /// What became of the conversation.
    pub became: CheckedIn,
}

/// How sure a receipt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LevelName {
    /// The kernel took every byte.
    Flushed,
    /// The peer's host acknowledged every byte.
    Acked,
    /// A later turn carried our answer.
    Echoed,
}

impl From<Level> for LevelName {
    fn from(level: Level) -> Self {
        match level {
            Level::Flushed => LevelName::Flushed,
            Level::Acked => LevelName::Acked,
            Level::Echoed => LevelName::Echoed,
        }
    }
}

/// The closing of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnClosing {
    /// What was known.
    pub facts: settle::TurnFacts,
    /// What was done.
    pub effects: TurnEffects,
}

/// The closing of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeliveryClosing {
    /// How sure the receipt is, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<LevelName>,
    /// What was known.
    pub facts: DeliveryFacts,
    /// What was done.
    pub effects: DeliveryEffects,
}
