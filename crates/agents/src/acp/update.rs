//! What an agent tells in a turn, as what the turn's client gets of it.

use super::mailbox::Item;
use super::rpc::object;
use super::spec::ToolActivity;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// Bytes of a note's title.
const TITLE: usize = 200;

/// An update that is not of the protocol's form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unreadable(pub(super) String);

/// The parameters of `session/update`.
#[derive(Deserialize)]
pub(super) struct Params<'a> {
    #[serde(rename = "sessionId")]
    pub(super) session: String,
    #[serde(borrow)]
    pub(super) update: &'a RawValue,
}

#[derive(Deserialize)]
struct Update<'a> {
    #[serde(rename = "sessionUpdate")]
    kind: String,
    #[serde(default, borrow)]
    content: Option<&'a RawValue>,
    #[serde(default, rename = "toolCallId")]
    tool_call: Value,
    #[serde(default)]
    title: Value,
    #[serde(default, rename = "kind")]
    tool_kind: Value,
    #[serde(default)]
    status: Value,
    #[serde(default)]
    entries: Value,
}

#[derive(Deserialize)]
struct Content {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    uri: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default, rename = "mimeType")]
    media_type: Option<String>,
    #[serde(default)]
    resource: Option<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    uri: Option<String>,
}

/// What one update holds.
#[derive(Debug)]
pub(super) struct Told {
    /// For the turn; `None`: nothing of the turn's.
    pub(super) item: Option<Item>,
    /// The kind of a tool call, by its id: a later request for permission may leave it out.
    pub(super) tool: Option<(String, String)>,
}

/// Reads an update.
pub(super) fn read(update: &RawValue, activity: ToolActivity) -> Result<Told, Unreadable> {
    let update: Update<'_> = object(update.get()).map_err(|error| Unreadable(format!("a session/update: {error}")))?;
    let note = |text: Option<String>| match (activity, text) {
        (ToolActivity::Notes, Some(text)) => Item::Note(text),
        (ToolActivity::Drop | ToolActivity::Notes, _) => Item::Alive,
    };
    let mut tool = None;
    let item = match update.kind.as_str() {
        "agent_message_chunk" => Some(Item::Text(text_of(update.content)?)),
        "agent_thought_chunk" => Some(Item::Thought(text_of(update.content)?)),
        "tool_call" | "tool_call_update" => {
            if let (Some(id), Some(kind)) = (update.tool_call.as_str(), update.tool_kind.as_str()) {
                tool = Some((id.to_owned(), kind.to_owned()));
            }
            Some(note(tool_note(&update)))
        }
        "plan" | "plan_update" => Some(note(plan_note(&update.entries))),
        // What the client said itself, and what is or could be set.
        "user_message_chunk"
        | "available_commands_update"
        | "current_mode_update"
        | "config_option_update"
        | "session_info_update" => None,
        // What is not known yet, too: it may tell of something that was done.
        _ => Some(Item::Alive),
    };
    Ok(Told { item, tool })
}

/// A piece of what the agent says; what is no text is named in its place.
fn text_of(content: Option<&RawValue>) -> Result<String, Unreadable> {
    let content = content.ok_or_else(|| Unreadable("a chunk without content".into()))?;
    let content: Content = object(content.get()).map_err(|error| Unreadable(format!("a chunk's content: {error}")))?;
    let Content { kind, text, uri, name, media_type, resource } = content;
    Ok(match kind.as_str() {
        "text" => text.ok_or_else(|| Unreadable("a text without a text".into()))?,
        "resource_link" => {
            let uri = uri.unwrap_or_default();
            format!("[{}]({uri})", name.as_deref().unwrap_or(&uri))
        }
        "resource" => match resource {
            Some(Resource { text: Some(text), .. }) => text,
            Some(Resource { text: None, uri: Some(uri) }) => format!("[{uri}]"),
            Some(Resource { text: None, uri: None }) | None => "[resource]".into(),
        },
        other => format!("[{}]", media_type.as_deref().unwrap_or(other)),
    })
}

fn tool_note(update: &Update<'_>) -> Option<String> {
    let title = update.title.as_str().or(update.tool_call.as_str()).filter(|title| !title.is_empty());
    let status = update.status.as_str();
    match (update.kind.as_str(), status) {
        ("tool_call", _) => Some(format!("[{}]\n", one_line(title.unwrap_or("a tool")))),
        // Only how it ended: what comes between is many, and says little.
        (_, Some(status @ ("completed" | "failed"))) => {
            Some(format!("[{}: {status}]\n", one_line(title.unwrap_or("a tool"))))
        }
        _ => None,
    }
}

fn plan_note(entries: &Value) -> Option<String> {
    let entries = entries.as_array()?;
    let mut text = String::from("[plan]\n");
    for entry in entries.iter().take(20) {
        let done = entry.get("status").and_then(Value::as_str) == Some("completed");
        let content = entry.get("content").and_then(Value::as_str).unwrap_or_default();
        text.push_str(if done { "- [x] " } else { "- [ ] " });
        text.push_str(&one_line(content));
        text.push('\n');
    }
    Some(text)
}

fn one_line(text: &str) -> String {
    let mut line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if let Some(cut) = (0..=TITLE.min(line.len())).rev().find(|&at| line.is_char_boundary(at)) {
        line.truncate(cut);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(update: &str, activity: ToolActivity) -> String {
        let raw: Box<RawValue> = serde_json::from_str(update).expect("JSON");
        match read(&raw, activity) {
            Ok(told) => format!("{:?}", told.item),
            Err(Unreadable(why)) => why,
        }
    }

    #[test]
    fn chunks_are_text_and_thoughts_and_what_is_no_text_is_named() {
        let dropped = |update: &str| item(update, ToolActivity::Drop);
        let chunk =
            |content: &str| dropped(&format!(r#"{{"sessionUpdate":"agent_message_chunk","content":{content}}}"#));
        assert_eq!(chunk(r#"{"type":"text","text":"a"}"#), r#"Some(Text("a"))"#);
        assert_eq!(chunk(r#"{"type":"image","mimeType":"image/png","data":"AA=="}"#), r#"Some(Text("[image/png]"))"#);
        assert_eq!(
            chunk(r#"{"type":"resource_link","uri":"file:///a","name":"a"}"#),
            r#"Some(Text("[a](file:///a)"))"#
        );
        assert_eq!(chunk(r#"{"type":"resource","resource":{"uri":"x","text":"in it"}}"#), r#"Some(Text("in it"))"#);
        let thought = r#"{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}"#;
        assert_eq!(dropped(thought), r#"Some(Thought("hm"))"#);
        assert!(chunk("3").contains("a chunk's content"));
        assert!(dropped(r#"{"sessionUpdate":"agent_message_chunk"}"#).contains("without content"));
        assert!(dropped(r#"{"content":1}"#).contains("session/update"));
    }

    #[test]
    fn tools_and_plans_are_signs_of_life_or_notes() {
        let call =
            r#"{"sessionUpdate":"tool_call","toolCallId":"1","title":"Read\na file","kind":"read","status":"pending"}"#;
        let update = r#"{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"in_progress","title":null}"#;
        let done = r#"{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"failed"}"#;
        let plan = r#"{"sessionUpdate":"plan","entries":[{"content":"look","status":"completed"},{"content":"do"}]}"#;
        for one in [call, update, done, plan] {
            assert_eq!(item(one, ToolActivity::Drop), "Some(Alive)");
        }
        let note = |one| item(one, ToolActivity::Notes);
        assert_eq!(note(call), r#"Some(Note("[Read a file]\n"))"#);
        assert_eq!(note(update), "Some(Alive)");
        assert_eq!(note(done), r#"Some(Note("[1: failed]\n"))"#);
        assert_eq!(note(plan), r#"Some(Note("[plan]\n- [x] look\n- [ ] do\n"))"#);
    }

    #[test]
    fn what_is_not_the_turns_is_nothing_of_the_turn() {
        let of_kind = |kind: &str| item(&format!(r#"{{"sessionUpdate":"{kind}"}}"#), ToolActivity::Notes);
        let settings =
            ["available_commands_update", "current_mode_update", "config_option_update", "session_info_update"];
        for kind in settings.into_iter().chain(["user_message_chunk"]) {
            assert_eq!(of_kind(kind), "None", "{kind}");
        }
        assert_eq!(of_kind("of_next_year"), "Some(Alive)", "it may tell of something that was done");
    }
}
