//! The calls in a message of the assistant.

use super::decode_tools::named;
use super::missing;
use crate::envelope;
use crate::free_text;
use crate::json::{Invalid, Kind, Reader};
use crate::turn::{Body, Text};
use std::borrow::Cow;
use turnkeep_base::Dialect;

/// A call, and the proof of Gemini's that stands before it.
pub(super) fn tool_call<'a>(
    r: &mut Reader<'a>,
    hints: &mut Vec<String>,
) -> Result<(Option<Body<'a>>, Body<'a>), Invalid> {
    let (mut id, mut inner, mut custom, mut kind): (_, _, _, Option<Text<'a>>) = (None, None, None, None);
    let mut proof = None;
    r.object(|r, key| {
        match key {
            "id" => id = Some(r.string()?),
            "type" => kind = Some(r.string()?),
            "function" if r.kind()? == Kind::Object => {
                inner = Some(function(r, hints, "messages[].tool_calls[].function.")?);
            }
            "custom" if r.kind()? == Kind::Object => custom = Some(free(r, hints)?),
            "extra_content" if r.kind()? == Kind::Object => proof = extra(r, hints)?,
            "index" | "function" | "custom" => {
                r.skip()?;
            }
            _ => named(r, hints, "messages[].tool_calls[].", key)?,
        }
        Ok::<(), Invalid>(())
    })?;
    let is_custom = kind.as_deref() == Some("custom");
    let body = match (kind.as_deref(), if is_custom { custom } else { inner }) {
        (Some("function" | "custom") | None, Some((name, arguments))) => {
            let id = id.ok_or_else(|| missing(r, "id"))?;
            Body::ToolCall { id, name, arguments }
        }
        (Some("custom"), None) => return Err(missing(r, "custom")),
        (Some("function") | None, None) => return Err(missing(r, "function")),
        (Some(other), _) => Body::Other(other.to_owned()),
    };
    let proof = proof.map(|proof: Text<'a>| Body::Thinking {
        text: Cow::Borrowed(""),
        signature: Some(Cow::Owned(envelope::seal(Dialect::Gemini, &proof).into_owned())),
    });
    Ok((proof, body))
}

/// The call of a tool that takes free text.
fn free<'a>(r: &mut Reader<'a>, hints: &mut Vec<String>) -> Result<(Text<'a>, Text<'a>), Invalid> {
    let (mut name, mut input): (Option<Text<'a>>, Option<Text<'a>>) = (None, None);
    r.object(|r, key| {
        match key {
            "name" => name = Some(r.string()?),
            "input" => input = Some(r.string()?),
            _ => named(r, hints, "messages[].tool_calls[].custom.", key)?,
        }
        Ok::<(), Invalid>(())
    })?;
    let name = name.ok_or_else(|| missing(r, "name"))?;
    Ok((name, free_text::wrap(&input.unwrap_or_default()).into()))
}

/// Gemini's proof of a call, as its own Chat endpoint has it, under either of its services' names.
fn extra<'a>(r: &mut Reader<'a>, hints: &mut Vec<String>) -> Result<Option<Text<'a>>, Invalid> {
    let mut proof = None;
    r.object(|r, key| {
        if !matches!(key, "google" | "vertex") || r.kind()? != Kind::Object {
            return named(r, hints, "messages[].tool_calls[].extra_content.", key);
        }
        r.object(|r, key| {
            if key == "thought_signature" && r.kind()? == Kind::String {
                proof = Some(r.string()?).filter(|proof| !proof.is_empty());
                return Ok(());
            }
            named(r, hints, "messages[].tool_calls[].extra_content.google.", key)
        })
    })?;
    Ok(proof)
}

pub(super) fn function<'a>(
    r: &mut Reader<'a>,
    hints: &mut Vec<String>,
    place: &str,
) -> Result<(Text<'a>, Text<'a>), Invalid> {
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
