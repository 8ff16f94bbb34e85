//! An attempt from its slot to its judgement: what was taken for it, and what its end did.

use super::cooldown::Scope;
use super::spec::AccountKey;
use super::standing::Grounds;
use crate::moment::Moment;
use crate::rate::Drawn;

/// How much of a fault may bear on the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bearing {
    /// All of it.
    Full,
    /// The client has left: facts that the upstream declared are applied, judgements are not made.
    DeclaredOnly,
}

/// A slot that was taken, with everything that must be given back. It ends in [`super::Pool::release`], on every path.
#[must_use = "a slot that is not released is lost"]
#[derive(Debug)]
pub struct Taken {
    pub(super) account: AccountKey,
    pub(super) upstream: usize,
    pub(super) model: Box<str>,
    pub(super) id: u64,
    pub(super) trial: bool,
    pub(super) probe: bool,
    pub(super) generation: u64,
    pub(super) epoch: u64,
    pub(super) request: Option<Drawn>,
    pub(super) tokens: Option<Drawn>,
    /// It was judged, or has succeeded.
    pub(super) ended: bool,
}

impl Taken {
    /// The account.
    pub fn account(&self) -> AccountKey {
        self.account
    }

    /// It is the single try of an errored account.
    pub fn trial(&self) -> bool {
        self.trial
    }

    /// It is the single probe of an ejected endpoint.
    pub fn probe(&self) -> bool {
        self.probe
    }

    /// The generation of the secret when the slot was taken.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The account's epoch when the slot was taken.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }
}

/// One thing that a fault did, or did not do, to the account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// It was not applied, and why.
    Recorded(&'static str),
    /// A unit of the error budget was spent.
    Budget {
        /// Units spent within the window.
        used: u32,
        /// Units there are.
        of: u32,
    },
    /// The account is out for a while.
    Errored {
        /// How many times in a row.
        episode: u32,
        /// When it may be tried.
        retry_at: Moment,
    },
    /// The account is out until the operator acts.
    Suspended,
    /// Something cools.
    Cooled {
        /// What.
        scope: Scope,
        /// Until when, all in all.
        until: Moment,
    },
    /// A health sample.
    Sample,
    /// Shown as misconfigured.
    Misconfigured,
}

/// One charge that corroboration may take back: that of a run of shells.
#[derive(Debug, PartialEq, Eq)]
pub struct ChargeRef {
    /// The account that was charged.
    pub account: AccountKey,
    pub(super) epoch: u64,
    pub(super) id: u64,
}

/// What a judgement did.
#[derive(Debug, Default, PartialEq)]
pub struct Judged {
    /// To the account, in order.
    pub applied: Vec<Applied>,
    /// The charge of a run of shells, if one was made.
    pub charge: Option<ChargeRef>,
    /// Something that outlives the process has changed.
    pub changed: bool,
    /// This fault closed its (egress address, upstream, model).
    pub burst: bool,
    /// What the account's part was judged from; `None` where the account was not asked.
    pub grounds: Option<Box<Grounds>>,
}

impl Judged {
    pub(super) fn recorded(why: &'static str) -> Self {
        Judged { applied: vec![Applied::Recorded(why)], ..Judged::default() }
    }
}
