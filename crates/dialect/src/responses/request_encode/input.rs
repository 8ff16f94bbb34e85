//! `instructions` and the items of `input`.
//!
//! A result stands directly behind the calls of its turn, as everywhere else; of several results of one call the last
//! wins, a call without one gets one that says so, and a result without a call is dropped and named. A failed tool's text
//! begins with `Error: `, as Responses has no field for it.

use super::Dropped;
use super::parts::{input_part, text_part, unfit};
use super::tools::custom;
use crate::envelope::open;
use crate::free_text;
use crate::json::{Array, Invalid, Object};
use crate::tool_id::from_messages_safe;
use crate::tool_names::sent;
use crate::turn::{Body, Message, Part, Role, Turn};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use turnkeep_base::Dialect;

/// The longest id of a call that OpenAI takes here.
const MAX_ID: usize = 64;

/// What a call is told that the client never answered.
const NO_RESULT: &str = "Error: no result was given";

/// Writes them, and tells whether reasoning went along.
pub(super) fn write(object: &mut Object<'_>, turn: &Turn<'_>, dropped: &mut Dropped) -> Result<bool, Invalid> {
    let leading = turn.messages.iter().take_while(|message| message.role == Role::System).count();
    // When there is nothing but system messages, the last one is the conversation, because there must be one.
    let leading = if leading == turn.messages.len() { leading.saturating_sub(1) } else { leading };
    let (system, rest) = turn.messages.split_at(leading);
    let mut texts = Vec::new();
    for part in all_parts(system) {
        texts.push(system_text(part, dropped)?);
    }
    texts.retain(|text| !text.is_empty());
    if !texts.is_empty() {
        object.string("instructions", &texts.join("\n\n"));
    }
    let mut out = Writer {
        list: object.array("input"),
        custom: custom(turn),
        ids: BTreeMap::new(),
        due: BTreeMap::new(),
        reasoned: false,
        dropped,
    };
    for run in rest.chunk_by(|a, b| (a.role == Role::Assistant) == (b.role == Role::Assistant)) {
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
    Ok(out.reasoned)
}

fn all_parts<'m, 'a>(run: &'m [Message<'a>]) -> impl Iterator<Item = &'m Part<'a>> {
    run.iter().flat_map(|message| &message.parts)
}

fn mark(part: &Part<'_>, dropped: &mut Dropped) {
    if part.cache.is_some() {
        dropped.add("cache_control");
    }
}

fn system_text<'t>(part: &'t Part<'_>, dropped: &mut Dropped) -> Result<&'t str, Invalid> {
    mark(part, dropped);
    match &part.body {
        Body::Text(text) => Ok(text),
        Body::Image(_)
        | Body::File(_)
        | Body::ToolCall { .. }
        | Body::ToolResult { .. }
        | Body::Thinking { .. }
        | Body::RedactedThinking(_)
        | Body::Refusal(_)
        | Body::Other(_) => Err(unfit(part)),
    }
}

/// A call that has no result yet.
struct Due {
    order: usize,
    custom: bool,
}

struct Writer<'w> {
    list: Array<'w>,
    /// The turn's free-text tools.
    custom: BTreeSet<&'w str>,
    /// Ids that are too long, by what stands for them.
    ids: BTreeMap<String, String>,
    /// The upstream's ids of the last assistant message's calls that have no result yet.
    due: BTreeMap<String, Due>,
    reasoned: bool,
    dropped: &'w mut Dropped,
}

impl Writer<'_> {
    /// What stands between two turns of the model: results first, then the rest in order.
    fn others(&mut self, run: &[Message<'_>]) -> Result<(), Invalid> {
        let mut last: BTreeMap<&str, usize> = BTreeMap::new();
        for (at, part) in all_parts(run).enumerate() {
            if let Body::ToolResult { id, .. } = &part.body {
                last.insert(id, at);
            }
        }
        for (at, part) in all_parts(run).enumerate() {
            if let Body::ToolResult { id, content, is_error } = &part.body
                && last.get(id.as_ref()) == Some(&at)
            {
                mark(part, self.dropped);
                self.result(id, content, *is_error)?;
            }
        }
        self.unanswered();
        for message in run {
            self.message(message)?;
        }
        Ok(())
    }

    fn message(&mut self, message: &Message<'_>) -> Result<(), Invalid> {
        let system = message.role == Role::System;
        let own = |part: &&Part<'_>| !matches!(part.body, Body::ToolResult { .. });
        if !message.parts.iter().any(|part| own(&part)) {
            return Ok(());
        }
        let mut out = self.list.object();
        out.string("type", "message");
        out.string("role", if system { "developer" } else { "user" });
        let mut parts = out.array("content");
        for part in message.parts.iter().filter(own) {
            if system {
                text_part(&mut parts, "input_text", system_text(part, self.dropped)?);
            } else {
                mark(part, self.dropped);
                input_part(&mut parts, part)?;
            }
        }
        Ok(())
    }

    fn result(&mut self, id: &str, content: &[Part<'_>], is_error: bool) -> Result<(), Invalid> {
        let id = self.id(id);
        let Some(due) = self.due.remove(&id) else {
            self.dropped.add("tool_result");
            return Ok(());
        };
        content.iter().for_each(|part| mark(part, self.dropped));
        let mut out = self.list.object();
        open_result(&mut out, &id, due.custom);
        match content {
            [] => out.string("output", if is_error { "Error: the tool failed without a message" } else { "" }),
            [Part { body: Body::Text(text), .. }] => out.string("output", &failed(text, is_error)),
            parts => {
                let mut list = out.array("output");
                let says = parts.iter().position(|part| matches!(part.body, Body::Text(_)));
                if is_error && says.is_none() {
                    text_part(&mut list, "input_text", "Error: the tool failed");
                }
                for (at, part) in parts.iter().enumerate() {
                    match &part.body {
                        Body::Text(text) => {
                            text_part(&mut list, "input_text", &failed(text, is_error && says == Some(at)));
                        }
                        Body::Image(_)
                        | Body::File(_)
                        | Body::ToolCall { .. }
                        | Body::ToolResult { .. }
                        | Body::Thinking { .. }
                        | Body::RedactedThinking(_)
                        | Body::Refusal(_)
                        | Body::Other(_) => input_part(&mut list, part)?,
                    }
                }
            }
        }
        Ok(())
    }

    /// Calls that the client never answered get a result that says so: servers refuse a call without one.
    fn unanswered(&mut self) {
        let mut due: Vec<_> = std::mem::take(&mut self.due).into_iter().collect();
        due.sort_by_key(|(_, due)| due.order);
        for (id, due) in due {
            let mut out = self.list.object();
            open_result(&mut out, &id, due.custom);
            out.string("output", NO_RESULT);
        }
    }

    /// The model's turn, item by item. Texts in a row are one message.
    fn assistant(&mut self, run: &[Message<'_>]) -> Result<(), Invalid> {
        self.unanswered();
        let parts: Vec<&Part<'_>> = all_parts(run).collect();
        // Reasoning must be followed by what came of it.
        let end = parts.iter().rposition(|part| is_said(part)).map_or(0, |last| last + 1);
        let mut at = 0;
        while let Some(part) = parts.get(at).copied() {
            at += 1;
            mark(part, self.dropped);
            match &part.body {
                Body::Text(_) | Body::Refusal(_) => {
                    let more = parts.iter().skip(at).take_while(|part| is_words(part)).count();
                    self.words(parts.iter().skip(at - 1).take(more + 1).copied());
                    at += more;
                }
                Body::ToolCall { id, name, arguments } => self.call(id, name, arguments),
                Body::Thinking { text, signature } => {
                    self.thinking(text, signature.as_deref(), at <= end, "thinking");
                }
                Body::RedactedThinking(data) => self.thinking("", Some(data), at <= end, "redacted_thinking"),
                Body::Image(_) | Body::File(_) | Body::ToolResult { .. } | Body::Other(_) => return Err(unfit(part)),
            }
        }
        Ok(())
    }

    fn words<'m, 'a: 'm>(&mut self, run: impl Iterator<Item = &'m Part<'a>> + Clone) {
        if !run.clone().any(is_said) {
            return;
        }
        let mut out = self.list.object();
        out.string("type", "message");
        out.string("role", "assistant");
        let mut parts = out.array("content");
        for part in run {
            mark(part, self.dropped);
            match &part.body {
                Body::Text(text) if !text.is_empty() => {
                    let mut part = parts.object();
                    part.string("type", "output_text");
                    part.string("text", text);
                    part.array("annotations");
                }
                Body::Refusal(text) if !text.is_empty() => {
                    let mut part = parts.object();
                    part.string("type", "refusal");
                    part.string("refusal", text);
                }
                Body::Text(_)
                | Body::Refusal(_)
                | Body::Image(_)
                | Body::File(_)
                | Body::ToolCall { .. }
                | Body::ToolResult { .. }
                | Body::Thinking { .. }
                | Body::RedactedThinking(_)
                | Body::Other(_) => {}
            }
        }
    }

    fn call(&mut self, id: &str, name: &str, arguments: &str) {
        let id = self.id(id);
        let custom = self.custom.contains(name);
        let order = self.due.len();
        self.due.entry(id.clone()).or_insert(Due { order, custom });
        let mut out = self.list.object();
        out.string("type", if custom { "custom_tool_call" } else { "function_call" });
        out.string("call_id", &id);
        out.string("name", &sent(name, Dialect::Responses));
        if custom {
            out.string("input", &free_text::unwrap(arguments));
        } else {
            out.string("arguments", if arguments.trim().is_empty() { "{}" } else { arguments });
        }
    }

    /// Reasoning goes along only with the proof of an upstream of this dialect; other thinking means nothing here.
    fn thinking(&mut self, text: &str, proof: Option<&str>, followed: bool, name: &str) {
        let Some(state) = proof.and_then(|proof| open(proof, Dialect::Responses)).filter(|_| followed) else {
            self.dropped.add(name);
            return;
        };
        self.reasoned = true;
        let mut out = self.list.object();
        out.string("type", "reasoning");
        {
            let mut summary = out.array("summary");
            if !text.is_empty() {
                text_part(&mut summary, "summary_text", text);
            }
        }
        out.string("encrypted_content", state);
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

fn open_result(out: &mut Object<'_>, id: &str, custom: bool) {
    out.string("type", if custom { "custom_tool_call_output" } else { "function_call_output" });
    out.string("call_id", id);
}

fn is_words(part: &Part<'_>) -> bool {
    matches!(part.body, Body::Text(_) | Body::Refusal(_))
}

/// The part leaves something that the model said or did.
fn is_said(part: &Part<'_>) -> bool {
    match &part.body {
        Body::Text(text) | Body::Refusal(text) => !text.is_empty(),
        Body::ToolCall { .. } => true,
        Body::Image(_)
        | Body::File(_)
        | Body::ToolResult { .. }
        | Body::Thinking { .. }
        | Body::RedactedThinking(_)
        | Body::Other(_) => false,
    }
}

/// A failed tool's text, which says so unless it does already.
fn failed(text: &str, is_error: bool) -> Cow<'_, str> {
    let says = text.get(..5).is_some_and(|word| word.eq_ignore_ascii_case("error"));
    if is_error && !says { format!("Error: {text}").into() } else { text.into() }
}
