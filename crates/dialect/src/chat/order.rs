//! The legal order of a Chat stream, as a client may rely on it. It runs on every stream in tests and on every stream
//! that we write in production; it is stricter than what we accept from upstreams.

use super::chunk::{self, Chunk};
use std::collections::BTreeMap;
use turnkeep_wire::sse::Frame;

/// Watches one stream.
#[derive(Debug, Default)]
pub struct Order {
    head: Option<Head>,
    choices: BTreeMap<u64, Choice>,
    usage: bool,
    end: Option<End>,
}

#[derive(Debug, PartialEq)]
struct Head {
    id: String,
    created: String,
    model: String,
}

#[derive(Debug, Default)]
struct Choice {
    calls: u64,
    finished: bool,
}

#[derive(Debug, PartialEq)]
enum End {
    Done,
    Error,
}

impl Order {
    /// Takes a frame; the error tells what may not stand there.
    pub fn frame(&mut self, frame: &Frame) -> Result<(), String> {
        let Some(data) = frame.data.as_deref() else { return Ok(()) };
        if let Some(end) = &self.end {
            return Err(format!("a frame after the end of the stream ({end:?})"));
        }
        if frame.event.is_some() {
            return Err("a named event; Chat has none".into());
        }
        if data == b"[DONE]" {
            if !self.finished() {
                return Err("[DONE] before every choice had its finish_reason".into());
            }
            self.end = Some(End::Done);
            return Ok(());
        }
        let chunk = chunk::read(data).map_err(|fault| fault.evidence.detail)?;
        if chunk.error.is_some() {
            if self.finished() {
                return Err("an error after the finish_reason".into());
            }
            self.end = Some(End::Error);
            return Ok(());
        }
        self.head(&chunk)?;
        let choices = chunk.choices.ok_or("a chunk without choices")?;
        if self.usage {
            return Err("a chunk after the usage chunk".into());
        }
        if choices.is_empty() {
            if chunk.usage.is_some() {
                if !self.finished() {
                    return Err("the usage chunk before every choice had its finish_reason".into());
                }
                self.usage = true;
            }
            return Ok(());
        }
        choices.iter().try_for_each(|choice| self.choice(choice))
    }

    fn finished(&self) -> bool {
        !self.choices.is_empty() && self.choices.values().all(|choice| choice.finished)
    }

    fn head(&mut self, chunk: &Chunk<'_>) -> Result<(), String> {
        if chunk.object.as_deref() != Some("chat.completion.chunk") {
            return Err(format!("object is {:?}", chunk.object));
        }
        let (Some(id), Some(created), Some(model)) = (&chunk.id, chunk.created, &chunk.model) else {
            return Err("a chunk without id, created or model".into());
        };
        let head = Head { id: id.to_string(), created: created.into(), model: model.to_string() };
        match &self.head {
            Some(first) if *first != head => Err(format!("id, created or model changed from {first:?} to {head:?}")),
            Some(_) => Ok(()),
            None => {
                self.head = Some(head);
                Ok(())
            }
        }
    }

    fn choice(&mut self, choice: &chunk::Choice<'_>) -> Result<(), String> {
        if !choice.has_body {
            return Err("a choice without delta".into());
        }
        let first = !self.choices.contains_key(&choice.index);
        if first != choice.role {
            return Err(format!("choice {}: the role stands in its first chunk, and there only", choice.index));
        }
        let known = self.choices.entry(choice.index).or_default();
        if known.finished {
            return Err(format!("choice {}: a chunk after its finish_reason", choice.index));
        }
        for call in choice.calls.iter().filter(|call| !call.legacy) {
            let index = call.index.ok_or("a piece of a tool call without index")?;
            if index < known.calls {
                if call.name.is_some() {
                    return Err(format!("tool call {index}: its name stands in its first piece, and there only"));
                }
                continue;
            }
            if index > known.calls {
                return Err(format!("tool call {index} after {} calls: indexes are dense", known.calls));
            }
            let kind = if call.free { "custom" } else { "function" };
            if call.id.is_none() || call.name.is_none() || call.kind.as_deref() != Some(kind) {
                return Err(format!("tool call {index}: its first piece has id, type and name"));
            }
            known.calls += 1;
        }
        if let Some(reason) = choice.finish.as_deref() {
            if !["stop", "length", "tool_calls", "content_filter", "function_call"].contains(&reason) {
                return Err(format!("the finish_reason is {reason}"));
            }
            if reason == "tool_calls" && known.calls == 0 {
                return Err("the finish_reason is tool_calls, and there was none".into());
            }
            known.finished = true;
        }
        Ok(())
    }

    /// The stream is at its end.
    pub fn finish(&self) -> Result<(), String> {
        if self.end.is_some() { Ok(()) } else { Err("the stream ended without [DONE] and without an error".into()) }
    }
}
