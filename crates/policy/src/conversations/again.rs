//! A hold and its end done again, from what an incident trace has of them: the same typed lease, the same table, with a
//! conversation that has no name in it.

use super::hold::{Hold, HoldState};
use super::{
    CheckIn, CheckedIn, Conversation, ConversationLease, Conversations, Handling, LeaseEnd, Loan, Record, RefusalProof,
};
use crate::moment::Moment;
use crate::settle::AttemptEnd;
use crate::shelf::ShelfBounds;
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use turnkeep_base::{AccountId, Fault, Fingerprint};

/// The key that the conversation stands under, and the one that it is advanced to.
const HERE: Fingerprint = Fingerprint([1; 16]);
const NEXT: Fingerprint = Fingerprint([2; 16]);
/// Before any record of these ends, unless it is over.
const NOW: Moment = Moment(1);
/// Room for the end of what is held, and for that of what a trace says is taken beside it.
const ENDS: usize = 2;

/// What is done with a hold.
#[derive(Clone, Copy, Debug)]
pub enum Deed<'a> {
    /// A conversation was lent.
    Lent {
        /// Its kind.
        handling: Handling,
        /// Its position is to be read before the next send.
        reread: bool,
    },
    /// An attempt that goes on in it was handed to the transport.
    HandedOver,
    /// The upstream has certainly not begun.
    Refused {
        /// What it said.
        fault: &'a Fault,
        /// It was a server's failure, which may have begun.
        may_have_begun: bool,
    },
    /// The upstream has said this.
    Heard(&'a Fault),
    /// The attempt is over.
    AttemptEnded(AttemptEnd<'a>),
    /// It goes on under the history with the new answer.
    Advanced,
    /// The turn is over without.
    LetGo,
}

/// How a lease ended, without the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndKind {
    /// Unsent or refused.
    Restored {
        /// The refusal was a server's failure.
        reread: bool,
    },
    /// The turn completed.
    Advanced,
    /// Cut short after the send.
    Interrupted,
    /// The handle is spoilt.
    Dead {
        /// The upstream does not know it any more.
        gone: bool,
    },
}

impl EndKind {
    /// The kind of an end.
    pub fn of(end: &LeaseEnd) -> EndKind {
        match end {
            LeaseEnd::Restored { reread } => EndKind::Restored { reread: *reread },
            LeaseEnd::Advanced { .. } => EndKind::Advanced,
            LeaseEnd::Interrupted => EndKind::Interrupted,
            LeaseEnd::Dead { gone } => EndKind::Dead { gone: *gone },
        }
    }
}

/// What an end of a lease met where the conversations are kept: all that its row of the table was chosen by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arrival {
    /// The conversation's kind.
    pub handling: Handling,
    /// How its lease ended.
    pub end: EndKind,
    /// Its account and its process are still what they were.
    pub stands: bool,
    /// Another one stood under its key by then.
    pub newer: bool,
    /// Where it was advanced: the new handle is one that is kept.
    pub fits: bool,
    /// It had had its time.
    pub over: bool,
    /// There was no room left for another one, so that it, or another caller's, had to give way.
    pub full: bool,
}

impl Arrival {
    /// What becomes of the conversation, by the table of this build; `None` where the room decided, which a trace does not
    /// have.
    pub fn check_in(&self) -> Option<CheckedIn> {
        if self.full {
            return None;
        }
        let caller: Arc<str> = "".into();
        let mut table = Conversations::new(ShelfBounds { count: 8, bytes: 1 << 20 });
        let ends = if self.over { NOW } else { Moment(u64::MAX) };
        let record = Record { ends, ..record(self.handling, false) };
        table.begin(Moment(0), caller.clone(), HERE, record.clone(), |_| true);
        let loan = table.take(Moment(0), &caller, HERE, |_| true).ok()?;
        if self.newer && self.handling == Handling::Mutable {
            table.begin(Moment(0), caller, HERE, Record { ends: Moment(u64::MAX), ..record }, |_| true);
        }
        let end = match self.end {
            EndKind::Restored { reread } => LeaseEnd::Restored { reread },
            EndKind::Interrupted => LeaseEnd::Interrupted,
            EndKind::Dead { gone } => LeaseEnd::Dead { gone },
            EndKind::Advanced => {
                let handle = "x".repeat(if self.fits { 1 } else { super::MAX_HANDLE + 1 });
                let conversation = Conversation { handle: handle.into(), position: None, instance: None };
                LeaseEnd::Advanced { key: NEXT, conversation }
            }
        };
        Some(table.check_in(NOW, loan, end, |_| self.stands))
    }
}

fn record(handling: Handling, reread: bool) -> Record {
    Record {
        conversation: Conversation { handle: "".into(), position: None, instance: None },
        handling,
        account: AccountId { upstream: "".into(), account: "".into() },
        epoch: 0,
        model: "".into(),
        ends: Moment(u64::MAX),
        reread,
    }
}

/// A hold that is done again. Its conversation has no name.
pub struct Again {
    hold: Hold,
    desk: Arc<Ends>,
    ended: Receiver<EndKind>,
}

impl fmt::Debug for Again {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Again").field("hold", &self.hold).finish_non_exhaustive()
    }
}

struct Ends(SyncSender<EndKind>);

impl CheckIn for Ends {
    fn check_in(&self, _: Loan, end: LeaseEnd) {
        // It is emptied after each deed, and no deed ends more than one.
        let _no_room = self.0.try_send(EndKind::of(&end));
    }
}

impl Default for Again {
    fn default() -> Self {
        let (ends, ended) = sync_channel(ENDS);
        Again { hold: Hold::default(), desk: Arc::new(Ends(ends)), ended }
    }
}

impl Again {
    /// Does one thing more; gives how far the hold has come, and how its lease ended if it did.
    pub fn act(&mut self, deed: Deed<'_>) -> (HoldState, Option<EndKind>) {
        match deed {
            Deed::Lent { handling, reread } => {
                let loan = Loan { caller: "".into(), key: HERE, record: record(handling, reread) };
                self.hold.take(ConversationLease::new(loan, self.desk.clone()));
            }
            Deed::HandedOver => {
                let _whether_to_reread = self.hold.sent();
            }
            Deed::Refused { fault, may_have_begun } => {
                let proof = if may_have_begun { RefusalProof::by_failure() } else { RefusalProof::by_reply() };
                self.hold.refused(proof, fault);
            }
            Deed::Heard(fault) => self.hold.heard(fault),
            Deed::AttemptEnded(end) => self.hold.attempt_ended(end),
            Deed::Advanced => {
                let next = Conversation { handle: "".into(), position: None, instance: None };
                let _not_completed = self.hold.advance(NEXT, next);
            }
            Deed::LetGo => self.hold.let_go(),
        }
        (self.hold.state(), self.ended.try_recv().ok())
    }
}
