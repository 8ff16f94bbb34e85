//! Devin, by its REST API, version 3: a session is a conversation that advances in place.
//!
//! A turn begins a session with all that was said as one prompt, or goes on with one by a message; then the session and
//! its messages are asked for until the turn is over. The API has no stream and tells no end of a turn, so what ends one is
//! in [`stand`] and [`watch`]. Each call that says something to Devin is sent once, never again. The API documents no call
//! that cancels: a turn that is dropped stops asking, and its session is not gone on with.

mod answer;
mod api;
pub(crate) mod fuzzed;
mod handle;
mod look;
mod messages;
mod prompt;
mod session;
mod spec;
mod stand;
mod watch;

use crate::classify::unsent;
use crate::endpoint::Endpoint;
use crate::spec::EndpointError;
use answer::DevinAnswer;
use api::{Api, Failed};
use futures_util::future::BoxFuture;
use handle::Handle;
use look::Left;
use messages::Messages;
use session::Source;
pub use spec::DevinSpec;
use spec::{Organizations, Times};
use stand::Stand;
use std::fmt;
use std::sync::Arc;
use turnkeep_base::{AccountId, Evidence, Fault, FaultKind, Phase};
use turnkeep_dialect::json::Invalid;
use turnkeep_dialect::turn::Turn;
use turnkeep_engine::ports::{Ask, Native, NativeAnswer, NativeWritten, SendFault, Writing};
use turnkeep_policy::conversations::{Conversation, RefusalProof};
use watch::Before;

/// The driver of one Devin endpoint. Its conversations are mutable, and what it sends is not to be sent again by anyone.
pub struct Devin {
    endpoint: Arc<Endpoint>,
    organizations: Organizations,
    times: Times,
}

impl Devin {
    /// Makes the driver; opens no connection.
    pub fn new(spec: DevinSpec) -> Result<Devin, EndpointError> {
        let (endpoint, organizations, times) = spec.take_apart()?;
        Ok(Devin { endpoint: Arc::new(Endpoint::new(endpoint)?), organizations, times })
    }

    /// The connections, for what is done with those of every kind: closing idle ones, forgetting accounts, naming the way
    /// out.
    pub fn endpoint(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }

    async fn begin(&self, ask: Ask) -> Result<Box<dyn NativeAnswer>, SendFault> {
        let Some(organization) = self.organizations.get(&ask.account.account) else {
            let text = format!("the account {} has no `organization`; a Devin account needs its own", ask.account);
            return Err(never_left(unsent(FaultKind::NoCredential, text)));
        };
        let api = Api::new(self.endpoint.clone(), organization, &ask, self.times.call);
        match ask.resume {
            None => self.start(api, ask.body).await,
            Some(conversation) => self.resume(api, ask.body, conversation, ask.reread).await,
        }
    }

    /// A new session. A failure of the server may have made one all the same, so only a refusal proves anything.
    async fn start(&self, api: Api, body: bytes::Bytes) -> Result<Box<dyn NativeAnswer>, SendFault> {
        let made = api.create(body).await.map_err(|failed| failed.into_send_fault(false))?;
        let messages = Messages::default();
        Ok(Box::new(DevinAnswer::new(api, made, messages, Before::default(), self.times)))
    }

    /// A message to a session. How it stands is read before: what it has cost and said so far is not this turn's, and what
    /// was said after the last turn is not lost.
    async fn resume(
        &self,
        api: Api,
        body: bytes::Bytes,
        conversation: Conversation,
        reread: bool,
    ) -> Result<Box<dyn NativeAnswer>, SendFault> {
        let handle = Handle::read(&conversation.handle);
        let session = api.session(&handle.id).await.map_err(Failed::into_unsent)?;
        match session.stand() {
            Stand::Exited | Stand::Failed(_) if !session.is_suspended() => {
                let text = format!("the session has ended (status {})", session.status_text());
                return Err(never_left(gone(text)));
            }
            Stand::Working | Stand::Waits | Stand::Exited | Stand::Failed(_) => {}
        }
        let mut messages = Messages::after(handle.cursor, handle.before, handle.last);
        let first = messages.position();
        let mut known = Vec::new();
        match look::messages(&api, &handle.id, &mut messages, &mut known).await.map_err(Failed::into_unsent)? {
            Left::Nothing => {}
            Left::More => {
                let text = "the session has more unread messages than are read before a turn";
                return Err(never_left(gone(text.to_owned())));
            }
        }
        if reread && conversation.position != Some(messages.position()) {
            let text = "the session's messages have moved since a send that failed, which may be that send's doing";
            return Err(never_left(gone(text.to_owned())));
        }
        let left_at = conversation.position.unwrap_or(u64::MAX);
        let late = (first..).zip(known).filter(|(at, message)| *at >= left_at && message.source == Source::Devin);
        let late = late.map(|(_, message)| message.text).collect();
        api.say(&handle.id, body).await.map_err(|failed| failed.into_send_fault(true))?;
        let before = Before { milli_acus: session.milli_acus, stood: Some(session.status_text()), late };
        Ok(Box::new(DevinAnswer::new(api, session, messages, before, self.times)))
    }
}

impl Native for Devin {
    fn write(&self, turn: &Turn<'_>, how: Writing<'_>) -> Result<NativeWritten, Invalid> {
        prompt::write(turn, how.goes_on)
    }

    fn send(&self, ask: Ask) -> BoxFuture<'_, Result<Box<dyn NativeAnswer>, SendFault>> {
        Box::pin(self.begin(ask))
    }

    /// A session lives at the provider; only the provider knows.
    fn stands(&self, _: &Conversation) -> bool {
        true
    }

    /// Nothing is kept here, and no call is documented that ends a session without taking it from its owner's list.
    fn forget(&self, _: &AccountId, _: Conversation) {}
}

impl fmt::Debug for Devin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Devin").field("endpoint", &self.endpoint).field("times", &self.times).finish_non_exhaustive()
    }
}

/// The turn's own message has not been handed to the transport.
fn never_left(fault: Fault) -> SendFault {
    SendFault { fault, refused: Some(RefusalProof::never_left()) }
}

fn gone(text: String) -> Fault {
    Fault::new(FaultKind::ConversationGone, Phase::Answered, Evidence::text(text))
}
