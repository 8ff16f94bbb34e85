//! The messages of a Chat request.
//!
//! Chat wants every tool result in a message of its own directly behind the calls, in text. So of what stands between two
//! turns of the model the results come first, also before a system message, and the images in them follow in a user
//! message, with a word about whose they are. A call without a result gets one that says so; a result without a call is
//! dropped and named. A failed tool's text begins with `Error: `, as Chat has no field for it. Assistant messages in a row
//! become one.

use super::request_encode::{Dropped, refuse};
use super::request_encode_media::{media_part, text_part};
use crate::document::plain;
use crate::envelope::{open, origin};
use crate::json::{Array, Invalid, Object};
use crate::tool_id::from_messages_safe;
use crate::tool_names::sent;
use crate::turn::{Body, Message, Part, Role, Turn};
use std::borrow::Cow;
use std::collections::BTreeMap;
use turnkeep_base::Dialect;

/// The longest id of a call that OpenAI takes.
const MAX_ID: usize = 40;

/// What a call is told that the client never answered.
const NO_RESULT: &str = "Error: no result was given";

/// Writes the messages. `google`: the upstream knows Gemini's proofs.
pub(super) fn messages(
    object: &mut Object<'_>,
    turn: &Turn<'_>,
    google: bool,
    dropped: &mut Dropped,
) -> Result<(), Invalid> {
    let (ids, due) = (BTreeMap::new(), BTreeMap::new());
    let mut out = Writer { list: object.array("messages"), ids, due, google, dropped };
    for run in turn.messages.chunk_by(|a, b| (a.role == Role::Assistant) == (b.role == Role::Assistant)) {
        if run.first().is_some_and(|message| message.role == Role::Assistant) {
            out.assistant(run)?;
        } else {
            out.others(run)?;
        }
    }
    out.unanswered();
    if out.list.is_empty() {
        let message = "no message with content is left to send".to_owned();
        return Err(Invalid { path: "messages".into(), message, at: 0 });
    }
    Ok(())
}

struct Writer<'w> {
    list: Array<'w>,
    /// Ids that are too long, by what stands for them.
    ids: BTreeMap<String, String>,
    /// The upstream's ids of the last assistant message's calls that have no result yet, with the calls' order.
    due: BTreeMap<String, usize>,
    google: bool,
    dropped: &'w mut Dropped,
}

/// What of a tool's results follows them in a user message.
enum Follows<'m, 'a> {
    /// Whose it is.
    Of(String),
    /// An image or a document.
    Part(&'m Part<'a>),
}

/// A call to be written.
struct Call<'m> {
    id: String,
    name: &'m str,
    arguments: &'m str,
    /// Gemini's proof of it, bare.
    proof: Option<&'m str>,
}

fn all_parts<'m, 'a>(run: &'m [Message<'a>]) -> impl Iterator<Item = &'m Part<'a>> {
    run.iter().flat_map(|message| &message.parts)
}

impl Writer<'_> {
    fn system(&mut self, message: &Message<'_>) -> Result<(), Invalid> {
        let mut texts = Vec::new();
        for part in &message.parts {
            match &part.body {
                Body::Text(text) => texts.push(text.as_ref()),
                Body::Image(_)
                | Body::File(_)
                | Body::ToolCall { .. }
                | Body::ToolResult { .. }
                | Body::Thinking { .. }
                | Body::RedactedThinking(_)
                | Body::Refusal(_)
                | Body::Other(_) => return Err(unfit(part)),
            }
            self.mark(part);
        }
        let mut out = self.list.object();
        out.string("role", "system");
        write_texts(&mut out, &texts);
        Ok(())
    }

    /// What stands between two turns of the model: results first, then the rest in order.
    fn others(&mut self, run: &[Message<'_>]) -> Result<(), Invalid> {
        let mut images = Vec::new();
        let mut last: BTreeMap<&str, usize> = BTreeMap::new();
        for (at, part) in all_parts(run).enumerate() {
            if let Body::ToolResult { id, .. } = &part.body {
                last.insert(id, at);
            }
        }
        for (at, part) in all_parts(run).enumerate() {
            // The last result of a call wins.
            if let Body::ToolResult { id, content, is_error } = &part.body
                && last.get(id.as_ref()) == Some(&at)
            {
                self.mark(part);
                self.result(id, content, *is_error, &mut images)?;
            }
        }
        self.unanswered();
        if !images.is_empty() {
            let mut out = self.list.object();
            out.string("role", "user");
            let mut parts = out.array("content");
            let mut images = images.iter().peekable();
            while let Some(next) = images.next() {
                match (next, images.peek()) {
                    (Follows::Of(id), Some(Follows::Part(Part { body: Body::File(_), .. }))) => {
                        text_part(&mut parts, &format!("[Files in the result of the tool call {id}:]"));
                    }
                    (Follows::Of(id), _) => {
                        text_part(&mut parts, &format!("[Images in the result of the tool call {id}:]"));
                    }
                    (Follows::Part(part), _) => media_part(&mut parts, part)?,
                }
            }
        }
        for message in run {
            match message.role {
                Role::System => self.system(message)?,
                Role::User | Role::Assistant => self.user(message)?,
            }
        }
        Ok(())
    }

    /// Writes a tool message; leaves its images, behind a mark with the call's id, to a later one.
    fn result<'m, 'a>(
        &mut self,
        id: &str,
        content: &'m [Part<'a>],
        is_error: bool,
        images: &mut Vec<Follows<'m, 'a>>,
    ) -> Result<(), Invalid> {
        let id = self.id(id);
        if self.due.remove(&id).is_none() {
            self.dropped.add("tool_result");
            return Ok(());
        }
        let mut texts: Vec<Cow<'_, str>> = Vec::new();
        let before = images.len();
        let mut files = false;
        for part in content {
            self.mark(part);
            match &part.body {
                Body::Text(text) => texts.push(Cow::Borrowed(text)),
                Body::File(file) if let Some(text) = plain(file) => texts.push(text),
                Body::Image(_) | Body::File(_) => {
                    if images.len() == before {
                        images.push(Follows::Of(id.clone()));
                    }
                    files |= matches!(part.body, Body::File(_));
                    images.push(Follows::Part(part));
                }
                Body::ToolCall { .. }
                | Body::ToolResult { .. }
                | Body::Thinking { .. }
                | Body::RedactedThinking(_)
                | Body::Refusal(_)
                | Body::Other(_) => return Err(unfit(part)),
            }
        }
        if texts.is_empty() && images.len() > before {
            let what = if files { "files" } else { "images" };
            texts.push(format!("[The result is {what}; they follow in the next user message.]").into());
        }
        if is_error {
            match texts.first_mut() {
                Some(first) if first.get(..5).is_some_and(|word| word.eq_ignore_ascii_case("error")) => {}
                Some(first) => first.to_mut().insert_str(0, "Error: "),
                None => texts.push("Error: the tool failed without a message".into()),
            }
        }
        let mut out = self.list.object();
        out.string("role", "tool");
        out.string("tool_call_id", &id);
        write_texts(&mut out, &texts);
        Ok(())
    }

    fn user(&mut self, message: &Message<'_>) -> Result<(), Invalid> {
        let rest: Vec<_> = message.parts.iter().filter(|part| !matches!(part.body, Body::ToolResult { .. })).collect();
        if rest.is_empty() {
            return Ok(());
        }
        for part in &rest {
            self.mark(part);
        }
        let mut out = self.list.object();
        out.string("role", "user");
        if let [Part { body: Body::Text(text), .. }] = rest.as_slice() {
            out.string("content", text);
            return Ok(());
        }
        let mut parts = out.array("content");
        for part in rest {
            match &part.body {
                Body::Text(text) => text_part(&mut parts, text),
                Body::Image(_) | Body::File(_) => media_part(&mut parts, part)?,
                Body::ToolCall { .. }
                | Body::ToolResult { .. }
                | Body::Thinking { .. }
                | Body::RedactedThinking(_)
                | Body::Refusal(_)
                | Body::Other(_) => return Err(unfit(part)),
            }
        }
        Ok(())
    }

    /// Calls that the client never answered get a result that says so: servers refuse a call without one.
    fn unanswered(&mut self) {
        let mut due: Vec<_> = std::mem::take(&mut self.due).into_iter().collect();
        due.sort_by_key(|(_, order)| *order);
        for (id, _) in due {
            let mut out = self.list.object();
            out.string("role", "tool");
            out.string("tool_call_id", &id);
            out.string("content", NO_RESULT);
        }
    }

    fn assistant(&mut self, run: &[Message<'_>]) -> Result<(), Invalid> {
        self.unanswered();
        let (mut texts, mut refusal, mut reasoning, mut calls) = (Vec::new(), String::new(), String::new(), Vec::new());
        let mut proof = None;
        for part in all_parts(run) {
            self.mark(part);
            match &part.body {
                Body::Text(text) => texts.push(text.as_ref()),
                Body::Refusal(text) => refusal.push_str(text),
                Body::ToolCall { id, name, arguments } => {
                    calls.push(Call { id: self.id(id), name, arguments, proof: proof.take() });
                }
                // Another provider's thinking means nothing here, and its signature is that provider's business.
                Body::Thinking { text, signature } => match signature.as_deref().map(|sealed| (sealed, origin(sealed)))
                {
                    Some((_, Some(Dialect::Chat))) => reasoning.push_str(text),
                    Some((sealed, Some(Dialect::Gemini))) if self.google => {
                        if proof.is_some() || !text.is_empty() {
                            self.dropped.add("thinking");
                        }
                        proof = open(sealed, Dialect::Gemini);
                    }
                    Some(_) | None => self.dropped.add("thinking"),
                },
                Body::RedactedThinking(_) => self.dropped.add("redacted_thinking"),
                Body::Image(_) | Body::File(_) | Body::ToolResult { .. } | Body::Other(_) => return Err(unfit(part)),
            }
        }
        if proof.is_some() {
            self.dropped.add("thinking");
        }
        if texts.is_empty() && refusal.is_empty() && calls.is_empty() && reasoning.is_empty() {
            return Ok(());
        }
        let mut out = self.list.object();
        out.string("role", "assistant");
        if texts.is_empty() && !(refusal.is_empty() && calls.is_empty()) {
            out.null("content");
        } else {
            write_texts(&mut out, &texts);
        }
        if !refusal.is_empty() {
            out.string("refusal", &refusal);
        }
        if !reasoning.is_empty() {
            out.string("reasoning_content", &reasoning);
        }
        if !calls.is_empty() {
            let mut list = out.array("tool_calls");
            for Call { id, name, arguments, proof } in calls {
                let order = self.due.len();
                self.due.entry(id.clone()).or_insert(order);
                let mut call = list.object();
                call.string("id", &id);
                call.string("type", "function");
                {
                    let mut function = call.object("function");
                    function.string("name", &sent(name, Dialect::Chat));
                    function.string("arguments", if arguments.trim().is_empty() { "{}" } else { arguments });
                }
                if let Some(proof) = proof {
                    call.object("extra_content").object("google").string("thought_signature", proof);
                }
            }
        }
        Ok(())
    }

    fn mark(&mut self, part: &Part<'_>) {
        if part.cache.is_some() {
            self.dropped.add("cache_control");
        }
    }

    /// The id for the upstream: its own again, where we had wrapped it. One that is longer than OpenAI takes is replaced
    /// by its number among such, which is the same in the next turn, as the conversation begins the same.
    fn id(&mut self, id: &str) -> String {
        let own = from_messages_safe(id);
        if own.len() <= MAX_ID {
            return own.into_owned();
        }
        let next = self.ids.len();
        self.ids.entry(own.into_owned()).or_insert_with(|| format!("call_long_{next}")).clone()
    }
}

pub(super) fn unfit(part: &Part<'_>) -> Invalid {
    refuse(part.at.path(), &part.body.misplaced())
}

/// Text alone is a string, which every server takes; several texts stay apart.
fn write_texts(out: &mut Object<'_>, texts: &[impl AsRef<str>]) {
    match texts {
        [] => out.string("content", ""),
        [text] => out.string("content", text.as_ref()),
        several => {
            let mut parts = out.array("content");
            several.iter().for_each(|text| text_part(&mut parts, text.as_ref()));
        }
    }
}
