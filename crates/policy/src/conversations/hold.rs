//! What a turn does with the conversation that it was lent, from the loan to its end: sent with an attempt, refused, spoilt,
//! completed, let go of. It decides which of its lease's ends a turn takes; the lease sees to it that there is one.
//!
//! It knows neither the turn's slots nor the upstream: whether an attempt goes on in the conversation is asked elsewhere.

use super::{Clean, Completed, Conversation, ConversationLease, RefusalProof, Sent};
use crate::settle::AttemptEnd;
use turnkeep_base::verdict::verdict;
use turnkeep_base::{Fault, Fingerprint, Lease, Origin};

/// A turn's hold of a conversation.
#[derive(Debug, Default)]
pub struct Hold {
    lease: Held,
    /// The attempt under way goes on in it. What befalls another attempt does not befall it.
    in_attempt: bool,
    /// A fault of this attempt has spoilt the handle, and whether the upstream does not know it any more. It counts however
    /// the attempt is said to have ended: a client that left in the same moment does not hide it.
    spoilt: Option<bool>,
}

#[derive(Debug, Default)]
enum Held {
    #[default]
    None,
    Clean(ConversationLease<Clean>),
    Sent(ConversationLease<Sent>),
    Completed(ConversationLease<Completed>),
}

/// How far a hold has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldState {
    /// Nothing is held.
    #[default]
    Nothing,
    /// Nothing of the turn has reached the conversation.
    #[serde(rename = "clean")]
    Untouched,
    /// The turn may have reached it.
    #[serde(rename = "sent")]
    MaybeReached,
    /// The turn has completed in it.
    #[serde(rename = "completed")]
    Finished,
}

impl Hold {
    /// Holds what was lent. What was held before ends as its state says.
    pub fn take(&mut self, lease: ConversationLease<Clean>) {
        self.lease = Held::Clean(lease);
    }

    /// How far it has come.
    pub fn state(&self) -> HoldState {
        match self.lease {
            Held::None => HoldState::Nothing,
            Held::Clean(_) => HoldState::Untouched,
            Held::Sent(_) => HoldState::MaybeReached,
            Held::Completed(_) => HoldState::Finished,
        }
    }

    /// The lease, while an attempt may still go on in it.
    pub fn clean(&self) -> Option<&ConversationLease<Clean>> {
        match &self.lease {
            Held::Clean(lease) => Some(lease),
            Held::None | Held::Sent(_) | Held::Completed(_) => None,
        }
    }

    /// An attempt that goes on in it is handed to the transport. Gives whether its position is to be read before; `None`
    /// where nothing can be sent in it.
    pub fn sent(&mut self) -> Option<bool> {
        match std::mem::take(&mut self.lease) {
            Held::Clean(lease) => {
                let reread = lease.must_reread();
                self.lease = Held::Sent(lease.sent());
                self.in_attempt = true;
                Some(reread)
            }
            other @ (Held::None | Held::Sent(_) | Held::Completed(_)) => {
                self.lease = other;
                None
            }
        }
    }

    /// The upstream has said this of the attempt under way.
    pub fn heard(&mut self, fault: &Fault) {
        let verdict = verdict(fault);
        match verdict.row.lease {
            Lease::Dead if self.in_attempt => self.spoilt = Some(verdict.origin == Origin::Conversation),
            Lease::Dead | Lease::Kept | Lease::WithAccount | Lease::None => {}
        }
    }

    /// The upstream has certainly not begun, for this reason. One that spoils the handle spoils it all the same.
    pub fn refused(&mut self, proof: RefusalProof, fault: &Fault) {
        self.heard(fault);
        if self.spoilt.is_some() {
            return;
        }
        self.lease = match std::mem::take(&mut self.lease) {
            Held::Sent(lease) => Held::Clean(lease.refused(proof)),
            other @ (Held::None | Held::Clean(_) | Held::Completed(_)) => other,
        };
    }

    /// The attempt is over.
    pub fn attempt_ended(&mut self, end: AttemptEnd<'_>) {
        if let AttemptEnd::Failed(fault) = end {
            self.heard(fault);
        }
        self.in_attempt = false;
        let spoilt = self.spoilt.take();
        self.lease = match (std::mem::take(&mut self.lease), end, spoilt) {
            (Held::Sent(lease), _, Some(gone)) => {
                lease.dead(gone);
                Held::None
            }
            (Held::Sent(lease), AttemptEnd::Completed, None) => Held::Completed(lease.completed()),
            (Held::Sent(lease), AttemptEnd::Failed(_), None) => match lease.unchanged() {
                Ok(clean) => Held::Clean(clean),
                Err(sent) => {
                    sent.interrupted();
                    Held::None
                }
            },
            (Held::Sent(lease), AttemptEnd::Interrupted { .. } | AttemptEnd::Unsent, None) => {
                lease.interrupted();
                Held::None
            }
            (other @ (Held::None | Held::Clean(_) | Held::Completed(_)), _, _) => other,
        };
    }

    /// The turn that completed in it goes on from here. The conversation comes back where no turn has completed in it.
    ///
    /// # Errors
    /// It was not completed; it is held as before.
    pub fn advance(&mut self, key: Fingerprint, conversation: Conversation) -> Result<(), Conversation> {
        match std::mem::take(&mut self.lease) {
            Held::Completed(lease) => {
                lease.advance(key, conversation);
                Ok(())
            }
            other @ (Held::None | Held::Clean(_) | Held::Sent(_)) => {
                self.lease = other;
                Err(conversation)
            }
        }
    }

    /// The turn is over without a complete answer, or without a place for its conversation.
    pub fn let_go(&mut self) {
        match std::mem::take(&mut self.lease) {
            Held::None => {}
            Held::Clean(lease) => lease.restore(),
            Held::Sent(lease) => match self.spoilt.take() {
                Some(gone) => lease.dead(gone),
                None => lease.interrupted(),
            },
            Held::Completed(lease) => drop(lease),
        }
    }
}
