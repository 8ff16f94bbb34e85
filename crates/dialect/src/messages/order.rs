//! The legal order of a Messages stream, as the official clients rely on it: `message_start` first, blocks one at a time
//! with dense indexes, thinking signed before it stops, one `message_delta` with a reason, one `message_stop`, nothing
//! after. It is strict where the decoders are lenient, because it judges what the gateway itself writes.

use serde_json::Value;
use turnkeep_wire::sse::Frame;

/// Watches one stream.
#[derive(Debug, Default)]
pub struct Order {
    state: State,
    blocks: u64,
    called: bool,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Fresh,
    Between,
    Inside(Inside),
    Reasoned,
    Ended,
    Failed,
}

#[derive(Debug)]
struct Inside {
    kind: String,
    signed: bool,
}

const REASONS: &[&str] =
    &["end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal", "model_context_window_exceeded"];

impl Order {
    /// Judges the next frame. Comments and pings may stand anywhere.
    pub fn frame(&mut self, frame: &Frame) -> Result<(), String> {
        let Some(data) = &frame.data else { return Ok(()) };
        let data: Value = serde_json::from_slice(data).map_err(|error| format!("data that is no JSON: {error}"))?;
        let name = frame.event.as_ref().ok_or("an event without its `event` line, which clients skip")?;
        let name = std::str::from_utf8(name).map_err(|_| "an event name that is not UTF-8")?;
        if data["type"] != name {
            return Err(format!("the event `{name}` carries data of type {}", data["type"]));
        }
        if name == "ping" {
            return if self.over() { Err("a ping after the end".into()) } else { Ok(()) };
        }
        let state = std::mem::take(&mut self.state);
        self.state = self.next(state, name, &data)?;
        Ok(())
    }

    /// The stream is at its end: it must have ended by its terminal event or by an error.
    pub fn finish(&self) -> Result<(), String> {
        if self.over() { Ok(()) } else { Err(format!("the stream stops in the state {:?}", self.state)) }
    }

    fn over(&self) -> bool {
        match self.state {
            State::Ended | State::Failed => true,
            State::Fresh | State::Between | State::Inside(_) | State::Reasoned => false,
        }
    }

    fn next(&mut self, state: State, name: &str, data: &Value) -> Result<State, String> {
        match (state, name) {
            (State::Ended | State::Failed, _) => Err(format!("`{name}` after the end")),
            (State::Fresh | State::Between | State::Inside(_) | State::Reasoned, "error") => {
                check(data["error"]["type"].is_string(), "an error without a type")?;
                check(data["error"]["message"].is_string(), "an error without a message")?;
                Ok(State::Failed)
            }
            (State::Fresh, "message_start") => self.message_start(&data["message"]),
            (State::Between, "content_block_start") => self.block_start(data),
            (State::Inside(inside), "content_block_delta") => self.delta(inside, data),
            (State::Inside(inside), "content_block_stop") => self.block_stop(&inside, data),
            (State::Between, "message_delta") => self.message_delta(data),
            (State::Reasoned, "message_stop") => Ok(State::Ended),
            (state, name) => Err(format!("`{name}` in the state {state:?}")),
        }
    }

    fn message_start(&self, message: &Value) -> Result<State, String> {
        check(message["id"].as_str().is_some_and(|id| id.starts_with("msg_")), "a message id without `msg_`")?;
        check(message["type"] == "message" && message["role"] == "assistant", "no message of the assistant")?;
        check(message["model"].is_string(), "a message without its model")?;
        check(message["content"].as_array().is_some_and(Vec::is_empty), "a message that starts with content")?;
        check(message["stop_reason"].is_null(), "a message that starts with its end")?;
        check(message["usage"]["input_tokens"].is_u64(), "a message without input tokens")?;
        check(message["usage"]["output_tokens"].is_u64(), "a message without output tokens")?;
        Ok(State::Between)
    }

    fn block_start(&mut self, data: &Value) -> Result<State, String> {
        check(data["index"] == self.blocks, "a block whose index is not the next")?;
        let block = &data["content_block"];
        let kind = block["type"].as_str().ok_or("a block without a type")?;
        let whole = match kind {
            "text" => block["text"] == "",
            "thinking" => block["thinking"] == "",
            "redacted_thinking" => block["data"].is_string(),
            "tool_use" => {
                self.called = true;
                let id = block["id"].as_str().unwrap_or_default();
                let safe = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
                check(!id.is_empty() && id.bytes().all(safe), "a tool call whose id clients refuse")?;
                block["name"].is_string() && block["input"].as_object().is_some_and(serde_json::Map::is_empty)
            }
            _ => true,
        };
        check(whole, "a block that does not start as its type does")?;
        Ok(State::Inside(Inside { kind: kind.to_owned(), signed: false }))
    }

    fn delta(&self, mut inside: Inside, data: &Value) -> Result<State, String> {
        check(data["index"] == self.blocks, "a delta of a block that is not open")?;
        let delta = &data["delta"];
        let kind = delta["type"].as_str().ok_or("a delta without a type")?;
        let text = match (kind, inside.kind.as_str()) {
            ("text_delta", "text") => &delta["text"],
            ("thinking_delta", "thinking") if !inside.signed => &delta["thinking"],
            ("signature_delta", "thinking") if !inside.signed => {
                inside.signed = true;
                &delta["signature"]
            }
            ("input_json_delta", "tool_use") => &delta["partial_json"],
            (kind, block) => return Err(format!("a `{kind}` in a block of type `{block}`")),
        };
        check(text.is_string(), "a delta without its text")?;
        Ok(State::Inside(inside))
    }

    fn block_stop(&mut self, inside: &Inside, data: &Value) -> Result<State, String> {
        check(data["index"] == self.blocks, "a stop of a block that is not open")?;
        check(inside.kind != "thinking" || inside.signed, "thinking that stops unsigned")?;
        self.blocks += 1;
        Ok(State::Between)
    }

    fn message_delta(&self, data: &Value) -> Result<State, String> {
        let reason = data["delta"]["stop_reason"].as_str().ok_or("an end without a reason")?;
        check(REASONS.contains(&reason), "a reason that the protocol does not know")?;
        check(reason != "tool_use" || self.called, "`tool_use` without a tool call")?;
        check(reason != "end_turn" || !self.called, "`end_turn` with a tool call")?;
        check(data["usage"]["output_tokens"].is_u64(), "an end without output tokens")?;
        Ok(State::Reasoned)
    }
}

fn check(good: bool, what: &str) -> Result<(), String> {
    if good { Ok(()) } else { Err(what.to_owned()) }
}
