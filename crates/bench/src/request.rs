//! The requests that the load generator sends: a small turn, and a 60 KB agent turn (a system prompt, 15 tools, 20
//! messages with tool calls and results), in both dialects, rendered once with their head. Each send patches two
//! numbers in place: the conversation (in the first user message) and the turn (in the last), so that no two requests
//! are identical (a gateway may join or replay those) and agent turns continue conversations as real ones do.

use crate::answers::Dialect;
use serde_json::{Value, json};

/// Bytes of an agent request's body, within a few bytes.
pub const AGENT_BYTES: usize = 60 * 1024;
/// Turns of one agent conversation before the next starts.
const TURNS: u64 = 20;
const CONVERSATION: &str = "CCCCCCCCCCCC";
const TURN: &str = "TTTTTTTTTTTT";
const DIGITS: usize = 12;

/// Which body a request carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Size {
    /// One short user message.
    Small,
    /// [`AGENT_BYTES`] of agent turn.
    Agent,
}

/// What to ask of whom.
#[derive(Debug, Clone)]
pub struct Ask {
    /// The client protocol.
    pub dialect: Dialect,
    /// The model's name as the peer knows it.
    pub model: String,
    /// Sent as a bearer token when given.
    pub key: Option<String>,
    /// The body's size.
    pub size: Size,
    /// Whether to ask for a stream.
    pub stream: bool,
}

/// A rendered request and where its numbers go.
#[derive(Debug, Clone)]
pub struct Template {
    bytes: Vec<u8>,
    conversation: Option<usize>,
    turn: usize,
}

impl Template {
    /// Renders `ask`.
    pub fn new(ask: &Ask) -> anyhow::Result<Self> {
        let body = serde_json::to_vec(&match (ask.dialect, ask.size) {
            (Dialect::Chat, Size::Small) => json!({
                "model": ask.model, "stream": ask.stream,
                "messages": [{"role": "user", "content": format!("Say hello. Turn {TURN}.")}],
            }),
            (Dialect::Messages, Size::Small) => json!({
                "model": ask.model, "max_tokens": 1024, "stream": ask.stream,
                "messages": [{"role": "user", "content": format!("Say hello. Turn {TURN}.")}],
            }),
            (Dialect::Chat, Size::Agent) => padded(|pad| chat_agent(ask, pad))?,
            (Dialect::Messages, Size::Agent) => padded(|pad| messages_agent(ask, pad))?,
        })?;
        let path = match ask.dialect {
            Dialect::Chat => "/v1/chat/completions",
            Dialect::Messages => "/v1/messages",
        };
        let version = match ask.dialect {
            Dialect::Chat => "",
            Dialect::Messages => "anthropic-version: 2023-06-01\r\n",
        };
        let key = ask.key.as_ref().map(|key| format!("authorization: Bearer {key}\r\n")).unwrap_or_default();
        let mut bytes = format!(
            "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nuser-agent: bench\r\naccept: */*\r\n{version}{key}\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        bytes.extend_from_slice(&body);
        let find = |needle: &str| memchr::memmem::find(&bytes, needle.as_bytes());
        let turn = find(TURN).ok_or_else(|| anyhow::anyhow!("the body has no place for the turn's number"))?;
        Ok(Self { conversation: find(CONVERSATION), turn, bytes })
    }

    /// The request's bytes as turn `turn` of client `client`. Distinct pairs give distinct requests as long as the
    /// client is below 100 000 and the turn below 10 000 000.
    pub fn number(&mut self, client: u64, turn: u64) -> &[u8] {
        put(&mut self.bytes, self.turn, client, turn);
        if let Some(at) = self.conversation {
            put(&mut self.bytes, at, client, turn / TURNS);
        }
        &self.bytes
    }
}

fn put(bytes: &mut [u8], at: usize, client: u64, number: u64) {
    let mut left = client % 100_000 * 10_000_000 + number % 10_000_000;
    for slot in bytes[at..at + DIGITS].iter_mut().rev() {
        *slot = b'0' + (left % 10) as u8;
        left /= 10;
    }
}

/// Calls `build` twice: once to learn the size without padding, once with what is missing to [`AGENT_BYTES`].
fn padded(build: impl Fn(usize) -> Value) -> anyhow::Result<Value> {
    let bare = serde_json::to_vec(&build(0))?.len();
    Ok(build(AGENT_BYTES.saturating_sub(bare)))
}

/// `len` bytes of source-code-like text: quotes and newlines, so that escapes are in it as in real tool results.
fn text(len: usize) -> String {
    const LINE: &str = "    let total = items.iter().map(|i| i.price * i.count).sum::<u64>(); // sums \"open\" items\n";
    LINE.chars().cycle().take(len).collect()
}

fn schema(n: usize) -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Absolute path of the file to work on; must be inside the workspace."},
            "pattern": {"type": "string", "description": "A regular expression in the syntax of the search tool."},
            "limit": {"type": "integer", "minimum": 1, "maximum": 2000, "description": "The most results to give back."},
            "edits": {"type": "array", "description": "Replacements, applied in order; all or none.", "items": {
                "type": "object",
                "properties": {"old": {"type": "string"}, "new": {"type": "string"}, "all": {"type": "boolean"}},
                "required": ["old", "new"], "additionalProperties": false,
            }},
            "kind": {"type": "string", "enum": ["read", "write", "search", format!("variant_{n}")]},
        },
        "required": ["path"], "additionalProperties": false,
    })
}

fn describe(n: usize) -> String {
    format!("Tool {n} of the agent. {}", text(500))
}

/// What padding one of `n` tool results takes.
fn share(pad: usize, n: usize, of: usize) -> String {
    // Escapes take a second byte: one quote pair and one newline per 92 characters. Close enough to the size wanted.
    text(pad / of * 92 / 95 + n % 2)
}

const TOOLS: usize = 15;
const ROUNDS: usize = 9;

fn chat_agent(ask: &Ask, pad: usize) -> Value {
    let mut messages = vec![
        json!({"role": "system", "content": format!("You are a coding agent. {}", text(6000))}),
        json!({"role": "user", "content": format!("Task {CONVERSATION}: make the tests pass.")}),
    ];
    for n in 0..ROUNDS {
        messages.push(json!({"role": "assistant", "content": "I look at the next file.", "tool_calls": [
            {"id": format!("call_{n:04}"), "type": "function", "function":
                {"name": format!("tool_{n}"), "arguments": "{\"path\":\"/project/src/lib.rs\",\"limit\":200}"}}]}));
        messages
            .push(json!({"role": "tool", "tool_call_id": format!("call_{n:04}"), "content": share(pad, n, ROUNDS)}));
    }
    messages.push(json!({"role": "user", "content": format!("Go on. Turn {TURN}.")}));
    let tools: Vec<_> = (0..TOOLS)
        .map(|n| {
            json!({"type": "function", "function":
                {"name": format!("tool_{n}"), "description": describe(n), "parameters": schema(n)}})
        })
        .collect();
    json!({"model": ask.model, "stream": ask.stream, "tools": tools, "tool_choice": "auto", "messages": messages})
}

fn messages_agent(ask: &Ask, pad: usize) -> Value {
    let mut messages = vec![json!({"role": "user", "content": [
        {"type": "text", "text": format!("Task {CONVERSATION}: make the tests pass.")}]})];
    for n in 0..ROUNDS {
        messages.push(json!({"role": "assistant", "content": [
            {"type": "text", "text": "I look at the next file."},
            {"type": "tool_use", "id": format!("toolu_{n:04}"), "name": format!("tool_{n}"),
                "input": {"path": "/project/src/lib.rs", "limit": 200}}]}));
        let mut content = vec![json!({"type": "tool_result", "tool_use_id": format!("toolu_{n:04}"),
            "content": share(pad, n, ROUNDS)})];
        if n + 1 == ROUNDS {
            content.push(json!({"type": "text", "text": format!("Go on. Turn {TURN}.")}));
        }
        messages.push(json!({"role": "user", "content": content}));
    }
    let tools: Vec<_> = (0..TOOLS)
        .map(|n| json!({"name": format!("tool_{n}"), "description": describe(n), "input_schema": schema(n)}))
        .collect();
    json!({
        "model": ask.model, "max_tokens": 4096, "stream": ask.stream, "tools": tools, "messages": messages,
        "system": [{"type": "text", "text": format!("You are a coding agent. {}", text(6000))}],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_bodies_are_sixty_kilobytes_of_json_and_no_two_sends_are_equal() {
        for dialect in [Dialect::Chat, Dialect::Messages] {
            let ask = Ask { dialect, model: "instant".to_owned(), key: None, size: Size::Agent, stream: false };
            let mut template = Template::new(&ask).unwrap();
            let first = template.number(3, 19).to_vec();
            let body = &first[memchr::memmem::find(&first, b"\r\n\r\n").unwrap() + 4..];
            assert!(body.len().abs_diff(AGENT_BYTES) < AGENT_BYTES / 50, "{}", body.len());
            let value: Value = serde_json::from_slice(body).unwrap();
            assert_eq!(value["tools"].as_array().unwrap().len(), 15);
            assert!(value["messages"].as_array().unwrap().len() >= 19);
            assert!(!first.windows(6).any(|w| w == b"CCCCCC" || w == b"TTTTTT"));
            assert_ne!(first, template.number(3, 20));
            assert_ne!(first, template.number(4, 19));
        }
    }
}
