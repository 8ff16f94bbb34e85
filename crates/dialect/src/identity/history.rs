//! A conversation by what was said in it: each run of the assistant's messages gets a fingerprint of all up to and
//! including it, so that a later request shows whose answers it holds.
//!
//! The fingerprints are a chain: each is a hash of the one before and of what follows it, so that one answer can be added
//! to a history of which nothing else was kept.

use super::canonical::Canonical;
use super::chain::{Call, Chain, Said};
use super::{HashKey, fingerprint, volatile};
use crate::event::{Block, Delta, Event};
use crate::recorded::{self, Recorded};
use crate::turn::{Role, ToolKind, Turn};
use turnkeep_base::Fingerprint;

/// Fingerprints of answers that are kept.
const ANSWERS: usize = 8;

/// What a conversation is known by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// Of the system prompt before the messages and the tools: what a provider's prompt cache holds of every conversation
    /// of this kind. Without volatile lines and cache marks; the tools' schemas count as they are written.
    pub prefix: Fingerprint,
    /// Of the system prompt and what was said before the first answer: the same in every turn of a conversation.
    pub opening: Fingerprint,
    /// Of the conversation up to and including each run of the assistant's messages, oldest first; at most the last 8.
    pub answers: Vec<Fingerprint>,
    /// Of the conversation up to its last message.
    pub all: Fingerprint,
    /// An answer can be added: the last message is not the assistant's own, and all of it has an identity.
    open: bool,
}

impl History {
    /// A turn can go on from the last of `answers`: it brings something new, and all of it has an identity.
    pub fn can_go_on(&self) -> bool {
        self.open && !self.answers.is_empty()
    }
}

/// What a conversation is known by.
///
/// Counted: who speaks and what is said; the system prompt but not the tools; texts, refusals, images by their bytes or
/// address, files by their kind and their bytes, address or text, calls by name and arguments, results by their call, their
/// content and whether they are errors; the directory that the client names, where it first does and wherever that changes.
///
/// Not counted: ids of calls, the spelling of arguments and the order of calls made at once, thinking, cache marks, empty
/// texts, whether a text is a string or a block, how the assistant's text is cut into blocks and where its calls stand
/// between them, white space around a text, a result that is given again, reminders of the client, what it tells of its
/// surroundings but the directory, and in system texts the date and the state of the repository (`volatile.rs` says of
/// each what it is). Content that has no canonical form (tools of the provider's own) has no identity: from there on
/// `answers` is empty and no answer can be added.
///
/// One pass, in which each message is hashed once.
pub fn history(key: &HashKey, turn: &Turn<'_>) -> History {
    walk(key, turn).0
}

/// The history, and how many bytes were hashed for it.
fn walk(key: &HashKey, turn: &Turn<'_>) -> (History, usize) {
    let mut chain = Chain::new(key, Fingerprint([0; 16]));
    let leading = turn.messages.iter().take_while(|message| message.role == Role::System).count();
    let (system, messages) = turn.messages.split_at(leading);
    let start = chain.prompt(system);
    let (prefix, tools) = tools(key, &start, turn);
    let (mut answers, mut from, mut opening) = (Vec::new(), 0, start);
    while let Some(first) = messages.get(from) {
        let assistant = first.role == Role::Assistant;
        let length = messages[from..].iter().take_while(|next| (next.role == Role::Assistant) == assistant).count();
        let run = &messages[from..from + length];
        from += length;
        if !assistant {
            let at = chain.others(run);
            if from == length {
                opening = at;
            }
            continue;
        }
        let mut said = Said::default();
        for part in run.iter().flat_map(|message| &message.parts) {
            said.part(&part.body);
        }
        chain.known &= said.known;
        let at = chain.said(&said);
        if chain.known {
            answers.push(at);
        }
    }
    answers.drain(..answers.len().saturating_sub(ANSWERS));
    let open = chain.known && messages.last().is_some_and(|last| last.role != Role::Assistant);
    (History { prefix, opening, answers, all: chain.at, open }, chain.hashed + tools)
}

/// The history with this answer at its end: what [`history`] gives as the last of `answers` for the request in which the
/// client sends our answer back. `None` for an answer that cannot be read, has several choices, or holds what has no
/// identity, and for a history that nothing can be added to (it ends with the assistant's own words).
pub fn answered(key: &HashKey, history: &History, answer: &Recorded) -> Option<Fingerprint> {
    if !history.open {
        return None;
    }
    let events = recorded::whole_events(answer).ok()?;
    let mut blocks: Vec<(&Block, String)> = Vec::new();
    for event in &events {
        match event {
            Event::BlockStart { block: _, kind } => blocks.push((kind, String::new())),
            Event::Delta { block, delta: Delta::Text(text) | Delta::Arguments(text) } => {
                blocks.get_mut(*block as usize)?.1.push_str(text);
            }
            Event::Delta { block: _, delta: Delta::Thinking(_) | Delta::Signature(_) }
            | Event::Start { .. }
            | Event::BlockStop { .. }
            | Event::Finish { .. }
            | Event::Usage(_)
            | Event::End => {}
        }
    }
    let mut said = Said::default();
    for (kind, text) in &blocks {
        match kind {
            Block::Text | Block::Refusal => said.text.push_str(text),
            Block::ToolCall { id: _, name } => said.calls.push(Call { id: "", name, arguments: text }),
            Block::Thinking | Block::RedactedThinking(_) => {}
        }
    }
    Some(Chain::new(key, history.all).said(&said))
}

/// The prefix: the system prompt's fingerprint and the tools; and how many bytes were hashed for it.
fn tools(key: &HashKey, system: &Fingerprint, turn: &Turn<'_>) -> (Fingerprint, usize) {
    let mut bytes = Canonical::new(key);
    bytes.out.extend_from_slice(b"prefix");
    bytes.out.extend_from_slice(&system.0);
    for tool in &turn.tools {
        match &tool.kind {
            ToolKind::Function { name, description, schema, strict } => {
                bytes.out.push(b'f');
                bytes.text(name);
                bytes.text(&volatile::system(description.as_deref().unwrap_or_default(), &mut None));
                bytes.text(schema.unwrap_or_default());
                bytes.out.push(match strict {
                    None => b'-',
                    Some(true) => b't',
                    Some(false) => b'f',
                });
            }
            ToolKind::Custom { name, description, format } => {
                bytes.out.push(b'c');
                bytes.text(name);
                bytes.text(&volatile::system(description.as_deref().unwrap_or_default(), &mut None));
                bytes.text(format.as_deref().unwrap_or_default());
            }
            ToolKind::Hosted(kind) => {
                bytes.out.push(b'h');
                bytes.text(kind);
            }
        }
    }
    (fingerprint(&blake3::keyed_hash(key, &bytes.out)), bytes.out.len() + bytes.hashed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Operation, read};
    use serde_json::{Value, json};
    use turnkeep_base::Dialect;

    /// The bytes of a conversation's texts, and how many were hashed for all its keys.
    fn of(messages: usize, words: &str) -> (usize, usize) {
        let speaker = |number: usize| if number.is_multiple_of(2) { "user" } else { "assistant" };
        let message = |number: usize| json!({"role":speaker(number),"content":format!("{number}{words}")});
        let mut list: Vec<Value> = (0..messages).map(message).collect();
        list.push(json!({"role":"user","content":"last"}));
        let texts = list.iter().map(|message| message["content"].as_str().map_or(0, str::len)).sum();
        let body = json!({"model":"m","messages":list}).to_string();
        let request = read(Dialect::Chat, Operation::Generate, body.into()).unwrap();
        (texts, walk(&[7; 32], &request.turn().unwrap()).1)
    }

    #[test]
    fn every_message_is_hashed_once_however_long_the_conversation_is() {
        for (messages, words) in [(120, "a word ".repeat(390)), (120, "short".to_owned()), (1200, "a word ".repeat(20))]
        {
            let (texts, hashed) = of(messages, &words);
            assert!(hashed >= texts, "{hashed} of {texts}");
            // Beside each text its kind and its length, the hash of a long one, and the link before.
            assert!(hashed <= texts + 128 * (messages + 2), "{hashed} of {texts}");
        }
    }
}
