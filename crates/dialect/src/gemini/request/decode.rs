//! A Gemini request as a canonical turn, for translated routes. Content without a canonical form becomes `Other`, which
//! the target's encoder refuses by name; fields that only steer become hints.

use super::config::config;
use super::fields::{self, CONTENT, Hints, REQUEST, list};
use super::parts::{Place, part};
use super::results::{Calls, number};
use super::tools::{made, tool_config, tools};
use crate::gemini::proof::Proof;
use crate::json::{Invalid, Kind, Reader};
use crate::messages::nothing::says_nothing;
use crate::request::ClientRequest;
use crate::turn::{At, Body, Message, Part, Role, Text, Turn};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Decodes a body that [`super::read`] has accepted; any other body is an error or a turn with gaps, never a panic.
pub fn decode(request: &ClientRequest) -> Result<Turn<'_>, Invalid> {
    let mut reading = Reading {
        turn: Turn { model: Cow::Borrowed(&request.model), stream: request.stream, ..Turn::default() },
        system: None,
        hints: Hints::default(),
        calls: Calls::default(),
        made: request.made.get_or_init(|| made(&request.body)),
    };
    let mut r = Reader::new(&request.body)?;
    reading.request(&mut r)?;
    r.end()?;
    let Reading { mut turn, system, hints, .. } = reading;
    if let Some(system) = system {
        turn.messages.insert(0, system);
    }
    turn.hints = hints.into_names();
    Ok(turn)
}

struct Reading<'a> {
    turn: Turn<'a>,
    system: Option<Message<'a>>,
    hints: Hints,
    /// The calls of the model's last words.
    calls: Calls<'a>,
    made: &'a BTreeMap<usize, Box<str>>,
}

impl<'a> Reading<'a> {
    fn request(&mut self, r: &mut Reader<'a>) -> Result<(), Invalid> {
        fields::object(r, REQUEST, |r, key| match key {
            "contents" => r.array(|r, index| self.content(r, number(index))),
            "generateContentRequest" => self.request(r),
            // It is in the path, and the same.
            "model" => r.skip().map(drop),
            "systemInstruction" => self.system(r),
            "tools" => tools(r, &mut self.turn, self.made, &mut self.hints),
            "toolConfig" => tool_config(r, &mut self.turn, &mut self.hints),
            "generationConfig" => config(r, &mut self.turn, self.made, &mut self.hints),
            // The part of the conversation that is cached would be missing.
            "cachedContent" => {
                if says_nothing(r.raw()?) {
                    return Ok(());
                }
                Err(r.fail("cached content cannot be carried to an upstream of another dialect"))
            }
            other => self.hints.skip(r, "", other),
        })
    }

    fn system(&mut self, r: &mut Reader<'a>) -> Result<(), Invalid> {
        let mut parts = Vec::new();
        let mut read = |r: &mut Reader<'a>, hints: &mut Hints| {
            list(r, |r, index| {
                let body = part(r, Place { content: 0, part: number(index) }, hints)?.body;
                if !matches!(&body, Body::Text(text) if text.is_empty()) {
                    parts.push(Part { body, at: At::System, cache: None });
                }
                Ok(())
            })
        };
        match r.kind()? {
            Kind::String => {
                let body = Body::Text(r.string()?);
                parts.push(Part { body, at: At::System, cache: None });
            }
            Kind::Array => read(r, &mut self.hints)?,
            Kind::Object | Kind::Number | Kind::Bool | Kind::Null => fields::object(r, CONTENT, |r, key| match key {
                "parts" => read(r, &mut self.hints),
                "role" => r.skip().map(drop),
                other => self.hints.skip(r, "systemInstruction.", other),
            })?,
        }
        self.system = (!parts.is_empty()).then_some(Message { role: Role::System, at: At::System, parts });
        Ok(())
    }

    fn content(&mut self, r: &mut Reader<'a>, index: u32) -> Result<(), Invalid> {
        let mut message = Message { role: Role::User, at: At::Contents(index), parts: Vec::new() };
        let mut decoded = Vec::new();
        fields::object(r, CONTENT, |r, key| match key {
            "role" => {
                if r.string()? == "model" {
                    message.role = Role::Assistant;
                }
                Ok(())
            }
            "parts" => list(r, |r, at| {
                let at = number(at);
                decoded.push((at, part(r, Place { content: index, part: at }, &mut self.hints)?));
                Ok(())
            }),
            other => self.hints.skip(r, "contents[].", other),
        })?;
        let mut open = Vec::new();
        for (at, one) in decoded {
            let at = At::ContentsPart { content: index, part: at };
            // Only what the model said is signed.
            let proof = one.proof.filter(|_| message.role == Role::Assistant);
            let body = match (one.body, proof) {
                (Body::Thinking { text, signature: _ }, Some(Proof::Thinking(proof))) => {
                    Body::Thinking { text, signature: Some(Cow::Owned(proof)) }
                }
                (body, Some(Proof::Thinking(proof))) => {
                    self.sign(&mut message, proof, at);
                    body
                }
                (body, Some(Proof::Redacted(data))) => {
                    let redacted = Body::RedactedThinking(Cow::Owned(data));
                    message.parts.push(Part { body: redacted, at, cache: None });
                    body
                }
                (body, None) => body,
            };
            if matches!(&body, Body::Text(text) | Body::Thinking { text, signature: None } if text.is_empty()) {
                continue;
            }
            let body = match body {
                Body::Thinking { text, signature } => match self.unsigned(&mut message) {
                    Some((before, place)) => {
                        before.to_mut().push_str(&text);
                        *place = signature;
                        continue;
                    }
                    None => Body::Thinking { text, signature },
                },
                other @ (Body::Text(_)
                | Body::Image(_)
                | Body::File(_)
                | Body::ToolCall { .. }
                | Body::ToolResult { .. }
                | Body::RedactedThinking(_)
                | Body::Refusal(_)
                | Body::Other(_)) => other,
            };
            if let Some(mut whose) = one.open {
                whose.part = message.parts.len();
                open.push(whose);
            }
            message.parts.push(Part { body, at, cache: None });
        }
        match message.role {
            Role::Assistant => {
                let follows = self.turn.messages.last().is_some_and(|last| last.role == Role::Assistant);
                if !follows {
                    self.calls = Calls::default();
                }
                self.calls.note(&message);
            }
            Role::User | Role::System => self.calls.join(&mut message, open),
        }
        self.turn.messages.push(message);
        Ok(())
    }

    /// A signature goes before the part that it is on: with the thought there, if that has none, or in an empty one.
    fn sign(&mut self, message: &mut Message<'a>, proof: String, at: At) {
        if let Some((_, place)) = self.unsigned(message) {
            *place = Some(Cow::Owned(proof));
            return;
        }
        let body = Body::Thinking { text: Text::default(), signature: Some(Cow::Owned(proof)) };
        message.parts.push(Part { body, at, cache: None });
    }

    /// The thought that the model's last words end with, if it has no proof yet: clients send a streamed thought back in
    /// the pieces that it came in, some of them each in a content of its own, and its proof stands on the last.
    fn unsigned<'m>(
        &'m mut self,
        message: &'m mut Message<'a>,
    ) -> Option<(&'m mut Text<'a>, &'m mut Option<Text<'a>>)> {
        if message.role != Role::Assistant {
            return None;
        }
        let parts = if message.parts.is_empty() {
            &mut self.turn.messages.last_mut().filter(|last| last.role == Role::Assistant)?.parts
        } else {
            &mut message.parts
        };
        match &mut parts.last_mut()?.body {
            Body::Thinking { text, signature: signature @ None } => Some((text, signature)),
            Body::Thinking { .. }
            | Body::Text(_)
            | Body::Image(_)
            | Body::File(_)
            | Body::ToolCall { .. }
            | Body::ToolResult { .. }
            | Body::RedactedThinking(_)
            | Body::Refusal(_)
            | Body::Other(_) => None,
        }
    }
}
