//! Items as they are stored, shown and sent again. They stay the text that they were, but for their ids.

use turnkeep_dialect::json::{Invalid, Kind, Object, Reader};

/// JSON that we have written, as text.
pub(super) fn text_of(bytes: Vec<u8>) -> String {
    match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}

/// The value of a top-level string field.
pub(super) fn string_field(object: &str, name: &str) -> Option<String> {
    let mut found = None;
    let mut r = Reader::over(object);
    let read = r.object::<Invalid>(|r, key| {
        if key == name && r.kind()? == Kind::String {
            found = Some(r.string()?.into_owned());
        } else {
            r.skip()?;
        }
        Ok(())
    });
    read.ok().and(found)
}

/// The text of a top-level field.
pub(super) fn raw_field<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    let mut found = None;
    let mut r = Reader::over(object);
    let read = r.object::<Invalid>(|r, key| {
        let value = r.raw()?;
        if key == name {
            found = Some(value);
        }
        Ok(())
    });
    read.ok().and(found)
}

/// The elements of an array.
pub(super) fn elements(array: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut r = Reader::over(array);
    match r.array::<Invalid>(|r, _| {
        out.push(r.raw()?);
        Ok(())
    }) {
        Ok(()) => out,
        Err(_) => Vec::new(),
    }
}

/// The items that a response object holds as its output.
pub(super) fn outputs(response: &str) -> Vec<&str> {
    raw_field(response, "output").map(elements).unwrap_or_default()
}

/// The item as a later request sends it: without the id, which its upstream does not know. Reasoning that nobody can
/// read any more, as nothing but its summary is there, is left out. A request for approval keeps its id, for the approval
/// names it.
pub(super) fn for_history(item: &str) -> Option<String> {
    let kind = string_field(item, "type");
    match kind.as_deref() {
        Some("mcp_approval_request") => return Some(item.to_owned()),
        Some("reasoning") => {
            let sealed = string_field(item, "encrypted_content").is_some();
            let told = raw_field(item, "content").is_some_and(|content| !elements(content).is_empty());
            if !sealed && !told {
                return None;
            }
        }
        Some("compaction_trigger") => return None,
        Some(_) | None => {}
    }
    let mut out = Vec::with_capacity(item.len());
    let mut r = Reader::over(item);
    let mut object = Object::open(&mut out);
    let read = r.object::<Invalid>(|r, key| {
        let key = key.to_owned();
        let value = r.raw()?;
        if key != "id" {
            object.raw(&key, value);
        }
        Ok(())
    });
    drop(object);
    // What is no object is not ours to change; the dialect says what is wrong with it.
    Some(if read.is_ok() { text_of(out) } else { item.to_owned() })
}

/// The item as it is stored and shown: with its own id, or with one of this maker and number, which no item of the answer
/// has; a message with its type, and a text as the
/// list that it is.
pub(super) fn with_id(item: &str, maker: &str, number: usize) -> String {
    let (id, kind) = (string_field(item, "id"), string_field(item, "type"));
    let is_message = kind.as_deref().is_none_or(|kind| kind == "message");
    let id = id.unwrap_or_else(|| format!("{}_{maker}_i{number}", prefix(kind.as_deref())));
    let assistant = string_field(item, "role").is_some_and(|role| role == "assistant");
    let mut out = Vec::with_capacity(item.len() + 64);
    let mut r = Reader::over(item);
    let mut object = Object::open(&mut out);
    object.string("id", &id);
    if kind.is_none() {
        object.string("type", "message");
    }
    let read = r.object::<Invalid>(|r, key| {
        let key = key.to_owned();
        if key == "content" && is_message && r.kind()? == Kind::String {
            let text = r.string()?;
            let mut parts = object.array("content");
            let mut part = parts.object();
            part.string("type", if assistant { "output_text" } else { "input_text" });
            part.string("text", &text);
            if assistant {
                part.raw("annotations", "[]");
            }
            return Ok(());
        }
        let value = r.raw()?;
        if key != "id" && !(key == "type" && kind.is_none()) {
            object.raw(&key, value);
        }
        Ok(())
    });
    drop(object);
    if read.is_ok() { text_of(out) } else { item.to_owned() }
}

fn prefix(kind: Option<&str>) -> &'static str {
    match kind {
        None | Some("message") => "msg",
        Some("function_call") => "fc",
        Some("function_call_output") => "fco",
        Some("custom_tool_call") => "ctc",
        Some("custom_tool_call_output") => "ctco",
        Some("reasoning") => "rs",
        Some(_) => "item",
    }
}

/// The maker that an id of [`with_id`] names.
pub(super) fn maker_of(id: &str) -> Option<&str> {
    let (_, rest) = id.split_once('_')?;
    let (maker, number) = rest.rsplit_once("_i")?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(maker)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_goes_on_without_its_id_and_with_all_else() {
        let call = r#"{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{\"id\":1}"}"#;
        let expected = r#"{"type":"function_call","call_id":"c","name":"f","arguments":"{\"id\":1}"}"#;
        assert_eq!(for_history(call).as_deref(), Some(expected));
        let sealed = r#"{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAA"}"#;
        assert_eq!(
            for_history(sealed).as_deref(),
            Some(r#"{"type":"reasoning","summary":[],"encrypted_content":"gAAA"}"#)
        );
        let approval = r#"{"id":"mcpr_1","type":"mcp_approval_request"}"#;
        assert_eq!(for_history(approval).as_deref(), Some(approval));
    }

    #[test]
    fn reasoning_that_nobody_can_read_is_left_out() {
        for item in [
            r#"{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"s"}]}"#,
            r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":null,"content":[]}"#,
        ] {
            assert_eq!(for_history(item), None, "{item}");
        }
        let open = r#"{"type":"reasoning","content":[{"type":"reasoning_text","text":"t"}]}"#;
        assert_eq!(for_history(open).as_deref(), Some(open));
    }

    #[test]
    fn a_stored_item_has_an_id_which_is_its_own_if_it_has_one() {
        let text = with_id(r#"{"role":"user","content":"hi"}"#, "01TURN", 3);
        let expected =
            r#"{"id":"msg_01TURN_i3","type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}"#;
        assert_eq!(text, expected);
        assert_eq!(maker_of("msg_01TURN_i3"), Some("01TURN"));
        let own = with_id(r#"{"type":"function_call_output","id":"fco_7","call_id":"c","output":"{}"}"#, "t", 0);
        assert_eq!(own, r#"{"id":"fco_7","type":"function_call_output","call_id":"c","output":"{}"}"#);
        let said = with_id(r#"{"role":"assistant","content":"a"}"#, "t", 0);
        assert!(said.contains(r#"{"type":"output_text","text":"a","annotations":[]}"#), "{said}");
        assert_eq!((maker_of("msg_abc"), maker_of("msg_abc_3"), maker_of("plain")), (None, None, None));
    }

    #[test]
    fn the_output_of_a_response_is_found_among_its_fields() {
        let response = r#"{"id":"resp_1","metadata":{"output":"no"},"output":[{"a":1}, {"b":[2]}]}"#;
        assert_eq!(outputs(response), [r#"{"a":1}"#, r#"{"b":[2]}"#]);
        assert!(outputs("{}").is_empty() && outputs("nonsense").is_empty());
        assert_eq!(string_field(response, "id").as_deref(), Some("resp_1"));
    }
}
