//! What a turn holds of a conversation, by what has become of it. A lease that has not been sent can be restored, one whose
//! turn completed can be advanced, and there is no other way to either: an early return, a panic or a dropped task end a
//! lease as its state says.
//!
//! ```text
//! Clean ──the send is handed to the transport──▶ Sent ──terminal event──▶ Completed ──▶ advanced
//!   ▲                                             │
//!   └──────── refused, with a RefusalProof ───────┴──▶ interrupted, or dead
//! ```
//!
//! Dropping one does no I/O: it hands the end to whoever keeps the conversations.

use super::{Conversation, Handling, Loan, Record};
use std::fmt;
use std::sync::Arc;
use turnkeep_base::Fingerprint;
use turnkeep_base::seeded;

/// The upstream has certainly not begun with what was sent. Only a driver can know, and only drivers make one
/// (`cargo xtask layers` looks).
#[derive(Debug)]
pub struct RefusalProof {
    reread: bool,
}

impl RefusalProof {
    /// Not a byte of the send was handed to the transport.
    pub fn never_left() -> Self {
        RefusalProof { reread: false }
    }

    /// A complete error reply came to the send itself, before any event of the turn; or HTTP/2's REFUSED_STREAM, or a GOAWAY
    /// below the stream.
    pub fn by_reply() -> Self {
        RefusalProof { reread: false }
    }

    /// As [`RefusalProof::by_reply`], but by a failure of the server (5xx), which may have begun. Only for kinds whose
    /// position can be read: it is read again before the next send.
    pub fn by_failure() -> Self {
        RefusalProof { reread: true }
    }

    /// The server may have begun all the same: what must not be done twice is not sent elsewhere.
    pub fn may_have_begun(&self) -> bool {
        self.reread
    }
}

/// How a lease ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseEnd {
    /// Unsent or refused.
    Restored {
        /// The refusal was a server's failure.
        reread: bool,
    },
    /// The turn completed.
    Advanced {
        /// Of the history with the new answer.
        key: Fingerprint,
        /// As the upstream knows it now.
        conversation: Conversation,
    },
    /// The client left in the middle, the gateway stopped, a fault struck after the send; or the turn completed and
    /// nothing is known that it could be found by.
    Interrupted,
    /// The handle is spoilt.
    Dead {
        /// The upstream does not know it any more.
        gone: bool,
    },
}

/// The ends of leases, without what they carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CountedEnd {
    /// [`LeaseEnd::Restored`].
    Restored,
    /// [`LeaseEnd::Advanced`].
    Advanced,
    /// [`LeaseEnd::Interrupted`].
    Interrupted,
    /// [`LeaseEnd::Dead`], and the upstream still knows it.
    Dead,
    /// [`LeaseEnd::Dead`], and the upstream does not know it any more.
    Gone,
}

impl CountedEnd {
    /// All of them.
    pub const ALL: [CountedEnd; 5] =
        [CountedEnd::Restored, CountedEnd::Advanced, CountedEnd::Interrupted, CountedEnd::Dead, CountedEnd::Gone];

    /// Its name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            CountedEnd::Restored => "restored",
            CountedEnd::Advanced => "advanced",
            CountedEnd::Interrupted => "interrupted",
            CountedEnd::Dead => "dead",
            CountedEnd::Gone => "gone",
        }
    }
}

impl LeaseEnd {
    /// Which of them it is.
    pub fn kind(&self) -> CountedEnd {
        match self {
            LeaseEnd::Restored { .. } => CountedEnd::Restored,
            LeaseEnd::Advanced { .. } => CountedEnd::Advanced,
            LeaseEnd::Interrupted => CountedEnd::Interrupted,
            LeaseEnd::Dead { gone: false } => CountedEnd::Dead,
            LeaseEnd::Dead { gone: true } => CountedEnd::Gone,
        }
    }
}

/// Whoever keeps the conversations.
pub trait CheckIn: Send + Sync {
    /// Takes back what was lent. Called once for each loan; does no I/O and does not wait.
    fn check_in(&self, loan: Loan, end: LeaseEnd);
}

/// A state of a lease.
pub trait State: sealed::Sealed {
    /// What a lease that is dropped in this state ends as.
    fn dropped(&self) -> LeaseEnd;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Clean {}
    impl Sealed for super::Sent {}
    impl Sealed for super::Completed {}
}

/// Nothing of the turn has reached the conversation.
#[derive(Debug)]
pub struct Clean {
    reread: bool,
}

/// The turn may have reached it.
#[derive(Debug)]
pub struct Sent {
    reread: bool,
}

/// The turn has completed in it.
#[derive(Debug)]
pub struct Completed(());

impl State for Clean {
    fn dropped(&self) -> LeaseEnd {
        LeaseEnd::Restored { reread: self.reread }
    }
}

impl State for Sent {
    fn dropped(&self) -> LeaseEnd {
        if seeded::is("restore-after-send") {
            return LeaseEnd::Restored { reread: false };
        }
        LeaseEnd::Interrupted
    }
}

impl State for Completed {
    fn dropped(&self) -> LeaseEnd {
        LeaseEnd::Interrupted
    }
}

/// A turn's hold of a conversation. Dropped, it ends as its state says.
pub struct ConversationLease<S: State> {
    /// Empty only while it changes hands.
    loan: Option<Loan>,
    desk: Arc<dyn CheckIn>,
    state: S,
}

impl<S: State + fmt::Debug> fmt::Debug for ConversationLease<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConversationLease")
            .field("loan", &self.loan)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl<S: State> ConversationLease<S> {
    /// The conversation and its owner; `None` never, but for a lease that has just ended.
    pub fn record(&self) -> Option<&Record> {
        self.loan.as_ref().map(Loan::record)
    }

    /// What was lent, and from where; `None` as for [`ConversationLease::record`].
    pub fn loan(&self) -> Option<&Loan> {
        self.loan.as_ref()
    }

    fn end(&mut self, end: LeaseEnd) {
        if let Some(loan) = self.loan.take().filter(|_| !seeded::is("a-forgotten-lease")) {
            self.desk.check_in(loan, end);
        }
    }

    fn into_state<T: State>(mut self, state: T) -> ConversationLease<T> {
        ConversationLease { loan: self.loan.take(), desk: self.desk.clone(), state }
    }
}

impl ConversationLease<Clean> {
    /// A hold of what was lent.
    pub fn new(loan: Loan, desk: Arc<dyn CheckIn>) -> Self {
        let reread = loan.record().reread;
        ConversationLease { loan: Some(loan), desk, state: Clean { reread } }
    }

    /// The position is to be read before the send: an earlier one may have moved it.
    pub fn must_reread(&self) -> bool {
        self.state.reread && !seeded::is("the-position-is-not-read-again")
    }

    /// The send is handed to the transport.
    pub fn sent(self) -> ConversationLease<Sent> {
        let reread = self.state.reread;
        self.into_state(Sent { reread })
    }

    /// The turn ends without it.
    pub fn restore(mut self) {
        let end = self.state.dropped();
        self.end(end);
    }
}

impl ConversationLease<Sent> {
    /// The send did not begin. What had to be read again before it has to be still: it may have been refused before that.
    pub fn refused(self, proof: RefusalProof) -> ConversationLease<Clean> {
        let reread = self.state.reread || proof.reread;
        self.into_state(Clean { reread })
    }

    /// A conversation that no turn changes is as it was, whatever became of this one; one that may have changed stays sent.
    pub fn unchanged(self) -> Result<ConversationLease<Clean>, ConversationLease<Sent>> {
        match self.record().map(|record| record.handling) {
            Some(Handling::Immutable) => Ok(self.into_state(Clean { reread: false })),
            Some(Handling::Mutable) | None => Err(self),
        }
    }

    /// The protocol's own terminal event has come.
    pub fn completed(self) -> ConversationLease<Completed> {
        self.into_state(Completed(()))
    }

    /// The handle is spoilt; `gone`: the upstream does not know it any more.
    pub fn dead(mut self, gone: bool) {
        self.end(LeaseEnd::Dead { gone });
    }

    /// Cut short on our side, or by a fault.
    pub fn interrupted(mut self) {
        let end = self.state.dropped();
        self.end(end);
    }
}

impl ConversationLease<Completed> {
    /// It goes on from the history with the new answer.
    pub fn advance(mut self, key: Fingerprint, conversation: Conversation) {
        self.end(LeaseEnd::Advanced { key, conversation });
    }
}

impl<S: State> Drop for ConversationLease<S> {
    fn drop(&mut self) {
        let end = self.state.dropped();
        self.end(end);
    }
}
