//! State in a conversation that only its provider can read: signed or redacted thinking, encrypted reasoning, thought
//! signatures. It belongs to the account, or
//! the organisation, that made it; others refuse it and must not be sent it. Which account made it is not known here:
//! whoever remembers that decides, and strips it by the functions below where it would go elsewhere.

use crate::envelope::{self, PREFIX};
use crate::json::{Invalid, Kind, Reader, Span};
use crate::request::{ClientRequest, Edit};
use crate::turn::{Body, Turn};
use memchr::memmem;
use turnkeep_base::Dialect;

/// What stands for an assistant's message of which nothing is left, as one without content is refused.
const NOTHING_LEFT: &[u8] = br#"{"type":"text","text":"..."}"#;

/// Which thinking is stripped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// What the gateway's own envelope marks: no upstream of the client's own dialect made it, and none takes it.
    Enveloped,
    /// All that is signed or redacted, for a turn that goes to another owner than made it.
    All,
}

/// The proof binds what it stands for to the account that made it. Chat upstreams sign nothing: their mark says only
/// where the thinking came from.
fn is_bound(proof: &str) -> bool {
    match envelope::origin(proof) {
        Some(Dialect::Responses | Dialect::Messages | Dialect::Gemini) => true,
        Some(Dialect::Chat) | None => false,
    }
}

/// The body holds thinking with a proof of its provider's.
fn is_state(body: &Body<'_>) -> bool {
    match body {
        Body::Thinking { text: _, signature } => signature.as_deref().is_some_and(is_bound),
        Body::RedactedThinking(data) => is_bound(data),
        Body::Text(_)
        | Body::Image(_)
        | Body::File(_)
        | Body::ToolCall { .. }
        | Body::ToolResult { .. }
        | Body::Refusal(_)
        | Body::Other(_) => false,
    }
}

/// The turn carries thinking with a proof of its provider's.
pub fn has_opaque_state(turn: &Turn<'_>) -> bool {
    turn.messages.iter().flat_map(|message| &message.parts).any(|part| is_state(&part.body))
}

/// Takes that thinking out of a turn, for an upstream of another owner. What was taken is to be named as dropped
/// (`thinking`); false when there was none.
pub fn strip_opaque_state(turn: &mut Turn<'_>) -> bool {
    let before: usize = turn.messages.iter().map(|message| message.parts.len()).sum();
    turn.messages.iter_mut().for_each(|message| message.parts.retain(|part| !is_state(&part.body)));
    before > turn.messages.iter().map(|message| message.parts.len()).sum()
}

/// The edits that take thinking out of a body that passes as it is: in order, and none where there is nothing to take, so
/// that every other byte stays. In Chat it stands in `thinking_blocks` and, if it is Gemini's, in a call's `extra_content`;
/// without a mark it cannot be told from what a Chat upstream itself gave.
pub fn strip_edits(request: &ClientRequest, which: Foreign) -> Vec<Edit> {
    let needles: [&[u8]; 2] = match (request.dialect, which) {
        (Dialect::Chat, Foreign::All) => [b"thinking_blocks", b"thought_signature"],
        (Dialect::Chat | Dialect::Messages, Foreign::Enveloped) => [PREFIX.as_bytes(); 2],
        (Dialect::Responses, which) => return crate::responses::request::foreign_reasoning(request, which),
        (Dialect::Gemini, which) => return crate::gemini::request::foreign_signatures(request, which),
        (Dialect::Messages, Foreign::All) => [b"thinking"; 2],
    };
    if needles.iter().all(|needle| memmem::find(&request.body, needle).is_none()) {
        return Vec::new();
    }
    let mut edits = Vec::new();
    match read(request, which, &mut edits) {
        Ok(()) => edits,
        // Never for a body that was checked.
        Err(_) => Vec::new(),
    }
}

fn read(request: &ClientRequest, which: Foreign, edits: &mut Vec<Edit>) -> Result<(), Invalid> {
    Reader::new(&request.body)?.object::<Invalid>(|r, key| {
        if key != "messages" || r.kind()? != Kind::Array {
            return r.skip().map(drop);
        }
        r.array::<Invalid>(|r, _| {
            if r.kind()? != Kind::Object {
                return r.skip().map(drop);
            }
            r.object::<Invalid>(|r, key| match (request.dialect, key, r.kind()?) {
                (Dialect::Chat, "thinking_blocks", Kind::Array) => {
                    if which == Foreign::Enveloped {
                        return foreign_blocks(r, which, b"", edits);
                    }
                    let span = r.skip()?;
                    if request.body[span.clone()].contains(&b'{') {
                        edits.push(Edit { span, with: b"[]".to_vec() });
                    }
                    Ok(())
                }
                (Dialect::Chat, "tool_calls", Kind::Array) if which == Foreign::All => {
                    r.array::<Invalid>(|r, _| googles_proof(r, &request.body, edits))
                }
                (Dialect::Messages, "content", Kind::Array) => foreign_blocks(r, which, NOTHING_LEFT, edits),
                _ => r.skip().map(drop),
            })
        })
    })
}

/// Takes the foreign thinking out of a list of blocks.
fn foreign_blocks(
    r: &mut Reader<'_>,
    which: Foreign,
    nothing_left: &[u8],
    edits: &mut Vec<Edit>,
) -> Result<(), Invalid> {
    let mut blocks = Vec::new();
    r.array::<Invalid>(|r, _| {
        let foreign = is_foreign(&mut r.clone(), which)?;
        r.kind()?;
        blocks.push((r.skip()?, foreign));
        Ok(())
    })?;
    without(&blocks, nothing_left, edits);
    Ok(())
}

/// Takes Gemini's proof of a call out of a call of Chat, where it stands in `extra_content`.
fn googles_proof(r: &mut Reader<'_>, body: &[u8], edits: &mut Vec<Edit>) -> Result<(), Invalid> {
    if r.kind()? != Kind::Object {
        return r.skip().map(drop);
    }
    r.object::<Invalid>(|r, key| {
        r.kind()?;
        let span = r.skip()?;
        if key == "extra_content" && memmem::find(&body[span.clone()], b"thought_signature").is_some() {
            edits.push(Edit { span, with: b"{}".to_vec() });
        }
        Ok(())
    })
}

/// Whether a block of a Messages body, or of Chat's `thinking_blocks`, is to be taken out.
fn is_foreign(r: &mut Reader<'_>, which: Foreign) -> Result<bool, Invalid> {
    if r.kind()? != Kind::Object {
        return Ok(false);
    }
    let (mut thinking, mut redacted, mut proof, mut data) = (false, false, String::new(), String::new());
    r.object::<Invalid>(|r, key| {
        match (key, r.kind()?) {
            ("type", Kind::String) => {
                let kind = r.string()?;
                (thinking, redacted) = (kind == "thinking", kind == "redacted_thinking");
            }
            ("signature", Kind::String) => proof = r.string()?.into_owned(),
            ("data", Kind::String) => data = r.string()?.into_owned(),
            _ => r.skip().map(drop)?,
        }
        Ok(())
    })?;
    let enveloped = |proof: &str| proof.starts_with(PREFIX);
    Ok(match which {
        Foreign::All => thinking || redacted,
        Foreign::Enveloped => (thinking && enveloped(&proof)) || (redacted && enveloped(&data)),
    })
}

/// Edits that take the marked blocks out of their list, with the commas that parted them; `nothing_left` stands for all
/// of them where no other is left.
pub(crate) fn without(blocks: &[(Span, bool)], nothing_left: &[u8], edits: &mut Vec<Edit>) {
    let mut cut = |span: Span, with: &[u8]| edits.push(Edit { span, with: with.to_vec() });
    let mut kept: Option<&Span> = None;
    // Where the run of marked blocks at hand begins.
    let mut run: Option<&Span> = None;
    for (span, marked) in blocks {
        if *marked {
            run = run.or(Some(span));
        } else {
            if let Some(first) = run.take() {
                cut(first.start..span.start, b"");
            }
            kept = Some(span);
        }
    }
    if let (Some(first), Some((last, _))) = (run, blocks.last()) {
        match kept {
            Some(kept) => cut(kept.end..last.end, b""),
            None => cut(first.start..last.end, nothing_left),
        }
    }
}
