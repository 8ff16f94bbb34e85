//! A Gemini upstream's answer as canonical events, streamed or plain.
//!
//! Chunks hold whole parts, and text that continues the text before. Nothing tells where the answer ends but the
//! candidate's finish reason, and usage may follow that; finish and usage are told at the transport's end.
//!
//! A signature on a call becomes the proof of the thinking right before the call, made up where there was none. One on a
//! text is optional for Gemini and means nothing to another dialect: it is left out, but for our own record.

mod note;

use super::chunk::{self, Call, Candidate, Chunk, Counts, Data, Part};
use super::finish;
use super::proof::{self, Proof};
use crate::event::{Block, Delta, Event, Finish};
use crate::reply::{Progress, ReplyFault, ReplyOptions};
use std::borrow::Cow;
use std::collections::BTreeSet;
use turnkeep_wire::sse::Frame;

/// Calls of one answer that are taken; each costs memory.
const MAX_CALLS: usize = 1024;

/// Reads one streamed answer. Memory is bounded by the number of calls.
#[derive(Debug)]
pub struct StreamDecoder {
    /// For ids of calls whose upstream gives none.
    answer_id: String,
    started: bool,
    next_block: u32,
    open: Option<Open>,
    /// The ids of the calls.
    ids: BTreeSet<String>,
    calls: usize,
    content: bool,
    finish: Option<Finish>,
    counts: Option<Counts>,
    ended: bool,
    /// The answer is read for another use of it in its own dialect: all of it must be read.
    own: bool,
}

/// The block that is open.
#[derive(Clone, Copy, Debug)]
struct Open {
    block: u32,
    thinking: bool,
}

impl StreamDecoder {
    /// For one answer.
    pub fn new(options: &ReplyOptions) -> Self {
        StreamDecoder {
            answer_id: options.id.clone(),
            started: false,
            next_block: 0,
            open: None,
            ids: BTreeSet::new(),
            calls: 0,
            content: false,
            finish: None,
            counts: None,
            ended: false,
            own: false,
        }
    }

    /// For one answer that is read for another use of it in its own dialect: what a client can read and an event cannot
    /// hold (several candidates, images, code that ran, sources) is a fault, and a text's signature is kept, as that of
    /// an empty thinking after it.
    pub fn strict(options: &ReplyOptions) -> Self {
        StreamDecoder { own: true, ..Self::new(options) }
    }

    /// Reads a frame; appends its events. An error, wherever it stands, is a fault.
    pub fn frame(&mut self, frame: &Frame, events: &mut Vec<Event>) -> Result<Progress, ReplyFault> {
        match frame.data.as_deref().map(<[u8]>::trim_ascii) {
            None => chunk::bare_error(&frame.raw)?,
            // Not of this dialect, but some servers write it under every one.
            Some(b"[DONE]") if self.finish.is_none() => return Err(ReplyFault::truncated()),
            Some(b"[DONE]" | b"") => {}
            Some(data) => self.chunk(chunk::read(data)?, events)?,
        }
        Ok(if self.finish.is_some() { Progress::Finishing } else { Progress::Open })
    }

    fn chunk(&mut self, chunk: Chunk<'_>, events: &mut Vec<Event>) -> Result<(), ReplyFault> {
        let Chunk { id, model, candidates, counts, blocked: _, error: _ } = chunk;
        if let Some(counts) = counts {
            self.counts = Some(counts.after(self.counts));
        }
        let says = id.is_some() || model.is_some() || candidates.is_some() || counts.is_some();
        if says && !std::mem::replace(&mut self.started, true) {
            let usage = self.counts.map(Counts::usage);
            events.push(Event::Start { id: id.map(Cow::into_owned), model: model.map(Cow::into_owned), usage });
        }
        for candidate in candidates.unwrap_or_default() {
            if self.own && (candidate.index != 0 || candidate.unread) {
                return Err(one_form());
            }
            // One answer is all that a client of another dialect can be given.
            if candidate.index == 0 {
                self.candidate(candidate, events)?;
            }
        }
        Ok(())
    }

    fn candidate(&mut self, candidate: Candidate<'_>, events: &mut Vec<Event>) -> Result<(), ReplyFault> {
        let Candidate { index: _, finish, message, parts, unread: _ } = candidate;
        for part in parts {
            self.part(part, events)?;
        }
        if let Some(reason) = finish {
            self.finish = finish::meaning(&reason, message.as_deref(), self.content)?.or(self.finish);
        }
        Ok(())
    }

    fn part(&mut self, part: Part<'_>, events: &mut Vec<Event>) -> Result<(), ReplyFault> {
        let Part { thought, mut signature, data } = part;
        for data in data {
            match data {
                Data::Text(text) if text.is_empty() => continue,
                Data::Text(text) => self.text(thought, text.into_owned(), events),
                Data::Call(call) => self.call(call, signature.take(), events)?,
                Data::Other | Data::Media { .. } | Data::Code { .. } | Data::Output(_) if self.own => {
                    return Err(one_form());
                }
                // Of the provider's own tools, whose results are in what the model says.
                Data::Other => continue,
                Data::Media { mime, bytes } => self.text(false, note::media(&mime, bytes), events),
                Data::Code { language, code } => {
                    self.text(false, note::fenced(&language.to_lowercase(), &code), events)
                }
                Data::Output(output) => self.text(false, note::fenced("", &output), events),
            }
            self.content = true;
        }
        match signature {
            Some(state) if thought || self.own => self.sign(&state, events),
            Some(_) | None => {}
        }
        Ok(())
    }

    fn text(&mut self, thinking: bool, text: String, events: &mut Vec<Event>) {
        let block = match self.open {
            Some(open) if open.thinking == thinking => open.block,
            Some(_) | None => self.start(thinking, events),
        };
        let delta = if thinking { Delta::Thinking(text) } else { Delta::Text(text) };
        events.push(Event::Delta { block, delta });
    }

    fn start(&mut self, thinking: bool, events: &mut Vec<Event>) -> u32 {
        self.close(events);
        let block = self.number();
        self.open = Some(Open { block, thinking });
        events.push(Event::BlockStart { block, kind: if thinking { Block::Thinking } else { Block::Text } });
        block
    }

    /// A proof of the thinking that is open, or of one that nobody has seen.
    fn sign(&mut self, state: &str, events: &mut Vec<Event>) {
        match proof::read(state) {
            Proof::Thinking(sealed) => {
                let block = match self.open {
                    Some(Open { block, thinking: true }) => block,
                    Some(Open { thinking: false, .. }) | None => self.start(true, events),
                };
                events.push(Event::Delta { block, delta: Delta::Signature(sealed) });
                self.close(events);
            }
            Proof::Redacted(sealed) => {
                self.close(events);
                let block = self.number();
                events.push(Event::BlockStart { block, kind: Block::RedactedThinking(sealed) });
                events.push(Event::BlockStop { block });
            }
        }
    }

    fn call(
        &mut self,
        call: Call<'_>,
        signature: Option<Cow<'_, str>>,
        events: &mut Vec<Event>,
    ) -> Result<(), ReplyFault> {
        if call.in_pieces {
            return Err(ReplyFault::malformed("a function call in pieces, which nobody asked for"));
        }
        let Some(name) = call.name else { return Err(ReplyFault::malformed("a function call without a name")) };
        if self.calls >= MAX_CALLS {
            return Err(ReplyFault::malformed(format!("more than {MAX_CALLS} function calls")));
        }
        if let Some(state) = signature {
            self.sign(&state, events);
        }
        self.close(events);
        let block = self.number();
        // A result is joined to its call by the id, so an id that was there before is as good as none.
        let given = call.id.map(Cow::into_owned).filter(|id| !self.ids.contains(id));
        let id = given.unwrap_or_else(|| self.made_id());
        self.calls += 1;
        self.ids.insert(id.clone());
        events.push(Event::BlockStart { block, kind: Block::ToolCall { id, name: name.into_owned() } });
        if let Some(args) = call.args.filter(|args| !args.is_empty()) {
            events.push(Event::Delta { block, delta: Delta::Arguments(args.into_owned()) });
        }
        events.push(Event::BlockStop { block });
        Ok(())
    }

    /// An id for the call of an upstream that gives none: the same for the same answer, at most 40 characters.
    fn made_id(&self) -> String {
        let own: Vec<char> = self.answer_id.chars().filter(char::is_ascii_alphanumeric).collect();
        let own: String = own.iter().skip(own.len().saturating_sub(24)).collect();
        let free = |number: &usize| !self.ids.contains(&format!("call_{own}_{number}"));
        let number = (self.calls..).find(free).unwrap_or(self.calls);
        format!("call_{own}_{number}")
    }

    fn number(&mut self) -> u32 {
        self.next_block += 1;
        self.next_block - 1
    }

    fn close(&mut self, events: &mut Vec<Event>) {
        if let Some(Open { block, .. }) = self.open.take() {
            events.push(Event::BlockStop { block });
        }
    }

    /// The transport's end, or the end of the wait for usage: closes what is open, then usage, finish and end, once.
    pub fn settle(&mut self, events: &mut Vec<Event>) {
        let Some(reason) = self.finish else { return };
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        self.close(events);
        events.extend(self.counts.map(|counts| Event::Usage(counts.usage())));
        let reason = if reason == Finish::Stop && self.calls > 0 { Finish::ToolCalls } else { reason };
        events.push(Event::Finish { reason, stop_sequence: None });
        events.push(Event::End);
    }
}

fn one_form() -> ReplyFault {
    ReplyFault::malformed("an answer that has one form only, as it holds more than texts and calls of one candidate")
}

/// Decodes a whole answer.
pub fn plain(body: &[u8], options: &ReplyOptions) -> Result<Vec<Event>, ReplyFault> {
    read_plain(body, StreamDecoder::new(options))
}

/// Decodes a whole answer as [`StreamDecoder::strict`] does a streamed one.
pub fn plain_strict(body: &[u8], options: &ReplyOptions) -> Result<Vec<Event>, ReplyFault> {
    read_plain(body, StreamDecoder::strict(options))
}

fn read_plain(body: &[u8], mut decoder: StreamDecoder) -> Result<Vec<Event>, ReplyFault> {
    let chunk = chunk::read(body)?;
    let first = chunk.candidates.iter().flatten().any(|candidate| candidate.index == 0);
    if !first {
        return Err(ReplyFault::malformed("a JSON object without a first candidate in `candidates`"));
    }
    let mut events = Vec::new();
    decoder.chunk(chunk, &mut events)?;
    if decoder.finish.is_none() {
        return Err(ReplyFault::truncated());
    }
    decoder.settle(&mut events);
    Ok(events)
}
