//! A Chat upstream's answer as canonical events, streamed or plain.
//!
//! Chat says where a tool call begins and never where it ends, and compatible servers get the rest of it wrong in many
//! ways; `calls` sorts the fragments. Finish and usage are told at the end, as usage comes after the finish reason.

mod calls;

use super::{SIGNATURE, chunk, classify, tap};
use crate::event::{Block, Delta, Event, Finish};
use crate::reply::{Progress, ReplyFault, ReplyOptions};
use calls::Calls;
use std::borrow::Cow;
use turnkeep_base::Usage;
use turnkeep_wire::sse::Frame;

/// Decodes one streamed answer.
#[derive(Debug)]
pub struct StreamDecoder {
    /// For ids of calls whose upstream gives none.
    answer_id: String,
    started: bool,
    next_block: u32,
    /// The open block of text, thinking or refusal.
    open: Option<(Kind, u32)>,
    calls: Calls,
    refused: bool,
    finish: Option<Finish>,
    usage: Option<Usage>,
    ended: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    Refusal,
}

impl StreamDecoder {
    /// For one answer.
    pub fn new(options: &ReplyOptions) -> Self {
        StreamDecoder {
            answer_id: options.id.clone(),
            started: false,
            next_block: 0,
            open: None,
            calls: Calls::default(),
            refused: false,
            finish: None,
            usage: None,
            ended: false,
        }
    }

    /// Reads a frame; appends its events.
    pub fn frame(&mut self, frame: &Frame, events: &mut Vec<Event>) -> Result<Progress, ReplyFault> {
        let data = frame.data.as_deref().unwrap_or_default().trim_ascii();
        if data == b"[DONE]" {
            if self.finish.is_none() {
                return Err(ReplyFault::truncated());
            }
            self.settle(events);
            return Ok(Progress::Done);
        }
        if !data.is_empty() {
            self.chunk(chunk::read(data)?, events)?;
        }
        Ok(if self.finish.is_some() { Progress::Finishing } else { Progress::Open })
    }

    fn chunk(&mut self, chunk: chunk::Chunk<'_>, events: &mut Vec<Event>) -> Result<(), ReplyFault> {
        if let Some(error) = chunk.error {
            return Err(classify::in_band(error));
        }
        let choices = chunk.choices.unwrap_or_default();
        if !self.started && (!choices.is_empty() || chunk.usage.is_some()) {
            self.started = true;
            let id = chunk.id.map(Cow::into_owned);
            if let Some(id) = &id {
                self.answer_id.clone_from(id);
            }
            events.push(Event::Start { id, model: chunk.model.map(Cow::into_owned), usage: chunk.usage });
        }
        if chunk.usage.is_some() {
            self.usage = chunk.usage;
        }
        for choice in choices {
            if let Some(error) = choice.error {
                return Err(classify::in_band(error));
            }
            // One answer is all that a client of another dialect can be given.
            if choice.index == 0 {
                self.choice(choice, events)?;
            }
        }
        Ok(())
    }

    fn choice(&mut self, choice: chunk::Choice<'_>, events: &mut Vec<Event>) -> Result<(), ReplyFault> {
        let pieces =
            [(Kind::Thinking, choice.reasoning), (Kind::Text, choice.content), (Kind::Refusal, choice.refusal)];
        for (kind, text) in pieces {
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                self.text(kind, text.into_owned(), events);
            }
        }
        for part in choice.calls {
            let (open, next_block) = (&mut self.open, &mut self.next_block);
            self.calls.part(part, &self.answer_id, events, |events| {
                close(open, events);
                *next_block += 1;
                *next_block - 1
            })?;
        }
        if let Some(reason) = choice.finish.as_deref() {
            if reason == "error" {
                return Err(tap::failed());
            }
            self.calls.check()?;
            close(&mut self.open, events);
            self.calls.close(false, events);
            self.finish = Some(match tap::finish(reason, self.calls.any()) {
                Finish::ToolCalls if !self.calls.any() => Finish::Stop,
                Finish::Stop if self.refused => Finish::Refusal,
                reason @ (Finish::Stop
                | Finish::StopSequence
                | Finish::Length
                | Finish::ContextFull
                | Finish::ToolCalls
                | Finish::Refusal
                | Finish::Pause) => reason,
            });
        }
        Ok(())
    }

    fn text(&mut self, kind: Kind, text: String, events: &mut Vec<Event>) {
        let block = match self.open {
            Some((open, block)) if open == kind => block,
            Some(_) | None => {
                close(&mut self.open, events);
                self.calls.close(true, events);
                let block = self.next_block;
                self.next_block += 1;
                self.open = Some((kind, block));
                let kind = match kind {
                    Kind::Text => Block::Text,
                    Kind::Thinking => Block::Thinking,
                    Kind::Refusal => Block::Refusal,
                };
                events.push(Event::BlockStart { block, kind });
                block
            }
        };
        self.refused |= kind == Kind::Refusal;
        let delta = match kind {
            Kind::Text | Kind::Refusal => Delta::Text(text),
            Kind::Thinking => Delta::Thinking(text),
        };
        events.push(Event::Delta { block, delta });
    }

    /// The wait for usage is over: closes what is open, then usage, finish and end, once.
    pub fn settle(&mut self, events: &mut Vec<Event>) {
        let Some(reason) = self.finish else { return };
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        close(&mut self.open, events);
        self.calls.close(false, events);
        events.extend(self.usage.map(Event::Usage));
        events.push(Event::Finish { reason, stop_sequence: None });
        events.push(Event::End);
    }
}

fn close(open: &mut Option<(Kind, u32)>, events: &mut Vec<Event>) {
    if let Some((kind, block)) = open.take() {
        if kind == Kind::Thinking {
            events.push(Event::Delta { block, delta: Delta::Signature(SIGNATURE.into()) });
        }
        events.push(Event::BlockStop { block });
    }
}

/// Decodes a whole answer.
pub fn plain(body: &[u8], options: &ReplyOptions) -> Result<Vec<Event>, ReplyFault> {
    let chunk = chunk::read(body)?;
    let first = chunk.choices.as_ref().map(|choices| choices.iter().any(|choice| choice.index == 0));
    if chunk.error.is_none() && first != Some(true) {
        return Err(ReplyFault::malformed("a JSON object without a first choice in `choices`"));
    }
    let mut decoder = StreamDecoder::new(options);
    let mut events = Vec::new();
    decoder.chunk(chunk, &mut events)?;
    if decoder.finish.is_none() {
        return Err(ReplyFault::truncated());
    }
    decoder.settle(&mut events);
    Ok(events)
}
