//! Storing what a turn came to, before its client has the end of it.

use super::background::Background;
use super::items::{outputs, raw_field, string_field, with_id};
use super::library::{Held, Library};
use super::outline::{Outcome, Outline};
use super::record::StoredResponse;
use super::running::Running;
use super::state::State;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use turnkeep_base::ClientError;
use turnkeep_dialect::recorded::Recorded;
use turnkeep_dialect::responses::terminal;
use turnkeep_engine::ports::{Closed, KeepAnswer, StoredKind};
use turnkeep_wire::sse;

/// What the request brought itself.
pub(super) enum Asked {
    /// All of this body's input.
    Body(Bytes),
    /// These items.
    Items(Vec<String>),
}

/// The promise to store one turn's answer.
pub(super) struct Keeping {
    library: Arc<Library>,
    scope: Arc<str>,
    /// The turn's id without its prefix.
    maker: String,
    asked: Asked,
    previous: Option<String>,
    conversation: Option<(String, Held)>,
    background: Option<(Arc<Running>, String, Outline)>,
}

impl Keeping {
    pub(super) fn new(
        library: Arc<Library>,
        scope: Arc<str>,
        maker: String,
        asked: Asked,
        previous: Option<String>,
    ) -> Self {
        Keeping { library, scope, maker, asked, previous, conversation: None, background: None }
    }

    /// The answer becomes a part of this conversation.
    pub(super) fn within(self, conversation: Option<(String, Held)>) -> Self {
        Keeping { conversation, ..self }
    }

    /// It is made in the background.
    pub(super) fn in_background(self, background: &Background) -> Self {
        let Background { running, id, outline, .. } = background;
        Keeping { background: Some((running.clone(), id.clone(), outline.clone())), ..self }
    }

    pub(super) fn maker(&self) -> &str {
        &self.maker
    }

    /// What the request brought, each item with its id.
    pub(super) fn input(&self) -> Vec<String> {
        let named = |items: &mut dyn Iterator<Item = &str>| {
            items.enumerate().map(|(number, item)| with_id(item, &self.maker, number)).collect()
        };
        match &self.asked {
            Asked::Items(items) => named(&mut items.iter().map(String::as_str)),
            // It was read before, so it reads again.
            Asked::Body(body) => {
                State::read(body).map(|state| named(&mut state.input.iter().map(|item| &**item))).unwrap_or_default()
            }
        }
    }

    /// Stores a response that was made for another turn, unless it is there: that turn may not have come to it yet.
    async fn store_again(&self, response: String) -> Result<(), ClientError> {
        if let Some(id) = string_field(&response, "id")
            && self.library.response(&self.scope, &id).await?.is_some()
        {
            return Ok(());
        }
        self.store(response, false).await
    }

    /// Stores a response; `appended`: and makes it a part of its conversation.
    async fn store(&self, response: String, appended: bool) -> Result<(), ClientError> {
        let Some(id) = string_field(&response, "id") else {
            return Err(ClientError::new(502, "server_error", "the upstream's answer has no id to be stored by"));
        };
        let library = &self.library;
        let now = library.now_ms();
        let input = self.input();
        let mut things = Vec::new();
        let made = string_fields(&outputs(&response), "id");
        for item in made.iter().map(String::as_str).chain([self.maker.as_str()]) {
            things.push(library.thing(StoredKind::Item, &self.scope, item, now, Bytes::copy_from_slice(id.as_bytes())));
        }
        if let Some((name, _)) = &self.conversation
            && appended
            && let Some((mut conversation, made_ms)) = library.conversation(&self.scope, name).await?
        {
            let output = outputs(&response).into_iter().map(str::to_owned);
            conversation.items.extend(input.iter().cloned().chain(output));
            let content = conversation.to_bytes();
            things.push(library.thing(StoredKind::Conversation, &self.scope, name, made_ms, content));
        }
        let stored = StoredResponse {
            id: id.clone(),
            previous: self.previous.clone(),
            conversation: self.conversation.as_ref().map(|(name, _)| name.clone()),
            background: self.background.is_some(),
            input,
            response,
        };
        things.push(library.thing(StoredKind::Response, &self.scope, &id, now, stored.to_bytes()));
        library.put(things).await
    }

    async fn close(self: Box<Self>, end: Closed) {
        let result = match (&end, &self.background) {
            (Closed::Completed { recorded: Some(recorded), again }, _) => match response_of(recorded) {
                Some(response) if *again => self.store_again(response).await,
                Some(response) => {
                    let stored = self.store(response, true).await;
                    if stored.is_err() {
                        self.lose_turn().await.unwrap_or_else(|error| not_stored(&error));
                    }
                    stored
                }
                None => {
                    tracing::warn!("an answer in which there is no response cannot be stored");
                    self.lose_turn().await.unwrap_or_else(|error| not_stored(&error));
                    let message = "the answer could not be read again to be stored";
                    self.fail(Outcome::Failed { code: "server_error", message: message.into() }).await
                }
            },
            (Closed::Completed { recorded: None, .. }, None) => self.lose_turn().await,
            (Closed::Failed(_) | Closed::Interrupted, None) => Ok(()),
            (Closed::Completed { recorded: None, .. }, Some(_)) => {
                let words = "the answer is longer than one that can be stored; ask without `background`";
                self.fail(Outcome::Failed { code: "too_long_to_store", message: words.into() }).await
            }
            (Closed::Failed(error), Some(_)) => {
                self.fail(Outcome::Failed { code: error.code, message: error.message.clone() }).await
            }
            (Closed::Interrupted, Some((running, ..))) => {
                let outcome = if running.is_cancelled() {
                    Outcome::Cancelled
                } else {
                    let message = "the gateway was stopped while this response was made";
                    Outcome::Failed { code: "server_error", message: message.into() }
                };
                self.fail(outcome).await
            }
        };
        if let Err(error) = result {
            not_stored(&error);
        }
        if let Some((running, id, _)) = &self.background {
            self.library.end_running(&self.scope, id);
            match end {
                // The end of its events is still to come, if somebody still takes them.
                Closed::Completed { recorded: Some(_), .. } => running.closed(),
                Closed::Completed { recorded: None, .. } | Closed::Failed(_) | Closed::Interrupted => running.end(),
            }
        }
    }

    /// What was answered in a conversation cannot be stored: no later turn may take its history for whole.
    async fn lose_turn(&self) -> Result<(), ClientError> {
        let Some((name, _)) = self.conversation.as_ref().filter(|_| self.background.is_none()) else { return Ok(()) };
        tracing::warn!(conversation = name, "an answer could not be stored: its conversation is no longer whole");
        self.library.lose(&self.scope, name);
        let Some((mut conversation, made_ms)) = self.library.conversation(&self.scope, name).await? else {
            return Ok(());
        };
        conversation.gone = true;
        let content = conversation.to_bytes();
        self.library.put(vec![self.library.thing(StoredKind::Conversation, &self.scope, name, made_ms, content)]).await
    }

    /// What is made in the background and does not come to its end is stored as that.
    async fn fail(&self, outcome: Outcome) -> Result<(), ClientError> {
        let Some((running, _, outline)) = &self.background else { return Ok(()) };
        let response = outline.ended(&outcome);
        running.fail(&response);
        self.store(response, false).await
    }
}

impl KeepAnswer for Keeping {
    fn closed(self: Box<Self>, end: Closed) -> BoxFuture<'static, ()> {
        Box::pin(self.close(end))
    }
}

fn not_stored(error: &ClientError) {
    tracing::warn!(why = error.message, "an answer was not stored");
}

fn string_fields(items: &[&str], name: &str) -> Vec<String> {
    items.iter().filter_map(|item| string_field(item, name)).collect()
}

/// The response object that a client was sent: the whole body, or the one in the last event.
pub(super) fn response_of(recorded: &Recorded) -> Option<String> {
    if !recorded.stream {
        let body = std::str::from_utf8(&recorded.bytes).ok()?;
        return string_field(body, "id").map(|_| body.to_owned());
    }
    let mut reader = sse::Reader::new(recorded.bytes.len().saturating_add(1));
    reader.push(recorded.bytes.clone());
    let mut last = None;
    loop {
        let frame = match reader.next_frame().ok()? {
            Some(frame) => frame,
            None => match reader.finish().ok()? {
                Some(frame) => frame,
                None => break,
            },
        };
        let Some(data) = frame.data else { continue };
        let Ok(data) = std::str::from_utf8(&data) else { continue };
        let kind = string_field(data, "type");
        if kind.as_deref().and_then(terminal).is_some() {
            last = raw_field(data, "response").map(str::to_owned);
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::super::record::StoredConversation;
    use super::super::test_library::library;
    use super::*;
    use std::sync::atomic::Ordering;
    use turnkeep_base::Dialect;
    use turnkeep_dialect::reply::Facts;

    fn recorded(stream: bool, bytes: &'static str) -> Recorded {
        let bytes = Bytes::from_static(bytes.as_bytes());
        Recorded { dialect: Dialect::Responses, stream, bytes, facts: Facts::default() }
    }

    #[test]
    fn the_response_of_a_stream_is_the_one_of_its_last_event() {
        let stream = "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"r\"}}\n\n\
                      event: response.incomplete\ndata: {\"type\":\"response.incomplete\",\"sequence_number\":4,\
                      \"response\":{\"id\":\"r\",\"status\":\"incomplete\"}}\n\n";
        let response = response_of(&recorded(true, stream));
        assert_eq!(response.as_deref(), Some(r#"{"id":"r","status":"incomplete"}"#));
        let begun = "data: {\"type\":\"response.created\",\"response\":{\"id\":\"r\"}}\n\n";
        assert_eq!(response_of(&recorded(true, begun)), None, "it has not ended");
        let done = "data: {\"type\":\"response.done\",\"response\":{\"id\":\"r\"}}\n\n";
        assert_eq!(response_of(&recorded(true, done)).as_deref(), Some(r#"{"id":"r"}"#), "every end is one");
    }

    /// Whether the conversation is known to be no longer whole, after this end in a store that takes no more, or does.
    async fn gone_after(end: Closed, full: bool) -> bool {
        let (library, things) = library();
        let scope: Arc<str> = "ann".into();
        let conversation = StoredConversation {
            id: "conv_1".into(),
            created: 0,
            metadata: "{}".into(),
            gone: false,
            items: Vec::new(),
        };
        let content = conversation.to_bytes();
        library.put(vec![library.thing(StoredKind::Conversation, &scope, "conv_1", 0, content)]).await.unwrap();
        things.full.store(full, Ordering::Relaxed);
        let held = library.hold(&scope, "conv_1").unwrap();
        let asked = Asked::Items(Vec::new());
        let keeping = Keeping::new(library.clone(), scope.clone(), "t".into(), asked, None);
        Box::new(keeping.within(Some(("conv_1".into(), held)))).closed(end).await;
        assert!(library.hold(&scope, "conv_1").is_some(), "it is free again");
        library.conversation(&scope, "conv_1").await.unwrap().unwrap().0.gone
    }

    fn completed(recorded: Option<Recorded>) -> Closed {
        Closed::Completed { recorded: recorded.map(Arc::new), again: false }
    }

    #[tokio::test]
    async fn a_conversation_whose_answer_could_not_be_recorded_is_no_longer_whole() {
        for (end, gone) in [
            (completed(None), true),
            (completed(Some(recorded(false, "{}"))), true),
            (completed(Some(recorded(false, r#"{"id":"r"}"#))), false),
            (Closed::Interrupted, false),
        ] {
            assert_eq!(gone_after(end, false).await, gone);
        }
    }

    #[tokio::test]
    async fn a_conversation_whose_answer_the_store_did_not_take_is_no_longer_whole() {
        assert!(gone_after(completed(Some(recorded(false, r#"{"id":"r"}"#))), true).await);
        assert!(!gone_after(Closed::Interrupted, true).await);
    }

    #[test]
    fn the_response_of_a_plain_answer_is_its_body() {
        assert_eq!(response_of(&recorded(false, r#"{"id":"r"}"#)).as_deref(), Some(r#"{"id":"r"}"#));
        assert_eq!(response_of(&recorded(false, "{}")), None);
    }
}
