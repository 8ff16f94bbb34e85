//! Canonical events as a Chat answer, streamed or plain.
//!
//! Thinking goes out as `reasoning_content`, which most Chat clients know. Its signature, and thinking that only the
//! provider can read, go out as `thinking_blocks`, so that a client that sends them back keeps the model's thread; the
//! entries carry an `index`, as SDKs that put streams together ask it of every list. Gemini's proof of a call stands at the
//! call, where Google's own endpoint of this dialect has it.

use super::chunk;
use crate::envelope;
use crate::event::{Block, Class, Delta, Event, Finish};
use crate::free_text;
use crate::json::Object;
use crate::reply::{ReplyFault, ReplyOptions};
use crate::tool_names::ToolNames;
use std::sync::Arc;
use turnkeep_base::{Dialect, Usage};
use turnkeep_wire::sse;

/// Encodes one streamed answer.
#[derive(Debug)]
pub struct StreamEncoder {
    id: String,
    model: String,
    created: u64,
    /// What every chunk begins with, once the answer has begun.
    head: Vec<u8>,
    usage_wanted: bool,
    usage: Option<Usage>,
    /// By block number.
    blocks: Vec<Open>,
    calls: u64,
    thinking: u64,
    refused: bool,
    /// Gemini's proof, which stands at the call that comes next, or alone.
    proof: Option<String>,
    /// How the client knows the tools.
    names: Arc<ToolNames>,
    /// The answer is a Chat answer already, whose id stays.
    own: bool,
}

#[derive(Debug)]
enum Open {
    Text,
    Refusal,
    Thinking {
        signature: String,
    },
    Call {
        index: u64,
        empty: bool,
    },
    /// A call of a tool that takes free text, which stands unwrapped only when it is whole.
    Free {
        index: u64,
        arguments: String,
    },
    Closed,
}

impl StreamEncoder {
    /// For one answer that was a Chat answer already: its id stays as it is.
    pub fn again(options: &ReplyOptions) -> Self {
        StreamEncoder { own: true, ..Self::new(options) }
    }

    /// For one answer.
    pub fn new(options: &ReplyOptions) -> Self {
        StreamEncoder {
            id: own_id(None, false, options),
            model: options.model.clone(),
            created: options.created,
            head: Vec::new(),
            usage_wanted: options.usage_wanted,
            usage: None,
            blocks: Vec::new(),
            calls: 0,
            thinking: 0,
            refused: false,
            proof: None,
            names: Arc::clone(&options.asked.names),
            own: false,
        }
    }

    /// Appends what the event becomes (nothing, for some) and tells how far it commits the answer.
    pub fn event(&mut self, event: &Event, out: &mut Vec<u8>) -> Class {
        match event {
            Event::Start { id, model, usage } => {
                if let Some(id) = id.as_deref().filter(|id| self.own || is_chat_id(id)) {
                    self.id = id.to_owned();
                }
                if let Some(model) = model {
                    self.model.clone_from(model);
                }
                self.usage = *usage;
                self.head = self.begin();
                self.chunk(out, None, |delta| {
                    delta.string("role", "assistant");
                    delta.string("content", "");
                });
            }
            Event::BlockStart { block, kind } => self.start(*block, kind, out),
            Event::Delta { block, delta } => self.delta(*block, delta, out),
            Event::BlockStop { block } => self.stop(*block, out),
            Event::Finish { reason, .. } => {
                self.alone(out);
                let reason = finish(*reason, self.refused);
                self.chunk(out, Some(reason), |_| {});
            }
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
        }
        event.class()
    }

    /// Writes a proof that no call came after.
    fn alone(&mut self, out: &mut Vec<u8>) {
        if let Some(proof) = self.proof.take() {
            self.signed(&proof, out);
        }
    }

    fn signed(&mut self, signature: &str, out: &mut Vec<u8>) {
        let index = self.thinking;
        self.thinking += 1;
        self.chunk(out, None, |delta| {
            write_thinking(&mut delta.array("thinking_blocks").object(), index, "", signature);
        });
    }

    fn start(&mut self, block: u32, kind: &Block, out: &mut Vec<u8>) {
        if !matches!(kind, Block::ToolCall { .. }) {
            self.alone(out);
        }
        let open = match kind {
            Block::Text => Open::Text,
            Block::Refusal => {
                self.refused = true;
                Open::Refusal
            }
            Block::Thinking => Open::Thinking { signature: String::new() },
            Block::RedactedThinking(data) => {
                let index = self.thinking;
                self.thinking += 1;
                self.chunk(out, None, |delta| {
                    write_redacted(&mut delta.array("thinking_blocks").object(), index, data)
                });
                Open::Closed
            }
            Block::ToolCall { id, name } => {
                let index = self.calls;
                self.calls += 1;
                let proof = self.proof.take();
                self.chunk(out, None, |delta| {
                    let mut calls = delta.array("tool_calls");
                    let mut call = calls.object();
                    call.number("index", index);
                    write_call(&mut call, id, &self.names, name, "", proof.as_deref());
                });
                if self.names.is_custom(name) {
                    Open::Free { index, arguments: String::new() }
                } else {
                    Open::Call { index, empty: true }
                }
            }
        };
        let at = block as usize;
        // Numbers are dense, so this grows by one; a number far off is ignored rather than paid for.
        if at == self.blocks.len() {
            self.blocks.push(open);
        } else if let Some(place) = self.blocks.get_mut(at) {
            *place = open;
        }
    }

    fn delta(&mut self, block: u32, delta: &Delta, out: &mut Vec<u8>) {
        let field = match (self.blocks.get_mut(block as usize), delta) {
            (Some(Open::Thinking { signature }), Delta::Signature(more)) => return signature.push_str(more),
            (Some(Open::Call { index, empty }), Delta::Arguments(arguments)) => {
                if !arguments.is_empty() {
                    *empty = false;
                    let index = *index;
                    self.arguments(index, arguments, out);
                }
                return;
            }
            (Some(Open::Free { arguments, .. }), Delta::Arguments(more)) => return arguments.push_str(more),
            (Some(Open::Refusal), Delta::Text(text)) => ("refusal", text),
            (_, Delta::Text(text)) => ("content", text),
            (_, Delta::Thinking(text)) => ("reasoning_content", text),
            (_, Delta::Signature(_) | Delta::Arguments(_)) => return,
        };
        if !field.1.is_empty() {
            self.chunk(out, None, |delta| delta.string(field.0, field.1));
        }
    }

    fn stop(&mut self, block: u32, out: &mut Vec<u8>) {
        let Some(open) = self.blocks.get_mut(block as usize) else { return };
        match std::mem::replace(open, Open::Closed) {
            Open::Thinking { signature } if envelope::origin(&signature) == Some(Dialect::Gemini) => {
                self.alone(out);
                self.proof = Some(signature);
            }
            Open::Thinking { signature } if !signature.is_empty() => self.signed(&signature, out),
            Open::Free { index, arguments } => {
                self.chunk(out, None, |delta| {
                    let mut calls = delta.array("tool_calls");
                    let mut call = calls.object();
                    call.number("index", index);
                    call.object("custom").string("input", &free_text::unwrap(&arguments));
                });
            }
            // A client parses the arguments, and an empty text does not parse.
            Open::Call { index, empty: true } => self.arguments(index, "{}", out),
            Open::Text | Open::Refusal | Open::Thinking { .. } | Open::Call { .. } | Open::Closed => {}
        }
    }

    fn arguments(&self, index: u64, arguments: &str, out: &mut Vec<u8>) {
        self.chunk(out, None, |delta| {
            let mut calls = delta.array("tool_calls");
            let mut call = calls.object();
            call.number("index", index);
            call.object("function").string("arguments", arguments);
        });
    }

    fn chunk(&self, out: &mut Vec<u8>, finish: Option<&str>, write: impl FnOnce(&mut Object<'_>)) {
        self.frame(out, |chunk| {
            {
                let mut choices = chunk.array("choices");
                let mut choice = choices.object();
                choice.number("index", 0);
                write(&mut choice.object("delta"));
                choice.optional_string("finish_reason", finish);
            }
            if self.usage_wanted {
                chunk.null("usage");
            }
        });
    }

    fn frame(&self, out: &mut Vec<u8>, write: impl FnOnce(&mut Object<'_>)) {
        if self.head.is_empty() {
            out.extend_from_slice(&self.begin());
        } else {
            out.extend_from_slice(&self.head);
        }
        write(&mut Object::resume(out));
        out.extend_from_slice(b"\n\n");
    }

    /// A chunk up to what is its own.
    fn begin(&self) -> Vec<u8> {
        let mut begun = b"data: ".to_vec();
        head(&mut Object::open(&mut begun), &self.id, "chat.completion.chunk", self.created, &self.model);
        // It goes on.
        begun.pop();
        begun
    }
}

fn head(object: &mut Object<'_>, id: &str, kind: &str, created: u64, model: &str) {
    object.string("id", id);
    object.string("object", kind);
    object.number("created", created);
    object.string("model", model);
}

fn is_chat_id(id: &str) -> bool {
    id.starts_with("chatcmpl")
}

fn own_id(upstream: Option<&str>, own: bool, options: &ReplyOptions) -> String {
    match upstream.filter(|id| own || is_chat_id(id)) {
        Some(id) => id.to_owned(),
        None => format!("chatcmpl-{}", options.id),
    }
}

fn finish(reason: Finish, refused: bool) -> &'static str {
    match reason {
        Finish::Stop | Finish::StopSequence | Finish::Pause => "stop",
        Finish::Length | Finish::ContextFull => "length",
        Finish::ToolCalls => "tool_calls",
        // With the refusal in words, the answer ended as it should.
        Finish::Refusal if refused => "stop",
        Finish::Refusal => "content_filter",
    }
}

fn write_call(call: &mut Object<'_>, id: &str, names: &ToolNames, name: &str, arguments: &str, proof: Option<&str>) {
    call.string("id", id);
    if names.is_custom(name) {
        call.string("type", "custom");
        let mut custom = call.object("custom");
        custom.string("name", names.name(name));
        custom.string("input", &free_text::unwrap(arguments));
    } else {
        call.string("type", "function");
        let mut function = call.object("function");
        function.string("name", names.name(name));
        function.string("arguments", arguments);
    }
    if let Some(proof) = proof.and_then(|sealed| envelope::open(sealed, Dialect::Gemini)) {
        call.object("extra_content").object("google").string("thought_signature", proof);
    }
}

fn write_thinking(block: &mut Object<'_>, index: u64, text: &str, signature: &str) {
    block.number("index", index);
    block.string("type", "thinking");
    block.string("thinking", text);
    block.string("signature", signature);
}

fn write_redacted(block: &mut Object<'_>, index: u64, data: &str) {
    block.number("index", index);
    block.string("type", "redacted_thinking");
    block.string("data", data);
}

pub(crate) fn write_usage(object: &mut Object<'_>, usage: &Usage) {
    let mut out = object.object("usage");
    out.number("prompt_tokens", usage.total_input());
    out.number("completion_tokens", usage.output);
    out.number("total_tokens", usage.total());
    {
        let mut details = out.object("prompt_tokens_details");
        details.number("cached_tokens", usage.cache_read);
        details.number("cache_write_tokens", usage.cache_write);
    }
    out.object("completion_tokens_details").number("reasoning_tokens", usage.reasoning);
}

/// The usage chunk of a stream of which one chunk's data is given.
pub(crate) fn usage_frame(data: &[u8], usage: &Usage) -> Result<Vec<u8>, ReplyFault> {
    let like = chunk::read(data)?;
    let mut out = b"data: ".to_vec();
    {
        let mut chunk = Object::open(&mut out);
        chunk.optional_string("id", like.id.as_deref());
        chunk.string("object", "chat.completion.chunk");
        chunk.raw("created", like.created.unwrap_or("0"));
        chunk.optional_string("model", like.model.as_deref());
        chunk.array("choices");
        write_usage(&mut chunk, usage);
    }
    out.extend_from_slice(b"\n\n");
    Ok(out)
}

/// Encodes a whole answer.
pub fn plain(events: &[Event], options: &ReplyOptions) -> Vec<u8> {
    whole(events, options, false)
}

/// Encodes a whole answer that was a Chat answer already: its id stays as it is.
pub fn plain_again(events: &[Event], options: &ReplyOptions) -> Vec<u8> {
    whole(events, options, true)
}

fn whole(events: &[Event], options: &ReplyOptions, own: bool) -> Vec<u8> {
    let mut answer = Whole { own, ..Whole::default() };
    for event in events {
        answer.event(event);
    }
    answer.write(options)
}

/// A whole answer, folded out of its events.
#[derive(Default)]
struct Whole<'e> {
    id: Option<&'e str>,
    model: Option<&'e str>,
    usage: Option<Usage>,
    finish: Option<Finish>,
    blocks: Vec<(&'e Block, String, String)>,
    own: bool,
}

impl<'e> Whole<'e> {
    fn event(&mut self, event: &'e Event) {
        match event {
            Event::Start { id, model, usage } => {
                self.id = id.as_deref();
                self.model = model.as_deref();
                self.usage = *usage;
            }
            Event::BlockStart { kind, .. } => self.blocks.push((kind, String::new(), String::new())),
            Event::Delta { block, delta } => {
                if let Some((_, text, signature)) = self.blocks.get_mut(*block as usize) {
                    match delta {
                        Delta::Text(more) | Delta::Thinking(more) | Delta::Arguments(more) => text.push_str(more),
                        Delta::Signature(more) => signature.push_str(more),
                    }
                }
            }
            Event::Finish { reason, .. } => self.finish = Some(*reason),
            Event::Usage(usage) => self.usage = Some(*usage),
            Event::BlockStop { .. } | Event::End => {}
        }
    }

    fn joined(&self, wanted: impl Fn(&Block) -> bool) -> Option<String> {
        let mut texts = self.blocks.iter().filter(|(kind, ..)| wanted(kind)).map(|(_, text, _)| text.as_str());
        let first = texts.next()?.to_owned();
        Some(texts.fold(first, |all, text| all + text))
    }

    fn write(&self, options: &ReplyOptions) -> Vec<u8> {
        let mut out = Vec::new();
        let mut object = Object::open(&mut out);
        let model = self.model.unwrap_or(&options.model);
        head(&mut object, &own_id(self.id, self.own, options), "chat.completion", options.created, model);
        {
            let mut choices = object.array("choices");
            let mut choice = choices.object();
            choice.number("index", 0);
            let refusal = self.joined(|kind| matches!(kind, Block::Refusal));
            self.message(&mut choice.object("message"), refusal.as_deref(), &options.asked.names);
            choice.null("logprobs");
            choice.string("finish_reason", finish(self.finish.unwrap_or(Finish::Stop), refusal.is_some()));
        }
        if let Some(usage) = &self.usage {
            write_usage(&mut object, usage);
        }
        drop(object);
        out
    }

    fn message(&self, message: &mut Object<'_>, refusal: Option<&str>, names: &ToolNames) {
        message.string("role", "assistant");
        let text = self.joined(|kind| matches!(kind, Block::Text));
        let calls = self.blocks.iter().any(|(kind, ..)| matches!(kind, Block::ToolCall { .. }));
        match text {
            None if !calls && refusal.is_none() => message.string("content", ""),
            text => message.optional_string("content", text.as_deref()),
        }
        message.optional_string("refusal", refusal);
        let thinking = self.joined(|kind| matches!(kind, Block::Thinking)).filter(|text| !text.is_empty());
        if let Some(text) = thinking {
            message.string("reasoning_content", &text);
        }
        self.thinking_blocks(message);
        if calls {
            let mut array = message.array("tool_calls");
            for (at, (kind, arguments, _)) in self.blocks.iter().enumerate() {
                if let Block::ToolCall { id, name } = kind {
                    let arguments = if arguments.is_empty() { "{}" } else { arguments };
                    let proof = at.checked_sub(1).and_then(|before| self.proof_of_next(before));
                    write_call(&mut array.object(), id, names, name, arguments, proof);
                }
            }
        }
    }

    /// Gemini's proof in a block of thinking, if a call comes next, where it stands then.
    fn proof_of_next(&self, at: usize) -> Option<&str> {
        let next = self.blocks.get(at.checked_add(1)?)?;
        match (self.blocks.get(at)?, next) {
            ((Block::Thinking, _, signature), (Block::ToolCall { .. }, ..)) => {
                Some(signature.as_str()).filter(|sealed| envelope::origin(sealed) == Some(Dialect::Gemini))
            }
            _ => None,
        }
    }

    fn thinking_blocks(&self, message: &mut Object<'_>) {
        let kept = |(at, (kind, _, signature)): &(usize, &(&Block, String, String))| {
            matches!(kind, Block::RedactedThinking(_))
                || (matches!(kind, Block::Thinking) && !signature.is_empty() && self.proof_of_next(*at).is_none())
        };
        let kept = self.blocks.iter().enumerate().filter(kept).map(|(_, block)| block);
        let mut kept = kept.peekable();
        if kept.peek().is_none() {
            return;
        }
        let mut array = message.array("thinking_blocks");
        for (index, (kind, text, signature)) in (0u64..).zip(kept) {
            if let Block::RedactedThinking(data) = kind {
                write_redacted(&mut array.object(), index, data);
            } else {
                write_thinking(&mut array.object(), index, text, signature);
            }
        }
    }
}
