//! The order that a Gemini stream keeps, as a state machine that says what breaks it; and the form of whole answers. It
//! is stricter than what we accept from upstreams, because it judges what the gateway itself writes.
//!
//! A stream of events is judged frame by frame, an array by [`array`], a whole answer by [`body`].

use super::finish::REASONS;
use crate::json::{Invalid, Kind, Reader};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::collections::{BTreeMap, BTreeSet};
use turnkeep_wire::sse::Frame;

/// Watches one answer.
#[derive(Debug, Default)]
pub struct Order {
    model: Option<String>,
    id: Option<String>,
    /// By index, whether it has finished.
    candidates: BTreeMap<u64, bool>,
    /// The ids of the calls.
    calls: BTreeSet<String>,
    failed: bool,
}

/// What breaks the order.
struct Broken(String);

impl From<Invalid> for Broken {
    fn from(invalid: Invalid) -> Self {
        Broken(invalid.to_string())
    }
}

fn check(good: bool, what: impl Into<String>) -> Result<(), Broken> {
    if good { Ok(()) } else { Err(Broken(what.into())) }
}

/// Judges a whole answer.
pub fn body(body: &[u8]) -> Result<(), String> {
    let mut order = Order::default();
    order.chunk(body)?;
    order.finish()
}

/// Judges a stream in the form of an array, which must be whole.
pub fn array(bytes: &[u8]) -> Result<(), String> {
    let mut order = Order::default();
    let read = |order: &mut Order| -> Result<(), Broken> {
        let mut r = Reader::new(bytes)?;
        r.array(|r, _| order.element(r))?;
        r.end().map_err(Broken::from)
    };
    read(&mut order).map_err(|Broken(what)| what)?;
    order.finish()
}

impl Order {
    /// Takes a frame; the error tells what may not stand there. A blank line may stand anywhere.
    pub fn frame(&mut self, frame: &Frame) -> Result<(), String> {
        let Some(data) = frame.data.as_deref() else {
            let blank = frame.raw.trim_ascii().is_empty();
            return if blank { Ok(()) } else { Err("a line without data, which some clients read as JSON".into()) };
        };
        if frame.event.is_some() {
            return Err("a named event; Gemini has none".into());
        }
        if data.contains(&b'\n') {
            return Err("data of several lines".into());
        }
        self.chunk(data)
    }

    fn chunk(&mut self, data: &[u8]) -> Result<(), String> {
        let mut read = || -> Result<(), Broken> {
            let mut r = Reader::new(data)?;
            self.element(&mut r)?;
            r.end().map_err(Broken::from)
        };
        read().map_err(|Broken(what)| what)
    }

    fn finished(&self) -> bool {
        !self.candidates.is_empty() && self.candidates.values().all(|finished| *finished)
    }

    fn element(&mut self, r: &mut Reader<'_>) -> Result<(), Broken> {
        check(!self.failed, "a chunk after an error")?;
        let (mut model, mut id, mut error) = (None, None, false);
        r.object(|r, key| {
            match key {
                "candidates" => r.array(|r, _| self.candidate(r))?,
                "usageMetadata" => usage(r)?,
                "modelVersion" => model = Some(r.string()?.into_owned()),
                "responseId" => id = Some(r.string()?.into_owned()),
                "error" => {
                    status(r)?;
                    error = true;
                }
                _ => r.skip().map(drop)?,
            }
            Ok::<(), Broken>(())
        })?;
        if error {
            check(!self.finished(), "an error after the finishReason")?;
            self.failed = true;
            return Ok(());
        }
        check(model.is_some() && id.is_some(), "a chunk without modelVersion or responseId")?;
        check(
            (self.model.is_none() || self.model == model) && (self.id.is_none() || self.id == id),
            "modelVersion or responseId changed",
        )?;
        (self.model, self.id) = (model, id);
        Ok(())
    }

    fn candidate(&mut self, r: &mut Reader<'_>) -> Result<(), Broken> {
        let (mut index, mut reason, mut parts) = (0, None, None);
        r.object(|r, key| {
            match key {
                "index" => index = r.u64()?,
                "finishReason" => reason = Some(r.string()?.into_owned()),
                "content" => parts = Some(self.content(r)?),
                _ => r.skip().map(drop)?,
            }
            Ok::<(), Broken>(())
        })?;
        let finished = self.candidates.entry(index).or_default();
        check(!*finished, format!("candidate {index}: a chunk after its finishReason"))?;
        // Clients leave a turn out of their history of which a chunk has no part.
        check(parts != Some(0) && (parts.is_some() || reason.is_some()), format!("candidate {index} without parts"))?;
        if let Some(reason) = reason {
            check(REASONS.contains(&reason.as_str()), format!("the finishReason is {reason}"))?;
            *finished = true;
        }
        Ok(())
    }

    /// Tells how many parts there are.
    fn content(&mut self, r: &mut Reader<'_>) -> Result<usize, Broken> {
        let (mut parts, mut role) = (0, None);
        r.object(|r, key| {
            match key {
                "role" => role = Some(r.string()?.into_owned()),
                "parts" => r.array(|r, _| {
                    parts += 1;
                    self.part(r)
                })?,
                _ => r.skip().map(drop)?,
            }
            Ok::<(), Broken>(())
        })?;
        check(role.as_deref() == Some("model"), format!("the role is {role:?}"))?;
        Ok(parts)
    }

    fn part(&mut self, r: &mut Reader<'_>) -> Result<(), Broken> {
        let mut data = 0;
        r.object(|r, key| {
            match key {
                "text" => {
                    r.string()?;
                    data += 1;
                }
                "functionCall" => {
                    self.call(r)?;
                    data += 1;
                }
                "inlineData"
                | "fileData"
                | "functionResponse"
                | "executableCode"
                | "codeExecutionResult"
                | "toolCall"
                | "toolResponse" => {
                    check(r.kind()? == Kind::Object, format!("{key} that is no object"))?;
                    r.skip()?;
                    data += 1;
                }
                "thought" => r.bool().map(drop)?,
                "thoughtSignature" => {
                    let signature = r.string()?;
                    check(
                        !signature.is_empty() && STANDARD.decode(&*signature).is_ok(),
                        "a thoughtSignature that is no base 64",
                    )?;
                }
                _ => r.skip().map(drop)?,
            }
            Ok::<(), Broken>(())
        })?;
        check(data == 1, format!("a part with {data} data fields"))
    }

    fn call(&mut self, r: &mut Reader<'_>) -> Result<(), Broken> {
        let (mut id, mut name) = (None, None);
        r.object(|r, key| {
            match key {
                "id" => id = Some(r.string()?.into_owned()),
                "name" => name = Some(r.string()?.into_owned()),
                "args" => {
                    check(r.kind()? == Kind::Object, "args that are no object")?;
                    r.skip()?;
                }
                _ => return Err(Broken(format!("a function call with `{key}`"))),
            }
            Ok(())
        })?;
        check(name.is_some_and(|name| !name.is_empty()), "a function call without a name")?;
        match id {
            None => Ok(()),
            Some(id) => check(!id.is_empty() && self.calls.insert(id), "an id of a call that is not its own"),
        }
    }

    /// The stream is at its end: every candidate must have finished, or an error ended it.
    pub fn finish(&self) -> Result<(), String> {
        if self.failed || self.finished() {
            Ok(())
        } else {
            Err("the stream ended without a finishReason and without an error".into())
        }
    }
}

fn usage(r: &mut Reader<'_>) -> Result<(), Broken> {
    let [mut prompt, mut candidates, mut thoughts, mut tools] = [0u64; 4];
    let mut total = None;
    r.object(|r, key| {
        match key {
            "promptTokenCount" => prompt = r.u64()?,
            "candidatesTokenCount" => candidates = r.u64()?,
            "thoughtsTokenCount" => thoughts = r.u64()?,
            "toolUsePromptTokenCount" => tools = r.u64()?,
            "totalTokenCount" => total = Some(r.u64()?),
            _ => r.skip().map(drop)?,
        }
        Ok::<(), Broken>(())
    })?;
    let sum = [candidates, thoughts, tools].iter().fold(prompt, |sum, count| sum.saturating_add(*count));
    check(total == Some(sum), format!("totalTokenCount is {total:?} and its parts make {sum}"))
}

/// A `google.rpc.Status`.
fn status(r: &mut Reader<'_>) -> Result<(), Broken> {
    let [mut code, mut message, mut word] = [false; 3];
    r.object(|r, key| {
        match key {
            "code" => code = r.u64().map(|_| true)?,
            "message" => message = r.string().map(|_| true)?,
            "status" => word = r.string().map(|_| true)?,
            _ => r.skip().map(drop)?,
        }
        Ok::<(), Broken>(())
    })?;
    check(code && message && word, "an error without code, message or status")
}
