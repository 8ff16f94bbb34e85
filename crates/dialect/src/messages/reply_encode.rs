//! Canonical events as a Messages answer. A Messages stream has one open block at a time and counts its blocks without
//! gaps; an upstream may grow several at once. Whatever belongs to another block than the open one waits until the open
//! one stops.
//!
//! `message_delta` and `message_stop` are both written at the very end, so that counts which come late are in them.

use super::{input, stop, usage};
use crate::envelope::UNSIGNED;
use crate::event::{Block, Class, Delta, Event, Finish};
use crate::json::Object;
use crate::reply::ReplyOptions;
use crate::tool_id;
use crate::tool_names::ToolNames;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;
use turnkeep_base::Usage;
use turnkeep_wire::sse;

/// Writes one streamed answer. Memory is bounded by what the upstream sends of blocks that have to wait.
#[derive(Debug)]
pub struct StreamEncoder {
    id: String,
    model: String,
    started: bool,
    open: Option<Open>,
    waiting: VecDeque<Waiting>,
    next: u64,
    tail: Tail,
    /// How the client knows the tools.
    names: Arc<ToolNames>,
    /// The answer is a Messages answer already, whose ids and signatures stay.
    own: bool,
}

/// What the end of the answer says.
#[derive(Debug, Default)]
struct Tail {
    usage: Usage,
    finish: Option<Finish>,
    stop_sequence: Option<String>,
    called: bool,
    refused: bool,
}

impl Tail {
    fn note(&mut self, kind: &Block) {
        match kind {
            Block::ToolCall { .. } => self.called = true,
            Block::Refusal => self.refused = true,
            Block::Text | Block::Thinking | Block::RedactedThinking(_) => {}
        }
    }

    fn reason(&self) -> &'static str {
        let finish = stop::derived(self.finish.unwrap_or(Finish::Stop), self.called);
        if self.refused && finish == Finish::Stop { stop::reason(Finish::Refusal) } else { stop::reason(finish) }
    }
}

#[derive(Debug)]
struct Open {
    block: u32,
    index: u64,
    thinking: bool,
    /// A client keeps only the last signature delta, so pieces are put together.
    signature: String,
    /// Arguments have begun: white space before them is not sent, as alone it is no JSON.
    arguments: bool,
}

/// A block that cannot be written yet.
#[derive(Debug)]
struct Waiting {
    block: u32,
    kind: Block,
    deltas: Vec<Delta>,
    stopped: bool,
}

impl StreamEncoder {
    /// An encoder for one answer that was a Messages answer already: ids and signatures stay as they are.
    pub fn again(options: &ReplyOptions) -> Self {
        StreamEncoder { own: true, ..Self::new(options) }
    }

    /// An encoder for one answer.
    pub fn new(options: &ReplyOptions) -> Self {
        StreamEncoder {
            id: options.id.clone(),
            model: options.model.clone(),
            started: false,
            open: None,
            waiting: VecDeque::new(),
            next: 0,
            tail: Tail::default(),
            names: Arc::clone(&options.asked.names),
            own: false,
        }
    }

    /// Appends what the event becomes (nothing, for some) and tells how far it commits the answer.
    pub fn event(&mut self, event: &Event, out: &mut Vec<u8>) -> Class {
        match event {
            Event::Start { id, model, usage } => {
                self.tail.usage = usage.unwrap_or_default();
                self.start(id.as_deref(), model.as_deref(), out);
            }
            Event::BlockStart { block, kind } => {
                self.start(None, None, out);
                self.tail.note(kind);
                if self.open.is_none() {
                    self.open(*block, kind, out);
                } else {
                    self.waiting.push_back(Waiting {
                        block: *block,
                        kind: kind.clone(),
                        deltas: Vec::new(),
                        stopped: false,
                    });
                }
            }
            Event::Delta { block, delta } => {
                if let Some(open) = self.open.as_mut().filter(|open| open.block == *block) {
                    open.delta(delta, out);
                } else if let Some(waiting) = self.waiting.iter_mut().find(|waiting| waiting.block == *block) {
                    waiting.push(delta);
                }
            }
            Event::BlockStop { block } => {
                if self.open.as_ref().is_some_and(|open| open.block == *block) {
                    self.close(out);
                } else if let Some(waiting) = self.waiting.iter_mut().find(|waiting| waiting.block == *block) {
                    waiting.stopped = true;
                }
            }
            Event::Finish { reason, stop_sequence } => {
                self.tail.finish = Some(*reason);
                self.tail.stop_sequence.clone_from(stop_sequence);
            }
            Event::Usage(usage) => self.tail.usage = *usage,
            Event::End => {
                self.start(None, None, out);
                while self.open.is_some() {
                    self.close(out);
                }
                self.end(out);
            }
        }
        event.class()
    }

    fn start(&mut self, id: Option<&str>, model: Option<&str>, out: &mut Vec<u8>) {
        if self.started {
            return;
        }
        self.started = true;
        let (id, model) = (message_id(id, &self.id, self.own), model.unwrap_or(&self.model));
        let usage = self.tail.usage;
        event(out, "message_start", |object| {
            let mut message = object.object("message");
            head(&mut message, &id, model);
            message.array("content");
            message.null("stop_reason");
            message.null("stop_sequence");
            usage::write(&mut message, &usage);
        });
    }

    fn open(&mut self, block: u32, kind: &Block, out: &mut Vec<u8>) {
        let index = self.next;
        self.next += 1;
        event(out, "content_block_start", |object| {
            object.number("index", index);
            let mut content = object.object("content_block");
            match kind {
                Block::Text | Block::Refusal => {
                    content.string("type", "text");
                    content.string("text", "");
                }
                Block::Thinking => {
                    content.string("type", "thinking");
                    content.string("thinking", "");
                    content.string("signature", "");
                }
                Block::RedactedThinking(data) => {
                    content.string("type", "redacted_thinking");
                    content.string("data", data);
                }
                Block::ToolCall { id, name } => {
                    content.string("type", "tool_use");
                    content.string("id", &call_id(id, self.own));
                    content.string("name", self.names.name(name));
                    content.object("input");
                }
            }
        });
        let thinking = matches!(kind, Block::Thinking);
        self.open = Some(Open { block, index, thinking, signature: String::new(), arguments: false });
    }

    /// Stops the open block and writes what waited for that, up to the next block that is still growing.
    fn close(&mut self, out: &mut Vec<u8>) {
        if let Some(open) = self.open.take() {
            open.stop(self.own, out);
        }
        while self.open.is_none()
            && let Some(waiting) = self.waiting.pop_front()
        {
            self.open(waiting.block, &waiting.kind, out);
            if let Some(open) = self.open.as_mut() {
                for delta in &waiting.deltas {
                    open.delta(delta, out);
                }
            }
            if waiting.stopped
                && let Some(open) = self.open.take()
            {
                open.stop(self.own, out);
            }
        }
    }

    fn end(&self, out: &mut Vec<u8>) {
        event(out, "message_delta", |object| {
            {
                let mut delta = object.object("delta");
                delta.string("stop_reason", self.tail.reason());
                delta.optional_string("stop_sequence", self.tail.stop_sequence.as_deref());
            }
            usage::write(object, &self.tail.usage);
        });
        event(out, "message_stop", |_| {});
    }
}

impl Waiting {
    /// Joins a delta to the one before where both are of one kind.
    fn push(&mut self, delta: &Delta) {
        match (self.deltas.last_mut(), delta) {
            (Some(Delta::Text(last)), Delta::Text(more))
            | (Some(Delta::Thinking(last)), Delta::Thinking(more))
            | (Some(Delta::Signature(last)), Delta::Signature(more))
            | (Some(Delta::Arguments(last)), Delta::Arguments(more)) => last.push_str(more),
            (_, delta) => self.deltas.push(delta.clone()),
        }
    }
}

impl Open {
    fn delta(&mut self, delta: &Delta, out: &mut Vec<u8>) {
        let (kind, key, text) = match delta {
            Delta::Text(text) => ("text_delta", "text", text.as_str()),
            Delta::Thinking(text) => ("thinking_delta", "thinking", text.as_str()),
            Delta::Signature(text) => {
                self.signature.push_str(text);
                return;
            }
            Delta::Arguments(text) if self.arguments => ("input_json_delta", "partial_json", text.as_str()),
            Delta::Arguments(text) => {
                let text = text.trim_start();
                self.arguments = !text.is_empty();
                ("input_json_delta", "partial_json", text)
            }
        };
        if !text.is_empty() {
            self.write(kind, key, text, out);
        }
    }

    fn write(&self, kind: &str, key: &str, text: &str, out: &mut Vec<u8>) {
        event(out, "content_block_delta", |object| {
            object.number("index", self.index);
            let mut delta = object.object("delta");
            delta.string("type", kind);
            delta.string(key, text);
        });
    }

    fn stop(self, own: bool, out: &mut Vec<u8>) {
        if self.thinking {
            let signature = signature(&self.signature, own);
            if !signature.is_empty() {
                self.write("signature_delta", "signature", signature, out);
            }
        }
        event(out, "content_block_stop", |object| object.number("index", self.index));
    }
}

/// Appends one event, whose data starts with its type.
fn event(out: &mut Vec<u8>, name: &str, fill: impl FnOnce(&mut Object<'_>)) {
    let mut data = Vec::with_capacity(128);
    let mut object = Object::open(&mut data);
    object.string("type", name);
    fill(&mut object);
    drop(object);
    sse::write(out, Some(name), &data);
}

fn head(message: &mut Object<'_>, id: &str, model: &str) {
    message.string("id", id);
    message.string("type", "message");
    message.string("role", "assistant");
    message.string("model", model);
}

/// The upstream's id, or ours, as a Messages id.
fn message_id(upstream: Option<&str>, ours: &str, own: bool) -> String {
    if let Some(id) = upstream.filter(|_| own) {
        return id.to_owned();
    }
    let id = upstream.unwrap_or(ours);
    let bare = id.strip_prefix("msg_").or_else(|| id.strip_prefix("chatcmpl-")).unwrap_or(id);
    format!("msg_{bare}")
}

/// The id of a call in letters that Messages takes; in an answer of Messages, as it is.
fn call_id(id: &str, own: bool) -> Cow<'_, str> {
    if own { Cow::Borrowed(id) } else { tool_id::to_messages_safe(id) }
}

/// The signature of thinking: in an answer of Messages, none where there was none. Clients drop a turn whose thinking has
/// none; ours says that nobody signed it, and a later request leaves such thinking out.
fn signature(given: &str, own: bool) -> &str {
    if given.is_empty() && !own { UNSIGNED } else { given }
}

/// A block of a whole answer.
struct Folded {
    block: u32,
    kind: Block,
    text: String,
    signature: String,
}

/// Writes a whole answer: the events, folded.
pub fn plain(events: &[Event], options: &ReplyOptions) -> Vec<u8> {
    whole(events, options, false)
}

/// Writes a whole answer that was a Messages answer already: ids and signatures stay as they are.
pub fn plain_again(events: &[Event], options: &ReplyOptions) -> Vec<u8> {
    whole(events, options, true)
}

fn whole(events: &[Event], options: &ReplyOptions, own: bool) -> Vec<u8> {
    let mut tail = Tail::default();
    let mut blocks: Vec<Folded> = Vec::new();
    let (mut id, mut model) = (None, None);
    for event in events {
        match event {
            Event::Start { id: given, model: named, usage } => {
                (id, model) = (given.as_deref(), named.as_deref());
                tail.usage = usage.unwrap_or_default();
            }
            Event::BlockStart { block, kind } => {
                tail.note(kind);
                let (text, signature) = (String::new(), String::new());
                blocks.push(Folded { block: *block, kind: kind.clone(), text, signature });
            }
            Event::Delta { block, delta } => {
                let Some(folded) = blocks.iter_mut().find(|folded| folded.block == *block) else { continue };
                match delta {
                    Delta::Text(text) | Delta::Thinking(text) | Delta::Arguments(text) => folded.text.push_str(text),
                    Delta::Signature(text) => folded.signature.push_str(text),
                }
            }
            Event::Finish { reason, stop_sequence } => {
                tail.finish = Some(*reason);
                tail.stop_sequence.clone_from(stop_sequence);
            }
            Event::Usage(usage) => tail.usage = *usage,
            Event::BlockStop { .. } | Event::End => {}
        }
    }
    let mut out = Vec::new();
    let mut message = Object::open(&mut out);
    head(&mut message, &message_id(id, &options.id, own), model.unwrap_or(&options.model));
    {
        let mut content = message.array("content");
        for folded in &blocks {
            write_folded(&mut content.object(), folded, &options.asked.names, own);
        }
    }
    message.string("stop_reason", tail.reason());
    message.optional_string("stop_sequence", tail.stop_sequence.as_deref());
    usage::write(&mut message, &tail.usage);
    drop(message);
    out
}

fn write_folded(block: &mut Object<'_>, folded: &Folded, names: &ToolNames, own: bool) {
    match &folded.kind {
        Block::Text | Block::Refusal => {
            block.string("type", "text");
            block.string("text", &folded.text);
        }
        Block::Thinking => {
            block.string("type", "thinking");
            block.string("thinking", &folded.text);
            block.string("signature", signature(&folded.signature, own));
        }
        Block::RedactedThinking(data) => {
            block.string("type", "redacted_thinking");
            block.string("data", data);
        }
        Block::ToolCall { id, name } => {
            block.string("type", "tool_use");
            block.string("id", &call_id(id, own));
            block.string("name", names.name(name));
            input::write(block, "input", &folded.text);
        }
    }
}
