//! A turn's request before its dialect reads it: filled up from what is stored, with the promise to store what comes.

use super::background::Background;
use super::history::{self, Room, conversation_gone, conversation_locked, no_conversation, too_long};
use super::items::for_history;
use super::keep::{Asked, Keeping};
use super::outline::Outline;
use super::record::StoredConversation;
use super::retry::{self, Claim};
use super::state::State;
use super::{keeps_nothing, scope_name};
use crate::read_body::Share;
use crate::service::Gateway;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::OwnedSemaphorePermit;
use turnkeep_base::{CallerScope, ClientError, TurnId};
use turnkeep_engine::ports::{KeepAnswer, StoredKind};

/// What a turn begins with.
pub(crate) struct Begun {
    /// What the upstream is to answer.
    pub(crate) body: Bytes,
    /// What the client sent, if that is something else.
    pub(crate) shown: Option<Bytes>,
    /// Stores the answer.
    pub(crate) keep: Option<Box<dyn KeepAnswer>>,
    /// It is made in the background.
    pub(crate) background: Option<Background>,
    /// The item that only a Responses upstream can answer.
    pub(crate) trigger: Option<usize>,
    /// The history's share of the memory that bodies may take.
    pub(crate) share: Option<OwnedSemaphorePermit>,
}

/// How a request begins.
pub(crate) enum Begin {
    /// As a turn.
    Turn(Box<Begun>),
    /// As the repetition of one that has begun this background response.
    Again {
        /// Whose it is.
        scope: Arc<str>,
        /// The response's id.
        id: String,
        /// Its client wants to follow it.
        stream: bool,
    },
}

/// A turn without any state.
pub(crate) fn plain(body: Bytes) -> Begun {
    Begun { body, shown: None, keep: None, background: None, trigger: None, share: None }
}

/// Begins a turn of the Responses API.
pub(crate) async fn begin(
    gateway: &Arc<Gateway>,
    caller: &CallerScope,
    id: TurnId,
    body: Bytes,
    idempotency: Option<&str>,
) -> Result<Begin, ClientError> {
    let turn = |begun: Begun| Ok(Begin::Turn(Box::new(begun)));
    let state = State::read(&body)?;
    let library = &gateway.library;
    let trigger = state.trigger;
    if !state.store && state.background {
        let message = "background: a response that is made in the background must be stored; leave `store` out, or send \
                       true";
        return Err(ClientError::invalid("background", message));
    }
    if !state.store && state.conversation.is_some() {
        let message = "store: an answer in a conversation becomes a part of it and so is stored; leave `store` out, or \
                       leave `conversation` out";
        return Err(ClientError::invalid("store", message));
    }
    let Some(scope) = scope_name(caller) else {
        if let Some(param) = named(&state) {
            return Err(keeps_nothing(Some(&param)));
        }
        if state.background {
            return Err(ClientError { status: 400, ..keeps_nothing(Some("background")) });
        }
        return turn(Begun { trigger, ..plain(body) });
    };
    let keeping = |asked: Asked, previous: Option<String>| {
        let maker = id.to_string().trim_start_matches("turn_").to_owned();
        Keeping::new(library.clone(), scope.clone(), maker, asked, previous)
    };
    if state.is_plain() {
        let keep = state.store.then(|| Box::new(keeping(Asked::Body(body.clone()), None)) as Box<dyn KeepAnswer>);
        return turn(Begun { keep, trigger, ..plain(body.clone()) });
    }
    let mut claimed = None;
    if let Some(key) = idempotency.filter(|_| state.background) {
        match retry::claim(library, &scope, key, &body).await? {
            Claim::New(retry) => claimed = Some(retry),
            Claim::Again(id) => return Ok(Begin::Again { scope, id, stream: state.stream }),
        }
    }
    let (mut held, mut stored) = (None, None);
    if let Some(name) = &state.conversation {
        // A repeated request waits for the one before it, whose answer its key then stands for.
        let same = idempotency.map(|key| library.print("turn", &[key.as_bytes(), &body]));
        let hold = library.hold_after_same(StoredKind::Conversation, &scope, name, same).await;
        let found = library.conversation(&scope, name).await?;
        let Some((conversation, _)) = found else { return Err(no_conversation(name)) };
        held = Some(hold.ok_or_else(|| conversation_locked(name))?);
        stored = Some(conversation);
    }
    let Filled { body: filled, input, share } = fill(gateway, &scope, &state, stored).await?;
    let mut keep = keeping(Asked::Items(input), state.previous.clone()).within(state.conversation.clone().zip(held));
    let mut background = None;
    if state.background {
        let response = format!("resp_{}", keep.maker());
        let outline = Outline::of(&body, &response, library.now_ms() / 1000);
        let begun = Background::new(scope.clone(), response, outline, state.stream);
        let begun = Background { input: keep.input(), retry: claimed, ..begun };
        keep = keep.in_background(&begun);
        background = Some(begun);
    }
    let keep = state.store.then(|| Box::new(keep) as Box<dyn KeepAnswer>);
    turn(Begun { body: filled, shown: Some(body.clone()), keep, background, trigger, share })
}

/// Begins a request to count tokens: filled up as a turn is, and nothing of it is stored.
pub(crate) async fn counted(gateway: &Arc<Gateway>, caller: &CallerScope, body: Bytes) -> Result<Begun, ClientError> {
    let mut state = State::read(&body)?;
    state.background = false;
    if state.is_plain() {
        return Ok(plain(body));
    }
    let Some(scope) = scope_name(caller) else { return Err(keeps_nothing(named(&state).as_deref())) };
    let mut stored = None;
    if let Some(name) = &state.conversation {
        let found = gateway.library.conversation(&scope, name).await?;
        stored = Some(found.ok_or_else(|| no_conversation(name))?.0);
    }
    let Filled { body, input: _, share } = fill(gateway, &scope, &state, stored).await?;
    Ok(Begun { share, ..plain(body) })
}

/// The first field that names something stored.
fn named(state: &State<'_>) -> Option<String> {
    let reference = || state.references.first().map(|reference| format!("input[{}]", reference.index));
    let previous = state.previous.as_ref().map(|_| "previous_response_id".to_owned());
    previous.or_else(|| state.conversation.as_ref().map(|_| "conversation".to_owned())).or_else(reference)
}

/// A request with all that it names.
struct Filled {
    body: Bytes,
    /// What the request brought itself, with what its references stand for.
    input: Vec<String>,
    /// The memory of both.
    share: Option<OwnedSemaphorePermit>,
}

async fn fill(
    gateway: &Gateway,
    scope: &Arc<str>,
    state: &State<'_>,
    conversation: Option<StoredConversation>,
) -> Result<Filled, ClientError> {
    let (library, limit) = (&gateway.library, gateway.max_body.load(Ordering::Relaxed));
    let mut share = Share::of(&gateway.memory);
    let mut room = Room { limit, share: &mut share };
    let mut before = Vec::new();
    if let Some(previous) = &state.previous {
        let chain = history::chain(library, scope, previous, &mut room).await?;
        before = history::said(&chain);
    }
    if let Some(conversation) = &conversation {
        if conversation.gone {
            return Err(conversation_gone(&conversation.id));
        }
        room.share.add(conversation.items.iter().map(String::len).sum())?;
        before = conversation.items.iter().filter_map(|item| for_history(item)).collect();
    }
    let input = history::resolved(library, scope, state, conversation.as_ref(), &mut room).await?;
    let changed = (!state.references.is_empty()).then(|| history::sent(state, &input));
    let sent = changed.as_ref().unwrap_or(&input);
    let own: usize = input.iter().map(String::len).sum();
    let longer = |filled: usize| {
        let named = if state.conversation.is_some() { "conversation" } else { "previous_response_id" };
        (filled > limit).then(|| too_long(if before.is_empty() { "input" } else { named }, limit))
    };
    let items: usize = before.iter().chain(sent).map(String::len).sum();
    longer(items).map_or(Ok(()), Err)?;
    room.share.add(items)?;
    let body: Bytes = state.filled(&before, sent).into();
    longer(body.len()).map_or(Ok(()), Err)?;
    share.add(body.len().saturating_sub(items))?;
    let share = share.shrunk(body.len().saturating_add(own));
    Ok(Filled { body, input, share })
}
