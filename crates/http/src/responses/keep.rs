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
            tracing::warn!("an answer without an id cannot be stored");
            return Ok(());
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
                Some(response) => self.store(response, true).await,
                None => {
                    tracing::warn!("an answer in which there is no response cannot be stored");
                    let message = "the answer could not be read again to be stored";
                    self.fail(Outcome::Failed { code: "server_error", message: message.into() }).await
                }
            },
            (Closed::Completed { recorded: None, .. } | Closed::Failed(_) | Closed::Interrupted, None) => Ok(()),
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
            tracing::warn!(why = error.message, "an answer was not stored");
        }
        if let Some((running, id, _)) = &self.background {
            self.library.end_running(&self.scope, id);
            match end {
                // The end of its events is still to come, if somebody still takes them: who is told to stop only now finds
                // that nothing runs.
                Closed::Completed { recorded: Some(_), .. } if !running.is_cancelled() => {}
                Closed::Completed { .. } | Closed::Failed(_) | Closed::Interrupted => running.end(),
            }
        }
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
        if matches!(kind.as_deref(), Some("response.completed" | "response.incomplete")) {
            last = raw_field(data, "response").map(str::to_owned);
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
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
    }

    #[test]
    fn the_response_of_a_plain_answer_is_its_body() {
        assert_eq!(response_of(&recorded(false, r#"{"id":"r"}"#)).as_deref(), Some(r#"{"id":"r"}"#));
        assert_eq!(response_of(&recorded(false, "{}")), None);
    }
}
