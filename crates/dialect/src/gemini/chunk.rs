//! One Gemini chunk, or one whole answer, which have one form: the fields that mean something, borrowed, in both
//! spellings. What has another kind than it should is skipped, not refused. Only text that is not JSON, or no object, is
//! malformed.

use super::classify;
use crate::json::{Invalid, Kind, Reader};
use crate::reply::ReplyFault;
use std::borrow::Cow;
use turnkeep_base::Usage;

#[derive(Debug, Default)]
pub(super) struct Chunk<'a> {
    pub(super) id: Option<Cow<'a, str>>,
    pub(super) model: Option<Cow<'a, str>>,
    /// `None` when there is no such array.
    pub(super) candidates: Option<Vec<Candidate<'a>>>,
    pub(super) counts: Option<Counts>,
    /// The prompt was blocked for its content.
    pub(super) blocked: bool,
    /// A top-level `error` that is not null, also of a list of one.
    pub(super) error: Option<&'a str>,
}

#[derive(Debug, Default)]
pub(super) struct Candidate<'a> {
    pub(super) index: u64,
    pub(super) finish: Option<Cow<'a, str>>,
    pub(super) message: Option<Cow<'a, str>>,
    pub(super) parts: Vec<Part<'a>>,
    /// Something that a client may read and that the fields here do not hold.
    pub(super) unread: bool,
}

#[derive(Debug, Default)]
pub(super) struct Part<'a> {
    pub(super) thought: bool,
    pub(super) signature: Option<Cow<'a, str>>,
    /// One, by the protocol.
    pub(super) data: Vec<Data<'a>>,
}

#[derive(Debug)]
pub(super) enum Data<'a> {
    Text(Cow<'a, str>),
    Call(Call<'a>),
    /// Bytes that stand in the answer.
    Media {
        mime: Cow<'a, str>,
        /// How many.
        bytes: usize,
    },
    /// Code that the provider ran, in this language.
    Code {
        language: Cow<'a, str>,
        code: Cow<'a, str>,
    },
    /// What that code wrote.
    Output(Cow<'a, str>),
    /// Anything else that the model made.
    Other,
}

#[derive(Debug, Default)]
pub(super) struct Call<'a> {
    pub(super) id: Option<Cow<'a, str>>,
    pub(super) name: Option<Cow<'a, str>>,
    /// As JSON text; `None` means no arguments.
    pub(super) args: Option<Cow<'a, str>>,
    /// It comes in pieces, which Vertex does on request.
    pub(super) in_pieces: bool,
}

/// Token counts as they are written; a later chunk's replace an earlier one's, field by field.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    prompt: Option<u64>,
    cached: Option<u64>,
    tools: Option<u64>,
    candidates: Option<u64>,
    thoughts: Option<u64>,
}

impl Counts {
    pub(super) fn after(self, earlier: Option<Counts>) -> Counts {
        let earlier = earlier.unwrap_or_default();
        Counts {
            prompt: self.prompt.or(earlier.prompt),
            cached: self.cached.or(earlier.cached),
            tools: self.tools.or(earlier.tools),
            candidates: self.candidates.or(earlier.candidates),
            thoughts: self.thoughts.or(earlier.thoughts),
        }
    }

    /// The prompt's count includes what was cached, and what the provider's own tools put in is input too; the
    /// candidates' count does not include the thoughts.
    pub(super) fn usage(self) -> Usage {
        let of = |count: Option<u64>| count.unwrap_or(0);
        let prompt = of(self.prompt).saturating_add(of(self.tools));
        let thoughts = of(self.thoughts);
        Usage::from_inclusive(prompt, of(self.cached), 0, of(self.candidates).saturating_add(thoughts), thoughts)
    }
}

impl Candidate<'_> {
    /// Bytes that the model made.
    pub(super) fn content_bytes(&self) -> u64 {
        let data = self.parts.iter().flat_map(|part| &part.data);
        data.map(|data| data.bytes() as u64).sum()
    }

    /// It carries something that the model made.
    pub(super) fn has_content(&self) -> bool {
        self.parts.iter().flat_map(|part| &part.data).any(Data::is_something)
    }

    /// It calls a tool.
    pub(super) fn calls(&self) -> bool {
        self.parts.iter().flat_map(|part| &part.data).any(|data| matches!(data, Data::Call(_)))
    }
}

impl Data<'_> {
    fn bytes(&self) -> usize {
        match self {
            Data::Text(text) | Data::Output(text) => text.len(),
            Data::Call(call) => call.args.as_ref().map_or(0, |args| args.len()),
            Data::Code { code, .. } => code.len(),
            Data::Media { bytes, .. } => *bytes,
            Data::Other => 0,
        }
    }

    fn is_something(&self) -> bool {
        match self {
            Data::Text(text) => !text.is_empty(),
            Data::Call(_) | Data::Media { .. } | Data::Code { .. } | Data::Output(_) | Data::Other => true,
        }
    }
}

/// Reads a chunk or an answer. An error in it, and a prompt blocked for its content, are faults.
pub(super) fn read(data: &[u8]) -> Result<Chunk<'_>, ReplyFault> {
    let chunk = parse(data).map_err(|invalid| ReplyFault::malformed(invalid.to_string()))?;
    if let Some(error) = chunk.error {
        return Err(classify::in_stream(error.as_bytes()));
    }
    if chunk.blocked
        && let Some(fault) = classify::blocked(data)
    {
        return Err(fault);
    }
    Ok(chunk)
}

/// The fault in bytes of a stream that are no event: Google writes an error as plain JSON where events should be.
pub(super) fn bare_error(raw: &[u8]) -> Result<(), ReplyFault> {
    if !matches!(raw.trim_ascii_start().first(), Some(b'{' | b'[')) {
        return Ok(());
    }
    match parse(raw) {
        Ok(Chunk { error: Some(error), .. }) => Err(classify::in_stream(error.as_bytes())),
        Ok(_) | Err(_) => Ok(()),
    }
}

fn parse(data: &[u8]) -> Result<Chunk<'_>, Invalid> {
    let mut r = Reader::new(data)?;
    if r.kind()? != Kind::Array {
        let chunk = chunk(&mut r)?;
        r.end()?;
        return Ok(chunk);
    }
    let mut found = Chunk::default();
    let start = r.clone();
    r.array(|r, _| {
        if r.kind()? != Kind::Object {
            return r.skip().map(drop);
        }
        let chunk = chunk(r)?;
        if found.error.is_none() {
            found = chunk;
        }
        Ok::<(), Invalid>(())
    })?;
    r.end()?;
    if found.error.is_some() { Ok(found) } else { Err(start.fail("expected an object, found an array")) }
}

fn chunk<'a>(r: &mut Reader<'a>) -> Result<Chunk<'a>, Invalid> {
    let mut chunk = Chunk::default();
    r.object(|r, key| {
        match key {
            "responseId" | "response_id" => chunk.id = text(r)?.filter(|id| !id.is_empty()),
            "modelVersion" | "model_version" => chunk.model = text(r)?.filter(|model| !model.is_empty()),
            "usageMetadata" | "usage_metadata" if r.kind()? == Kind::Object => chunk.counts = Some(counts(r)?),
            "promptFeedback" | "prompt_feedback" if r.kind()? == Kind::Object => r.object(|r, key| {
                if matches!(key, "blockReason" | "block_reason") {
                    chunk.blocked = text(r)?.is_some();
                    return Ok(());
                }
                r.skip().map(drop)
            })?,
            "candidates" if r.kind()? == Kind::Array => {
                let mut candidates = Vec::new();
                r.array(|r, at| {
                    candidates.push(candidate(r, at)?);
                    Ok::<(), Invalid>(())
                })?;
                chunk.candidates = Some(candidates);
            }
            "error" => {
                r.kind()?;
                chunk.error = Some(r.raw()?).filter(|raw| *raw != "null");
            }
            _ => r.skip().map(drop)?,
        }
        Ok::<(), Invalid>(())
    })?;
    Ok(chunk)
}

fn candidate<'a>(r: &mut Reader<'a>, at: usize) -> Result<Candidate<'a>, Invalid> {
    let mut candidate = Candidate { index: at as u64, ..Candidate::default() };
    if r.kind()? != Kind::Object {
        r.skip()?;
        return Ok(candidate);
    }
    r.object(|r, key| {
        match key {
            "index" => candidate.index = whole(r)?.unwrap_or(at as u64),
            "finishReason" | "finish_reason" => candidate.finish = text(r)?.filter(|reason| !reason.is_empty()),
            "finishMessage" | "finish_message" => candidate.message = text(r)?,
            "content" if r.kind()? == Kind::Object => r.object(|r, key| {
                if key != "parts" || r.kind()? != Kind::Array {
                    return r.skip().map(drop);
                }
                r.array(|r, _| {
                    candidate.parts.push(part(r)?);
                    Ok(())
                })
            })?,
            "content" | "safetyRatings" | "safety_ratings" | "avgLogprobs" | "avg_logprobs" | "tokenCount"
            | "token_count" => r.skip().map(drop)?,
            _ => candidate.unread |= !r.null()? && r.skip().map(|_| true)?,
        }
        Ok::<(), Invalid>(())
    })?;
    Ok(candidate)
}

fn part<'a>(r: &mut Reader<'a>) -> Result<Part<'a>, Invalid> {
    let mut part = Part::default();
    if r.kind()? != Kind::Object {
        r.skip()?;
        return Ok(part);
    }
    r.object(|r, key| {
        let object = r.kind()? == Kind::Object;
        match key {
            "text" => part.data.extend(text(r)?.map(Data::Text)),
            "thought" if r.kind()? == Kind::Bool => part.thought = r.bool()?,
            "thoughtSignature" | "thought_signature" => part.signature = text(r)?.filter(|text| !text.is_empty()),
            "functionCall" | "function_call" if object => part.data.push(Data::Call(call(r)?)),
            "inlineData" | "inline_data" if object => {
                let [mime, data] = texts(r, [&["mimeType", "mime_type"], &["data"]])?;
                let padding = data.bytes().rev().take_while(|byte| *byte == b'=').count();
                part.data.push(Data::Media { mime, bytes: (data.len() - padding) * 3 / 4 });
            }
            "executableCode" | "executable_code" if object => {
                let [language, code] = texts(r, [&["language"], &["code"]])?;
                part.data.push(Data::Code { language, code });
            }
            "codeExecutionResult" | "code_execution_result" if object => {
                let [output, _] = texts(r, [&["output"], &[]])?;
                part.data.push(Data::Output(output));
            }
            "fileData" | "file_data" | "functionResponse" | "function_response" | "toolCall" | "tool_call"
            | "toolResponse" | "tool_response"
                if object =>
            {
                r.skip()?;
                part.data.push(Data::Other);
            }
            _ => r.skip().map(drop)?,
        }
        Ok::<(), Invalid>(())
    })?;
    Ok(part)
}

fn call<'a>(r: &mut Reader<'a>) -> Result<Call<'a>, Invalid> {
    let mut call = Call::default();
    r.object(|r, key| {
        match key {
            "id" => call.id = text(r)?.filter(|id| !id.is_empty()),
            "name" => call.name = text(r)?.filter(|name| !name.is_empty()),
            "args" => {
                call.args = match r.kind()? {
                    Kind::Null => r.skip().map(|_| None)?,
                    // Some servers write the arguments as Chat does.
                    Kind::String => r.string().map(Some)?,
                    Kind::Object | Kind::Array | Kind::Number | Kind::Bool => Some(Cow::Borrowed(r.raw()?)),
                }
            }
            "partialArgs" | "partial_args" => call.in_pieces |= !matches!(r.raw()?, "null" | "[]"),
            "willContinue" | "will_continue" => call.in_pieces |= r.raw()? == "true",
            _ => r.skip().map(drop)?,
        }
        Ok::<(), Invalid>(())
    })?;
    Ok(call)
}

fn counts(r: &mut Reader<'_>) -> Result<Counts, Invalid> {
    let mut counts = Counts::default();
    r.object(|r, key| {
        let field = match key {
            "promptTokenCount" | "prompt_token_count" => &mut counts.prompt,
            "cachedContentTokenCount" | "cached_content_token_count" => &mut counts.cached,
            "toolUsePromptTokenCount" | "tool_use_prompt_token_count" => &mut counts.tools,
            "candidatesTokenCount" | "candidates_token_count" => &mut counts.candidates,
            "thoughtsTokenCount" | "thoughts_token_count" => &mut counts.thoughts,
            _ => return r.skip().map(drop),
        };
        *field = whole(r)?;
        Ok::<(), Invalid>(())
    })?;
    Ok(counts)
}

/// The two string fields of an object, empty where there is none.
fn texts<'a>(r: &mut Reader<'a>, names: [&[&str]; 2]) -> Result<[Cow<'a, str>; 2], Invalid> {
    let [first, second] = names;
    let mut found = [Cow::Borrowed(""), Cow::Borrowed("")];
    r.object(|r, key| {
        let [one, two] = &mut found;
        let place = if first.contains(&key) {
            one
        } else if second.contains(&key) {
            two
        } else {
            return r.skip().map(drop);
        };
        if let Some(text) = text(r)? {
            *place = text;
        }
        Ok::<(), Invalid>(())
    })?;
    Ok(found)
}

/// A string; anything else is skipped.
fn text<'a>(r: &mut Reader<'a>) -> Result<Option<Cow<'a, str>>, Invalid> {
    if r.kind()? == Kind::String { r.string().map(Some) } else { r.skip().map(|_| None) }
}

/// A whole number, also one in quotes; anything else is skipped.
fn whole(r: &mut Reader<'_>) -> Result<Option<u64>, Invalid> {
    match r.kind()? {
        Kind::Number => {
            let number = r.number()?;
            Ok(number.parse().ok().or_else(|| {
                let number = number.parse::<f64>().ok()?;
                (0.0..9.0e15).contains(&number).then_some(number as u64)
            }))
        }
        Kind::String => Ok(r.string()?.parse().ok()),
        Kind::Object | Kind::Array | Kind::Bool | Kind::Null => r.skip().map(|_| None),
    }
}
