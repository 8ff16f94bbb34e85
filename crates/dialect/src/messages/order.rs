//! The legal order of a Messages stream, as the official clients rely on it: `message_start` first, blocks one at a time
//! with dense indexes, thinking signed before it stops, one `message_delta` with a reason, one `message_stop`, nothing
//! after. It is strict where the decoders are lenient, because it judges what the gateway itself writes.

mod said;

use said::{Block, Message, Said};
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
        let data = Said::read(data).map_err(|error| format!("data that is no JSON: {error}"))?;
        let name = frame.event.as_ref().ok_or("an event without its `event` line, which clients skip")?;
        let name = std::str::from_utf8(name).map_err(|_| "an event name that is not UTF-8")?;
        if data.kind.as_deref() != Some(name) {
            return Err(format!("the event `{name}` carries data of type {:?}", data.kind.as_deref()));
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

    fn next(&mut self, state: State, name: &str, data: &Said<'_>) -> Result<State, String> {
        match (state, name) {
            (State::Ended | State::Failed, _) => Err(format!("`{name}` after the end")),
            (State::Fresh | State::Between | State::Inside(_) | State::Reasoned, "error") => {
                check(data.error_type, "an error without a type")?;
                check(data.error_message, "an error without a message")?;
                Ok(State::Failed)
            }
            (State::Fresh, "message_start") => self.message_start(&data.message),
            (State::Between, "content_block_start") => self.block_start(data),
            (State::Inside(inside), "content_block_delta") => self.delta(inside, data),
            (State::Inside(inside), "content_block_stop") => self.block_stop(&inside, data),
            (State::Between, "message_delta") => self.message_delta(data),
            (State::Reasoned, "message_stop") => Ok(State::Ended),
            (state, name) => Err(format!("`{name}` in the state {state:?}")),
        }
    }

    fn message_start(&self, message: &Message) -> Result<State, String> {
        check(message.id, "a message id without `msg_`")?;
        check(message.kind && message.role, "no message of the assistant")?;
        check(message.model, "a message without its model")?;
        check(message.empty, "a message that starts with content")?;
        check(!message.stopped, "a message that starts with its end")?;
        check(message.usage.input, "a message without input tokens")?;
        check(message.usage.output, "a message without output tokens")?;
        Ok(State::Between)
    }

    fn block_start(&mut self, data: &Said<'_>) -> Result<State, String> {
        check(data.index == Some(self.blocks), "a block whose index is not the next")?;
        let block: &Block<'_> = &data.block;
        let kind = block.kind.as_deref().ok_or("a block without a type")?;
        let whole = match kind {
            "text" => block.text,
            "thinking" => block.thinking,
            "redacted_thinking" => block.data,
            "tool_use" => {
                self.called = true;
                let id = block.id.as_deref().unwrap_or_default();
                let safe = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
                check(!id.is_empty() && id.bytes().all(safe), "a tool call whose id clients refuse")?;
                block.name && block.input
            }
            _ => true,
        };
        check(whole, "a block that does not start as its type does")?;
        Ok(State::Inside(Inside { kind: kind.to_owned(), signed: false }))
    }

    fn delta(&self, mut inside: Inside, data: &Said<'_>) -> Result<State, String> {
        check(data.index == Some(self.blocks), "a delta of a block that is not open")?;
        let delta = &data.delta;
        let kind = delta.kind.as_deref().ok_or("a delta without a type")?;
        let text = match (kind, inside.kind.as_str()) {
            ("text_delta", "text") => delta.text,
            ("thinking_delta", "thinking") if !inside.signed => delta.thinking,
            ("signature_delta", "thinking") if !inside.signed => {
                inside.signed = true;
                delta.signature
            }
            ("input_json_delta", "tool_use") => delta.arguments,
            (kind, block) => return Err(format!("a `{kind}` in a block of type `{block}`")),
        };
        check(text, "a delta without its text")?;
        Ok(State::Inside(inside))
    }

    fn block_stop(&mut self, inside: &Inside, data: &Said<'_>) -> Result<State, String> {
        check(data.index == Some(self.blocks), "a stop of a block that is not open")?;
        check(inside.kind != "thinking" || inside.signed, "thinking that stops unsigned")?;
        self.blocks += 1;
        Ok(State::Between)
    }

    fn message_delta(&self, data: &Said<'_>) -> Result<State, String> {
        let reason = data.delta.reason.as_deref().ok_or("an end without a reason")?;
        check(REASONS.contains(&reason), "a reason that the protocol does not know")?;
        check(reason != "tool_use" || self.called, "`tool_use` without a tool call")?;
        check(reason != "end_turn" || !self.called, "`end_turn` with a tool call")?;
        check(data.usage.output, "an end without output tokens")?;
        Ok(State::Reasoned)
    }
}

fn check(good: bool, what: &str) -> Result<(), String> {
    if good { Ok(()) } else { Err(what.to_owned()) }
}
