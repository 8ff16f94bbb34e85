//! The order that Messages asks of a conversation: roles that alternate, and the results of a turn's tool calls first in
//! the user message that follows it, all of them and in the calls' order. Nothing else is moved.

use crate::turn::{Body, Message, Part, Role};
use std::collections::{BTreeMap, BTreeSet};

/// A message as it will be written.
#[derive(Debug)]
pub(crate) struct Group<'t, 'a> {
    /// User or assistant.
    pub(crate) assistant: bool,
    /// The results of the calls of the assistant's message before, in the calls' order.
    pub(crate) answers: Vec<Answer<'t, 'a>>,
    /// Where a call's answer stands among them.
    places: BTreeMap<&'t str, usize>,
    /// Everything else, in the client's order.
    pub(crate) pieces: Vec<Piece<'t, 'a>>,
    /// It calls tools, so that the next group answers them.
    calls: bool,
}

/// The result of one call.
#[derive(Debug)]
pub(crate) struct Answer<'t, 'a> {
    /// The call's id as the client knows it.
    pub(crate) id: &'t str,
    /// The result; `None` when the client gave none.
    pub(crate) part: Option<&'t Part<'a>>,
}

/// A part to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Piece<'t, 'a> {
    /// As the user's or the assistant's own.
    Own(&'t Part<'a>),
    /// Of a system message in the middle of the conversation.
    System(&'t Part<'a>),
}

/// Splits the messages into the leading system prompt and the rest. When there is nothing but system messages, the last
/// one is the conversation, because Messages needs one.
pub(crate) fn split<'t, 'a>(messages: &'t [Message<'a>]) -> (&'t [Message<'a>], &'t [Message<'a>]) {
    let leading = messages.iter().take_while(|message| message.role == Role::System).count();
    let leading = if leading == messages.len() { leading.saturating_sub(1) } else { leading };
    messages.split_at(leading)
}

/// Merges messages of one role and sorts tool results to their place. `written` tells whether a part leaves anything to
/// send. A result without a call in the assistant's message before it is left out, and named `tool_result` in `dropped`.
pub(crate) fn groups<'t, 'a>(
    messages: &'t [Message<'a>],
    written: impl Fn(&Piece<'t, 'a>) -> bool,
    dropped: &mut BTreeSet<String>,
) -> Vec<Group<'t, 'a>> {
    let mut groups: Vec<Group<'t, 'a>> = Vec::new();
    for message in messages {
        let assistant = message.role == Role::Assistant;
        for part in &message.parts {
            let result = match &part.body {
                Body::ToolResult { id, .. } => Some(&**id),
                Body::Text(_)
                | Body::Image(_)
                | Body::File(_)
                | Body::ToolCall { .. }
                | Body::Thinking { .. }
                | Body::RedactedThinking(_)
                | Body::Refusal(_)
                | Body::Other(_) => None,
            };
            let piece = if message.role == Role::System { Piece::System(part) } else { Piece::Own(part) };
            if result.is_none() && !written(&piece) {
                continue;
            }
            match result {
                Some(id) if !answer(&mut groups, assistant, id, part) => {
                    dropped.insert("tool_result".to_owned());
                }
                Some(_) => {}
                None => {
                    let group = current(&mut groups, assistant);
                    group.calls |= matches!(part.body, Body::ToolCall { .. });
                    group.pieces.push(piece);
                }
            }
        }
    }
    // Calls at the very end were never answered either.
    if groups.last().is_some_and(|last| last.calls) {
        current(&mut groups, false);
    }
    groups
}

/// The group that takes parts of this role, with the answers that are due in it.
fn current<'g, 't, 'a>(groups: &'g mut Vec<Group<'t, 'a>>, assistant: bool) -> &'g mut Group<'t, 'a> {
    let fresh = groups.last().is_none_or(|last| last.assistant != assistant);
    if fresh {
        let due = groups.last().map(calls).unwrap_or_default();
        let places = due.iter().enumerate().map(|(at, id)| (*id, at)).collect();
        let answers = due.into_iter().map(|id| Answer { id, part: None }).collect();
        groups.push(Group { assistant, answers, places, pieces: Vec::new(), calls: false });
    }
    let last = groups.len() - 1;
    &mut groups[last]
}

/// The ids of a group's calls.
fn calls<'t>(group: &Group<'t, '_>) -> Vec<&'t str> {
    let (mut ids, mut seen) = (Vec::new(), BTreeSet::new());
    for piece in &group.pieces {
        if let Piece::Own(Part { body: Body::ToolCall { id, .. }, .. }) = piece
            && seen.insert(&**id)
        {
            ids.push(&**id);
        }
    }
    ids
}

/// Puts a result at its call; the last result of a call wins. False where no such call is due.
fn answer<'t, 'a>(groups: &mut Vec<Group<'t, 'a>>, assistant: bool, id: &str, part: &'t Part<'a>) -> bool {
    // No group is begun for the sake of a result that nothing asks for.
    if !groups.last().is_some_and(|last| last.calls || last.assistant == assistant) {
        return false;
    }
    let group = current(groups, assistant);
    let place = group.places.get(id).copied();
    match place.and_then(|place| group.answers.get_mut(place)) {
        Some(answer) => {
            answer.part = Some(part);
            true
        }
        None => false,
    }
}
