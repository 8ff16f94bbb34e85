//! What a request says of things between turns, read in one pass before its dialect reads it.

use super::{items, metadata};
use turnkeep_dialect::json::{Invalid, Kind, Object, Reader, write_string};

/// An item of the input that stands for a stored one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reference {
    /// Its place in the input.
    pub(super) index: usize,
    /// The stored item's id.
    pub(super) id: String,
}

/// The fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State<'a> {
    pub(super) previous: Option<String>,
    pub(super) conversation: Option<String>,
    pub(super) store: bool,
    pub(super) background: bool,
    pub(super) stream: bool,
    pub(super) references: Vec<Reference>,
    /// The last item of the input asks for the conversation to be compacted; its place.
    pub(super) trigger: Option<usize>,
    /// The items of the input as they are written; a text is one of a user's message.
    pub(super) input: Vec<std::borrow::Cow<'a, str>>,
    /// Every field but those above that are taken out of a request before it goes on, in order.
    fields: Vec<(String, &'a str)>,
}

/// Items of one input that stand for stored ones, at most.
const REFERENCES: usize = 1_000;

/// The longest id that is looked for, in bytes.
const ID_BYTES: usize = 256;

impl<'a> State<'a> {
    /// Reads a request's body. What has nothing to do with state is the dialect's to check.
    pub(super) fn read(body: &'a [u8]) -> Result<State<'a>, Invalid> {
        let mut state = State {
            previous: None,
            conversation: None,
            store: true,
            background: false,
            stream: false,
            references: Vec::new(),
            trigger: None,
            input: Vec::new(),
            fields: Vec::new(),
        };
        let mut seen: Vec<&'static str> = Vec::new();
        let mut once = |r: &Reader<'_>, name: &'static str| {
            if seen.contains(&name) {
                return Err(r.fail("the field stands there twice; send it once"));
            }
            seen.push(name);
            Ok(())
        };
        let mut r = Reader::new(body)?;
        r.object::<Invalid>(|r, key| {
            match key {
                "previous_response_id" => {
                    once(r, "previous_response_id")?;
                    state.previous = id(r)?;
                }
                "conversation" => {
                    once(r, "conversation")?;
                    state.conversation = conversation(r)?;
                }
                "background" => {
                    once(r, "background")?;
                    state.background = !r.null()? && r.bool()?;
                }
                "store" => {
                    once(r, "store")?;
                    let mut ahead = r.clone();
                    state.store = ahead.null()? || ahead.bool()?;
                    state.fields.push((key.to_owned(), r.raw()?));
                }
                "stream" => {
                    once(r, "stream")?;
                    let mut ahead = r.clone();
                    state.stream = !ahead.null()? && ahead.bool()?;
                    state.fields.push((key.to_owned(), r.raw()?));
                }
                "metadata" => {
                    let mut ahead = r.clone();
                    if !ahead.null()? {
                        metadata::read(&mut ahead)?;
                    }
                    state.fields.push((key.to_owned(), r.raw()?));
                }
                "input" => {
                    once(r, "input")?;
                    state.read_input(&mut r.clone())?;
                    state.fields.push((key.to_owned(), r.raw()?));
                }
                other => {
                    let other = other.to_owned();
                    state.fields.push((other, r.raw()?));
                }
            }
            Ok(())
        })?;
        r.end()?;
        if state.previous.is_some() && state.conversation.is_some() {
            let message = "previous_response_id and conversation exclude each other; send one of them";
            return Err(Invalid { path: "previous_response_id".into(), message: message.into(), at: 0 });
        }
        Ok(state)
    }

    fn read_input(&mut self, r: &mut Reader<'a>) -> Result<(), Invalid> {
        match r.kind()? {
            Kind::String => self.input.push(text_message(&r.string()?).into()),
            Kind::Array => {
                let mut last_kind = None;
                r.array::<Invalid>(|r, index| {
                    if r.kind()? == Kind::Object {
                        let seen = seen(&mut r.clone())?;
                        if let Some(id) = seen.reference() {
                            if self.references.len() >= REFERENCES {
                                let message =
                                    format!("at most {REFERENCES} items of an input may stand for stored ones");
                                return Err(r.fail(message + "; send the items themselves"));
                            }
                            self.references.push(Reference { index, id: id.to_owned() });
                        }
                        last_kind = seen.kind;
                    } else {
                        last_kind = None;
                    }
                    self.input.push(r.raw()?.into());
                    Ok(())
                })?;
                if last_kind.as_deref() == Some("compaction_trigger") {
                    self.trigger = self.input.len().checked_sub(1);
                }
            }
            // The dialect says what is wrong.
            Kind::Object | Kind::Number | Kind::Bool | Kind::Null => {}
        }
        Ok(())
    }

    /// The body needs no change: it goes on as it came.
    pub(super) fn is_plain(&self) -> bool {
        self.previous.is_none() && self.conversation.is_none() && !self.background && self.references.is_empty()
    }

    /// The request with its history: what the upstream is to answer. A background one is streamed, so that what it says
    /// can be followed.
    pub(super) fn filled(&self, history: &[String], input: &[String]) -> Vec<u8> {
        let length: usize = history.iter().chain(input).map(|item| item.len() + 1).sum();
        let mut out = Vec::with_capacity(length + 256);
        let mut object = Object::open(&mut out);
        for (key, value) in &self.fields {
            if key != "input" && !(self.background && key == "stream") {
                object.raw(key, value);
            }
        }
        if self.background {
            object.bool("stream", true);
        }
        let mut items = object.array("input");
        for item in history.iter().chain(input) {
            items.raw(item);
        }
        drop(items);
        drop(object);
        out
    }
}

/// An id, or nothing for `null`.
fn id(r: &mut Reader<'_>) -> Result<Option<String>, Invalid> {
    let Some(id) = r.optional_string()? else { return Ok(None) };
    if id.is_empty() || id.len() > ID_BYTES {
        return Err(r.fail(format!("expected an id of 1 to {ID_BYTES} bytes, found one of {}", id.len())));
    }
    Ok(Some(id.into_owned()))
}

/// A conversation's id, bare or in an object.
fn conversation(r: &mut Reader<'_>) -> Result<Option<String>, Invalid> {
    if r.kind()? != Kind::Object {
        return match r.kind()? {
            Kind::String | Kind::Null => id(r),
            Kind::Object | Kind::Array | Kind::Number | Kind::Bool => {
                Err(r.fail("expected a conversation's id, or an object with it"))
            }
        };
    }
    let mut found = None;
    r.object::<Invalid>(|r, key| {
        if key == "id" {
            found = id(r)?;
        } else {
            r.skip()?;
        }
        Ok(())
    })?;
    if found.is_none() {
        return Err(r.fail("the object has no id; expected {\"id\": \"conv_…\"}"));
    }
    Ok(found)
}

/// What tells an item's kind.
struct Seen {
    kind: Option<String>,
    id: Option<String>,
    others: bool,
}

impl Seen {
    /// The id of the stored item that it stands for. Its type may be left out.
    fn reference(&self) -> Option<&str> {
        let named = self.kind.as_deref() == Some("item_reference");
        let bare = self.kind.is_none() && !self.others;
        self.id.as_deref().filter(|_| named || bare)
    }
}

fn seen(r: &mut Reader<'_>) -> Result<Seen, Invalid> {
    let mut seen = Seen { kind: None, id: None, others: false };
    r.object::<Invalid>(|r, key| {
        let is_text = matches!(r.kind()?, Kind::String);
        match key {
            "type" if is_text => seen.kind = Some(r.string()?.into_owned()),
            "id" if is_text => seen.id = Some(r.string()?.into_owned()),
            "type" | "id" => {
                r.skip()?;
            }
            _ => {
                seen.others = true;
                r.skip()?;
            }
        }
        Ok(())
    })?;
    if seen.kind.as_deref() == Some("item_reference") && seen.id.is_none() {
        return Err(r.fail("an item_reference has no id; send the id of a stored item, or the item itself"));
    }
    Ok(seen)
}

/// A text as the item that it is.
pub(super) fn text_message(text: &str) -> String {
    let mut out = br#"{"type":"message","role":"user","content":[{"type":"input_text","text":"#.to_vec();
    write_string(&mut out, text);
    out.extend_from_slice(b"}]}");
    items::text_of(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> State<'_> {
        State::read(body.as_bytes()).unwrap()
    }

    #[test]
    fn a_request_without_state_is_stored_and_goes_on_as_it_came() {
        let state = read(r#"{"model":"m","input":"hi"}"#);
        assert!(state.is_plain() && state.store && !state.background && !state.stream);
        assert_eq!(state.input, [r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}"#]);
        let null = r#"{"previous_response_id":null,"conversation":null,"store":null,"background":null,"stream":null}"#;
        assert!(read(null).is_plain() && read(null).store);
    }

    #[test]
    fn the_fields_of_state_are_read_in_every_form() {
        let state = read(r#"{"previous_response_id":"resp_1","store":false,"stream":true,"input":[]}"#);
        assert_eq!((state.previous.as_deref(), state.store, state.stream), (Some("resp_1"), false, true));
        assert!(!state.is_plain());
        for body in [r#"{"conversation":"conv_1"}"#, r#"{"conversation":{"id":"conv_1","x":1}}"#] {
            assert_eq!(read(body).conversation.as_deref(), Some("conv_1"), "{body}");
        }
        assert!(read(r#"{"background":true}"#).background);
    }

    #[test]
    fn a_wrong_type_is_named_with_its_path() {
        for (body, path) in [
            (r#"{"previous_response_id":7}"#, "previous_response_id"),
            (r#"{"previous_response_id":""}"#, "previous_response_id"),
            (r#"{"conversation":7}"#, "conversation"),
            (r#"{"conversation":["conv_1"]}"#, "conversation"),
            (r#"{"conversation":{}}"#, "conversation"),
            (r#"{"conversation":{"id":1}}"#, "conversation.id"),
            (r#"{"store":"no"}"#, "store"),
            (r#"{"background":1}"#, "background"),
            (r#"{"stream":"yes"}"#, "stream"),
            (r#"{"store":true,"store":false}"#, "store"),
            (r#"{"previous_response_id":"a","conversation":"b"}"#, "previous_response_id"),
            (r#"{"input":[{"role":"user","content":"a"},{"type":"item_reference"}]}"#, "input[1]"),
            (r#"{"metadata":{"k":1}}"#, "metadata.k"),
            (r#"["input"]"#, ""),
        ] {
            let error = State::read(body.as_bytes()).unwrap_err();
            assert_eq!(error.path, path, "{body}: {error}");
        }
        let both = State::read(br#"{"previous_response_id":"a","conversation":"b"}"#).unwrap_err();
        assert!(both.message.contains("conversation"), "{both}");
    }

    #[test]
    fn references_are_found_with_their_type_or_by_being_nothing_but_an_id() {
        let state = read(
            r#"{"input":[{"type":"item_reference","id":"msg_1"},{"role":"user","content":"x","id":"m"},{"id":"rs_1"}]}"#,
        );
        let found = |index, id: &str| Reference { index, id: id.into() };
        assert_eq!(state.references, [found(0, "msg_1"), found(2, "rs_1")]);
        assert!(!state.is_plain());
    }

    #[test]
    fn more_references_than_a_request_may_have_are_refused_at_the_first_that_is_too_many() {
        let body = |count: usize| format!(r#"{{"input":[{}]}}"#, vec![r#"{"id":"a"}"#; count].join(","));
        assert_eq!(read(&body(REFERENCES)).references.len(), REFERENCES);
        let error = State::read(body(100 * REFERENCES).as_bytes()).unwrap_err();
        assert_eq!(error.path, "input[1000]", "{error}");
        assert!(error.message.contains("at most 1000 items"), "{error}");
    }

    #[test]
    fn only_the_last_item_asks_for_compaction() {
        let last = read(r#"{"input":[{"role":"user","content":"x"},{"type":"compaction_trigger"}]}"#);
        assert_eq!(last.trigger, Some(1));
        let first = read(r#"{"input":[{"type":"compaction_trigger"},{"role":"user","content":"x"}]}"#);
        assert_eq!(first.trigger, None);
    }

    #[test]
    fn a_filled_request_has_its_history_first_and_names_no_state() {
        let body = r#"{"model":"m","previous_response_id":"resp_1","input":"next","background":true,"stream":false,"temperature":1.0}"#;
        let state = read(body);
        let input: Vec<String> = state.input.iter().map(|item| item.to_string()).collect();
        let filled = String::from_utf8(state.filled(&[r#"{"role":"user","content":"one"}"#.into()], &input)).unwrap();
        let next = r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"next"}]}"#;
        let expected = format!(
            r#"{{"model":"m","temperature":1.0,"stream":true,"input":[{{"role":"user","content":"one"}},{next}]}}"#
        );
        assert_eq!(filled, expected);
    }
}
