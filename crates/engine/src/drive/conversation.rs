//! The conversation that a turn goes on with: taken before admission, sent with an attempt that its owner serves, and ended
//! with the attempt or the turn. What each end means is `turnkeep_policy::conversations`' to say; a lease that is let go of
//! on any path ends as its state says.

use super::Drive;
use crate::admission::{Owner, SlotLease};
use crate::call;
use crate::incident::settled::HoldDeed;
use crate::incident::tape::{Tape, TapedDesk};
use crate::machine::{AttemptEnd, Event};
use crate::ports::ConversationKey;
use crate::route::Reuse;
use std::sync::Arc;
use turnkeep_base::{Fault, Fingerprint};
use turnkeep_dialect::identity::{self, Whose};
use turnkeep_policy::conversations::hold::{Hold, HoldState};
use turnkeep_policy::conversations::{AGE, Clean, Conversation, ConversationLease, Handling, Record, RefusalProof};
use turnkeep_policy::settle;

/// A turn's hold of a conversation.
#[derive(Debug)]
pub(super) struct Held {
    hold: Hold,
    tape: Arc<Tape>,
    /// It has been looked for; a turn looks once.
    looked: bool,
    /// What a completed attempt has left: the conversation as it stands now, as a new one would be kept.
    now: Option<Record>,
}

impl Held {
    /// Nothing yet. What is done with it is taken down on the turn's tape.
    pub(super) fn new(tape: Arc<Tape>) -> Self {
        Held { hold: Hold::default(), tape, looked: false, now: None }
    }

    /// The conversation that an attempt in this slot goes on with.
    pub(super) fn on(&self, slot: &SlotLease) -> Option<&Conversation> {
        let record = self.hold.clean()?.record()?;
        let owns = record.account == *slot.id()
            && record.model == slot.route().model
            && Some(record.epoch) == slot.epoch()
            && slot.route().upstream.conversations() == Some(record.handling);
        owns.then_some(&record.conversation)
    }

    /// The place that the conversation is taken from for good, once an attempt goes on in it.
    pub(super) fn taken_from(&self) -> Option<ConversationKey> {
        let loan = self.hold.clean()?.loan()?;
        match loan.record().handling {
            Handling::Mutable => Some(ConversationKey { caller: loan.caller().clone(), key: loan.key() }),
            Handling::Immutable => None,
        }
    }

    fn take(&mut self, lease: ConversationLease<Clean>) {
        let lent = lease.record().map(|record| HoldDeed::Lent { handling: record.handling, reread: record.reread });
        self.hold.take(lease);
        if let Some(lent) = lent {
            self.tape.held(lent, self.hold.state());
        }
    }

    /// Takes down what was done, unless there was nothing to do it with.
    fn did(&self, before: HoldState, deed: impl FnOnce(&Tape) -> HoldDeed) {
        match before {
            HoldState::Nothing => {}
            HoldState::Untouched | HoldState::MaybeReached | HoldState::Finished => {
                self.tape.held(deed(&self.tape), self.hold.state());
            }
        }
    }

    /// The attempt in this slot is handed to the transport. Gives the conversation that goes on, and whether its position is
    /// to be read before.
    pub(super) fn sent(&mut self, slot: &SlotLease) -> (Option<Conversation>, bool) {
        let Some(conversation) = self.on(slot).cloned() else { return (None, false) };
        let before = self.hold.state();
        match self.hold.sent() {
            Some(reread) => {
                self.did(before, |_| HoldDeed::Sent);
                (Some(conversation), reread)
            }
            None => (None, false),
        }
    }

    /// The upstream has said this of the attempt under way.
    pub(super) fn heard(&mut self, fault: &Fault) {
        let before = self.hold.state();
        self.hold.heard(fault);
        self.did(before, |tape| HoldDeed::Heard(tape.facts(fault)));
    }

    /// The upstream has certainly not begun, for this reason. One that spoils the handle spoils it all the same.
    pub(super) fn refused(&mut self, proof: RefusalProof, fault: &Fault) {
        let (before, may_have_begun) = (self.hold.state(), proof.may_have_begun());
        self.hold.refused(proof, fault);
        self.did(before, |tape| HoldDeed::Refused { fault: tape.facts(fault), may_have_begun });
    }

    /// The attempt is over.
    pub(super) fn attempt_ended(&mut self, end: &AttemptEnd) {
        let before = self.hold.state();
        self.hold.attempt_ended(match end {
            AttemptEnd::Completed => settle::AttemptEnd::Completed,
            AttemptEnd::Failed(fault) => settle::AttemptEnd::Failed(fault),
            AttemptEnd::Interrupted => settle::AttemptEnd::Interrupted { late: None },
            AttemptEnd::Unsent => settle::AttemptEnd::Unsent,
        });
        self.did(before, |tape| HoldDeed::AttemptEnded(tape.end_facts(end)));
    }

    fn advance(&mut self, key: Fingerprint, conversation: Conversation) {
        let before = self.hold.state();
        let _not_completed = self.hold.advance(key, conversation);
        self.did(before, |_| HoldDeed::Advanced);
    }

    /// The turn is over without a complete answer, or without a place for its conversation.
    fn let_go(&mut self) {
        let before = self.hold.state();
        self.hold.let_go();
        self.did(before, |_| HoldDeed::LetGo);
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
        let desk = self.engine.conversations.clone();
        let ends = Arc::new(TapedDesk { desk: desk.clone(), tape: self.tape.clone() });
        if let Some(lease) = desk.take(self.now(), &self.scope, key, ends) {
            self.conversation.take(lease);
        }
    }

    /// The entry that marks the conversation as taken could not be written, and the turn goes on without: in a new
    /// conversation, as after a crash this one would be found as it was. Gives what happens if it cannot be written so.
    pub(super) fn begin_anew(&mut self) -> Option<Event> {
        let slot = self.lease.as_ref()?;
        self.conversation.on(slot)?;
        self.conversation.taken_from()?;
        let elsewhere = self.known.owners.iter().any(|owner| owner.upstream != slot.route().upstream.name);
        let written = call::write(&self.input, slot.route(), elsewhere, None);
        self.conversation.let_go();
        match written {
            Ok(written) => {
                self.dropped.clone_from(&written.dropped);
                self.tool_names = written.names.clone();
                self.written = Some(written);
                None
            }
            Err(invalid) => {
                self.uncarriable = Some(invalid.into());
                Some(Event::Uncarriable)
            }
        }
    }

    /// Whom the conversation binds the next attempt to, and whether it is waited for.
    pub(super) fn conversation_owner(&self) -> Option<Owner> {
        let record = self.conversation.hold.clean()?.record()?;
        let route = self.input.routes.iter().position(|route| {
            let upstream = &route.upstream;
            upstream.name == record.account.upstream
                && route.model == record.model
                && upstream.conversations() == Some(record.handling)
        })?;
        let strict = self.input.routes.get(route)?.upstream.reuse == Reuse::Strict;
        let account = self.engine.admission.keys_of(std::slice::from_ref(&record.account)).first().copied()?;
        Some(Owner { account, route, strict })
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
        match end {
            AttemptEnd::Completed => self.conversation.now = self.stands_now(),
            AttemptEnd::Interrupted | AttemptEnd::Failed(_) | AttemptEnd::Unsent => {}
        }
        self.conversation.attempt_ended(end);
    }

    /// The conversation after a complete answer, where the upstream keeps one that is gone on with.
    fn stands_now(&mut self) -> Option<Record> {
        let ends = self.now().after(AGE);
        let (slot, answering) = (self.lease.as_ref()?, self.answering.as_mut()?);
        Some(Record {
            handling: slot.route().upstream.conversations()?,
            conversation: answering.conversation()?,
            account: slot.id().clone(),
            epoch: slot.epoch()?,
            model: slot.route().model.clone(),
            ends,
            reread: false,
        })
    }

    /// The turn closes, before the end of its answer is written: the conversation stands under the history with the new
    /// answer, or is given back. One that cannot be found again is not kept, and its driver is told.
    pub(super) fn close_conversation(&mut self, completed: bool) {
        let stands = self.conversation.now.take();
        let found_by = stands.is_some() && completed && self.kept_reply.is_none();
        let key = found_by.then(|| self.next_conversation_key()).flatten();
        let desk = self.engine.conversations.clone();
        match (self.conversation.hold.state(), stands, key) {
            (HoldState::Finished, Some(stands), Some(key)) => self.conversation.advance(key, stands.conversation),
            (HoldState::Nothing | HoldState::Untouched | HoldState::MaybeReached, Some(stands), Some(key)) => {
                desk.begin(self.now(), self.scope.clone(), key, stands);
            }
            (HoldState::Nothing | HoldState::Untouched | HoldState::MaybeReached, Some(stands), None) => {
                match stands.handling {
                    Handling::Mutable => desk.forget(stands),
                    Handling::Immutable => {}
                }
            }
            // What the lease holds is lost with it.
            (HoldState::Finished, Some(_), None) | (_, None, _) => {}
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
