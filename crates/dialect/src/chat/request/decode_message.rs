//! One Chat message as a canonical one. Thinking comes first, then content, then tool calls, as Messages wants them.

use super::decode::hint;
use super::decode_calls::{function, tool_call};
use super::decode_content::content_part;
use super::decode_thinking::{details, thinking_block};
use super::decode_tools::named;
use super::missing;
use super::read::unknown_role;
use crate::json::{Invalid, Kind, Reader};
use crate::turn::{At, Body, Message, Part, Role, Text, Turn};

/// Calls of the old `function_call`, which have no ids: the name and the made id of the last one.
#[derive(Default)]
pub(super) struct Legacy<'a> {
    last: Option<(Text<'a>, String)>,
}

#[derive(Default)]
struct Raw<'a> {
    role: Option<Text<'a>>,
    parts: Vec<Part<'a>>,
    calls: Vec<Part<'a>>,
    call_id: Option<Text<'a>>,
    name: Option<Text<'a>>,
    refusal: Option<Text<'a>>,
    reasoning: Option<Text<'a>>,
    /// The texts of OpenRouter's `reasoning_details`, which as a rule repeat the reasoning.
    details: String,
    blocks: Vec<Body<'a>>,
    function_call: Option<(Text<'a>, Text<'a>)>,
    audio: bool,
}

pub(super) fn message<'a>(
    r: &mut Reader<'a>,
    at: usize,
    turn: &mut Turn<'a>,
    legacy: &mut Legacy<'a>,
) -> Result<(), Invalid> {
    let index = at as u32;
    let mut raw = Raw::default();
    r.object(|r, key| field(r, key, index, &mut raw, &mut turn.hints))?;
    let place = At::Message(index);
    let Some(role) = raw.role.take() else { return Err(missing(r, "role")) };
    let part = |body| Part { body, at: place, cache: None };
    let is_function = role == "function";
    if !is_function && raw.name.is_some() {
        hint(&mut turn.hints, "messages[].name");
    }
    let (role, parts) = match role.as_ref() {
        "system" | "developer" => (Role::System, raw.parts),
        "user" => (Role::User, raw.parts),
        "assistant" => (Role::Assistant, assistant(raw, place, index, legacy)),
        "tool" => {
            let Some(id) = raw.call_id else { return Err(missing(r, "tool_call_id")) };
            (Role::User, vec![part(Body::ToolResult { id, content: raw.parts, is_error: false })])
        }
        "function" => match legacy.last.take() {
            Some((name, id)) if Some(&name) == raw.name.as_ref() => {
                (Role::User, vec![part(Body::ToolResult { id: id.into(), content: raw.parts, is_error: false })])
            }
            Some(_) | None => return Err(r.fail("a `function` message without its `function_call` right before")),
        },
        other => return Err(unknown_role(r, other)),
    };
    turn.messages.push(Message { role, at: place, parts });
    Ok(())
}

fn assistant<'a>(raw: Raw<'a>, place: At, index: u32, legacy: &mut Legacy<'a>) -> Vec<Part<'a>> {
    let part = |body| Part { body, at: place, cache: None };
    let mut out: Vec<Part<'a>> = Vec::new();
    let mut blocks = raw.blocks;
    let blank = |body: &Body<'a>| matches!(body, Body::Thinking { text, .. } if text.is_empty());
    let details = Some(raw.details).filter(|text| !text.is_empty()).map(Text::from);
    match (raw.reasoning.filter(|text| !text.is_empty()).or(details), blocks.as_mut_slice()) {
        (Some(text), []) => blocks.push(Body::Thinking { text, signature: None }),
        // A stream gives the text and its signature apart; with one block they belong together. With several the texts
        // cannot be told apart any more, and the signatures stand for them.
        (Some(text), blocks) => {
            let mut thinking = blocks.iter_mut().filter(|body| matches!(body, Body::Thinking { .. }));
            if let (Some(only), None) = (thinking.next(), thinking.next())
                && blank(only)
                && let Body::Thinking { text: place, .. } = only
            {
                *place = text;
            }
        }
        (None, _) => {}
    }
    once(&mut blocks, &raw.calls);
    out.extend(blocks.into_iter().map(part));
    let says_more = raw.refusal.is_some() || !raw.calls.is_empty() || raw.function_call.is_some() || !out.is_empty();
    let empty = |part: &Part<'a>| matches!(&part.body, Body::Text(text) if text.is_empty());
    out.extend(raw.parts.into_iter().filter(|part| !(says_more && empty(part))));
    out.extend(raw.refusal.map(|text| part(Body::Refusal(text))));
    if raw.audio {
        out.push(part(Body::Other("audio".into())));
    }
    out.extend(raw.calls);
    if let Some((name, arguments)) = raw.function_call {
        let id = format!("call_message_{index}");
        legacy.last = Some((name.clone(), id.clone()));
        out.push(part(Body::ToolCall { id: id.into(), name, arguments }));
    }
    out
}

/// Where a block repeats the proof of a call, the call's stays.
fn once<'a>(blocks: &mut Vec<Body<'a>>, calls: &[Part<'a>]) {
    let at_call = |proof: &Text<'a>| {
        calls.iter().any(|part| matches!(&part.body, Body::Thinking { signature: Some(known), .. } if known == proof))
    };
    blocks.retain_mut(|body| match body {
        Body::Thinking { text, signature } if signature.as_ref().is_some_and(at_call) => {
            *signature = None;
            !text.is_empty()
        }
        Body::Text(_)
        | Body::Image(_)
        | Body::File(_)
        | Body::ToolCall { .. }
        | Body::ToolResult { .. }
        | Body::Thinking { .. }
        | Body::RedactedThinking(_)
        | Body::Refusal(_)
        | Body::Other(_) => true,
    });
}

fn field<'a>(
    r: &mut Reader<'a>,
    key: &str,
    index: u32,
    raw: &mut Raw<'a>,
    hints: &mut Vec<String>,
) -> Result<(), Invalid> {
    if key != "role" && r.null()? {
        return Ok(());
    }
    match key {
        "role" => raw.role = Some(r.string()?),
        "content" => {
            if r.kind()? == Kind::String {
                let at = At::Content { message: index, part: 0 };
                raw.parts = vec![Part { body: Body::Text(r.string()?), at, cache: None }];
            } else {
                raw.parts.clear();
                r.array(|r, at| {
                    raw.parts.push(content_part(r, At::Content { message: index, part: at as u32 }, hints)?);
                    Ok::<(), Invalid>(())
                })?;
            }
        }
        "tool_calls" => r.array(|r, at| {
            let place = At::Call { message: index, call: at as u32 };
            let (proof, call) = tool_call(r, hints)?;
            raw.calls.extend(proof.into_iter().chain([call]).map(|body| Part { body, at: place, cache: None }));
            Ok::<(), Invalid>(())
        })?,
        "tool_call_id" => raw.call_id = Some(r.string()?),
        "name" => raw.name = Some(r.string()?),
        "refusal" => raw.refusal = Some(r.string()?),
        // One text under two names, as a rule; of two texts the first name's counts.
        "reasoning_content" | "reasoning" if r.kind()? == Kind::String => {
            let text = r.string()?;
            let known = raw.reasoning.take().filter(|known| !known.is_empty());
            if known.as_ref().is_some_and(|known| *known != text && !text.is_empty()) {
                hint(hints, "messages[].reasoning");
            }
            raw.reasoning = if key == "reasoning" || text.is_empty() { known.or(Some(text)) } else { Some(text) };
        }
        "thinking_blocks" if r.kind()? == Kind::Array => r.array(|r, _| {
            raw.blocks.extend(thinking_block(r, hints)?);
            Ok::<(), Invalid>(())
        })?,
        "reasoning_details" if r.kind()? == Kind::Array => details(r, &mut raw.details, hints)?,
        "function_call" => raw.function_call = Some(function(r, hints, "messages[].function_call.")?),
        "audio" => {
            r.skip()?;
            raw.audio = true;
        }
        _ => named(r, hints, "messages[].", key)?,
    }
    Ok(())
}
