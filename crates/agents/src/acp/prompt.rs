//! A turn as a prompt. In a session that goes on it is what the client has said since the last answer. In a new one it is
//! everything, as text: the instructions (system prompt) in one block, what was said before in the next, each message under
//! the name of its speaker, and then what the client says now, as it is. A turn without instructions or history is just that.
//!
//! An agent has no place for a client's tools and their results, for a form of the answer, or for sampling: the first two
//! are refused by name, the last is dropped and named.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use turnkeep_dialect::json::Invalid;
use turnkeep_dialect::turn::{Body, FileSource, Image, Message, Output, Part, Role, ToolChoice, Turn};
use turnkeep_engine::ports::{NativeWritten, Writing};

/// Said of a request with tools.
const REFUSED_TOOLS: &str = "tools cannot be carried to an agent of the Agent Client Protocol, which uses its own";

const INSTRUCTIONS: &str = "Instructions for this conversation:\n\n";
const HISTORY: &str = "What was said in this conversation so far:\n\n";

/// A block of a prompt.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentBlock {
    Text {
        text: String,
    },
    Image {
        #[serde(rename = "mimeType")]
        media_type: String,
        data: String,
    },
}

/// What is written of a turn and read again before it is sent.
#[derive(Serialize)]
struct Writes {
    /// Where the first image stands in the client's request.
    image: Option<String>,
    prompt: Vec<ContentBlock>,
}

/// What was written.
#[derive(Deserialize)]
pub(super) struct Prompt<'a> {
    pub(super) image: Option<String>,
    #[serde(borrow)]
    pub(super) prompt: &'a RawValue,
}

/// Writes a turn. `images`: whether the agent takes them, as far as is known.
pub(super) fn write(turn: &Turn<'_>, how: Writing<'_>, images: Option<bool>) -> Result<NativeWritten, Invalid> {
    refuse_forms(turn)?;
    let mut writer =
        Writer { blocks: Vec::new(), text: String::new(), image: None, images, thinking: false, marks: false };
    let last = turn.messages.iter().rposition(|message| message.role == Role::Assistant);
    let (before, now) = turn.messages.split_at(if how.goes_on { 0 } else { last.map_or(0, |last| last + 1) });
    // A system prompt counts as one wherever a client puts it at the beginning.
    let all = if before.is_empty() { now } else { before };
    let leading = if how.goes_on { 0 } else { all.iter().take_while(|message| message.role == Role::System).count() };
    let (instructions, rest) = all.split_at(leading);
    let (history, now) = if before.is_empty() { (&[][..], rest) } else { (rest, now) };
    writer.section(INSTRUCTIONS, instructions, false)?;
    writer.section(HISTORY, history, true)?;
    if now.iter().all(|message| message.role == Role::System) {
        let message = "the last message must be the user's: an agent does not go on with an answer".to_owned();
        return Err(Invalid { path: "messages".into(), message, at: 0 });
    }
    for message in now {
        if message.role == Role::System {
            writer.text.push_str(INSTRUCTIONS);
        }
        writer.parts(&message.parts)?;
        writer.flush();
    }
    let dropped = dropped(turn, &writer);
    let writes = Writes { image: writer.image, prompt: writer.blocks };
    let body = serde_json::to_vec(&writes).map_err(|error| Invalid {
        path: String::new(),
        message: error.to_string(),
        at: 0,
    })?;
    Ok(NativeWritten { body: Bytes::from(body), dropped, names: Default::default() })
}

fn refuse_forms(turn: &Turn<'_>) -> Result<(), Invalid> {
    let refuse = |path: String, message: &str| Err(Invalid { path, message: message.to_owned(), at: 0 });
    if let Some(tool) = turn.tools.first() {
        return refuse(format!("tools[{}]", tool.index), REFUSED_TOOLS);
    }
    match &turn.tool_choice {
        None | Some(ToolChoice::Auto | ToolChoice::None) => {}
        Some(ToolChoice::Any | ToolChoice::Named(_) | ToolChoice::Allowed { .. } | ToolChoice::Other(_)) => {
            return refuse("tool_choice".into(), REFUSED_TOOLS);
        }
    }
    match &turn.output {
        Output::Text => Ok(()),
        Output::Json | Output::Schema { .. } => refuse(
            "response_format".into(),
            "a form of the answer cannot be asked of an agent of the Agent Client Protocol",
        ),
    }
}

/// The hints of the turn that an agent has no place for.
fn dropped(turn: &Turn<'_>, writer: &Writer) -> Vec<String> {
    let given = [
        ("max_tokens", turn.max_output.is_some()),
        ("temperature", turn.temperature.is_some()),
        ("top_p", turn.top_p.is_some()),
        ("top_k", turn.top_k.is_some()),
        ("seed", turn.seed.is_some()),
        ("presence_penalty", turn.presence_penalty.is_some()),
        ("frequency_penalty", turn.frequency_penalty.is_some()),
        ("stop", !turn.stop.is_empty()),
        ("effort", turn.reasoning.effort.is_some()),
        ("thinking", turn.reasoning.mode.is_some() || writer.thinking),
        ("verbosity", turn.verbosity.is_some()),
        ("parallel_tool_calls", turn.parallel_tools.is_some()),
        ("user", turn.user.is_some()),
        ("prompt_cache_key", turn.cache_key.is_some()),
        ("cache_control", writer.marks),
    ];
    given.into_iter().filter(|(_, given)| *given).map(|(name, _)| name.to_owned()).collect()
}

struct Writer {
    blocks: Vec<ContentBlock>,
    /// The block of text that is being written.
    text: String,
    /// Where the first image is.
    image: Option<String>,
    images: Option<bool>,
    /// Thinking of an earlier answer was left out.
    thinking: bool,
    /// A mark for a prompt cache was left out.
    marks: bool,
}

impl Writer {
    fn section(&mut self, title: &str, messages: &[Message<'_>], speakers: bool) -> Result<(), Invalid> {
        if messages.is_empty() {
            return Ok(());
        }
        self.text.push_str(title);
        for (number, message) in messages.iter().enumerate() {
            if number > 0 {
                self.text.push_str("\n\n");
            }
            if speakers {
                self.text.push_str(match message.role {
                    Role::System => "Instructions: ",
                    Role::User => "User: ",
                    Role::Assistant => "Assistant: ",
                });
            }
            self.parts(&message.parts)?;
        }
        self.flush();
        Ok(())
    }

    fn parts(&mut self, parts: &[Part<'_>]) -> Result<(), Invalid> {
        let mut first = true;
        for part in parts {
            self.marks |= part.cache.is_some();
            match &part.body {
                Body::Text(text) | Body::Refusal(text) => {
                    if !first {
                        self.text.push('\n');
                    }
                    self.text.push_str(text);
                    first = false;
                }
                Body::Image(image) => self.image(part, image)?,
                Body::File(file) => match &file.source {
                    FileSource::Plain(text) => {
                        self.text.push_str("\n\n");
                        if let Some(name) = &file.name {
                            self.text.push_str(name);
                            self.text.push_str(":\n");
                        }
                        self.text.push_str(text);
                        first = false;
                    }
                    FileSource::Data(_) | FileSource::Url(_) => return Err(refuse(part, "a file")),
                },
                Body::Thinking { .. } | Body::RedactedThinking(_) => self.thinking = true,
                Body::ToolCall { .. } => return Err(refuse(part, "a call of a client's tool")),
                Body::ToolResult { .. } => return Err(refuse(part, "the result of a client's tool")),
                Body::Other(name) => return Err(refuse(part, &format!("content of the type `{name}`"))),
            }
        }
        Ok(())
    }

    fn image(&mut self, part: &Part<'_>, image: &Image<'_>) -> Result<(), Invalid> {
        let Image::Data { media_type, data } = image else {
            return Err(refuse(part, "an image that is an address"));
        };
        if self.images == Some(false) {
            return Err(refuse(part, "an image (this agent takes none)"));
        }
        self.image.get_or_insert_with(|| part.at.path());
        self.flush();
        self.blocks.push(ContentBlock::Image { media_type: media_type.to_string(), data: data.to_string() });
        Ok(())
    }

    fn flush(&mut self) {
        if !self.text.is_empty() {
            self.blocks.push(ContentBlock::Text { text: std::mem::take(&mut self.text) });
        }
    }
}

fn refuse(part: &Part<'_>, what: &str) -> Invalid {
    let message = format!("{what} cannot be carried to an agent of the Agent Client Protocol");
    Invalid { path: part.at.path(), message, at: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnkeep_dialect::turn::{At, Tool, ToolKind};

    fn message(role: Role, number: u32, body: Body<'static>) -> Message<'static> {
        let at = At::Content { message: number, part: 0 };
        Message { role, at: At::Message(number), parts: vec![Part { body, at, cache: None }] }
    }

    fn text(role: Role, number: u32, text: &'static str) -> Message<'static> {
        message(role, number, Body::Text(text.into()))
    }

    fn written(messages: Vec<Message<'static>>, goes_on: bool) -> Result<serde_json::Value, Invalid> {
        let turn = Turn { messages, ..Turn::default() };
        let how = Writing { model: "m", goes_on, stream: true };
        let body = write(&turn, how, None)?.body;
        let mut value: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
        Ok(value["prompt"].take())
    }

    #[test]
    fn a_lone_message_is_sent_as_it_is() {
        let prompt = written(vec![text(Role::User, 0, "hello\nyou")], false).expect("written");
        assert_eq!(prompt, serde_json::json!([{"type": "text", "text": "hello\nyou"}]));
    }

    #[test]
    fn a_new_session_is_told_everything_and_one_that_goes_on_what_is_new() {
        let now = || vec![text(Role::User, 3, "and now?"), text(Role::User, 4, "please")];
        let mut all =
            vec![text(Role::System, 0, "be kind"), text(Role::User, 1, "hi"), text(Role::Assistant, 2, "yes")];
        all.extend(now());
        let prompt = written(all, false).expect("written");
        assert_eq!(
            prompt,
            serde_json::json!([
                {"type": "text", "text": "Instructions for this conversation:\n\nbe kind"},
                {"type": "text", "text": "What was said in this conversation so far:\n\nUser: hi\n\nAssistant: yes"},
                {"type": "text", "text": "and now?"},
                {"type": "text", "text": "please"},
            ])
        );
        let prompt = written(now(), true).expect("written");
        assert_eq!(
            prompt,
            serde_json::json!([{"type": "text", "text": "and now?"}, {"type": "text", "text": "please"}])
        );
    }

    #[test]
    fn images_stand_where_they_were_and_are_refused_where_the_agent_takes_none() {
        let image = || {
            let data = Image::Data { media_type: "image/png".into(), data: "AA==".into() };
            let mut message = message(Role::User, 0, Body::Image(data));
            message.parts.insert(0, Part { body: Body::Text("this:".into()), at: At::Message(0), cache: None });
            message
        };
        let prompt = written(vec![image()], false).expect("written");
        let expected = serde_json::json!([{"type": "text", "text": "this:"},
            {"type": "image", "mimeType": "image/png", "data": "AA=="}]);
        assert_eq!(prompt, expected);
        let turn = Turn { messages: vec![image()], ..Turn::default() };
        let how = Writing { model: "m", goes_on: false, stream: true };
        let error = write(&turn, how, Some(false)).expect_err("refused");
        assert_eq!(error.path, "messages[0].content[0]");
    }

    #[test]
    fn what_an_agent_has_no_place_for_is_refused_by_its_path() {
        let path = |messages| written(messages, false).expect_err("refused").path;
        let call = Body::ToolCall { id: "1".into(), name: "f".into(), arguments: "{}".into() };
        let result = Body::ToolResult { id: "1".into(), content: Vec::new(), is_error: false };
        assert_eq!(path(vec![message(Role::Assistant, 0, call), text(Role::User, 1, "x")]), "messages[0].content[0]");
        assert_eq!(path(vec![message(Role::User, 0, result)]), "messages[0].content[0]");
        assert_eq!(path(vec![message(Role::User, 2, Body::Other("odd".into()))]), "messages[2].content[0]");
        let url = Body::Image(Image::Url("https://x".into()));
        assert_eq!(path(vec![message(Role::User, 1, url)]), "messages[1].content[0]");
        assert_eq!(path(vec![text(Role::User, 0, "a"), text(Role::Assistant, 1, "b")]), "messages");
        let how = Writing { model: "m", goes_on: false, stream: true };
        let refused = |turn: Turn<'_>| write(&turn, how, None).expect_err("refused").path;
        let kind = ToolKind::Function { name: "f".into(), description: None, schema: None, strict: None };
        let messages = || vec![text(Role::User, 0, "a")];
        assert_eq!(
            refused(Turn { messages: messages(), tools: vec![Tool { index: 3, kind }], ..Turn::default() }),
            "tools[3]"
        );
        let choice = Some(ToolChoice::Any);
        assert_eq!(refused(Turn { messages: messages(), tool_choice: choice, ..Turn::default() }), "tool_choice");
        let output = Output::Json;
        assert_eq!(refused(Turn { messages: messages(), output, ..Turn::default() }), "response_format");
    }

    #[test]
    fn hints_are_dropped_and_named() {
        let thinking = Body::Thinking { text: "hm".into(), signature: None };
        let mut answer = text(Role::Assistant, 1, "b");
        answer.parts.push(Part { body: thinking, at: At::Message(1), cache: Some("{}") });
        let messages = vec![text(Role::User, 0, "a"), answer, text(Role::User, 2, "c")];
        let turn =
            Turn { messages, max_output: Some(5), temperature: Some("1"), stop: vec!["x".into()], ..Turn::default() };
        let how = Writing { model: "m", goes_on: false, stream: true };
        let dropped = write(&turn, how, None).expect("written").dropped;
        assert_eq!(dropped, ["max_tokens", "temperature", "stop", "thinking", "cache_control"]);
    }
}
