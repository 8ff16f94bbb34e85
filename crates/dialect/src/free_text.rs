//! Tools that take free text. Their calls are canonically calls of a function with the one string `input`, because only
//! OpenAI knows the other kind: what such a tool is given is wrapped on the way in and unwrapped on the way out.

use crate::json::{Invalid, Kind, Object, Reader};
use std::borrow::Cow;

/// The schema of the function that stands for such a tool.
pub const SCHEMA: &str = r#"{"type":"object","properties":{"input":{"type":"string","description":"The tool's whole input, as plain text."}},"required":["input"],"additionalProperties":false}"#;

/// What such a tool is described as where it is a function: the grammar of its text goes along in words, as there is no
/// other place for it. `format` is raw JSON in Responses' flat form.
pub fn describe(description: Option<&str>, format: Option<&str>) -> Option<String> {
    let (mut syntax, mut definition) = (None, None);
    let read = Reader::over(format.unwrap_or("{}")).object::<Invalid>(|r, key| {
        match (key, r.kind()?) {
            ("syntax", Kind::String) => syntax = Some(r.string()?),
            ("definition", Kind::String) => definition = Some(r.string()?),
            _ => r.skip().map(drop)?,
        }
        Ok(())
    });
    let grammar = definition.filter(|_| read.is_ok()).map(|definition| {
        let syntax = syntax.as_deref().unwrap_or("following");
        format!("The string `input` must keep to this {syntax} grammar:\n{definition}")
    });
    match (description, grammar) {
        (None, None) => None,
        (Some(description), None) => Some(description.to_owned()),
        (None, Some(grammar)) => Some(grammar),
        (Some(description), Some(grammar)) => Some(format!("{description}\n\n{grammar}")),
    }
}

/// Free text as canonical arguments.
pub fn wrap(input: &str) -> String {
    let mut out = Vec::with_capacity(input.len() + 16);
    Object::open(&mut out).string("input", input);
    // The writer writes UTF-8 only.
    String::from_utf8(out).unwrap_or_default()
}

/// The free text of canonical arguments. Arguments of another form, which a model may give, are the text themselves.
pub fn unwrap(arguments: &str) -> Cow<'_, str> {
    let mut input = None;
    let mut r = Reader::over(arguments);
    let mut empty = true;
    let read = r.object::<Invalid>(|r, key| {
        empty = false;
        if key == "input" && r.kind()? == Kind::String {
            input = Some(r.string()?);
            return Ok(());
        }
        r.skip().map(drop)
    });
    match (read.and_then(|()| r.end()), input) {
        (Ok(()), Some(input)) => input,
        (Ok(()), None) if empty => Cow::Borrowed(""),
        (Ok(()) | Err(_), _) => Cow::Borrowed(arguments),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn arguments_of_another_form_are_the_text_themselves() {
        for arguments in
            ["", "plain", "{\"input\":", "{\"input\":7}", "{\"other\":\"x\"}", "[\"x\"]", "{\"input\":\"x\"} y"]
        {
            assert_eq!(unwrap(arguments), arguments);
        }
        assert_eq!(unwrap("{}"), "");
        assert_eq!(unwrap(" {\"why\":1,\"input\":\"x\\n\"} "), "x\n");
    }

    #[test]
    fn a_grammar_is_told_in_words() {
        let format = r#"{"type":"grammar","syntax":"lark","definition":"start: \"a\""}"#;
        let told = "The string `input` must keep to this lark grammar:\nstart: \"a\"";
        assert_eq!(describe(None, Some(format)).as_deref(), Some(told));
        assert_eq!(describe(Some("Patches."), Some(format)), Some(format!("Patches.\n\n{told}")));
        assert_eq!(describe(Some("Patches."), Some(r#"{"type":"text"}"#)).as_deref(), Some("Patches."));
        assert_eq!(describe(None, None), None);
    }

    proptest! {
        #[test]
        fn every_text_comes_back(text in any::<String>()) {
            let wrapped = wrap(&text);
            prop_assert_eq!(&*unwrap(&wrapped), &text);
        }
    }
}
