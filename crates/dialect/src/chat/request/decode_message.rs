//! One Chat message as a canonical one. Thinking comes first, then content, then tool calls, as Messages wants them.

use super::decode::{hint, says_nothing};
use super::decode_tools::named;
use super::read::{missing, unknown_role};
use crate::json::{Invalid, Kind, Reader};
use crate::turn::{At, Body, Image, Message, Part, Role, Text, Turn};
use std::borrow::Cow;

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
    match (raw.reasoning.filter(|text| !text.is_empty()), blocks.as_mut_slice()) {
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
            raw.calls.push(Part { body: tool_call(r, hints)?, at: place, cache: None });
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
        "function_call" => raw.function_call = Some(function(r, hints, "messages[].function_call.")?),
        "audio" => {
            r.skip()?;
            raw.audio = true;
        }
        _ => named(r, hints, "messages[].", key)?,
    }
    Ok(())
}

fn content_part<'a>(r: &mut Reader<'a>, at: At, hints: &mut Vec<String>) -> Result<Part<'a>, Invalid> {
    let mut kind: Option<Text<'a>> = None;
    let (mut text, mut refusal, mut url, mut cache) = (None, None, None, None);
    r.object(|r, key| {
        match key {
            "type" => kind = Some(r.string()?),
            "text" if r.kind()? == Kind::String => text = Some(r.string()?),
            "refusal" if r.kind()? == Kind::String => refusal = Some(r.string()?),
            // Some clients give the address itself.
            "image_url" if r.kind()? == Kind::String => url = Some(r.string()?),
            "image_url" if r.kind()? == Kind::Object => r.object(|r, key| {
                match key {
                    "url" => url = Some(r.string()?),
                    "detail" => {
                        if r.raw()? != "\"auto\"" {
                            hint(hints, "messages[].content[].image_url.detail");
                        }
                    }
                    _ => named(r, hints, "messages[].content[].image_url.", key)?,
                }
                Ok::<(), Invalid>(())
            })?,
            "cache_control" => cache = Some(r.raw()?).filter(|raw| !says_nothing(raw)),
            "prompt_cache_breakpoint" if r.kind()? == Kind::Object => {
                cache = breakpoint(r, hints, "messages[].content[].")?.or(cache)
            }
            "input_audio" | "file" | "video_url" => {
                r.skip()?;
            }
            _ => named(r, hints, "messages[].content[].", key)?,
        }
        Ok::<(), Invalid>(())
    })?;
    let Some(kind) = kind else { return Err(missing(r, "type")) };
    let body = match kind.as_ref() {
        "text" => Body::Text(text.ok_or_else(|| missing(r, "text"))?),
        "refusal" => Body::Refusal(refusal.ok_or_else(|| missing(r, "refusal"))?),
        "image_url" => Body::Image(image(r, url.ok_or_else(|| missing(r, "image_url.url"))?)?),
        other => Body::Other(other.to_owned()),
    };
    Ok(Part { body, at, cache })
}

/// OpenAI's mark of where a prompt may be cached, in the form that a turn's marks have.
pub(crate) fn breakpoint<'a>(
    r: &mut Reader<'a>,
    hints: &mut Vec<String>,
    place: &str,
) -> Result<Option<&'a str>, Invalid> {
    let (mut explicit, mut hour) = (false, false);
    r.object(|r, key| {
        match (key, r.clone().raw()?) {
            ("mode", "\"explicit\"") => explicit = true,
            ("ttl", "\"1h\"") => hour = true,
            // What it is without saying so.
            ("ttl", "\"5m\"") => {}
            _ => return named(r, hints, &format!("{place}prompt_cache_breakpoint."), key),
        }
        r.skip().map(|_| ())
    })?;
    Ok(match (explicit, hour) {
        (true, false) => Some(r#"{"type":"ephemeral"}"#),
        (true, true) => Some(r#"{"type":"ephemeral","ttl":"1h"}"#),
        (false, _) => None,
    })
}

fn image<'a>(r: &Reader<'a>, url: Text<'a>) -> Result<Image<'a>, Invalid> {
    let begins = |start: &str| url.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start));
    if begins("http://") || begins("https://") {
        return Ok(Image::Url(url));
    }
    let wrong = |what: &str| {
        let mut error = r.fail(what);
        error.path.push_str(".image_url.url");
        error
    };
    if !begins("data:") {
        return Err(wrong("expected an http(s) or a data: URL"));
    }
    // data:image/png;base64,AAAA — other parameters may stand before `base64`.
    let (head, data) = url.split_once(',').ok_or_else(|| wrong("a data: URL without a comma"))?;
    let head = &head[5..];
    let (media_type, encoding) = head.split_once(';').unwrap_or((head, ""));
    let is_base64 = encoding.rsplit(';').next().is_some_and(|last| last.eq_ignore_ascii_case("base64"));
    if !is_base64 || media_type.is_empty() {
        return Err(wrong("expected data:<media type>;base64,<data>"));
    }
    let media_type = Cow::Owned(media_type.to_ascii_lowercase());
    let start = url.len() - data.len();
    let data = match url {
        Cow::Borrowed(url) => Cow::Borrowed(&url[start..]),
        Cow::Owned(mut url) => {
            url.drain(..start);
            Cow::Owned(url)
        }
    };
    Ok(Image::Data { media_type, data })
}

fn tool_call<'a>(r: &mut Reader<'a>, hints: &mut Vec<String>) -> Result<Body<'a>, Invalid> {
    let (mut id, mut inner, mut kind): (_, _, Option<Text<'a>>) = (None, None, None);
    r.object(|r, key| {
        match key {
            "id" => id = Some(r.string()?),
            "type" => kind = Some(r.string()?),
            "function" => inner = Some(function(r, hints, "messages[].tool_calls[].function.")?),
            "index" | "custom" => {
                r.skip()?;
            }
            _ => named(r, hints, "messages[].tool_calls[].", key)?,
        }
        Ok::<(), Invalid>(())
    })?;
    match (kind.as_deref(), id, inner) {
        (Some("function") | None, Some(id), Some((name, arguments))) => Ok(Body::ToolCall { id, name, arguments }),
        (Some("function") | None, None, _) => Err(missing(r, "id")),
        (Some("function") | None, Some(_), None) => Err(missing(r, "function")),
        (Some(other), ..) => Ok(Body::Other(other.to_owned())),
    }
}

fn function<'a>(r: &mut Reader<'a>, hints: &mut Vec<String>, place: &str) -> Result<(Text<'a>, Text<'a>), Invalid> {
    let (mut name, mut arguments) = (None, None);
    r.object(|r, key| {
        match key {
            "name" => name = Some(r.string()?),
            "arguments" => arguments = Some(r.string()?),
            _ => named(r, hints, place, key)?,
        }
        Ok::<(), Invalid>(())
    })?;
    let name = name.ok_or_else(|| missing(r, "name"))?;
    Ok((name, arguments.unwrap_or_default()))
}

/// Our extension, as we write it in answers; a form that we do not know is dropped by name, as a thought is no content.
fn thinking_block<'a>(r: &mut Reader<'a>, hints: &mut Vec<String>) -> Result<Option<Body<'a>>, Invalid> {
    let (mut kind, mut text, mut signature, mut data): (Option<Text<'a>>, _, _, _) = (None, None, None, None);
    r.object(|r, key| {
        match key {
            "type" => kind = r.optional_string()?,
            "thinking" => text = r.optional_string()?,
            "signature" => signature = r.optional_string()?,
            "data" => data = r.optional_string()?,
            // The block's number in its list.
            "index" => {
                r.skip()?;
            }
            _ => named(r, hints, "messages[].thinking_blocks[].", key)?,
        }
        Ok::<(), Invalid>(())
    })?;
    Ok(match (kind.as_deref(), data) {
        (Some("redacted_thinking"), Some(data)) => Some(Body::RedactedThinking(data)),
        (Some("thinking"), _) => Some(Body::Thinking { text: text.unwrap_or_default(), signature }),
        (Some(_) | None, _) => {
            hint(hints, "messages[].thinking_blocks");
            None
        }
    })
}
