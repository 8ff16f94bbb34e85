//! Going on from an answer that a Responses upstream keeps: the request names it and brings only what follows it. Every
//! other byte of the request stays.
//!
//! An answer can be gone on from if its upstream says that it keeps it (`store`). An upstream that does not know
//! `previous_response_id` may pass over it without a word, and would answer without the conversation; so what it repeats of
//! the request is looked at before anything of the answer is used ([`Link::is_of`]).

use crate::json::{Invalid, Kind, Reader, Span, write_string};
use crate::request::Edit;

/// What an answer says of the chain it is in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// The upstream keeps it.
    pub stored: bool,
    /// What it goes on from, in the upstream's words; `None` inside: from nothing. `None`: it has not said so far.
    pub previous: Option<Option<String>>,
}

impl Link {
    /// Whether the answer goes on from this one; `None` where it has not said.
    pub fn is_of(&self, previous: &str) -> Option<bool> {
        self.previous.as_ref().map(|named| named.as_deref() == Some(previous))
    }
}

/// The client lets its answer be kept: it does not say `store: false`.
pub fn lets_store(body: &[u8]) -> bool {
    let mut lets = true;
    let read = Reader::new(body).and_then(|mut r| {
        r.object::<Invalid>(|r, key| {
            match (key, r.kind()?) {
                ("store", Kind::Bool) => lets = r.bool()?,
                _ => r.skip().map(drop)?,
            }
            Ok(())
        })
    });
    read.is_ok() && lets
}

/// The edits that make a request go on from an answer with this id: of its `input` only what comes from item `from` on
/// stays. With `store` it asks that its own answer is kept, which is the usual where it says nothing. In order. `None` for
/// a body whose input cannot be cut there.
pub fn edits(body: &[u8], previous: Option<(&str, u32)>, store: bool) -> Option<Vec<Edit>> {
    let mut found = Found::default();
    let mut r = Reader::new(body).ok()?;
    r.kind().ok()?;
    let open = r.position();
    r.object::<Invalid>(|r, key| found.field(r, key, previous.map_or(0, |(_, from)| from))).ok()?;
    let mut fields = Vec::new();
    let mut out = Vec::new();
    let mut put = |name: &str, value: Vec<u8>, stands: Option<Span>| match stands {
        Some(span) => out.push(Edit { span, with: value }),
        None => {
            write_string(&mut fields, name);
            fields.push(b':');
            fields.extend_from_slice(&value);
            fields.push(b',');
        }
    };
    if store {
        put("store", b"true".to_vec(), found.store);
    }
    if let Some((previous, from)) = previous {
        let mut value = Vec::new();
        write_string(&mut value, previous);
        put("previous_response_id", value, found.previous);
        if from > 0 {
            let (first, rest) = (found.first?, found.rest?);
            out.push(Edit { span: first..rest, with: Vec::new() });
        }
    }
    if !fields.is_empty() {
        // Right behind the brace; the object has fields of its own, the model at least.
        out.push(Edit { span: open + 1..open + 1, with: fields });
    }
    out.sort_by_key(|edit| edit.span.start);
    Some(out)
}

/// The place of the first item behind the last answer, in the input of a request that was written here: of the answer are
/// messages of the assistant, reasoning and calls. `None` where there is no answer, or nothing behind it.
pub fn behind_last_answer(body: &[u8]) -> Option<u32> {
    let (mut last, mut count) = (None, 0);
    Reader::new(body)
        .and_then(|mut r| {
            r.object::<Invalid>(|r, key| {
                if key != "input" || r.kind()? != Kind::Array {
                    return r.skip().map(drop);
                }
                r.array::<Invalid>(|r, index| {
                    count = index + 1;
                    if is_answers(r)? {
                        last = Some(index);
                    }
                    Ok(())
                })
            })
        })
        .ok()?;
    let next = last? + 1;
    if next < count { u32::try_from(next).ok() } else { None }
}

/// The item at hand, which is read, is of an answer.
fn is_answers(r: &mut Reader<'_>) -> Result<bool, Invalid> {
    let mut own = false;
    r.object::<Invalid>(|r, key| {
        match (key, r.kind()?) {
            ("type", Kind::String) => {
                own |= matches!(&*r.string()?, "reasoning" | "function_call" | "custom_tool_call");
            }
            ("role", Kind::String) => own |= r.string()? == "assistant",
            _ => r.skip().map(drop)?,
        }
        Ok(())
    })?;
    Ok(own)
}

/// Where things stand in a body.
#[derive(Default)]
struct Found {
    store: Option<Span>,
    previous: Option<Span>,
    /// Where the first item of the input begins.
    first: Option<usize>,
    /// Where the first item that stays begins.
    rest: Option<usize>,
}

impl Found {
    fn field(&mut self, r: &mut Reader<'_>, key: &str, from: u32) -> Result<(), Invalid> {
        match key {
            "store" => self.store = Some(r.skip()?),
            "previous_response_id" => self.previous = Some(r.skip()?),
            "input" if r.kind()? == Kind::Array => {
                r.array::<Invalid>(|r, index| {
                    r.kind()?;
                    let start = r.position();
                    if index == 0 {
                        self.first = Some(start);
                    }
                    if u32::try_from(index) == Ok(from) {
                        self.rest = Some(start);
                    }
                    r.skip().map(drop)
                })?;
            }
            _ => {
                r.skip()?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::apply;
    use bytes::Bytes;

    fn edited(body: &'static str, previous: Option<(&str, u32)>) -> String {
        let edits = edits(body.as_bytes(), previous, previous.is_none()).unwrap();
        String::from_utf8(apply(&Bytes::from_static(body.as_bytes()), &edits).to_vec()).unwrap()
    }

    #[test]
    fn a_request_asks_that_its_answer_is_kept_and_all_else_stays() {
        assert_eq!(edited(r#"{ "model":"m", "input":"hi" }"#, None), r#"{"store":true, "model":"m", "input":"hi" }"#);
        assert_eq!(edited(r#"{"store" : null,"input":[]}"#, None), r#"{"store" : true,"input":[]}"#);
        assert_eq!(edited(r#"{"model":"m","store":false}"#, None), r#"{"model":"m","store":true}"#);
    }

    #[test]
    fn a_request_that_goes_on_names_the_answer_and_brings_what_follows_it() {
        let body = r#"{"model":"m","input":[ {"a":1}, {"b":[2]} , {"c":3} ],"store":true}"#;
        let expected = r#"{"previous_response_id":"resp_1","model":"m","input":[ {"c":3} ],"store":true}"#;
        assert_eq!(edited(body, Some(("resp_1", 2))), expected);
        let named = r#"{"previous_response_id":null,"store":true,"input":[{"c":3}]}"#;
        let expected = r#"{"previous_response_id":"a\"b","store":true,"input":[{"c":3}]}"#;
        assert_eq!(edited(named, Some(("a\"b", 0))), expected);
    }

    #[test]
    fn an_input_that_has_no_such_item_is_not_cut() {
        for body in [r#"{"input":"hi"}"#, r#"{"input":[{}]}"#, r#"{"model":"m"}"#] {
            assert_eq!(edits(body.as_bytes(), Some(("resp_1", 1)), true), None, "{body}");
        }
    }

    #[test]
    fn a_client_that_wants_nothing_stored_is_heeded() {
        assert!(
            lets_store(br#"{"model":"m"}"#) && lets_store(br#"{"store":null}"#) && lets_store(br#"{"store":true}"#)
        );
        assert!(!lets_store(br#"{"store":false}"#) && !lets_store(b"[]"));
    }

    #[test]
    fn what_is_new_stands_behind_the_last_item_of_an_answer() {
        let of = |items: &str| behind_last_answer(format!(r#"{{"input":[{items}]}}"#).as_bytes());
        let (user, assistant) = (r#"{"type":"message","role":"user"}"#, r#"{"type":"message","role":"assistant"}"#);
        let (call, result) = (r#"{"type":"function_call"}"#, r#"{"type":"function_call_output","output":"x"}"#);
        assert_eq!(of(&[user, assistant, user].join(",")), Some(2));
        assert_eq!(
            of(&[user, r#"{"type":"reasoning"}"#, assistant, call, call, result, result, user].join(",")),
            Some(5)
        );
        assert_eq!(of(user), None);
        assert_eq!(of(&[user, assistant].join(",")), None);
    }

    #[test]
    fn an_answer_goes_on_from_what_it_names() {
        let link = |previous| Link { stored: true, previous };
        assert_eq!(link(None).is_of("a"), None);
        assert_eq!(link(Some(None)).is_of("a"), Some(false));
        assert_eq!(link(Some(Some("b".into()))).is_of("a"), Some(false));
        assert_eq!(link(Some(Some("a".into()))).is_of("a"), Some(true));
    }
}
