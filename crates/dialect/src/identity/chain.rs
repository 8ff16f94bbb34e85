//! The hash of a conversation, link by link: what the assistant said in one run of messages is a link, and what the others
//! said in between. Each is a hash of the one before and of what is new in it, so that everything is hashed once.

use super::canonical::Canonical;
use super::{HashKey, fingerprint, volatile};
use crate::json::Reader;
use crate::turn::{Body, File, FileSource, Image, Message, Part, Role, Text};
use turnkeep_base::Fingerprint;

/// What the assistant says in one run of messages.
pub(super) struct Said<'t> {
    pub(super) text: String,
    pub(super) calls: Vec<Call<'t>>,
    /// All of it has an identity.
    pub(super) known: bool,
}

/// A call of a tool.
pub(super) struct Call<'t> {
    /// As the client knows it.
    pub(super) id: &'t str,
    pub(super) name: &'t str,
    pub(super) arguments: &'t str,
}

impl Default for Said<'_> {
    fn default() -> Self {
        Said { text: String::new(), calls: Vec::new(), known: true }
    }
}

impl<'t> Said<'t> {
    pub(super) fn part(&mut self, body: &'t Body<'_>) {
        match body {
            Body::Text(text) | Body::Refusal(text) => self.text.push_str(text),
            Body::ToolCall { id, name, arguments } => self.calls.push(Call { id, name, arguments }),
            Body::Thinking { .. } | Body::RedactedThinking(_) => {}
            Body::Image(_) | Body::File(_) | Body::ToolResult { .. } | Body::Other(_) => self.known = false,
        }
    }
}

/// A call of the last answer, by which its result is known.
struct Called<'t> {
    id: &'t str,
    /// Its place among the answer's calls in their canonical order; equal calls share one.
    place: u32,
    /// From where to where its result stands in the bytes of the link.
    result: Option<(usize, usize)>,
}

/// The hash so far and the bytes of the next link.
pub(super) struct Chain<'k, 't> {
    key: &'k HashKey,
    pub(super) at: Fingerprint,
    bytes: Canonical<'k>,
    /// All so far has an identity.
    pub(super) known: bool,
    /// Bytes that were hashed.
    pub(super) hashed: usize,
    /// The directory that was named last in what is left out.
    directory: Option<&'t str>,
    /// Who spoke last in this link.
    speaker: Option<Role>,
    /// The calls of the last answer, in the order of their ids.
    called: Vec<Called<'t>>,
}

impl<'k, 't> Chain<'k, 't> {
    pub(super) fn new(key: &'k HashKey, at: Fingerprint) -> Self {
        Chain {
            key,
            at,
            bytes: Canonical::new(key),
            known: true,
            hashed: 0,
            directory: None,
            speaker: None,
            called: Vec::new(),
        }
    }

    /// Closes the link.
    fn link(&mut self, kind: u8) -> Fingerprint {
        self.bytes.out.extend_from_slice(&self.at.0);
        self.bytes.out.push(kind);
        self.hashed += self.bytes.out.len() + std::mem::take(&mut self.bytes.hashed);
        self.at = fingerprint(&blake3::keyed_hash(self.key, &self.bytes.out));
        self.bytes.out.clear();
        self.at
    }

    /// The first link: the system prompt.
    pub(super) fn prompt(&mut self, messages: &'t [Message<'_>]) -> Fingerprint {
        // No role is told: what stands before the others' words is the system's.
        self.speaker = Some(Role::System);
        messages.iter().flat_map(|message| &message.parts).for_each(|part| self.part(Role::System, part));
        self.link(b'S')
    }

    /// A link of messages that are not the assistant's.
    pub(super) fn others(&mut self, messages: &'t [Message<'_>]) -> Fingerprint {
        self.speaker = None;
        for message in messages {
            message.parts.iter().for_each(|part| self.part(message.role, part));
        }
        self.link(b'U')
    }

    /// A link of the assistant's. Its calls are made at once: clients may list them in another order.
    pub(super) fn said(&mut self, said: &Said<'t>) -> Fingerprint {
        self.bytes.text(said.text.trim());
        let mut calls = Vec::with_capacity(said.calls.len());
        for call in &said.calls {
            let from = self.bytes.out.len();
            self.bytes.out.push(b'c');
            self.bytes.text(call.name);
            self.arguments(call.arguments);
            calls.push((call.id, from, self.bytes.out.len()));
        }
        let out = &self.bytes.out;
        // Stable: equal calls stay in their order.
        calls.sort_by(|(_, from, to), (_, other, end)| out[*from..*to].cmp(&out[*other..*end]));
        let mut place = 0;
        let mut before: Option<&[u8]> = None;
        self.called.clear();
        for (id, from, to) in &calls {
            let bytes = &out[*from..*to];
            place += u32::from(before.is_some_and(|before| before != bytes));
            before = Some(bytes);
            self.called.push(Called { id, place, result: None });
        }
        self.called.sort_by_key(|called| called.id);
        self.bytes.arrange(calls.iter().map(|(_, from, to)| (*from, *to)));
        self.link(b'A')
    }

    fn part(&mut self, role: Role, part: &'t Part<'_>) {
        match &part.body {
            Body::Text(text) | Body::Refusal(text) => self.text(role, text),
            Body::Image(Image::Data { media_type, data }) => {
                self.speaks(role, b'i');
                self.bytes.text(media_type);
                self.bytes.text(data);
            }
            Body::Image(Image::Url(url)) => {
                self.speaks(role, b'l');
                self.bytes.text(url);
            }
            Body::ToolResult { id, content, is_error } => self.result(role, id, content, *is_error),
            Body::File(file) => self.file(role, file),
            Body::ToolCall { .. } | Body::Other(_) => self.known = false,
            // It may be there or not.
            Body::Thinking { .. } | Body::RedactedThinking(_) => {}
        }
    }

    /// Tells who speaks, where that is news, and of what kind the next is.
    fn speaks(&mut self, role: Role, kind: u8) {
        if self.speaker != Some(role) {
            self.speaker = Some(role);
            self.bytes.out.push(if role == Role::System { b'S' } else { b'U' });
        }
        self.bytes.out.push(kind);
    }

    /// A text without what is volatile in it; nothing where nothing is left.
    fn text(&mut self, role: Role, text: &'t Text<'_>) {
        let mut named = None;
        let words = match role {
            Role::System => volatile::system(text, &mut named),
            Role::User | Role::Assistant => volatile::said(text, &mut named),
        };
        // The client may name it again or not; only another one is news.
        if let Some(directory) = named.filter(|named| self.directory != Some(named)) {
            self.directory = Some(directory);
            self.bytes.out.push(b'w');
            self.bytes.text(directory);
        }
        if !words.is_empty() {
            self.speaks(role, b't');
            self.bytes.text(&words);
        }
    }

    /// A result, by the call that it answers. The same result of the same call again says nothing: Gemini CLI sends each
    /// one twice after it was started anew.
    fn result(&mut self, role: Role, id: &Text<'_>, content: &'t [Part<'_>], is_error: bool) {
        let found = self.called.binary_search_by(|called| called.id.cmp(id)).ok();
        let place = found.and_then(|found| self.called.get(found)).map_or(u32::MAX, |called| called.place);
        self.speaks(role, if is_error { b'e' } else { b'r' });
        let from = self.bytes.out.len() - 1;
        self.bytes.out.extend_from_slice(&place.to_le_bytes());
        content.iter().for_each(|part| self.part(role, part));
        self.bytes.out.push(b'.');
        let out = &mut self.bytes.out;
        let Some(called) = found.and_then(|found| self.called.get_mut(found)) else { return };
        match called.result {
            Some((earlier, end)) if out.get(earlier..end) == out.get(from..) => out.truncate(from),
            Some(_) | None => called.result = Some((from, out.len())),
        }
    }

    /// A document or a sound: its kind and its bytes, address or text. Its name is left out, as some clients make one up.
    fn file(&mut self, role: Role, file: &File<'_>) {
        let (mark, text) = match &file.source {
            FileSource::Data(data) => (b'd', data),
            FileSource::Url(url) => (b'a', url),
            FileSource::Plain(text) => (b'p', text),
        };
        self.speaks(role, mark);
        self.bytes.text(file.media_type.as_deref().unwrap_or_default());
        self.bytes.text(text);
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
