//! What a response repeats of its request: the fields as the client wrote them, with the protocol's own defaults where it
//! wrote none, and how it knows its tools.

use crate::json::{Invalid, Kind, Object, Reader, write_string};
use crate::responses::reply_decode::within;
use crate::turn::ClientTool;
use memchr::memmem;
use std::borrow::Cow;
use std::collections::BTreeMap;

const TEXT: &str = "text";

/// The fields, each with what stands there for a request that does not say.
const FIELDS: [(&str, &str); 20] = [
    ("background", "false"),
    ("instructions", "null"),
    ("max_output_tokens", "null"),
    ("max_tool_calls", "null"),
    ("metadata", "{}"),
    ("parallel_tool_calls", "true"),
    ("previous_response_id", "null"),
    ("prompt_cache_key", "null"),
    ("reasoning", r#"{"effort":null,"summary":null}"#),
    ("safety_identifier", "null"),
    ("service_tier", r#""default""#),
    ("store", "true"),
    ("temperature", "1.0"),
    (TEXT, r#"{"format":{"type":"text"}}"#),
    ("tool_choice", r#""auto""#),
    ("tools", "[]"),
    ("top_logprobs", "0"),
    ("top_p", "1.0"),
    ("truncation", r#""disabled""#),
    ("user", "null"),
];

/// Fields of `FIELDS` that say where an answer is kept.
const STATE: [&str; 3] = ["background", "previous_response_id", "store"];
const CONVERSATION: &str = "conversation";

/// The fields of one request that its answer repeats.
#[derive(Debug)]
pub struct Echo {
    /// The fields as they stand in a response, which a stream has three times.
    written: Vec<u8>,
    /// Those of them that say where the answer is kept.
    state: Vec<u8>,
    /// Tools that are no plain functions, by the names that they have in events.
    tools: BTreeMap<String, ClientTool>,
}

/// What has been read of a body.
#[derive(Default)]
struct Given<'b> {
    /// By the place in `FIELDS`; `None` for the default.
    fields: [Option<Cow<'b, str>>; FIELDS.len()],
    /// The conversation as an object; answers in none do not have the field.
    conversation: Option<Cow<'b, str>>,
    tools: BTreeMap<String, ClientTool>,
}

impl Echo {
    /// Of a client's body. A body that is none (there is nothing to repeat) gives the defaults.
    pub fn of(body: &[u8]) -> Self {
        let mut given = Given::default();
        let read = Reader::new(body).and_then(|mut r| r.object(|r, key| given.field(r, key)));
        let Given { fields, conversation, tools } = if read.is_err() { Given::default() } else { given };
        let (mut written, mut state) = (Vec::with_capacity(1 << 10), Vec::new());
        let own =
            FIELDS.iter().zip(&fields).map(|((name, default), given)| (*name, given.as_deref().unwrap_or(default)));
        for (name, value) in own.chain(conversation.as_deref().map(|value| (CONVERSATION, value))) {
            field(&mut written, name, value);
            if Self::is_state(name) {
                field(&mut state, name, value);
            }
        }
        Echo { written, state, tools }
    }

    /// How the client knows a tool, where it is no plain function.
    pub(super) fn tool(&self, canonical: &str) -> Option<&ClientTool> {
        self.tools.get(canonical)
    }

    /// Bytes of the fields.
    pub(super) fn len(&self) -> usize {
        self.written.len()
    }

    /// Writes the fields into a response.
    pub fn write(&self, response: &mut Object<'_>) {
        response.fields(&self.written);
    }

    /// The field says where the answer is kept.
    pub(in crate::responses) fn is_state(name: &str) -> bool {
        name == CONVERSATION || STATE.contains(&name)
    }

    /// Writes only the fields that say where the answer is kept.
    pub(in crate::responses) fn write_state(&self, response: &mut Object<'_>) {
        response.fields(&self.state);
    }
}

/// Appends a field whose value is JSON text, with a comma before all but the first.
fn field(out: &mut Vec<u8>, name: &str, value: &str) {
    if !out.is_empty() {
        out.push(b',');
    }
    write_string(out, name);
    out.push(b':');
    out.extend_from_slice(value.as_bytes());
}

impl<'b> Given<'b> {
    fn field(&mut self, r: &mut Reader<'b>, key: &str) -> Result<(), Invalid> {
        if key == "input" && r.kind()? == Kind::Array {
            return r.array(|r, _| self.input(r));
        }
        if key == CONVERSATION {
            let is_text = r.kind()? == Kind::String;
            let raw = r.raw()?;
            let object = if is_text { Cow::Owned(format!(r#"{{"id":{raw}}}"#)) } else { one_line(raw) };
            self.conversation = (raw != "null").then_some(object);
            return Ok(());
        }
        let tools = key == "tools" && r.kind()? == Kind::Array;
        let raw = r.raw()?;
        // A second time for the tools that are no plain functions. Most requests have none.
        let any = |word: &str| memmem::find(raw.as_bytes(), word.as_bytes()).is_some();
        if tools && (any("custom") || any("namespace") || any("\\u")) {
            self.tools(&mut Reader::over(raw), None)?;
        }
        let at = FIELDS.iter().position(|(name, _)| *name == key);
        if let Some(place) = at.and_then(|at| self.fields.get_mut(at)) {
            *place = match raw {
                "null" => None,
                raw if key == TEXT => Some(Cow::Owned(one_line(&with_format(raw)?).into_owned())),
                raw => Some(one_line(raw)),
            };
        }
        Ok(())
    }

    /// Some clients give their tools in an item of the input.
    fn input(&mut self, r: &mut Reader<'_>) -> Result<(), Invalid> {
        let raw = r.raw()?;
        if !raw.contains("\"additional_tools\"") {
            return Ok(());
        }
        let (mut kind, mut tools) = (Cow::Borrowed(""), None);
        let mut item = Reader::over(raw);
        if item.kind()? != Kind::Object {
            return Ok(());
        }
        item.object::<Invalid>(|r, key| {
            match (key, r.kind()?) {
                ("type", Kind::String) => kind = r.string()?,
                ("tools", Kind::Array) => tools = Some(r.raw()?),
                _ => {
                    r.skip()?;
                }
            }
            Ok(())
        })?;
        match tools {
            Some(tools) if kind == "additional_tools" => self.tools(&mut Reader::over(tools), None),
            Some(_) | None => Ok(()),
        }
    }

    fn tools(&mut self, r: &mut Reader<'_>, namespace: Option<&str>) -> Result<(), Invalid> {
        r.array(|r, _| {
            if r.kind()? != Kind::Object {
                return r.skip().map(drop);
            }
            let (mut kind, mut name, mut inner) = (Cow::Borrowed(""), None, None);
            r.object::<Invalid>(|r, key| {
                match (key, r.kind()?) {
                    ("type", Kind::String) => kind = r.string()?,
                    ("name", Kind::String) => name = Some(r.string()?.into_owned()),
                    ("tools", Kind::Array) => inner = Some(r.raw()?),
                    _ => {
                        r.skip()?;
                    }
                }
                Ok(())
            })?;
            let Some(name) = name else { return Ok(()) };
            match (&*kind, inner) {
                ("namespace", Some(inner)) if namespace.is_none() => {
                    return self.tools(&mut Reader::over(inner), Some(&name));
                }
                ("function" | "custom", _) if kind == "custom" || namespace.is_some() => {
                    let canonical = namespace.map_or_else(|| name.clone(), |space| within(space, &name));
                    let tool = ClientTool { name, namespace: namespace.map(str::to_owned), custom: kind == "custom" };
                    self.tools.insert(canonical, tool);
                }
                (_, _) => {}
            }
            Ok(())
        })
    }
}

/// A text of JSON on one line, as the data of an event must be: what breaks lines in it stands between its values.
fn one_line(raw: &str) -> Cow<'_, str> {
    if memchr::memchr2(b'\n', b'\r', raw.as_bytes()).is_none() {
        Cow::Borrowed(raw)
    } else {
        Cow::Owned(raw.replace(['\n', '\r'], " "))
    }
}

/// `text` with the `format` that clients read without asking whether it is there.
fn with_format(raw: &str) -> Result<String, Invalid> {
    let mut r = Reader::over(raw);
    if r.kind()? != Kind::Object {
        return Ok(raw.to_owned());
    }
    let mut out = Vec::with_capacity(raw.len() + 32);
    {
        let mut object = Object::open(&mut out);
        let mut there = false;
        r.object::<Invalid>(|r, key| {
            let format = key == "format";
            let object_of_its_own = r.kind()? == Kind::Object;
            let value = r.raw()?;
            // `null` asks for what is usual, and two of one key would hide the first.
            if !format || (object_of_its_own && !there) {
                object.raw(key, value);
                there |= format;
            }
            Ok(())
        })?;
        if !there {
            object.raw("format", r#"{"type":"text"}"#);
        }
    }
    // It was text, and is.
    Ok(String::from_utf8_lossy(&out).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn written(body: &str) -> Value {
        let mut out = Vec::new();
        Echo::of(body.as_bytes()).write(&mut Object::open(&mut out));
        assert!(!out.contains(&b'\n') && !out.contains(&b'\r'));
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn a_request_that_says_nothing_gets_the_protocols_defaults() {
        for body in ["", "{}", "{\"tools\":null,\"temperature\":null,\"text\":{}}"] {
            let echo = written(body);
            assert_eq!(echo["tool_choice"], "auto", "{body}");
            assert_eq!(echo["tools"], json!([]), "{body}");
            assert_eq!(echo["parallel_tool_calls"], true, "{body}");
            assert_eq!((&echo["temperature"], &echo["top_p"]), (&json!(1.0), &json!(1.0)), "{body}");
            assert_eq!(echo["text"], json!({"format": {"type": "text"}}), "{body}");
            assert_eq!((&echo["truncation"], &echo["metadata"]), (&json!("disabled"), &json!({})), "{body}");
            assert_eq!(echo["instructions"], Value::Null, "{body}");
        }
    }

    #[test]
    fn what_the_client_wrote_comes_back_on_one_line() {
        let echo = written(
            "{\r\n \"model\": \"m\",\n \"instructions\": \"a\\nb\",\n \"metadata\": {\n  \"k\": \"v\"\n },\n \"temperature\": 0.10,\n \
             \"text\": {\"verbosity\": \"low\", \"format\": null},\n \"tools\": [\n  {\"type\": \"function\", \"name\": \"f\", \"parameters\": null}\n ]\n}",
        );
        assert_eq!(echo["instructions"], "a\nb");
        assert_eq!(echo["metadata"], json!({"k": "v"}));
        assert_eq!(echo["temperature"], json!(0.1));
        assert_eq!(echo["text"], json!({"verbosity": "low", "format": {"type": "text"}}));
        assert_eq!(echo["tools"][0]["name"], "f");
        assert_eq!(echo.get("model"), None);
    }

    #[test]
    fn tools_are_known_by_the_names_that_events_have() {
        let echo = Echo::of(
            br#"{"input":[{"type":"message","content":"\"additional_tools\""},{"type":"additional_tools","tools":[
                {"type":"custom","name":"patch","format":{"type":"grammar"}},
                {"type":"namespace","name":"fs","tools":[{"type":"function","name":"read"},{"type":"custom","name":"sh"}]}]}],
              "tools":[{"type":"function","name":"plain"},{"type":"web_search"}]}"#,
        );
        let known = |name: &str| echo.tool(name).map(|tool| (tool.namespace.as_deref(), &*tool.name, tool.custom));
        assert_eq!(known("patch"), Some((None, "patch", true)));
        assert_eq!(known("fs__read"), Some((Some("fs"), "read", false)));
        assert_eq!(known("fs__sh"), Some((Some("fs"), "sh", true)));
        assert_eq!((known("plain"), known("read")), (None, None));
    }
}
