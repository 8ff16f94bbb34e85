//! One Chat chunk, or one whole Chat answer, as it comes from an upstream: the fields that mean something, borrowed. Both
//! have one form but for `delta` and `message`. What has another kind than it should is skipped, not refused: compatible
//! servers differ in all that no client reads. Only text that is not JSON, or not an object, is malformed.

use crate::json::{Invalid, Kind, Reader};
use crate::reply::ReplyFault;
use std::borrow::Cow;
use turnkeep_base::Usage;

#[derive(Debug, Default)]
pub(super) struct Chunk<'a> {
    pub(super) object: Option<Cow<'a, str>>,
    pub(super) id: Option<Cow<'a, str>>,
    /// As written.
    pub(super) created: Option<&'a str>,
    pub(super) model: Option<Cow<'a, str>>,
    /// `None` when there is no such array.
    pub(super) choices: Option<Vec<Choice<'a>>>,
    pub(super) usage: Option<Usage>,
    /// A top-level `error` that is not null, or the document itself where it is one.
    pub(super) error: Option<&'a str>,
}

#[derive(Debug, Default)]
pub(super) struct Choice<'a> {
    pub(super) index: u64,
    pub(super) role: bool,
    /// A finish reason that is not null and not empty.
    pub(super) finish: Option<Cow<'a, str>>,
    /// The stop text that was met, where the server tells it.
    pub(super) stop: Option<Cow<'a, str>>,
    pub(super) content: Option<Cow<'a, str>>,
    pub(super) reasoning: Option<Cow<'a, str>>,
    pub(super) refusal: Option<Cow<'a, str>>,
    pub(super) calls: Vec<CallPart<'a>>,
    /// Signed and redacted thinking, in the form of our own answers.
    pub(super) thinking: Vec<ThinkingPart<'a>>,
    /// Something that the model made and that has no place above.
    pub(super) other: bool,
    /// Something that a client may read and that the fields here do not hold.
    pub(super) unread: bool,
    /// A `delta` or a `message` was there.
    pub(super) has_body: bool,
    /// An error of this choice alone (routers do that).
    pub(super) error: Option<&'a str>,
}

#[derive(Debug, Default)]
pub(super) struct CallPart<'a> {
    pub(super) index: Option<u64>,
    pub(super) id: Option<Cow<'a, str>>,
    pub(super) kind: Option<Cow<'a, str>>,
    pub(super) name: Option<Cow<'a, str>>,
    /// JSON, or free text where `free` says so.
    pub(super) arguments: Option<Cow<'a, str>>,
    /// The tool takes free text.
    pub(super) free: bool,
    /// Gemini's proof of the call, bare.
    pub(super) proof: Option<Cow<'a, str>>,
    /// From the old `function_call`.
    pub(super) legacy: bool,
}

/// An entry of `thinking_blocks`.
#[derive(Debug, Default)]
pub(super) struct ThinkingPart<'a> {
    pub(super) text: Option<Cow<'a, str>>,
    pub(super) signature: Option<Cow<'a, str>>,
    /// Redacted thinking is this and nothing else.
    pub(super) data: Option<Cow<'a, str>>,
}

impl Choice<'_> {
    /// Bytes that the model made.
    pub(super) fn content_bytes(&self) -> u64 {
        let length = |text: &Option<Cow<'_, str>>| text.as_ref().map_or(0, |text| text.len());
        let calls: usize = self.calls.iter().map(|call| length(&call.arguments)).sum();
        (length(&self.content) + length(&self.reasoning) + length(&self.refusal) + calls) as u64
    }

    /// It refuses in words.
    pub(super) fn refuses(&self) -> bool {
        self.refusal.as_ref().is_some_and(|text| !text.is_empty())
    }

    /// It carries something that the model made.
    pub(super) fn has_content(&self) -> bool {
        self.content_bytes() > 0 || self.other
    }
}

/// Reads a chunk or an answer.
pub(super) fn read(data: &[u8]) -> Result<Chunk<'_>, ReplyFault> {
    parse(data).map_err(|invalid| ReplyFault::malformed(invalid.to_string()))
}

fn parse(data: &[u8]) -> Result<Chunk<'_>, Invalid> {
    let mut r = Reader::new(data)?;
    let mut chunk = Chunk::default();
    r.kind()?;
    let start = r.position();
    r.object(|r, key| {
        match key {
            "object" => chunk.object = text(r)?,
            "id" => chunk.id = text(r)?.filter(|id| !id.is_empty()),
            "model" => chunk.model = text(r)?.filter(|model| !model.is_empty()),
            "created" => chunk.created = Some(r.raw()?),
            "usage" if r.kind()? == Kind::Object => chunk.usage = Some(usage(r)?),
            "choices" if r.kind()? == Kind::Array => {
                let mut choices = Vec::new();
                r.array(|r, at| {
                    choices.push(choice(r, at)?);
                    Ok::<(), Invalid>(())
                })?;
                chunk.choices = Some(choices);
            }
            "error" => chunk.error = Some(r.raw()?).filter(|raw| *raw != "null"),
            _ => {
                r.skip()?;
            }
        }
        Ok::<(), Invalid>(())
    })?;
    let end = r.position();
    r.end()?;
    // vLLM's older form: the error is the document.
    if chunk.error.is_none() && chunk.object.as_deref() == Some("error") {
        chunk.error = data.get(start..end).and_then(|document| std::str::from_utf8(document).ok());
    }
    Ok(chunk)
}

/// A string; anything else is skipped.
fn text<'a>(r: &mut Reader<'a>) -> Result<Option<Cow<'a, str>>, Invalid> {
    if r.kind()? == Kind::String { r.string().map(Some) } else { r.skip().map(|_| None) }
}

/// A whole number; anything else is skipped.
fn whole(r: &mut Reader<'_>) -> Result<Option<u64>, Invalid> {
    if r.kind()? == Kind::Number {
        let number = r.number()?;
        return Ok(number.parse().ok().or_else(|| {
            let number = number.parse::<f64>().ok()?;
            (0.0..9.0e15).contains(&number).then_some(number as u64)
        }));
    }
    r.skip().map(|_| None)
}

fn usage(r: &mut Reader<'_>) -> Result<Usage, Invalid> {
    let (mut prompt, mut completion, mut cached, mut written, mut reasoning) = (0, 0, 0, 0, 0);
    r.object(|r, key| {
        match key {
            "prompt_tokens" => prompt = whole(r)?.unwrap_or(0),
            "completion_tokens" => completion = whole(r)?.unwrap_or(0),
            // DeepSeek's own name; it has the details too.
            "prompt_cache_hit_tokens" => cached = whole(r)?.unwrap_or(0).max(cached),
            "prompt_tokens_details" | "completion_tokens_details" if r.kind()? == Kind::Object => {
                r.object(|r, key| {
                    match key {
                        "cached_tokens" => cached = whole(r)?.unwrap_or(0).max(cached),
                        // The second is a translating gateway's word for it.
                        "cache_write_tokens" | "cache_creation_tokens" => written = whole(r)?.unwrap_or(0).max(written),
                        "reasoning_tokens" => reasoning = whole(r)?.unwrap_or(0),
                        _ => {
                            r.skip()?;
                        }
                    }
                    Ok::<(), Invalid>(())
                })?;
            }
            _ => {
                r.skip()?;
            }
        }
        Ok::<(), Invalid>(())
    })?;
    Ok(Usage::from_inclusive(prompt, cached, written, completion, reasoning))
}

fn choice<'a>(r: &mut Reader<'a>, at: usize) -> Result<Choice<'a>, Invalid> {
    let mut out = Choice { index: at as u64, ..Choice::default() };
    let mut continuation = None;
    if r.kind()? != Kind::Object {
        r.skip()?;
        return Ok(out);
    }
    r.object(|r, key| {
        match key {
            // Of a legacy completion, which has neither `delta` nor `message`.
            "text" => continuation = text(r)?,
            "index" => out.index = whole(r)?.unwrap_or(out.index),
            "finish_reason" => out.finish = text(r)?.filter(|reason| !reason.is_empty()),
            // vLLM's name and SGLang's; the number of a token says nothing to a client.
            "stop_reason" | "matched_stop" => {
                if let Some(text) = text(r)?.filter(|text| !text.is_empty()) {
                    out.stop = Some(text);
                }
            }
            "delta" | "message" if r.kind()? == Kind::Object => {
                out.has_body = true;
                r.object(|r, key| body(r, key, &mut out))?;
            }
            "error" => out.error = Some(r.raw()?).filter(|raw| *raw != "null"),
            "logprobs" => out.unread |= r.raw()? != "null",
            _ => {
                r.skip()?;
            }
        }
        Ok::<(), Invalid>(())
    })?;
    if !out.has_body {
        out.content = continuation;
    }
    Ok(out)
}

fn body<'a>(r: &mut Reader<'a>, key: &str, out: &mut Choice<'a>) -> Result<(), Invalid> {
    match key {
        "role" => out.role = text(r)?.is_some(),
        "content" => match r.kind()? {
            Kind::Array => parts(r, out)?,
            Kind::String | Kind::Object | Kind::Number | Kind::Bool | Kind::Null => out.content = text(r)?,
        },
        // The same text by two names, where a server sends both.
        "reasoning_content" | "reasoning" => {
            out.unread |= key == "reasoning" && r.kind()? == Kind::String;
            if let Some(text) = text(r)?
                && out.reasoning.as_ref().is_none_or(|known| known.is_empty())
            {
                out.reasoning = Some(text);
            }
        }
        "refusal" => out.refusal = text(r)?,
        "tool_calls" => {
            if r.kind()? == Kind::Array {
                r.array(|r, _| {
                    let part = call(r)?;
                    out.calls.push(part);
                    Ok::<(), Invalid>(())
                })?;
            } else {
                r.skip()?;
            }
        }
        "function_call" => {
            if r.kind()? == Kind::Object {
                let mut part = CallPart { index: Some(0), legacy: true, ..CallPart::default() };
                function(r, &mut part)?;
                out.calls.push(part);
            } else {
                r.skip()?;
            }
        }
        "name" | "annotations" => out.unread |= !says_nothing(r.raw()?),
        "thinking_blocks" if r.kind()? == Kind::Array => {
            let before = out.thinking.len();
            r.array(|r, _| {
                let part = thinking(r)?;
                out.unread |= part.is_none();
                out.thinking.extend(part);
                Ok::<(), Invalid>(())
            })?;
            out.other |= out.thinking.len() > before || out.unread;
        }
        _ => {
            let says = !says_nothing(r.raw()?);
            out.other |= says;
            out.unread |= says;
        }
    }
    Ok(())
}

fn says_nothing(raw: &str) -> bool {
    matches!(raw, "null" | "\"\"" | "[]" | "{}" | "false")
}

/// An entry of `thinking_blocks`, if it is one that we write.
fn thinking<'a>(r: &mut Reader<'a>) -> Result<Option<ThinkingPart<'a>>, Invalid> {
    let mut part = ThinkingPart::default();
    let mut known = false;
    if r.kind()? != Kind::Object {
        r.skip()?;
        return Ok(None);
    }
    r.object(|r, key| {
        match key {
            "type" => known = text(r)?.is_some_and(|kind| matches!(&*kind, "thinking" | "redacted_thinking")),
            "thinking" => part.text = text(r)?,
            "signature" => part.signature = text(r)?.filter(|signature| !signature.is_empty()),
            "data" => part.data = text(r)?,
            _ => {
                r.skip()?;
            }
        }
        Ok::<(), Invalid>(())
    })?;
    Ok(known.then_some(part))
}

fn call<'a>(r: &mut Reader<'a>) -> Result<CallPart<'a>, Invalid> {
    let mut part = CallPart::default();
    if r.kind()? != Kind::Object {
        r.skip()?;
        return Ok(part);
    }
    r.object(|r, key| {
        match key {
            "index" => part.index = whole(r)?,
            "id" => part.id = text(r)?.filter(|id| !id.is_empty()),
            "type" => part.kind = text(r)?,
            "function" => function(r, &mut part)?,
            "custom" if r.kind()? == Kind::Object => {
                part.free = true;
                function(r, &mut part)?;
            }
            "extra_content" if r.kind()? == Kind::Object => extra(r, &mut part)?,
            _ => {
                r.skip()?;
            }
        }
        Ok::<(), Invalid>(())
    })?;
    Ok(part)
}

/// Gemini's proof of a call, as its own Chat endpoint has it, under either of its services' names.
fn extra<'a>(r: &mut Reader<'a>, part: &mut CallPart<'a>) -> Result<(), Invalid> {
    r.object(|r, key| {
        if !matches!(key, "google" | "vertex") || r.kind()? != Kind::Object {
            return r.skip().map(drop);
        }
        r.object(|r, key| {
            if key == "thought_signature" {
                part.proof = text(r)?.filter(|proof| !proof.is_empty());
                return Ok(());
            }
            r.skip().map(drop)
        })
    })
}

fn function<'a>(r: &mut Reader<'a>, part: &mut CallPart<'a>) -> Result<(), Invalid> {
    if r.kind()? != Kind::Object {
        return r.skip().map(|_| ());
    }
    r.object(|r, key| {
        match key {
            "name" => part.name = text(r)?.filter(|name| !name.is_empty()),
            "input" if part.free => part.arguments = text(r)?,
            "arguments" => {
                part.arguments = match r.kind()? {
                    Kind::String => Some(r.string()?),
                    // Some servers give the object itself.
                    Kind::Object => Some(Cow::Borrowed(r.raw()?)),
                    Kind::Array | Kind::Number | Kind::Bool | Kind::Null => {
                        r.skip()?;
                        None
                    }
                };
            }
            _ => {
                r.skip()?;
            }
        }
        Ok(())
    })
}

/// Content as a list of parts, which a few servers send: their texts, and their thinking, put together.
fn parts<'a>(r: &mut Reader<'a>, out: &mut Choice<'a>) -> Result<(), Invalid> {
    r.array(|r, _| {
        if r.kind()? != Kind::Object {
            return r.skip().map(|_| ());
        }
        r.object(|r, key| match key {
            "text" | "refusal" => {
                let place = if key == "text" { &mut out.content } else { &mut out.refusal };
                join(place, text(r)?);
                Ok(())
            }
            "thinking" if r.kind()? == Kind::String => {
                join(&mut out.reasoning, text(r)?);
                Ok(())
            }
            "thinking" if r.kind()? == Kind::Array => r.array(|r, _| {
                if r.kind()? != Kind::Object {
                    return r.skip().map(|_| ());
                }
                r.object(|r, key| {
                    if key != "text" {
                        return r.skip().map(|_| ());
                    }
                    join(&mut out.reasoning, text(r)?);
                    Ok(())
                })
            }),
            _ => r.skip().map(|_| ()),
        })
    })
}

fn join<'a>(place: &mut Option<Cow<'a, str>>, more: Option<Cow<'a, str>>) {
    match (place.as_mut(), more) {
        (_, None) => {}
        (None, more) => *place = more,
        (Some(text), Some(more)) => text.to_mut().push_str(&more),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_the_wrong_kind_are_skipped() {
        let chunk = read(
            br#"{"id":7,"object":null,"usage":[],"choices":[7,{"index":"x","delta":"y","finish_reason":""},
            {"delta":{"content":5,"tool_calls":{},"function_call":null,"audio":null}}]}"#,
        )
        .unwrap();
        assert_eq!((chunk.id, chunk.usage), (None, None));
        let choices = chunk.choices.unwrap();
        assert_eq!(choices.len(), 3);
        assert!(choices.iter().all(|choice| !choice.has_content() && choice.finish.is_none()));
    }

    #[test]
    fn content_in_parts_is_put_together() {
        let chunk = read(
            br#"{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},
            {"type":"text","text":"a"},{"type":"text","text":"b"}]}}]}"#,
        )
        .unwrap();
        let choices = chunk.choices.unwrap();
        assert_eq!(choices[0].content.as_deref(), Some("ab"));
        assert_eq!(choices[0].reasoning.as_deref(), Some("hm"));
    }

    #[test]
    fn cached_tokens_are_read_by_both_names() {
        for usage in [
            r#"{"prompt_tokens":9,"completion_tokens":2,"prompt_cache_hit_tokens":4}"#,
            r#"{"prompt_tokens":9.0,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":null}"#,
        ] {
            let text = format!(r#"{{"usage":{usage}}}"#);
            assert_eq!(read(text.as_bytes()).unwrap().usage, Some(Usage::from_inclusive(9, 4, 0, 2, 0)));
        }
    }

    #[test]
    fn an_error_is_found_in_its_three_places() {
        assert_eq!(read(br#"{"error":"x"}"#).unwrap().error, Some("\"x\""));
        assert_eq!(read(br#" {"object":"error","a":1} "#).unwrap().error, Some(r#"{"object":"error","a":1}"#));
        let chunk = read(br#"{"choices":[{"error":{"code":502}}],"error":null}"#).unwrap();
        assert_eq!(chunk.error, None);
        assert_eq!(chunk.choices.unwrap()[0].error, Some(r#"{"code":502}"#));
    }
}
