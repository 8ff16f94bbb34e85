//! Canonical events as a Responses answer. Every block is an output item of its own; several may grow at once, which the
//! protocol allows.
//!
//! Everything is said three times, as clients read any of it: in pieces, in what is done, and in the whole response at
//! the end. For that the texts of open items and the items that are done are kept, and nothing else.

pub(super) mod echo;
mod item;

use crate::envelope;
use crate::event::{Block, Class, Event, Finish};
use crate::json::{Object, write_number, write_string};
use crate::reply::{ReplyOptions, named};
use crate::tool_names::ToolNames;
use bytes::Bytes;
use echo::Echo;
use item::Item;
use std::borrow::Cow;
use std::sync::Arc;
use turnkeep_base::{Dialect, Usage};

/// Writes one streamed answer. Memory is bounded by what the answer holds.
#[derive(Debug)]
pub struct StreamEncoder {
    id: String,
    /// What the ids of items are made of.
    bare: String,
    model: String,
    created: u64,
    body: Bytes,
    names: Arc<ToolNames>,
    /// Once the answer has begun.
    echo: Option<Echo>,
    writer: Writer,
    /// Items that are open, and those that are done, by their place in the output.
    open: Vec<Item>,
    done: Vec<Vec<u8>>,
    usage: Option<Usage>,
    finish: Option<Finish>,
    refused: bool,
    /// The answer is a Responses answer already, whose id stays.
    own: bool,
    /// The upstream's id of the answer does not stay.
    own_id: bool,
}

/// Numbers the events.
#[derive(Debug, Default)]
struct Writer {
    next: u64,
}

impl Writer {
    /// An event of which all but its number and its text stays the same.
    fn piece(&mut self, out: &mut Vec<u8>, form: &Form, text: &str) {
        out.extend_from_slice(&form.before);
        write_number(out, self.next);
        out.extend_from_slice(&form.between);
        write_string(out, text);
        out.extend_from_slice(form.after);
        self.next += 1;
    }

    fn event(&mut self, out: &mut Vec<u8>, name: &str, fill: impl FnOnce(&mut Object<'_>)) {
        out.extend_from_slice(b"event: ");
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\ndata: ");
        {
            let mut object = Object::open(out);
            object.string("type", name);
            object.number("sequence_number", self.next);
            fill(&mut object);
        }
        out.extend_from_slice(b"\n\n");
        self.next += 1;
    }
}

/// What stands around the number and the text of an item's pieces.
#[derive(Debug)]
struct Form {
    before: Vec<u8>,
    between: Vec<u8>,
    after: &'static [u8],
}

/// What an item holds.
#[derive(Debug)]
enum ItemKind {
    Text,
    Refusal,
    Reasoning,
    /// Anthropic's redacted thinking.
    Redacted(String),
    Call {
        call_id: String,
        name: String,
        namespace: Option<String>,
        custom: bool,
    },
}

impl ItemKind {
    fn prefix(&self) -> &'static str {
        match self {
            ItemKind::Text | ItemKind::Refusal => "msg",
            ItemKind::Reasoning | ItemKind::Redacted(_) => "rs",
            ItemKind::Call { custom: false, .. } => "fc",
            ItemKind::Call { custom: true, .. } => "ctc",
        }
    }

    /// The event of a piece.
    fn delta(&self) -> &'static str {
        match self {
            ItemKind::Text => "response.output_text.delta",
            ItemKind::Refusal => "response.refusal.delta",
            ItemKind::Reasoning | ItemKind::Redacted(_) => "response.reasoning_summary_text.delta",
            ItemKind::Call { custom: false, .. } => "response.function_call_arguments.delta",
            ItemKind::Call { custom: true, .. } => "response.custom_tool_call_input.delta",
        }
    }
}

/// How far a response has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    InProgress,
    Completed,
    Incomplete(&'static str),
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Status::InProgress => "in_progress",
            Status::Completed => "completed",
            Status::Incomplete(_) => "incomplete",
        }
    }
}

/// Bytes of a response beside what was asked and its items, about.
const HEAD: usize = 768;

impl StreamEncoder {
    /// For one answer.
    pub fn new(options: &ReplyOptions) -> Self {
        StreamEncoder {
            id: format!("resp_{}", options.id),
            bare: options.id.clone(),
            model: options.model.clone(),
            created: options.created,
            body: options.asked.body.clone(),
            names: options.asked.names.clone(),
            echo: None,
            writer: Writer::default(),
            open: Vec::new(),
            done: Vec::new(),
            usage: None,
            finish: None,
            refused: false,
            own: false,
            own_id: options.asked.own_id,
        }
    }

    /// For one answer that was in this dialect already: ids and proofs stay as they are.
    pub fn again(options: &ReplyOptions) -> Self {
        StreamEncoder { own: true, ..Self::new(options) }
    }

    /// Appends what the event becomes (nothing, for some) and tells how far it commits the answer.
    pub fn event(&mut self, event: &Event, out: &mut Vec<u8>) -> Class {
        match event {
            Event::Start { id, model, usage } => {
                self.usage = *usage;
                self.start(id.as_deref(), model.as_deref(), out);
            }
            Event::BlockStart { block, kind } => {
                self.start(None, None, out);
                self.block(*block, kind, out);
            }
            Event::Delta { block, delta } => {
                if let Some(item) = self.open.iter_mut().rev().find(|item| item.block == *block) {
                    item.delta(delta, &mut self.writer, out);
                }
            }
            Event::BlockStop { block } => {
                if let Some(at) = self.open.iter().position(|item| item.block == *block) {
                    let item = self.open.remove(at);
                    self.close(item, out);
                }
            }
            Event::Finish { reason, .. } => self.finish = Some(*reason),
            Event::Usage(usage) => self.usage = Some(*usage),
            Event::End => {
                self.start(None, None, out);
                for item in std::mem::take(&mut self.open) {
                    self.close(item, out);
                }
                let status = self.status();
                let name = if status == Status::Completed { "response.completed" } else { "response.incomplete" };
                self.lifecycle(name, status, out);
            }
        }
        event.class()
    }

    fn start(&mut self, id: Option<&str>, model: Option<&str>, out: &mut Vec<u8>) {
        if self.echo.is_some() {
            return;
        }
        // An id stands in every event, so one that is no name does not stay.
        let theirs = id.filter(|id| self.own || (!self.own_id && id.starts_with("resp_")));
        if let Some(id) = theirs.and_then(named) {
            id.strip_prefix("resp_").unwrap_or(&id).clone_into(&mut self.bare);
            self.id = id;
        }
        if let Some(model) = model {
            model.clone_into(&mut self.model);
        }
        self.echo = Some(Echo::of(&std::mem::take(&mut self.body)));
        self.lifecycle("response.created", Status::InProgress, out);
        self.lifecycle("response.in_progress", Status::InProgress, out);
    }

    fn lifecycle(&mut self, name: &str, status: Status, out: &mut Vec<u8>) {
        // It grows by much at once: what was asked, and all that is done.
        let done = if status == Status::InProgress { 0 } else { self.done.iter().map(|item| item.len() + 1).sum() };
        out.reserve(self.echo.as_ref().map_or(0, Echo::len) + done + HEAD);
        let mut writer = std::mem::take(&mut self.writer);
        writer.event(out, name, |event| self.response(&mut event.object("response"), status));
        self.writer = writer;
    }

    fn block(&mut self, block: u32, kind: &Block, out: &mut Vec<u8>) {
        let kind = match kind {
            Block::Text => ItemKind::Text,
            Block::Refusal => {
                self.refused = true;
                ItemKind::Refusal
            }
            Block::Thinking => ItemKind::Reasoning,
            Block::RedactedThinking(data) => ItemKind::Redacted(data.clone()),
            Block::ToolCall { id, name } => {
                // What was sent is known by its names; only an answer that is written again, or one of this dialect, has
                // nothing but the client's body.
                let of_body = || self.echo.as_ref().and_then(|echo| echo.tool(name));
                let tool = if self.names.is_empty() { of_body() } else { self.names.client(name) };
                ItemKind::Call {
                    call_id: id.clone(),
                    name: tool.map_or(name, |tool| &tool.name).clone(),
                    namespace: tool.and_then(|tool| tool.namespace.clone()),
                    custom: tool.is_some_and(|tool| tool.custom),
                }
            }
        };
        let index = self.done.len() as u64;
        // Its place, until it is done.
        self.done.push(Vec::new());
        let id = format!("{}_{}_{index}", kind.prefix(), self.bare);
        self.open.push(Item::open(block, index, id, kind, &mut self.writer, out));
    }

    fn close(&mut self, item: Item, out: &mut Vec<u8>) {
        let (index, item) = item.close(&mut self.writer, out);
        let place = usize::try_from(index).ok().and_then(|at| self.done.get_mut(at));
        if let Some(place) = place {
            *place = item;
        }
    }

    fn status(&self) -> Status {
        match self.finish {
            None | Some(Finish::Stop | Finish::StopSequence | Finish::ToolCalls | Finish::Pause) => Status::Completed,
            Some(Finish::Length | Finish::ContextFull) => Status::Incomplete("max_output_tokens"),
            // With the refusal in words, the answer ended as it should.
            Some(Finish::Refusal) if self.refused => Status::Completed,
            Some(Finish::Refusal) => Status::Incomplete("content_filter"),
        }
    }

    /// The whole response. As there is no clock here, an answer is completed when it was created.
    fn response(&self, response: &mut Object<'_>, status: Status) {
        response.string("id", &self.id);
        response.string("object", "response");
        response.number("created_at", self.created);
        response.string("status", status.name());
        if status == Status::Completed {
            response.number("completed_at", self.created);
        } else {
            response.null("completed_at");
        }
        response.null("error");
        match status {
            Status::Incomplete(reason) => response.object("incomplete_details").string("reason", reason),
            Status::InProgress | Status::Completed => response.null("incomplete_details"),
        }
        response.string("model", &self.model);
        {
            let mut output = response.array("output");
            if status != Status::InProgress {
                self.done.iter().for_each(|item| output.raw_bytes(item));
            }
        }
        match &self.usage {
            Some(usage) if status != Status::InProgress => write_usage(response, usage),
            Some(_) | None => response.null("usage"),
        }
        if let Some(echo) = &self.echo {
            echo.write(response);
        }
    }
}

/// Both objects of details are always there: clients read them without asking.
pub(crate) fn write_usage(response: &mut Object<'_>, usage: &Usage) {
    let mut out = response.object("usage");
    out.number("input_tokens", usage.total_input());
    {
        let mut details = out.object("input_tokens_details");
        details.number("cached_tokens", usage.cache_read);
        details.number("cache_write_tokens", usage.cache_write);
    }
    out.number("output_tokens", usage.output);
    out.object("output_tokens_details").number("reasoning_tokens", usage.reasoning);
    out.number("total_tokens", usage.total());
}

/// The proof of reasoning as a client of this dialect gets it; none where nobody signed.
fn proof(sealed: &str) -> Option<Cow<'_, str>> {
    envelope::origin(sealed).map(|_| envelope::shown(sealed, Dialect::Responses))
}

/// Writes a whole answer that was in this dialect already: ids and proofs stay as they are.
pub fn plain_again(events: &[Event], options: &ReplyOptions) -> Vec<u8> {
    whole(events, StreamEncoder::again(options))
}

/// Writes a whole answer.
pub fn plain(events: &[Event], options: &ReplyOptions) -> Vec<u8> {
    whole(events, StreamEncoder::new(options))
}

/// The response at the end of a stream is the whole answer.
fn whole(events: &[Event], mut encoder: StreamEncoder) -> Vec<u8> {
    let mut passing = Vec::new();
    for event in events {
        passing.clear();
        encoder.event(event, &mut passing);
    }
    let mut out = Vec::new();
    encoder.response(&mut Object::open(&mut out), encoder.status());
    out
}
