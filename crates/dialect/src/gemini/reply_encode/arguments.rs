//! The arguments of a call as the object that Gemini has for them.

use crate::json::{Kind, Object, Reader};
use std::borrow::Cow;
use turnkeep_base::limit::MAX_DEPTH;

/// Levels of an answer around a call's arguments: the answer, its candidates, one of them, its content, the parts, one of
/// them, the call; and the array of a stream.
const AROUND: usize = 8;

/// The arguments as one line of JSON, always an object: none is `{}`, and what is no object (a model may write anything),
/// or is nested too deep for a reader of the answer, becomes the text `input` of one.
pub(super) fn object(arguments: &str) -> Cow<'_, str> {
    let trimmed = arguments.trim_ascii();
    if trimmed.is_empty() {
        return Cow::Borrowed("{}");
    }
    if is_object(trimmed) {
        // A line break outside of strings is white space; inside of them JSON has none.
        return if trimmed.contains(['\n', '\r']) {
            Cow::Owned(trimmed.replace(['\n', '\r'], " "))
        } else {
            Cow::Borrowed(trimmed)
        };
    }
    let mut out = Vec::new();
    Object::open(&mut out).string("input", arguments);
    String::from_utf8(out).map_or(Cow::Borrowed("{}"), Cow::Owned)
}

fn is_object(text: &str) -> bool {
    let mut r = Reader::over(text);
    let whole = r.kind() == Ok(Kind::Object) && r.skip().is_ok() && r.end().is_ok();
    whole && depth(text) <= MAX_DEPTH - AROUND
}

fn depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0usize, 0usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_stays_and_anything_else_becomes_one() {
        for (arguments, written) in [
            ("", "{}"),
            (" \n", "{}"),
            (r#"{"a":1.50}"#, r#"{"a":1.50}"#),
            ("{\n \"a\": \"\\n\"\r\n}", "{  \"a\": \"\\n\"  }"),
            ("[1]", r#"{"input":"[1]"}"#),
            ("7", r#"{"input":"7"}"#),
            (r#"{"a":"#, r#"{"input":"{\"a\":"}"#),
            (r#"{} {}"#, r#"{"input":"{} {}"}"#),
            ("say \"hi\"", r#"{"input":"say \"hi\""}"#),
        ] {
            assert_eq!(object(arguments), written, "{arguments}");
        }
    }

    #[test]
    fn what_is_nested_too_deep_for_a_reader_of_the_answer_becomes_text() {
        let nested = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1));
        assert_eq!(object(&nested(MAX_DEPTH - AROUND)), nested(MAX_DEPTH - AROUND));
        for levels in [MAX_DEPTH - AROUND + 1, 200, 10_000] {
            assert!(object(&nested(levels)).starts_with("{\"input\":\""), "{levels}");
        }
        let brackets = format!("{{\"a\":\"\\\"{}\"}}", "[".repeat(500));
        assert_eq!(object(&brackets), brackets);
    }
}
