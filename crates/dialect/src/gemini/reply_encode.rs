//! Canonical events as a Gemini answer, streamed or plain.
//!
//! Text goes out as it comes. A call goes out whole, as Gemini's clients take no pieces of one. Every chunk with a
//! candidate has a part in it: Google's clients leave a turn out of the history of which one chunk has none; so the last
//! chunk, which carries the finish reason and the usage, has an empty text.
//!
//! The proof of a thinking right before a call stands on the call's part, where Gemini has it: clients send calls back as
//! they got them, and some of them forget thoughts. Any other proof stands on an empty thought.

mod arguments;
mod part;

use super::{finish, proof};
use crate::event::{Block, Class, Delta, Event, Finish};
use crate::json::{Array, Object};
use crate::reply::ReplyOptions;
use crate::request::StreamForm;
use crate::tool_names::ToolNames;
use part::Part;
use std::sync::Arc;
use turnkeep_base::Usage;

/// Writes one streamed answer. Memory is bounded by the arguments of calls that are still growing.
#[derive(Debug)]
pub struct StreamEncoder {
    head: Head,
    form: StreamForm,
    names: Arc<ToolNames>,
    /// By block number.
    blocks: Vec<Open>,
    /// A proof that may belong to a call that comes next, in Gemini's form.
    proof: Option<String>,
    /// Something is out.
    begun: bool,
    /// An element of the array is out.
    elements: bool,
    refused: bool,
    finish: Option<Finish>,
    usage: Option<Usage>,
}

#[derive(Debug, Default)]
struct Head {
    id: String,
    model: String,
}

#[derive(Debug)]
enum Open {
    Text,
    Thinking { proof: String },
    Call { id: String, name: String, arguments: String, proof: Option<String> },
    Closed,
}

impl StreamEncoder {
    /// For one answer.
    pub fn new(options: &ReplyOptions) -> Self {
        StreamEncoder {
            head: Head { id: options.id.clone(), model: options.model.clone() },
            form: options.asked.form,
            names: Arc::clone(&options.asked.names),
            blocks: Vec::new(),
            proof: None,
            begun: false,
            elements: false,
            refused: false,
            finish: None,
            usage: None,
        }
    }

    /// For one answer that was in this dialect already: its id stays. Calls and proofs always stay as they are.
    pub fn again(options: &ReplyOptions) -> Self {
        Self::new(options)
    }

    /// Appends what the event becomes (nothing, for some) and tells how far it commits the answer.
    pub fn event(&mut self, event: &Event, out: &mut Vec<u8>) -> Class {
        match event {
            Event::Start { id, model, usage } => {
                self.head.take(id.as_deref(), model.as_deref());
                self.usage = *usage;
            }
            Event::BlockStart { block, kind } => self.start(*block, kind, out),
            Event::Delta { block, delta } => self.delta(*block, delta, out),
            Event::BlockStop { block } => self.stop(*block, out),
            Event::Finish { reason, .. } => self.finish = Some(*reason),
            Event::Usage(usage) => self.usage = Some(*usage),
            Event::End => self.end(out),
        }
        event.class()
    }

    fn start(&mut self, block: u32, kind: &Block, out: &mut Vec<u8>) {
        let open = match kind {
            Block::Text => Open::Text,
            Block::Refusal => {
                self.refused = true;
                Open::Text
            }
            Block::Thinking => Open::Thinking { proof: String::new() },
            Block::RedactedThinking(sealed) => {
                self.hold(proof::shown_redacted(sealed), out);
                Open::Closed
            }
            Block::ToolCall { id, name } => Open::Call {
                id: id.clone(),
                name: self.names.name(name).to_owned(),
                arguments: String::new(),
                proof: self.proof.take(),
            },
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
        match (self.blocks.get_mut(block as usize), delta) {
            (Some(Open::Thinking { proof }), Delta::Signature(more)) => proof.push_str(more),
            (Some(Open::Call { arguments, .. }), Delta::Arguments(more)) => {
                arguments.push_str(more);
                if !more.is_empty() {
                    self.sign_of_life(out);
                }
            }
            (_, Delta::Text(text)) if !text.is_empty() => self.part(&Part::text(text), out),
            (_, Delta::Thinking(text)) if !text.is_empty() => self.part(&Part::thought(text, None), out),
            (_, Delta::Text(_) | Delta::Thinking(_) | Delta::Signature(_) | Delta::Arguments(_)) => {}
        }
    }

    fn stop(&mut self, block: u32, out: &mut Vec<u8>) {
        let Some(open) = self.blocks.get_mut(block as usize) else { return };
        match std::mem::replace(open, Open::Closed) {
            Open::Thinking { proof } => self.hold(proof::shown(&proof), out),
            Open::Call { id, name, arguments, proof } => {
                self.part(&Part::Call { id: &id, name: &name, arguments: &arguments, proof: proof.as_deref() }, out);
            }
            Open::Text | Open::Closed => {}
        }
    }

    /// Keeps a proof for the call that may follow; the one before it belongs to none.
    fn hold(&mut self, proof: Option<String>, out: &mut Vec<u8>) {
        if proof.is_none() {
            return;
        }
        if let Some(before) = std::mem::replace(&mut self.proof, proof) {
            self.chunk(&[Part::thought("", Some(&before))], None, out);
        }
    }

    fn part(&mut self, part: &Part<'_>, out: &mut Vec<u8>) {
        match self.proof.take_if(|_| !matches!(part, Part::Call { .. })) {
            Some(proof) => self.chunk(&[Part::thought("", Some(&proof)), *part], None, out),
            None => self.chunk(&[*part], None, out),
        }
    }

    /// The model is at work on a call, of which nothing can be written yet: what the client reads as nothing.
    fn sign_of_life(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        match self.form {
            // No comment: Google's Python client takes one for JSON.
            StreamForm::Events => out.push(b'\n'),
            StreamForm::Array => {
                self.open(out);
                self.head.write(&mut Object::open(out));
            }
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        let proof = self.proof.take();
        let last = match &proof {
            Some(proof) => Part::thought("", Some(proof)),
            None => Part::text(""),
        };
        let reason = finish::written(self.finish.unwrap_or(Finish::Stop), self.refused);
        self.chunk(&[last], Some(reason), out);
        match self.form {
            StreamForm::Events => {}
            StreamForm::Array => out.push(b']'),
        }
    }

    fn chunk(&mut self, parts: &[Part<'_>], finish: Option<&str>, out: &mut Vec<u8>) {
        self.begun = true;
        self.open(out);
        {
            let mut chunk = Object::open(out);
            candidate(&mut chunk, finish, |array| parts.iter().for_each(|part| part.write(array)));
            if let (Some(_), Some(usage)) = (finish, &self.usage) {
                write_usage(&mut chunk, usage);
            }
            self.head.write(&mut chunk);
        }
        match self.form {
            StreamForm::Events => out.extend_from_slice(b"\n\n"),
            StreamForm::Array => {}
        }
    }

    /// What stands before an element.
    fn open(&mut self, out: &mut Vec<u8>) {
        let before: &[u8] = match self.form {
            StreamForm::Events => b"data: ",
            StreamForm::Array if self.elements => b",\r\n",
            StreamForm::Array => b"[",
        };
        self.elements = true;
        out.extend_from_slice(before);
    }
}

impl Head {
    fn take(&mut self, id: Option<&str>, model: Option<&str>) {
        if let Some(id) = id {
            self.id = id.to_owned();
        }
        if let Some(model) = model {
            self.model = model.to_owned();
        }
    }

    fn write(&self, chunk: &mut Object<'_>) {
        chunk.string("modelVersion", &self.model);
        chunk.string("responseId", &self.id);
    }
}

fn candidate(chunk: &mut Object<'_>, finish: Option<&str>, parts: impl FnOnce(&mut Array<'_>)) {
    let mut candidates = chunk.array("candidates");
    let mut candidate = candidates.object();
    {
        let mut content = candidate.object("content");
        parts(&mut content.array("parts"));
        content.string("role", "model");
    }
    if let Some(reason) = finish {
        candidate.string("finishReason", reason);
    }
    candidate.number("index", 0);
}

pub(crate) fn write_usage(chunk: &mut Object<'_>, usage: &Usage) {
    let mut out = chunk.object("usageMetadata");
    out.number("promptTokenCount", usage.total_input());
    if usage.cache_read > 0 {
        out.number("cachedContentTokenCount", usage.cache_read);
    }
    let thoughts = usage.reasoning.min(usage.output);
    out.number("candidatesTokenCount", usage.output - thoughts);
    if thoughts > 0 {
        out.number("thoughtsTokenCount", thoughts);
    }
    out.number("totalTokenCount", usage.total());
}

/// Writes a whole answer that was in this dialect already.
pub fn plain_again(events: &[Event], options: &ReplyOptions) -> Vec<u8> {
    plain(events, options)
}

/// Writes a whole answer.
pub fn plain(events: &[Event], options: &ReplyOptions) -> Vec<u8> {
    let mut whole = Whole { head: Head { id: options.id.clone(), model: options.model.clone() }, ..Whole::default() };
    for event in events {
        whole.event(event);
    }
    whole.write(&options.asked.names)
}

/// A whole answer, folded out of its events.
#[derive(Default)]
struct Whole<'e> {
    head: Head,
    blocks: Vec<(&'e Block, String, String)>,
    finish: Option<Finish>,
    usage: Option<Usage>,
}

impl<'e> Whole<'e> {
    fn event(&mut self, event: &'e Event) {
        match event {
            Event::Start { id, model, usage } => {
                self.head.take(id.as_deref(), model.as_deref());
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

    fn write(&self, names: &ToolNames) -> Vec<u8> {
        let mut out = Vec::new();
        let refused = self.blocks.iter().any(|(kind, ..)| matches!(kind, Block::Refusal));
        let reason = finish::written(self.finish.unwrap_or(Finish::Stop), refused);
        {
            let mut answer = Object::open(&mut out);
            candidate(&mut answer, Some(reason), |array| self.parts(names, array));
            if let Some(usage) = &self.usage {
                write_usage(&mut answer, usage);
            }
            self.head.write(&mut answer);
        }
        out
    }

    fn parts(&self, names: &ToolNames, array: &mut Array<'_>) {
        let mut proof: Option<String> = None;
        for (at, (kind, text, signature)) in self.blocks.iter().enumerate() {
            let call_follows = matches!(self.blocks.get(at.saturating_add(1)), Some((Block::ToolCall { .. }, ..)));
            match kind {
                Block::Text | Block::Refusal if text.is_empty() => {}
                Block::Text | Block::Refusal => Part::text(text).write(array),
                Block::Thinking => {
                    let shown = proof::shown(signature);
                    let own = if call_follows { None } else { shown.as_deref() };
                    if !text.is_empty() || own.is_some() {
                        Part::thought(text, own).write(array);
                    }
                    proof = shown.filter(|_| call_follows);
                }
                Block::RedactedThinking(sealed) => {
                    proof = proof::shown_redacted(sealed);
                    if !call_follows && let Some(proof) = proof.take() {
                        Part::thought("", Some(&proof)).write(array);
                    }
                }
                Block::ToolCall { id, name } => {
                    let proof = proof.take();
                    Part::Call { id, name: names.name(name), arguments: text, proof: proof.as_deref() }.write(array);
                }
            }
        }
        if array.is_empty() {
            Part::text("").write(array);
        }
    }
}
