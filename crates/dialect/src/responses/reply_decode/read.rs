//! One event of a Responses stream, or one whole answer, as it comes from an upstream: the fields that mean something,
//! borrowed. What has another kind than it should is skipped, not refused. Only what is no JSON, or no object, is
//! malformed.

use crate::chat::classify;
use crate::event::Finish;
use crate::json::{Invalid, Kind, Reader};
use crate::messages::nothing::says_nothing;
use crate::reply::ReplyFault;
use crate::responses::chain::Link;
use std::borrow::Cow;
use turnkeep_base::{FaultKind, Usage};
use turnkeep_wire::sse::Frame;

pub(in crate::responses) fn malformed(invalid: Invalid) -> ReplyFault {
    ReplyFault::malformed(invalid.to_string())
}

/// The data of a frame, if it has any that is read. `[DONE]` is another dialect's end and ends nothing here.
pub(in crate::responses) fn data(frame: &Frame) -> Option<&[u8]> {
    frame.data.as_deref().map(<[u8]>::trim_ascii).filter(|data| !data.is_empty() && *data != b"[DONE]")
}

/// One event's fields, unread where they are objects.
#[derive(Debug, Default)]
pub(in crate::responses) struct Fields<'a> {
    /// From the data, else from the `event` line.
    pub(in crate::responses) kind: Cow<'a, str>,
    pub(in crate::responses) sequence: bool,
    pub(in crate::responses) output_index: Option<u64>,
    pub(in crate::responses) item_id: Option<Cow<'a, str>>,
    /// `content_index` or `summary_index`.
    pub(in crate::responses) part_index: Option<u64>,
    pub(in crate::responses) delta: Option<Cow<'a, str>>,
    /// What a `.done` event has whole: `text`, `refusal`, `arguments` or `input`.
    pub(in crate::responses) whole: Option<Cow<'a, str>>,
    pub(in crate::responses) item: Option<&'a str>,
    pub(in crate::responses) part: Option<&'a str>,
    pub(in crate::responses) response: Option<&'a str>,
    /// There is an `error` that is not null.
    pub(in crate::responses) error: bool,
    /// It says something that an event of ours cannot hold (log probabilities).
    pub(in crate::responses) unread: bool,
}

/// Reads an event's data.
pub(in crate::responses) fn fields<'a>(frame: &'a Frame, data: &'a [u8]) -> Result<Fields<'a>, ReplyFault> {
    let mut fields = Fields::default();
    let mut r = Reader::new(data).map_err(malformed)?;
    r.object::<Invalid>(|r, key| {
        match (key, r.kind()?) {
            ("type", Kind::String) => fields.kind = r.string()?,
            ("sequence_number", Kind::Number) => {
                fields.sequence = true;
                r.skip()?;
            }
            ("output_index", Kind::Number) => fields.output_index = number(r)?,
            ("content_index" | "summary_index", Kind::Number) => fields.part_index = number(r)?,
            ("item_id", Kind::String) => fields.item_id = Some(r.string()?).filter(|id| !id.is_empty()),
            ("delta", Kind::String) => fields.delta = Some(r.string()?),
            ("text" | "refusal" | "arguments" | "input", Kind::String) => fields.whole = Some(r.string()?),
            // Some servers give the object that the text should hold.
            ("arguments", Kind::Object) => fields.whole = Some(Cow::Borrowed(r.raw()?)),
            ("item", Kind::Object) => fields.item = Some(r.raw()?),
            ("part", Kind::Object) => fields.part = Some(r.raw()?),
            ("response", Kind::Object) => fields.response = Some(r.raw()?),
            ("error", Kind::Object | Kind::String) => {
                fields.error = true;
                r.skip()?;
            }
            ("logprobs", _) => fields.unread |= !says_nothing(r.raw()?),
            _ => {
                r.skip()?;
            }
        }
        Ok(())
    })
    .and_then(|()| r.end())
    .map_err(malformed)?;
    if fields.kind.is_empty()
        && let Some(name) = &frame.event
    {
        fields.kind = String::from_utf8_lossy(name);
    }
    Ok(fields)
}

/// A response object's own fields.
#[derive(Debug, Default)]
pub(in crate::responses) struct Response<'a> {
    pub(in crate::responses) id: Option<Cow<'a, str>>,
    pub(in crate::responses) model: Option<Cow<'a, str>>,
    pub(in crate::responses) created: Option<u64>,
    status: Option<Cow<'a, str>>,
    reason: Option<Cow<'a, str>>,
    error: Option<&'a str>,
    pub(in crate::responses) usage: Option<Usage>,
    /// The array of items, as it is written.
    pub(in crate::responses) output: Option<&'a str>,
    /// What it says of the chain it is in.
    pub(in crate::responses) link: Link,
    /// It is called `response`.
    named: bool,
    /// Of the other fields that clients cannot do without, how many are there.
    needed: u8,
    /// The usage lacks one of its two objects of details, or its total.
    bare_usage: bool,
}

impl<'a> Response<'a> {
    /// Reads one from the text of an object.
    pub(in crate::responses) fn over(raw: &'a str) -> Result<Self, ReplyFault> {
        let mut r = Reader::over(raw);
        Self::read(&mut r).and_then(|response| r.end().map(|()| response)).map_err(malformed)
    }

    fn read(r: &mut Reader<'a>) -> Result<Self, Invalid> {
        let mut response = Response::default();
        r.object::<Invalid>(|r, key| {
            match (key, r.kind()?) {
                ("id", Kind::String) => response.id = Some(r.string()?).filter(|id| !id.is_empty()),
                ("model", Kind::String) => response.model = Some(r.string()?).filter(|model| !model.is_empty()),
                ("object", Kind::String) => response.named = r.string()? == "response",
                ("status", Kind::String) => response.status = Some(r.string()?),
                ("created_at", Kind::Number) => {
                    // Some servers give fractions of a second.
                    let number = r.number()?;
                    let whole = number.split(['.', 'e', 'E']).next().unwrap_or_default();
                    response.created = whole.parse().ok();
                }
                ("incomplete_details", Kind::Object) => r.object::<Invalid>(|r, key| {
                    match (key, r.kind()?) {
                        ("reason", Kind::String) => response.reason = Some(r.string()?),
                        _ => {
                            r.skip()?;
                        }
                    }
                    Ok(())
                })?,
                ("error", Kind::Object | Kind::String) => response.error = Some(r.raw()?),
                ("usage", Kind::Object) => {
                    let (usage, whole) = usage(r)?;
                    response.usage = Some(usage);
                    response.bare_usage = !whole;
                }
                ("output", Kind::Array) => response.output = Some(r.raw()?),
                ("store", Kind::Bool) => response.link.stored = r.bool()?,
                ("previous_response_id", Kind::String) => {
                    response.link.previous = Some(Some(r.string()?.into_owned()));
                }
                ("previous_response_id", Kind::Null) => {
                    response.link.previous = Some(None);
                    r.skip()?;
                }
                ("parallel_tool_calls", Kind::Bool)
                | ("tool_choice", Kind::String | Kind::Object)
                | ("tools", Kind::Array) => {
                    response.needed += 1;
                    r.skip()?;
                }
                _ => {
                    r.skip()?;
                }
            }
            Ok(())
        })?;
        Ok(response)
    }

    /// The official clients can do with it: they read these fields without asking whether they are there.
    pub(in crate::responses) fn is_whole(&self) -> bool {
        let Response { id, model, created, output, needed, bare_usage, .. } = self;
        id.is_some() && model.is_some() && created.is_some() && output.is_some() && *needed >= 3 && !bare_usage
    }

    /// It is a response, and nothing else such as a bare error.
    pub(in crate::responses) fn is_response(&self) -> bool {
        self.named || self.output.is_some()
    }

    /// How the answer ended, `None` for by itself. `said` is the status that the terminal event's name says.
    pub(in crate::responses) fn ending(&self, said: &str) -> Result<Option<Finish>, ReplyFault> {
        // A server that says `completed` by the event's name and by the object that the answer was cut or failed means the
        // object; that it is still being made, the object only forgot to change.
        let status = match (self.status.as_deref(), said) {
            (Some(status), "") | (Some(status @ ("incomplete" | "failed" | "cancelled")), "completed") => status,
            (Some(_) | None, said) => said,
        };
        if let (Some(error), false) = (self.error, status == "incomplete") {
            return Err(classify::in_band(error));
        }
        match (status, self.reason.as_deref()) {
            ("completed", None) => Ok(None),
            ("incomplete" | "completed", Some("content_filter")) => Ok(Some(Finish::Refusal)),
            // Whatever cut the answer, it is not whole, also where a server gives the reason and calls it complete.
            ("incomplete", _) | ("completed", Some(_)) => Ok(Some(Finish::Length)),
            ("failed", _) => Err(failed("the upstream says that the answer failed, and not why")),
            ("cancelled", _) => Err(failed("the upstream says that the answer was cancelled")),
            ("", _) => Err(ReplyFault::malformed("an answer without `status`")),
            (other, _) => {
                Err(ReplyFault::malformed(format!("an answer that is not at its end: its status is `{other}`")))
            }
        }
    }
}

fn failed(what: &str) -> ReplyFault {
    ReplyFault::new(FaultKind::UpstreamInternal, what)
}

/// Reads a whole body.
pub(in crate::responses) fn body(body: &[u8]) -> Result<Response<'_>, ReplyFault> {
    let mut r = Reader::new(body).map_err(malformed)?;
    Response::read(&mut r).and_then(|response| r.end().map(|()| response)).map_err(malformed)
}

/// Reads a body that must be a whole answer. A bare error is a fault, and so is what has no output.
pub(in crate::responses) fn answer(bytes: &[u8]) -> Result<Response<'_>, ReplyFault> {
    let response = body(bytes)?;
    match (response.error, response.output) {
        (Some(_), None) => Err(classify::in_band(&String::from_utf8_lossy(bytes))),
        (None, None) => Err(ReplyFault::malformed("a JSON object without `output`")),
        (Some(_) | None, Some(_)) => Ok(response),
    }
}

/// A whole number, or none for another one.
fn number(r: &mut Reader<'_>) -> Result<Option<u64>, Invalid> {
    let text = r.number()?;
    Ok(Reader::over(text).u64().ok())
}

/// The counts, and whether they have the form that clients read.
fn usage(r: &mut Reader<'_>) -> Result<(Usage, bool), Invalid> {
    let (mut input, mut output, mut cached, mut written, mut reasoning) = (0, 0, 0, 0, 0);
    let mut whole = 0;
    r.object::<Invalid>(|r, key| {
        match (key, r.kind()?) {
            ("input_tokens", Kind::Number) => input = number(r)?.unwrap_or(0),
            ("output_tokens", Kind::Number) => output = number(r)?.unwrap_or(0),
            ("total_tokens", Kind::Number) => {
                whole += 1;
                r.skip()?;
            }
            ("input_tokens_details" | "output_tokens_details", Kind::Object) => {
                whole += 1;
                r.object::<Invalid>(|r, key| {
                    match (key, r.kind()?) {
                        ("cached_tokens", Kind::Number) => cached = number(r)?.unwrap_or(0),
                        ("cache_write_tokens", Kind::Number) => written = number(r)?.unwrap_or(0),
                        ("reasoning_tokens", Kind::Number) => reasoning = number(r)?.unwrap_or(0),
                        _ => {
                            r.skip()?;
                        }
                    }
                    Ok(())
                })?;
            }
            _ => {
                r.skip()?;
            }
        }
        Ok(())
    })?;
    Ok((Usage::from_inclusive(input, cached, written, output, reasoning), whole == 3))
}

/// An output item.
#[derive(Debug, Default)]
pub(in crate::responses) struct Item<'a> {
    pub(in crate::responses) kind: Cow<'a, str>,
    pub(in crate::responses) id: Option<Cow<'a, str>>,
    pub(in crate::responses) call_id: Option<Cow<'a, str>>,
    pub(in crate::responses) name: Option<Cow<'a, str>>,
    pub(in crate::responses) namespace: Option<Cow<'a, str>>,
    /// `arguments` or `input`.
    pub(in crate::responses) arguments: Option<Cow<'a, str>>,
    pub(in crate::responses) encrypted: Option<Cow<'a, str>>,
    /// Arrays of parts, as they are written.
    pub(in crate::responses) content: Option<&'a str>,
    pub(in crate::responses) summary: Option<&'a str>,
    /// It says something else besides.
    pub(in crate::responses) unread: bool,
}

impl<'a> Item<'a> {
    pub(in crate::responses) fn over(raw: &'a str) -> Result<Self, ReplyFault> {
        let mut item = Item::default();
        let some = |text: Cow<'a, str>| Some(text).filter(|text| !text.is_empty());
        Reader::over(raw)
            .object::<Invalid>(|r, key| {
                match (key, r.kind()?) {
                    ("type", Kind::String) => item.kind = r.string()?,
                    ("id", Kind::String) => item.id = some(r.string()?),
                    ("call_id", Kind::String) => item.call_id = some(r.string()?),
                    ("name", Kind::String) => item.name = some(r.string()?),
                    ("namespace", Kind::String) => item.namespace = some(r.string()?),
                    ("arguments" | "input", Kind::String) => item.arguments = Some(r.string()?),
                    ("arguments", Kind::Object) => item.arguments = Some(Cow::Borrowed(r.raw()?)),
                    ("encrypted_content", Kind::String) => item.encrypted = some(r.string()?),
                    ("content", Kind::Array) => item.content = Some(r.raw()?),
                    ("summary", Kind::Array) => item.summary = Some(r.raw()?),
                    ("status" | "role", _) => {
                        r.skip()?;
                    }
                    _ => item.unread |= !says_nothing(r.raw()?),
                }
                Ok(())
            })
            .map_err(malformed)?;
        Ok(item)
    }
}

/// A part of a message or of reasoning.
#[derive(Debug, Default)]
pub(in crate::responses) struct Part<'a> {
    pub(in crate::responses) kind: Cow<'a, str>,
    pub(in crate::responses) text: Cow<'a, str>,
    /// It says something else besides (annotations, log probabilities).
    pub(in crate::responses) unread: bool,
}

impl<'a> Part<'a> {
    pub(in crate::responses) fn over(raw: &'a str) -> Result<Self, Invalid> {
        let mut part = Part::default();
        Reader::over(raw).object::<Invalid>(|r, key| {
            match (key, r.kind()?) {
                ("type", Kind::String) => part.kind = r.string()?,
                ("text" | "refusal", Kind::String) => part.text = r.string()?,
                _ => part.unread |= !says_nothing(r.raw()?),
            }
            Ok(())
        })?;
        Ok(part)
    }
}
