//! One output item in the order of its events.

use super::check;
use serde_json::Value;

#[derive(Debug)]
pub(super) struct Item {
    pub(super) id: String,
    kind: Kind,
    /// As it was added.
    added: Value,
    /// The part that is open, with what came of it.
    part: Option<Part>,
    /// The parts that are done.
    parts: Vec<Value>,
    /// What came of arguments or input, and what was said at its end.
    pieces: String,
    said: Option<String>,
    /// The item, once it is done.
    pub(super) whole: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Message,
    Reasoning,
    Call,
    Custom,
}

#[derive(Debug)]
struct Part {
    kind: String,
    pieces: String,
    /// Its text was said whole.
    said: bool,
}

impl Item {
    pub(super) fn added(item: &Value) -> Result<Self, String> {
        let id = item["id"].as_str().unwrap_or_default().to_owned();
        let name = item["type"].as_str().ok_or("an item without a type")?;
        let (kind, prefix) = match name {
            "message" => (Kind::Message, "msg_"),
            "reasoning" => (Kind::Reasoning, "rs_"),
            "function_call" => (Kind::Call, "fc_"),
            "custom_tool_call" => (Kind::Custom, "ctc_"),
            other => return Err(format!("an item of type `{other}`")),
        };
        check(id.starts_with(prefix), || format!("an item of type `{name}` with the id `{id}`"))?;
        let empty = |key: &str| item[key].as_array().is_some_and(Vec::is_empty);
        let fresh = match kind {
            Kind::Message => item["role"] == "assistant" && empty("content"),
            Kind::Reasoning => empty("summary"),
            Kind::Call => item["arguments"] == "",
            Kind::Custom => item["input"] == "",
        };
        check(fresh, || format!("an item that does not start as its type does: {item}"))?;
        let item = Item {
            id,
            kind,
            added: item.clone(),
            part: None,
            parts: Vec::new(),
            pieces: String::new(),
            said: None,
            whole: None,
        };
        item.check_own(&item.added, "in_progress")?;
        Ok(item)
    }

    /// What is the same at the beginning and at the end.
    fn check_own(&self, item: &Value, status: &str) -> Result<(), String> {
        match self.kind {
            Kind::Reasoning => Ok(()),
            Kind::Message => {
                check(item["status"] == status, || format!("`{}` has the status {}", self.id, item["status"]))
            }
            Kind::Call | Kind::Custom => {
                // What was cut in the middle says so.
                let cut = status == "completed" && item["status"] == "incomplete";
                check(item["status"] == status || cut, || format!("`{}` has the status {}", self.id, item["status"]))?;
                let filled = |key: &str| item[key].as_str().is_some_and(|text| !text.is_empty());
                check(filled("call_id") && filled("name"), || format!("a call without its id or name: {item}"))?;
                check(!item["namespace"].is_null() || item.get("namespace").is_none(), || {
                    "a namespace that is null".into()
                })
            }
        }
    }

    pub(super) fn event(&mut self, name: &str, data: &Value) -> Result<(), String> {
        check(self.whole.is_none(), || format!("`{name}` of `{}`, which is done", self.id))?;
        match (self.kind, name) {
            (Kind::Message, "content_part.added") => self.part_added("content_index", data),
            (Kind::Message, "content_part.done") => self.part_done("content_index", data),
            (Kind::Message, "output_text.delta") => {
                check(data["logprobs"].is_array(), || "a piece of text without `logprobs`".into())?;
                self.piece("output_text", "content_index", data)
            }
            (Kind::Message, "output_text.done") => {
                check(data["logprobs"].is_array(), || "a text without `logprobs`".into())?;
                self.text("output_text", "content_index", "text", data)
            }
            (Kind::Message, "refusal.delta") => self.piece("refusal", "content_index", data),
            (Kind::Message, "refusal.done") => self.text("refusal", "content_index", "refusal", data),
            (Kind::Reasoning, "reasoning_summary_part.added") => self.part_added("summary_index", data),
            (Kind::Reasoning, "reasoning_summary_part.done") => self.part_done("summary_index", data),
            (Kind::Reasoning, "reasoning_summary_text.delta") => self.piece("summary_text", "summary_index", data),
            (Kind::Reasoning, "reasoning_summary_text.done") => {
                self.text("summary_text", "summary_index", "text", data)
            }
            (Kind::Call, "function_call_arguments.delta") | (Kind::Custom, "custom_tool_call_input.delta") => {
                check(self.said.is_none(), || format!("`{name}` after its end"))?;
                self.pieces.push_str(data["delta"].as_str().ok_or("a piece without its text")?);
                Ok(())
            }
            (Kind::Call, "function_call_arguments.done") => self.say("arguments", data),
            (Kind::Custom, "custom_tool_call_input.done") => self.say("input", data),
            (kind, name) => Err(format!("`{name}` in an item of kind {kind:?}")),
        }
    }

    fn say(&mut self, key: &str, data: &Value) -> Result<(), String> {
        let text = data[key].as_str().ok_or_else(|| format!("an end without `{key}`"))?;
        check(text == self.pieces, || format!("{key} {text:?} that are not their pieces {:?}", self.pieces))?;
        check(self.said.is_none(), || format!("two ends of `{key}`"))?;
        self.said = Some(text.to_owned());
        Ok(())
    }

    fn index(&self, key: &str, data: &Value) -> Result<(), String> {
        check(data[key] == self.parts.len(), || format!("a part with the `{key}` {}", data[key]))
    }

    fn part_added(&mut self, key: &str, data: &Value) -> Result<(), String> {
        self.index(key, data)?;
        check(self.part.is_none(), || "a part in a part".into())?;
        let kind = data["part"]["type"].as_str().ok_or("a part without a type")?.to_owned();
        check(of_part(&data["part"])?.is_empty(), || "a part that starts with text".into())?;
        self.part = Some(Part { kind, pieces: String::new(), said: false });
        Ok(())
    }

    fn open(&mut self, kind: &str, key: &str, data: &Value) -> Result<&mut Part, String> {
        self.index(key, data)?;
        let part = self.part.as_mut().filter(|part| part.kind == kind && !part.said);
        part.ok_or_else(|| format!("a piece of a `{kind}` that is not open"))
    }

    fn piece(&mut self, kind: &str, key: &str, data: &Value) -> Result<(), String> {
        let text = data["delta"].as_str().ok_or("a piece without its text")?;
        self.open(kind, key, data)?.pieces.push_str(text);
        Ok(())
    }

    fn text(&mut self, kind: &str, key: &str, field: &str, data: &Value) -> Result<(), String> {
        let part = self.open(kind, key, data)?;
        part.said = true;
        check(data[field] == part.pieces.as_str(), || format!("a text {} that is not its pieces", data[field]))
    }

    fn part_done(&mut self, key: &str, data: &Value) -> Result<(), String> {
        self.index(key, data)?;
        let part = self.part.take().filter(|part| part.said).ok_or("a part that is done before its text")?;
        check(data["part"]["type"] == part.kind.as_str(), || "a part that changed its type".into())?;
        check(of_part(&data["part"])? == part.pieces, || "a part that is not its pieces".into())?;
        self.parts.push(data["part"].clone());
        Ok(())
    }

    pub(super) fn done(&mut self, item: &Value) -> Result<(), String> {
        check(self.whole.is_none(), || format!("`{}` is done twice", self.id))?;
        check(self.part.is_none(), || format!("`{}` is done with a part that is not", self.id))?;
        for key in ["id", "type", "role", "call_id", "name", "namespace"] {
            check(item[key] == self.added[key], || format!("`{}` changed its `{key}` to {}", self.id, item[key]))?;
        }
        self.check_own(item, "completed")?;
        let content = match self.kind {
            Kind::Message => item["content"].as_array() == Some(&self.parts) && !self.parts.is_empty(),
            Kind::Reasoning => item["summary"].as_array() == Some(&self.parts),
            Kind::Call => self.said.as_deref().is_some_and(|said| item["arguments"] == said && !said.is_empty()),
            Kind::Custom => self.said.as_deref().is_some_and(|said| item["input"] == said),
        };
        check(content, || format!("`{}` is not what its events were: {item}", self.id))?;
        self.whole = Some(item.clone());
        Ok(())
    }
}

/// The text of a part that has all the fields of its type.
fn of_part(part: &Value) -> Result<&str, String> {
    let key = match part["type"].as_str() {
        Some("output_text") => {
            let lists = part["annotations"].is_array() && part["logprobs"].is_array();
            check(lists, || "a part without `annotations` or `logprobs`".into())?;
            "text"
        }
        Some("summary_text") => "text",
        Some("refusal") => "refusal",
        other => return Err(format!("a part of type {other:?}")),
    };
    part[key].as_str().ok_or_else(|| format!("a part without `{key}`"))
}
