//! Thinking that a Chat client sends back, in the forms that servers of this dialect give it.

use super::decode::{hint, says_nothing};
use super::decode_tools::named;
use crate::json::{Invalid, Kind, Reader};
use crate::turn::{Body, Text};

/// Our extension, as we write it in answers; a form that we do not know is dropped by name, as a thought is no content.
pub(super) fn thinking_block<'a>(r: &mut Reader<'a>, hints: &mut Vec<String>) -> Result<Option<Body<'a>>, Invalid> {
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

/// OpenRouter's form: the texts are taken, which stand in `reasoning` too, as a rule. What only its own upstreams can
/// read, and their signatures, are named as dropped.
pub(super) fn details(r: &mut Reader<'_>, texts: &mut String, hints: &mut Vec<String>) -> Result<(), Invalid> {
    r.array(|r, _| {
        if r.kind()? != Kind::Object {
            hint(hints, "messages[].reasoning_details");
            return r.skip().map(drop);
        }
        r.object(|r, key| match key {
            "text" | "summary" => {
                texts.push_str(&r.optional_string()?.unwrap_or_default());
                Ok(())
            }
            "type" | "index" | "id" | "format" => r.skip().map(drop),
            _ => {
                if !says_nothing(r.raw()?) {
                    hint(hints, "messages[].reasoning_details");
                }
                Ok(())
            }
        })
    })
}
