//! Tool arguments where Messages wants a JSON object and all we have is a text that should be one.

use crate::json::{Kind, Object, Reader};
use std::borrow::Cow;

/// Writes arguments as an object field: the text itself when it is an object, `{}` when there is none, and otherwise
/// `{"_raw": "<the text>"}`, so that nothing the model said is lost and the document stays valid.
pub(super) fn write(object: &mut Object<'_>, key: &str, arguments: &str) {
    let text = arguments.trim();
    if text.is_empty() || text == "null" {
        object.raw(key, "{}");
    } else if is_object(text) {
        object.raw(key, &whole(text));
    } else {
        object.object(key).string("_raw", arguments);
    }
}

/// The text is one valid JSON object.
pub(crate) fn is_object(text: &str) -> bool {
    let mut r = Reader::over(text);
    matches!(r.kind(), Ok(Kind::Object)) && r.skip().is_ok() && r.end().is_ok()
}

/// JSON without escapes of half a character, for which many parsers refuse the whole document; such a half becomes the
/// replacement character, as it does wherever a text is read.
fn whole(json: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = json.get(at..).and_then(|rest| rest.find('\\')) {
        at += found;
        let next = match (unit(json, at), unit(json, at + 6)) {
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => at + 12,
            (Some(0xd800..0xe000), _) => {
                out.push_str(json.get(copied..at).unwrap_or_default());
                out.push_str("\\ufffd");
                copied = at + 6;
                at + 6
            }
            // Any other escape, also that of a backslash, whose second half begins none.
            (Some(_) | None, _) => at + 2,
        };
        at = next;
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    out.push_str(json.get(copied..).unwrap_or_default());
    Cow::Owned(out)
}

/// The number in an escape of the form `\u0041` at a place, if there is one.
fn unit(json: &str, at: usize) -> Option<u16> {
    let digits = json.get(at..at.checked_add(6)?)?.strip_prefix("\\u")?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_character_becomes_the_replacement_character_and_nothing_else_changes() {
        for (json, wanted) in [
            (r#"{"a":"\ud800"}"#, r#"{"a":"\ufffd"}"#),
            (r#"{"a":"\uD83D\ude00 \udc00\ud800x"}"#, r#"{"a":"\uD83D\ude00 \ufffd\ufffdx"}"#),
            (r#"{"a":"\\ud800 \n\u0041é"}"#, r#"{"a":"\\ud800 \n\u0041é"}"#),
            (r#"{"\ud800\ud83d\ude00":1}"#, r#"{"\ufffd\ud83d\ude00":1}"#),
        ] {
            assert_eq!(whole(json), wanted);
        }
    }
}
