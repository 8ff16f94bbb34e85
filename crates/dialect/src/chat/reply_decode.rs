//! A Chat upstream's answer as canonical events, streamed or plain.
//!
//! Chat says where a tool call begins and never where it ends, and compatible servers get the rest of it wrong in many
//! ways; `calls` sorts the fragments. Finish and usage are told at the end, as usage comes after the finish reason.

mod calls;

use super::{SIGNATURE, chunk, classify, tap};
use crate::event::{Block, Delta, Event, Finish};
use crate::reply::{Progress, ReplyFault, ReplyOptions};
use calls::Calls;
pub(crate) use calls::{Shape, made_id};
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
    /// The stop text that was met.
    stop: Option<String>,
    usage: Option<Usage>,
    ended: bool,
    /// The answer is read for another use of it in its own dialect: nothing is put into it, all of it must be read.
    own: bool,
    created: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    Refusal,
}

impl StreamDecoder {
    /// For one answer that is read for another use of it in its own dialect: what a client can read and an event cannot
    /// hold (several choices, log probabilities, audio) is a fault, and thinking is not signed for it.
    pub fn strict(options: &ReplyOptions) -> Self {
        StreamDecoder { own: true, ..Self::new(options) }
    }

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
            stop: None,
            usage: None,
            ended: false,
            own: false,
            created: None,
        }
    }

    /// When the answer was made, in Unix seconds, by its own word.
    pub fn created(&self) -> Option<u64> {
        self.created
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
        if self.created.is_none() {
            self.created = chunk.created.and_then(|number| number.parse().ok());
        }
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
            let legacy = choice.calls.iter().any(|call| call.legacy || call.free);
            if self.own && (choice.index != 0 || choice.unread || legacy) {
                return Err(ReplyFault::malformed("an answer that has one form only, as it holds more than one text"));
            }
            // One answer is all that a client of another dialect can be given.
            if choice.index == 0 {
                self.choice(choice, events)?;
            }
        }
        Ok(())
    }

    fn choice(&mut self, choice: chunk::Choice<'_>, events: &mut Vec<Event>) -> Result<(), ReplyFault> {
        let mut reasoning = choice.reasoning;
        if self.own && choice.thinking.iter().any(|part| part.text.as_ref().is_some_and(|text| !text.is_empty())) {
            // A whole answer has its thinking twice: joined, and block by block with the signatures.
            let joined: String = choice.thinking.iter().filter_map(|part| part.text.as_deref()).collect();
            if reasoning.take().is_some_and(|text| text != joined) {
                return Err(ReplyFault::malformed("thinking that is not the text of its blocks"));
            }
        }
        if let Some(text) = reasoning.filter(|text| !text.is_empty()) {
            self.text(Kind::Thinking, text.into_owned(), events);
        }
        if self.own {
            choice.thinking.into_iter().for_each(|part| self.thinking(part, events));
        }
        for (kind, text) in [(Kind::Text, choice.content), (Kind::Refusal, choice.refusal)] {
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                self.text(kind, text.into_owned(), events);
            }
        }
        for part in choice.calls {
            let (open, next_block, own) = (&mut self.open, &mut self.next_block, self.own);
            self.calls.part(part, &self.answer_id, events, |events| {
                close(open, own, events);
                *next_block += 1;
                *next_block - 1
            })?;
        }
        if choice.stop.is_some() {
            self.stop = choice.stop.map(Cow::into_owned);
        }
        if let Some(reason) = choice.finish.as_deref() {
            if reason == "error" {
                return Err(tap::failed());
            }
            self.calls.check()?;
            close(&mut self.open, self.own, events);
            self.calls.close(false, events);
            self.finish = Some(match tap::finish(reason, self.calls.any()) {
                Finish::ToolCalls if !self.calls.any() => Finish::Stop,
                Finish::Stop if self.refused => Finish::Refusal,
                Finish::Stop if self.stop.is_some() => Finish::StopSequence,
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
                close(&mut self.open, self.own, events);
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
        if !matches!(&delta, Delta::Thinking(text) if text.is_empty()) {
            events.push(Event::Delta { block, delta });
        }
    }

    /// A block of thinking as our own answers have it: in a stream its text came before, and this is its signature.
    fn thinking(&mut self, part: chunk::ThinkingPart<'_>, events: &mut Vec<Event>) {
        if let Some(data) = part.data {
            close(&mut self.open, self.own, events);
            let block = self.next_block;
            self.next_block += 1;
            events.push(Event::BlockStart { block, kind: Block::RedactedThinking(data.into_owned()) });
            events.push(Event::BlockStop { block });
            return;
        }
        let text = part.text.map(Cow::into_owned).unwrap_or_default();
        if !text.is_empty() {
            close(&mut self.open, self.own, events);
        }
        self.text(Kind::Thinking, text, events);
        if let (Some((_, block)), Some(signature)) = (self.open, part.signature) {
            events.push(Event::Delta { block, delta: Delta::Signature(signature.into_owned()) });
        }
        close(&mut self.open, self.own, events);
    }

    /// The wait for usage is over: closes what is open, then usage, finish and end, once.
    pub fn settle(&mut self, events: &mut Vec<Event>) {
        let Some(reason) = self.finish else { return };
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        close(&mut self.open, self.own, events);
        self.calls.close(false, events);
        events.extend(self.usage.map(Event::Usage));
        // A call, or a refusal in words, may have come after the reason, in a chunk of its own.
        let reason = match reason {
            Finish::Stop if self.calls.any() => Finish::ToolCalls,
            Finish::Stop if self.refused => Finish::Refusal,
            Finish::Stop
            | Finish::StopSequence
            | Finish::Length
            | Finish::ContextFull
            | Finish::ToolCalls
            | Finish::Refusal
            | Finish::Pause => reason,
        };
        let stop_sequence = self.stop.take().filter(|_| reason == Finish::StopSequence);
        events.push(Event::Finish { reason, stop_sequence });
        events.push(Event::End);
    }
}

fn close(open: &mut Option<(Kind, u32)>, own: bool, events: &mut Vec<Event>) {
    if let Some((kind, block)) = open.take() {
        if kind == Kind::Thinking && !own {
            events.push(Event::Delta { block, delta: Delta::Signature(SIGNATURE.into()) });
        }
        events.push(Event::BlockStop { block });
    }
}

/// Decodes a whole answer.
pub fn plain(body: &[u8], options: &ReplyOptions) -> Result<Vec<Event>, ReplyFault> {
    read_plain(body, StreamDecoder::new(options)).map(|(events, _)| events)
}

/// Decodes a whole answer as [`StreamDecoder::strict`] does a streamed one; tells when it was made by its own word.
pub fn plain_strict(body: &[u8], options: &ReplyOptions) -> Result<(Vec<Event>, Option<u64>), ReplyFault> {
    read_plain(body, StreamDecoder::strict(options))
}

fn read_plain(body: &[u8], mut decoder: StreamDecoder) -> Result<(Vec<Event>, Option<u64>), ReplyFault> {
    let chunk = chunk::read(body)?;
    let first = chunk.choices.as_ref().map(|choices| choices.iter().any(|choice| choice.index == 0));
    if chunk.error.is_none() && first != Some(true) {
        return Err(ReplyFault::malformed("a JSON object without a first choice in `choices`"));
    }
    let mut events = Vec::new();
    decoder.chunk(chunk, &mut events)?;
    if decoder.finish.is_none() {
        return Err(ReplyFault::truncated());
    }
    decoder.settle(&mut events);
    Ok((events, decoder.created))
}
