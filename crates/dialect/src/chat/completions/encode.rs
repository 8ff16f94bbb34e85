//! Canonical events as a `text_completion`, streamed or plain. Its one place for what the model made is a text: a
//! refusal in words is text too, thinking and calls have no place and stay away.

use crate::chat::reply_encode::write_usage;
use crate::event::{Block, Class, Delta, Event, Finish};
use crate::json::Object;
use crate::reply::ReplyOptions;
use turnkeep_base::Usage;
use turnkeep_wire::sse;

/// Encodes one streamed answer.
#[derive(Debug)]
pub struct StreamEncoder {
    id: String,
    model: String,
    created: u64,
    usage_wanted: bool,
    usage: Option<Usage>,
}

impl StreamEncoder {
    /// For one answer.
    pub fn new(options: &ReplyOptions) -> Self {
        StreamEncoder {
            id: format!("cmpl-{}", options.id),
            model: options.model.clone(),
            created: options.created,
            usage_wanted: options.usage_wanted,
            usage: None,
        }
    }

    /// Appends what the event becomes (nothing, for some) and tells how far it commits the answer.
    pub fn event(&mut self, event: &Event, out: &mut Vec<u8>) -> Class {
        match event {
            Event::Start { id: _, model, usage } => {
                if let Some(model) = model {
                    self.model.clone_from(model);
                }
                self.usage = *usage;
            }
            Event::Delta { block: _, delta: Delta::Text(text) } if !text.is_empty() => self.chunk(out, text, None),
            Event::Finish { reason, stop_sequence: _ } => self.chunk(out, "", Some(finish(*reason))),
            Event::Usage(usage) => self.usage = Some(*usage),
            Event::End => {
                if self.usage_wanted
                    && let Some(usage) = self.usage
                {
                    self.frame(out, |chunk| {
                        chunk.array("choices");
                        write_usage(chunk, &usage);
                    });
                }
                sse::write(out, None, b"[DONE]");
            }
            Event::BlockStart { .. } | Event::Delta { .. } | Event::BlockStop { .. } => {}
        }
        event.class()
    }

    fn chunk(&self, out: &mut Vec<u8>, text: &str, finish: Option<&str>) {
        self.frame(out, |chunk| {
            choice(&mut chunk.array("choices").object(), text, finish);
            if self.usage_wanted {
                chunk.null("usage");
            }
        });
    }

    fn frame(&self, out: &mut Vec<u8>, write: impl FnOnce(&mut Object<'_>)) {
        out.extend_from_slice(b"data: ");
        {
            let mut chunk = Object::open(out);
            head(&mut chunk, &self.id, self.created, &self.model);
            write(&mut chunk);
        }
        out.extend_from_slice(b"\n\n");
    }
}

/// Encodes a whole answer.
pub fn plain(events: &[Event], options: &ReplyOptions) -> Vec<u8> {
    let (mut text, mut model, mut reason, mut usage) = (String::new(), options.model.as_str(), Finish::Stop, None);
    for event in events {
        match event {
            Event::Start { id: _, model: by, usage: first } => {
                model = by.as_deref().unwrap_or(model);
                usage = *first;
            }
            Event::Delta { block: _, delta: Delta::Text(more) } => text.push_str(more),
            Event::Finish { reason: why, stop_sequence: _ } => reason = *why,
            Event::Usage(last) => usage = Some(*last),
            Event::BlockStart {
                block: _,
                kind:
                    Block::Text | Block::Thinking | Block::RedactedThinking(_) | Block::ToolCall { .. } | Block::Refusal,
            }
            | Event::Delta { block: _, delta: Delta::Thinking(_) | Delta::Signature(_) | Delta::Arguments(_) }
            | Event::BlockStop { .. }
            | Event::End => {}
        }
    }
    let mut out = Vec::with_capacity(text.len() + 256);
    {
        let mut object = Object::open(&mut out);
        head(&mut object, &format!("cmpl-{}", options.id), options.created, model);
        choice(&mut object.array("choices").object(), &text, Some(finish(reason)));
        if let Some(usage) = &usage {
            write_usage(&mut object, usage);
        }
    }
    out
}

fn head(object: &mut Object<'_>, id: &str, created: u64, model: &str) {
    object.string("id", id);
    object.string("object", "text_completion");
    object.number("created", created);
    object.string("model", model);
}

fn choice(choice: &mut Object<'_>, text: &str, finish: Option<&str>) {
    choice.string("text", text);
    choice.number("index", 0);
    choice.null("logprobs");
    choice.optional_string("finish_reason", finish);
}

fn finish(reason: Finish) -> &'static str {
    match reason {
        Finish::Stop | Finish::StopSequence | Finish::Pause | Finish::ToolCalls => "stop",
        Finish::Length | Finish::ContextFull => "length",
        Finish::Refusal => "content_filter",
    }
}
