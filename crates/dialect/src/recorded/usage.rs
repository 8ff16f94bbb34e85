//! The usage of a plain answer that has none, put into its bytes; every other byte stays.

use super::Recorded;
use crate::json::{Invalid, Object, Reader, Span};
use crate::request::{Edit, apply};
use crate::{chat, gemini, messages, responses};
use bytes::Bytes;
use turnkeep_base::{Dialect, Usage};

/// The body with this usage, in the place of a `null` or at its end.
pub(super) fn inserted(recorded: &Recorded, usage: &Usage) -> Result<Bytes, Invalid> {
    let mut field = Vec::new();
    {
        let mut object = Object::open(&mut field);
        match recorded.dialect {
            Dialect::Chat => chat::reply_encode::write_usage(&mut object, usage),
            Dialect::Messages => messages::write_usage(&mut object, usage),
            Dialect::Responses => responses::reply_encode::write_usage(&mut object, usage),
            Dialect::Gemini => gemini::reply_encode::write_usage(&mut object, usage),
        }
    }
    let (key, other) = match recorded.dialect {
        Dialect::Chat | Dialect::Messages | Dialect::Responses => ("usage", "usage"),
        Dialect::Gemini => ("usageMetadata", "usage_metadata"),
    };
    // The field without the braces of the object it was written into.
    let field = field.get(1..field.len().saturating_sub(1)).unwrap_or_default();
    let value = field.get(key.len() + 3..).unwrap_or_default();
    let (mut there, mut any): (Option<Span>, bool) = (None, false);
    let mut r = Reader::new(&recorded.bytes)?;
    r.object::<Invalid>(|r, name| {
        any = true;
        r.kind()?;
        let span = r.skip()?;
        if name == key || name == other {
            there = Some(span);
        }
        Ok(())
    })?;
    let end = r.position().saturating_sub(1);
    let edit = match there {
        Some(span) => Edit { span, with: value.to_vec() },
        None => {
            let comma: &[u8] = if any { b"," } else { b"" };
            Edit { span: end..end, with: [comma, field].concat() }
        }
    };
    Ok(apply(&recorded.bytes, &[edit]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::Facts;

    const USAGE: Usage = Usage { input: 7, cache_read: 2, cache_write: 1, output: 5, reasoning: 3 };

    fn with(dialect: Dialect, body: &'static str) -> String {
        let record =
            Recorded { dialect, stream: false, bytes: Bytes::from_static(body.as_bytes()), facts: Facts::default() };
        String::from_utf8(inserted(&record, &USAGE).unwrap().to_vec()).unwrap()
    }

    #[test]
    fn responses_and_gemini_get_it_in_their_own_words() {
        let responses = r#"{"input_tokens":10,"input_tokens_details":{"cached_tokens":2,"cache_write_tokens":1},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":3},"total_tokens":15}"#;
        assert_eq!(
            with(Dialect::Responses, r#"{"id":"r","usage":null,"x":1}"#),
            format!(r#"{{"id":"r","usage":{responses},"x":1}}"#)
        );
        assert_eq!(with(Dialect::Responses, r#"{"id":"r" }"#), format!(r#"{{"id":"r" ,"usage":{responses}}}"#));
        let gemini = r#"{"promptTokenCount":10,"cachedContentTokenCount":2,"candidatesTokenCount":2,"thoughtsTokenCount":3,"totalTokenCount":15}"#;
        assert_eq!(with(Dialect::Gemini, "{}"), format!(r#"{{"usageMetadata":{gemini}}}"#));
        assert_eq!(with(Dialect::Gemini, r#"{"usage_metadata":null}"#), format!(r#"{{"usage_metadata":{gemini}}}"#));
    }
}
