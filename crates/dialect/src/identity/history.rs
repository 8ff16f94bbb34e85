//! A conversation by what was said in it: each run of the assistant's messages gets a fingerprint of all up to and
//! including it, so that a later request shows whose answers it holds.
//!
//! The fingerprints are a chain: each is a hash of the one before and of what follows it, so that one answer can be added
//! to a history of which nothing else was kept.

use super::canonical::{Canonical, put_text};
use super::{HashKey, fingerprint, volatile};
use crate::event::{Block, Delta, Event};
use crate::json::Reader;
use crate::recorded::{self, Recorded};
use crate::turn::{Body, File, FileSource, Image, Message, Part, Role, ToolKind, Turn};
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
/// address, files by their kind and their bytes, address or text, calls by name and arguments, results by content and whether they are errors. Not counted: ids of calls, the
/// spelling of arguments, thinking, cache marks, empty texts, whether a text is a string or a block, how the assistant's
/// text is cut into blocks and where its calls stand between them, white space around it, reminders of the client that
/// are a part of their own, volatile lines of the system prompt. Content that has no canonical form (tools of the
/// provider's own) has no identity: from there on `answers` is empty and no answer can be added.
pub fn history(key: &HashKey, turn: &Turn<'_>) -> History {
    let mut chain = Chain::new(key);
    let leading = turn.messages.iter().take_while(|message| message.role == Role::System).count();
    let (system, messages) = turn.messages.split_at(leading);
    for part in system.iter().flat_map(|message| &message.parts) {
        if let Body::Text(text) = &part.body {
            let text = volatile::system(text);
            if !text.trim().is_empty() {
                chain.text(&text);
            }
        } else {
            chain.part(&part.body);
        }
    }
    let start = chain.link(b'S');
    let prefix = tools(key, &start, turn);
    let (mut answers, mut from, mut opening) = (Vec::new(), 0, start);
    while let Some(first) = messages.get(from) {
        let assistant = first.role == Role::Assistant;
        let length = messages[from..].iter().take_while(|next| (next.role == Role::Assistant) == assistant).count();
        let run = &messages[from..from + length];
        from += length;
        if !assistant {
            let first_run = from == length;
            chain.others(run);
            let at = chain.link(b'U');
            if first_run {
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
    History { prefix, opening, answers, all: chain.at, open }
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
            Block::ToolCall { id: _, name } => said.calls.push((name, text)),
            Block::Thinking | Block::RedactedThinking(_) => {}
        }
    }
    let mut chain = Chain::new(key);
    chain.at = history.all;
    Some(chain.said(&said))
}

/// What the assistant says in one run of messages.
struct Said<'t> {
    text: String,
    /// Names and arguments.
    calls: Vec<(&'t str, &'t str)>,
    known: bool,
}

impl Default for Said<'_> {
    fn default() -> Self {
        Said { text: String::new(), calls: Vec::new(), known: true }
    }
}

impl<'t> Said<'t> {
    fn part(&mut self, body: &'t Body<'_>) {
        match body {
            Body::Text(text) | Body::Refusal(text) => self.text.push_str(text),
            Body::ToolCall { id: _, name, arguments } => self.calls.push((name, arguments)),
            Body::Thinking { .. } | Body::RedactedThinking(_) => {}
            Body::Image(_) | Body::File(_) | Body::ToolResult { .. } | Body::Other(_) => self.known = false,
        }
    }
}

/// The hash so far and the bytes of the next link.
struct Chain<'k> {
    key: &'k HashKey,
    at: Fingerprint,
    bytes: Canonical<'k>,
    /// All so far has an identity.
    known: bool,
}

impl<'k> Chain<'k> {
    fn new(key: &'k HashKey) -> Self {
        Chain { key, at: Fingerprint([0; 16]), bytes: Canonical::new(key), known: true }
    }

    /// Closes the link.
    fn link(&mut self, kind: u8) -> Fingerprint {
        self.bytes.out.extend_from_slice(&self.at.0);
        self.bytes.out.push(kind);
        self.at = fingerprint(&blake3::keyed_hash(self.key, &self.bytes.out));
        self.bytes.out.clear();
        self.at
    }

    fn text(&mut self, text: &str) {
        self.bytes.out.push(b't');
        self.bytes.text(text);
    }

    /// A link of messages that are not the assistant's.
    fn others(&mut self, messages: &[Message<'_>]) {
        let mut speaker = None;
        for message in messages {
            for part in &message.parts {
                if says_nothing(part) {
                    continue;
                }
                if speaker != Some(message.role) {
                    speaker = Some(message.role);
                    self.bytes.out.push(if message.role == Role::System { b'S' } else { b'U' });
                }
                self.part(&part.body);
            }
        }
    }

    fn part(&mut self, body: &Body<'_>) {
        match body {
            Body::Text(text) | Body::Refusal(text) => self.text(text),
            Body::Image(Image::Data { media_type, data }) => {
                self.bytes.out.push(b'i');
                self.bytes.text(media_type);
                self.bytes.text(data);
            }
            Body::Image(Image::Url(url)) => {
                self.bytes.out.push(b'l');
                self.bytes.text(url);
            }
            Body::ToolResult { id: _, content, is_error } => {
                self.bytes.out.push(if *is_error { b'e' } else { b'r' });
                content.iter().filter(|part| !says_nothing(part)).for_each(|part| self.part(&part.body));
                self.bytes.out.push(b'.');
            }
            Body::File(file) => self.file(file),
            Body::ToolCall { .. } | Body::Other(_) => self.known = false,
            Body::Thinking { .. } | Body::RedactedThinking(_) => {}
        }
    }

    /// A document or a sound: its kind and its bytes, address or text. Its name is left out, as some clients make one up.
    fn file(&mut self, file: &File<'_>) {
        let (mark, text) = match &file.source {
            FileSource::Data(data) => (b'd', data),
            FileSource::Url(url) => (b'a', url),
            FileSource::Plain(text) => (b'p', text),
        };
        self.bytes.out.push(mark);
        self.bytes.text(file.media_type.as_deref().unwrap_or_default());
        self.bytes.text(text);
    }

    /// A link of the assistant's.
    fn said(&mut self, said: &Said<'_>) -> Fingerprint {
        self.bytes.text(said.text.trim());
        for (name, arguments) in &said.calls {
            self.bytes.out.push(b'c');
            self.bytes.text(name);
            self.arguments(arguments);
        }
        self.link(b'A')
    }

    /// Arguments by their value; what is no JSON, by its letters.
    fn arguments(&mut self, arguments: &str) {
        let arguments = arguments.trim();
        if arguments.is_empty() || arguments == "null" {
            return self.bytes.out.extend_from_slice(b"{}");
        }
        let before = self.bytes.out.len();
        let mut r = Reader::over(arguments);
        if self.bytes.value(&mut r).and_then(|()| r.end()).is_err() {
            self.bytes.out.truncate(before);
            self.bytes.reset();
            self.bytes.out.push(b'!');
            self.bytes.text(arguments);
        }
    }
}

/// A part that may be there or not.
fn says_nothing(part: &Part<'_>) -> bool {
    match &part.body {
        Body::Text(text) => text.trim().is_empty() || volatile::is_reminder(text),
        Body::Thinking { .. } | Body::RedactedThinking(_) => true,
        Body::Refusal(text) => text.trim().is_empty(),
        Body::Image(_) | Body::File(_) | Body::ToolCall { .. } | Body::ToolResult { .. } | Body::Other(_) => false,
    }
}

/// The prefix: the system prompt's fingerprint and the tools.
fn tools(key: &HashKey, system: &Fingerprint, turn: &Turn<'_>) -> Fingerprint {
    let mut out = Vec::with_capacity(8192);
    out.extend_from_slice(b"prefix");
    out.extend_from_slice(&system.0);
    for tool in &turn.tools {
        match &tool.kind {
            ToolKind::Function { name, description, schema, strict } => {
                out.push(b'f');
                put_text(key, &mut out, name);
                put_text(key, &mut out, description.as_deref().unwrap_or_default());
                put_text(key, &mut out, schema.unwrap_or_default());
                out.push(match strict {
                    None => b'-',
                    Some(true) => b't',
                    Some(false) => b'f',
                });
            }
            ToolKind::Custom { name, description, format } => {
                out.push(b'c');
                put_text(key, &mut out, name);
                put_text(key, &mut out, description.as_deref().unwrap_or_default());
                put_text(key, &mut out, format.as_deref().unwrap_or_default());
            }
            ToolKind::Hosted(kind) => {
                out.push(b'h');
                put_text(key, &mut out, kind);
            }
        }
    }
    fingerprint(&blake3::keyed_hash(key, &out))
}
