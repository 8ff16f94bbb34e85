//! What a `functionResponse` says, and which call it answers.

use super::fields::{self, Hints, RESPONSE, list};
use super::parts::{Place, part};
use crate::json::{Invalid, Kind, Reader};
use crate::turn::{At, Body, Message, Part, Text};
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

/// Fields under which tools give their text, when it is all they give.
const SAID: [&str; 3] = ["output", "result", "content"];

/// A result whose call is not known yet.
#[derive(Debug)]
pub(super) struct Open<'a> {
    /// Which part of its message it is.
    pub(super) part: usize,
    /// The call's id, if the client gives one.
    pub(super) id: Option<Text<'a>>,
    /// The function's name.
    pub(super) name: Text<'a>,
}

/// The calls of the model's turn that results may answer.
#[derive(Debug, Default)]
pub(super) struct Calls<'a> {
    ids: Vec<Text<'a>>,
    answered: Vec<bool>,
    by_id: BTreeMap<Text<'a>, usize>,
    by_name: BTreeMap<Text<'a>, VecDeque<usize>>,
}

impl<'a> Calls<'a> {
    /// Notes the calls of a message of the model's.
    pub(super) fn note(&mut self, message: &Message<'a>) {
        for part in &message.parts {
            if let Body::ToolCall { id, name, arguments: _ } = &part.body {
                let at = self.ids.len();
                self.ids.push(id.clone());
                self.answered.push(false);
                self.by_id.entry(id.clone()).or_insert(at);
                self.by_name.entry(name.clone()).or_default().push_back(at);
            }
        }
    }

    /// Gives the results of a message the ids of their calls: by id where there is one, else the first call of that name
    /// without a result. One that answers no call gets an id of its own, which the target's encoder then refuses.
    pub(super) fn join(&mut self, message: &mut Message<'a>, open: Vec<Open<'a>>) {
        let mut rest = Vec::new();
        for result in open {
            match result.id.as_ref().and_then(|id| self.by_id.get(id)).copied() {
                Some(call) => {
                    if let Some(answered) = self.answered.get_mut(call) {
                        *answered = true;
                    }
                    // Its own id is the call's.
                    set(message, result.part, result.id);
                }
                None => rest.push(result),
            }
        }
        for result in rest {
            let id = self.next(&result.name).or(result.id);
            set(message, result.part, id);
        }
    }

    fn next(&mut self, name: &str) -> Option<Text<'a>> {
        let calls = self.by_name.get_mut(name)?;
        while let Some(call) = calls.pop_front() {
            if let Some(answered) = self.answered.get_mut(call).filter(|answered| !**answered) {
                *answered = true;
                return self.ids.get(call).cloned();
            }
        }
        None
    }
}

fn set<'a>(message: &mut Message<'a>, part: usize, given: Option<Text<'a>>) {
    if let (Some(Part { body: Body::ToolResult { id, .. }, .. }), Some(given)) = (message.parts.get_mut(part), given) {
        *id = given;
    }
}

/// Reads a `functionResponse`: its result, with an id that stands for none, and what tells the call.
pub(super) fn response<'a>(
    r: &mut Reader<'a>,
    place: Place,
    hints: &mut Hints,
) -> Result<(Body<'a>, Open<'a>), Invalid> {
    let (mut id, mut name, mut raw) = (None, Text::default(), "{}");
    let mut more = Vec::new();
    fields::object(r, RESPONSE, |r, key| {
        match key {
            "id" => id = Some(r.string()?).filter(|id| !id.is_empty()),
            "name" => name = r.string()?,
            "response" => raw = r.raw()?,
            "parts" => list(r, |r, inner| {
                let at = At::ContentsInner { content: place.content, part: place.part, inner: number(inner) };
                more.extend(inner_part(r, place, at, hints)?);
                Ok(())
            })?,
            other => hints.skip(r, "contents[].parts[].functionResponse.", other)?,
        }
        Ok(())
    })?;
    let at = At::ContentsPart { content: place.content, part: place.part };
    let (text, is_error) = text_of(raw, &name)?;
    let mut content = Vec::with_capacity(more.len() + 1);
    if !text.is_empty() {
        content.push(Part { body: Body::Text(text), at, cache: None });
    }
    content.append(&mut more);
    let own = format!("call_{}_{}", place.content, place.part);
    let body = Body::ToolResult { id: Cow::Owned(own), content, is_error };
    Ok((body, Open { part: 0, id, name }))
}

/// A part of a response's own: texts, images and files have a canonical form there.
fn inner_part<'a>(r: &mut Reader<'a>, place: Place, at: At, hints: &mut Hints) -> Result<Option<Part<'a>>, Invalid> {
    let body = match part(r, place, hints)?.body {
        Body::Text(text) if text.is_empty() => return Ok(None),
        body @ (Body::Text(_) | Body::Image(_) | Body::File(_) | Body::Other(_)) => body,
        Body::ToolCall { .. } => Body::Other("functionCall".into()),
        Body::ToolResult { .. } => Body::Other("functionResponse".into()),
        Body::Thinking { .. } | Body::RedactedThinking(_) | Body::Refusal(_) => Body::Other("thought".into()),
    };
    Ok(Some(Part { body, at, cache: None }))
}

/// An index as the turn keeps it; bodies are far too small for more.
pub(super) fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// What a response says, and whether that is an error: the text alone where there is nothing else (but the function's own
/// name, which some clients add), or the JSON.
fn text_of<'a>(raw: &'a str, name: &str) -> Result<(Text<'a>, bool), Invalid> {
    let (mut others, mut only) = (0usize, None);
    Reader::over(raw).object::<Invalid>(|r, key| {
        let kind = r.kind()?;
        if key == "name" && kind == Kind::String && r.clone().string()? == name {
            return r.skip().map(drop);
        }
        others += 1;
        if key == "error" {
            let text = if kind == Kind::String { r.string()? } else { Cow::Borrowed(r.raw()?) };
            only = Some((text, true));
        } else if SAID.contains(&key) && kind == Kind::String {
            only = Some((r.string()?, false));
        } else {
            r.skip()?;
        }
        Ok(())
    })?;
    Ok(match (others, only) {
        (1, Some(only)) => only,
        (0, _) if crate::messages::nothing::says_nothing(raw) => (Text::default(), false),
        (_, _) => (Cow::Borrowed(raw), false),
    })
}
