//! Writes a turn as what Devin takes: one text. A new session gets all that was said, a session that goes on gets what
//! follows its last answer.
//!
//! One message of the user alone is sent as it is. Anything else becomes a transcript: each message under a heading of its
//! own (`[System]`, `[User]`, `[Assistant]`), after a line that says what it is. A text that looks like a heading deceives
//! nobody but its own caller, whose text all of it is.

use turnkeep_dialect::json::{Invalid, Object};
use turnkeep_dialect::tool_names::ToolNames;
use turnkeep_dialect::turn::{Body, Message, Output, Part, Role, Thinking, ToolChoice, Turn};
use turnkeep_engine::ports::NativeWritten;

/// Before a transcript of a whole conversation.
const WHOLE: &str = "This is a conversation so far. Reply to its last message.";

/// The body of the call that begins a session, or that goes on with one.
pub(super) fn write(turn: &Turn<'_>, goes_on: bool) -> Result<NativeWritten, Invalid> {
    carriable(turn)?;
    let mut dropped = hints(turn);
    let mut said = Vec::with_capacity(turn.messages.len());
    for message in &turn.messages {
        let text = text_of(message, &mut dropped)?;
        if !text.is_empty() {
            said.push((message.role, text));
        }
    }
    if !said.iter().any(|(role, _)| *role == Role::User) {
        let message = "Devin needs a text of the user to reply to".to_owned();
        return Err(Invalid { path: "messages".into(), message, at: 0 });
    }
    let text = match said.iter().all(|(role, _)| *role == Role::User) {
        true if goes_on || said.len() == 1 => joined(said.iter().map(|(_, text)| text.as_str())),
        true | false => transcript(&said, goes_on),
    };
    let mut body = Vec::with_capacity(text.len() + 32);
    Object::open(&mut body).string(if goes_on { "message" } else { "prompt" }, &text);
    Ok(NativeWritten { body: body.into(), dropped, names: ToolNames::default() })
}

fn transcript(said: &[(Role, String)], goes_on: bool) -> String {
    let parts = said.iter().map(|(role, text)| {
        let heading = match role {
            Role::System => "[System]",
            Role::User => "[User]",
            Role::Assistant => "[Assistant]",
        };
        format!("{heading}\n{text}")
    });
    let first = (!goes_on).then(|| WHOLE.to_owned());
    let all: Vec<String> = first.into_iter().chain(parts).collect();
    joined(all.iter().map(String::as_str))
}

/// Texts with a blank line between them.
fn joined<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    let texts: Vec<&str> = texts.collect();
    texts.join("\n\n")
}

/// What Devin has no place for and an answer would be wrong without.
fn carriable(turn: &Turn<'_>) -> Result<(), Invalid> {
    let refuse = |path: &str, message: &str| Err(Invalid { path: path.into(), message: message.into(), at: 0 });
    if !turn.tools.is_empty() {
        return refuse("tools", "Devin has tools of its own and takes none of its callers'");
    }
    match &turn.tool_choice {
        None | Some(ToolChoice::Auto | ToolChoice::None) => {}
        Some(ToolChoice::Any | ToolChoice::Named(_) | ToolChoice::Allowed { .. } | ToolChoice::Other(_)) => {
            return refuse("tool_choice", "Devin takes no tools, so none can be chosen");
        }
    }
    match &turn.output {
        Output::Text => Ok(()),
        Output::Json | Output::Schema { .. } => refuse("response_format", "Devin's messages have no form but text"),
    }
}

/// A message's text. Thinking of another model is nothing that was said; it is named as dropped.
fn text_of(message: &Message<'_>, dropped: &mut Vec<String>) -> Result<String, Invalid> {
    let mut texts = Vec::with_capacity(message.parts.len());
    for part in &message.parts {
        if part.cache.is_some() {
            drop_hint(dropped, "cache_control");
        }
        let what = match &part.body {
            Body::Text(text) | Body::Refusal(text) => {
                texts.push(&**text);
                continue;
            }
            Body::Thinking { .. } | Body::RedactedThinking(_) => {
                drop_hint(dropped, "thinking");
                continue;
            }
            Body::Image(_) => "an image".to_owned(),
            Body::File(_) => "a file".to_owned(),
            Body::ToolCall { .. } => "a tool call".to_owned(),
            Body::ToolResult { .. } => "a tool result".to_owned(),
            Body::Other(name) => format!("content of the type `{name}`"),
        };
        return Err(misplaced(part, &what));
    }
    Ok(joined(texts.into_iter().filter(|text| !text.is_empty())))
}

fn misplaced(part: &Part<'_>, what: &str) -> Invalid {
    Invalid { path: part.at.path(), message: format!("Devin takes text, and cannot be sent {what}"), at: 0 }
}

fn drop_hint(dropped: &mut Vec<String>, name: &str) {
    if !dropped.iter().any(|known| known == name) {
        dropped.push(name.to_owned());
    }
}

/// The names of what the turn says beside its content; none of it has a place.
fn hints(turn: &Turn<'_>) -> Vec<String> {
    let reasoning = &turn.reasoning;
    let rows = [
        ("max_tokens", turn.max_output.is_some()),
        ("temperature", turn.temperature.is_some()),
        ("top_p", turn.top_p.is_some()),
        ("top_k", turn.top_k.is_some()),
        ("seed", turn.seed.is_some()),
        ("presence_penalty", turn.presence_penalty.is_some()),
        ("frequency_penalty", turn.frequency_penalty.is_some()),
        ("stop", !turn.stop.is_empty()),
        ("parallel_tool_calls", turn.parallel_tools.is_some()),
        ("tool_choice", turn.tool_choice.is_some()),
        ("reasoning_effort", reasoning.effort.is_some()),
        ("thinking_budget", matches!(reasoning.mode, Some(Thinking::Budget(_)))),
        ("thinking", matches!(reasoning.mode, Some(Thinking::Adaptive))),
        ("verbosity", turn.verbosity.is_some()),
        ("user", turn.user.is_some()),
        ("prompt_cache_key", turn.cache_key.is_some()),
    ];
    rows.iter().filter(|(_, said)| *said).map(|(name, _)| (*name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnkeep_base::Dialect;
    use turnkeep_dialect::request::{self, Operation};

    fn written(body: &str, goes_on: bool) -> Result<(String, Vec<String>), Invalid> {
        let request = request::read(Dialect::Chat, Operation::Generate, body.to_owned().into()).unwrap();
        let mut turn = request.turn().unwrap();
        if goes_on {
            let last = turn.messages.iter().rposition(|message| message.role == Role::Assistant).unwrap();
            turn.messages.drain(..=last);
        }
        write(&turn, goes_on).map(|written| (String::from_utf8(written.body.to_vec()).unwrap(), written.dropped))
    }

    fn asked(messages: &str) -> String {
        format!(r#"{{"model":"m","messages":{messages}}}"#)
    }

    #[test]
    fn one_message_of_the_user_is_sent_as_it_is() {
        let body = asked(r#"[{"role":"user","content":"Fix \"it\"."}]"#);
        assert_eq!(written(&body, false).unwrap().0, r#"{"prompt":"Fix \"it\"."}"#);
    }

    #[test]
    fn a_conversation_becomes_one_prompt_with_a_heading_for_each_message() {
        let body = asked(
            r#"[{"role":"system","content":"Be kind."},{"role":"user","content":"Hi"},
                {"role":"assistant","content":"Hello."},{"role":"user","content":[{"type":"text","text":"Go"},{"type":"text","text":"on"}]}]"#,
        );
        let prompt = format!(
            "{WHOLE}\\n\\n[System]\\nBe kind.\\n\\n[User]\\nHi\\n\\n[Assistant]\\nHello.\\n\\n[User]\\nGo\\n\\non"
        );
        assert_eq!(written(&body, false).unwrap().0, format!(r#"{{"prompt":"{prompt}"}}"#));
        assert_eq!(written(&body, true).unwrap().0, r#"{"message":"Go\n\non"}"#);
    }

    #[test]
    fn what_follows_the_last_answer_keeps_who_said_it() {
        let body = asked(
            r#"[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello."},
                {"role":"system","content":"Hurry."},{"role":"user","content":"Go"}]"#,
        );
        assert_eq!(written(&body, true).unwrap().0, r#"{"message":"[System]\nHurry.\n\n[User]\nGo"}"#);
    }

    #[test]
    fn content_that_cannot_be_carried_is_refused_by_its_path() {
        let tool = r#"{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f"}}]}"#;
        let choice = r#"{"model":"m","messages":[{"role":"user","content":"x"}],"tool_choice":"required"}"#;
        let schema = r#"{"model":"m","messages":[{"role":"user","content":"x"}],
            "response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"}}}}"#;
        let image = asked(
            r#"[{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"https://a.test/x.png"}}]}]"#,
        );
        let file = asked(
            r#"[{"role":"user","content":[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="}}]}]"#,
        );
        let result = asked(
            r#"[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function",
                "function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"y"}]"#,
        );
        let empty = asked(r#"[{"role":"system","content":"x"}]"#);
        for (body, path) in [
            (tool, "tools"),
            (choice, "tool_choice"),
            (schema, "response_format"),
            (&image, "messages[0].content[1]"),
            (&file, "messages[0].content[0]"),
            (&result, "messages[1].tool_calls[0]"),
            (&empty, "messages"),
        ] {
            assert_eq!(written(body, false).unwrap_err().path, path);
        }
    }

    #[test]
    fn hints_are_dropped_by_name() {
        let body = r#"{"model":"m","messages":[{"role":"user","content":"x"}],"temperature":0.5,"max_tokens":5,"stop":["a"],
            "seed":1,"user":"u","reasoning_effort":"low","tool_choice":"none"}"#;
        let (_, mut dropped) = written(body, false).unwrap();
        dropped.sort();
        assert_eq!(dropped, ["max_tokens", "reasoning_effort", "seed", "stop", "temperature", "tool_choice", "user"]);
    }
}
