//! The conversation that a turn goes on with: taken before admission, sent with an attempt that its owner serves, and ended
//! with the attempt or the turn. What each end means is `turnkeep_policy::conversations`' to say; a lease that is let go of
//! on any path ends as its state says.

use super::Drive;
use crate::admission::SlotLease;
use crate::machine::AttemptEnd;
use turnkeep_base::verdict::verdict;
use turnkeep_base::{Fingerprint, Lease};
use turnkeep_dialect::identity::{self, Whose};
use turnkeep_policy::accounts::AccountKey;
use turnkeep_policy::conversations::{Clean, Completed, Conversation, ConversationLease, Record, RefusalProof, Sent};

/// A turn's hold of a conversation.
#[derive(Debug, Default)]
pub(super) struct Held {
    lease: State,
    /// It has been looked for; a turn looks once.
    looked: bool,
    /// What a completed attempt has left: the conversation as it stands now.
    now: Option<Stands>,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    None,
    Clean(ConversationLease<Clean>),
    Sent(ConversationLease<Sent>),
    Completed(ConversationLease<Completed>),
}

/// A conversation after a complete answer, and whose it is.
#[derive(Debug)]
struct Stands {
    conversation: Conversation,
    /// As a new one would be kept.
    record: Record,
}

impl Held {
    /// The conversation that an attempt in this slot goes on with.
    pub(super) fn on(&self, slot: &SlotLease) -> Option<&Conversation> {
        let State::Clean(lease) = &self.lease else { return None };
        let record = lease.record()?;
        let owns = record.account == *slot.id()
            && record.model == slot.route().model
            && Some(record.epoch) == slot.epoch()
            && slot.route().upstream.conversations() == Some(record.handling);
        owns.then_some(&record.conversation)
    }

    /// The attempt in this slot is handed to the transport. Gives the conversation that goes on, and whether its position is
    /// to be read before.
    pub(super) fn sent(&mut self, slot: &SlotLease) -> (Option<Conversation>, bool) {
        let Some(conversation) = self.on(slot).cloned() else { return (None, false) };
        match std::mem::take(&mut self.lease) {
            State::Clean(lease) => {
                let reread = lease.must_reread();
                self.lease = State::Sent(lease.sent());
                (Some(conversation), reread)
            }
            other @ (State::None | State::Sent(_) | State::Completed(_)) => {
                self.lease = other;
                (None, false)
            }
        }
    }

    /// The upstream has certainly not begun.
    pub(super) fn refused(&mut self, proof: RefusalProof) {
        self.lease = match std::mem::take(&mut self.lease) {
            State::Sent(lease) => State::Clean(lease.refused(proof)),
            other @ (State::None | State::Clean(_) | State::Completed(_)) => other,
        };
    }

    /// The attempt is over.
    pub(super) fn attempt_ended(&mut self, end: &AttemptEnd) {
        self.lease = match (std::mem::take(&mut self.lease), end) {
            (State::Sent(lease), AttemptEnd::Completed) => State::Completed(lease.completed()),
            (State::Sent(lease), AttemptEnd::Failed(fault)) => {
                let verdict = verdict(fault);
                if verdict.row.lease == Lease::Dead {
                    lease.dead(verdict.origin == turnkeep_base::Origin::Conversation);
                    State::None
                } else {
                    match lease.unchanged() {
                        Ok(clean) => State::Clean(clean),
                        Err(sent) => {
                            sent.interrupted();
                            State::None
                        }
                    }
                }
            }
            (State::Sent(lease), AttemptEnd::Interrupted | AttemptEnd::Unsent) => {
                lease.interrupted();
                State::None
            }
            (other @ (State::None | State::Clean(_) | State::Completed(_)), _) => other,
        };
    }

    /// The turn is over without a complete answer, or without a place for its conversation.
    fn let_go(&mut self) {
        match std::mem::take(&mut self.lease) {
            State::None => {}
            State::Clean(lease) => lease.restore(),
            State::Sent(lease) => lease.interrupted(),
            State::Completed(lease) => drop(lease),
        }
    }
}

impl Drive {
    /// Takes the conversation that the request goes on with, if one of its routes keeps conversations and one is known.
    pub(super) fn take_conversation(&mut self) {
        let keeps = self.input.routes.iter().any(|route| route.upstream.conversations().is_some());
        if std::mem::replace(&mut self.conversation.looked, true) || !keeps || !self.keeps() {
            return;
        }
        let Some(history) = self.history() else { return };
        let (prefix, last, can) = (history.prefix, history.answers.last().copied(), history.can_go_on());
        let Some(last) = last.filter(|_| can) else { return };
        let key = self.conversation_key(prefix, last);
        if let Some(lease) = self.engine.conversations.take(self.now(), &self.scope, key) {
            self.conversation.lease = State::Clean(lease);
        }
    }

    /// Whom the conversation binds the next attempt to, and whether it is waited for.
    pub(super) fn conversation_owner(&self) -> Option<(AccountKey, bool)> {
        let State::Clean(lease) = &self.conversation.lease else { return None };
        let record = lease.record()?;
        let route = self.input.routes.iter().find(|route| route.upstream.name == record.account.upstream)?;
        let strict = route.upstream.reuse == crate::route::Reuse::Strict;
        let key = self.engine.admission.keys_of(std::slice::from_ref(&record.account)).first().copied()?;
        Some((key, strict))
    }

    /// The key of the conversation whose history ends with this answer. What the client does not see is not in it.
    fn conversation_key(&self, prefix: Fingerprint, answered: Fingerprint) -> Fingerprint {
        let model = if &*self.input.model_label == "*" { &self.input.request.model } else { &*self.input.model_label };
        let terms = &self.input.terms;
        let (session, within) = (terms.session.as_deref(), terms.session_within.as_deref());
        let whose = Whose { scope: &self.scope, model, session, within };
        identity::conversation(&self.engine.hash_key, &whose, prefix, answered)
    }

    /// The attempt is over: what becomes of the conversation, and how it stands after a complete answer.
    pub(super) fn end_attempt_in_conversation(&mut self, end: &AttemptEnd) {
        let stands = match (end, &self.lease, &mut self.answering) {
            (AttemptEnd::Completed, Some(slot), Some(answering)) => {
                let handling = slot.route().upstream.conversations();
                let conversation = answering.conversation();
                handling.zip(conversation).zip(slot.epoch()).map(|((handling, conversation), epoch)| Stands {
                    conversation: conversation.clone(),
                    record: Record {
                        conversation,
                        handling,
                        account: slot.id().clone(),
                        epoch,
                        model: slot.route().model.clone(),
                        created: self.now(),
                        reread: false,
                    },
                })
            }
            _ => None,
        };
        if let Some(stands) = stands {
            self.conversation.now = Some(stands);
        }
        self.conversation.attempt_ended(end);
    }

    /// The turn closes, before the end of its answer is written: the conversation stands under the history with the new
    /// answer, or is given back.
    pub(super) fn close_conversation(&mut self, completed: bool) {
        let stands = self.conversation.now.take().filter(|_| completed && self.kept_reply.is_none());
        let key = stands.is_some().then(|| self.next_conversation_key()).flatten();
        if let (Some(stands), Some(key)) = (stands, key) {
            match std::mem::take(&mut self.conversation.lease) {
                State::Completed(lease) => lease.advance(key, stands.conversation),
                other @ (State::None | State::Clean(_) | State::Sent(_)) => {
                    self.conversation.lease = other;
                    self.engine.conversations.begin(self.now(), self.scope.clone(), key, stands.record);
                }
            }
        }
        self.conversation.let_go();
    }

    /// The key under which the next turn looks for the conversation.
    fn next_conversation_key(&mut self) -> Option<Fingerprint> {
        let answered = self.answered_history()?;
        let prefix = self.history()?.prefix;
        Some(self.conversation_key(prefix, answered))
    }
}
