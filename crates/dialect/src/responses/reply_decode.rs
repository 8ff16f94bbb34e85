//! A Responses upstream's answer as canonical events, streamed or plain.
//!
//! The protocol says everything three times: in deltas, in what is done, and in the whole response at the end. Servers
//! leave out any of them, and the numbers by which events belong together; `items` takes each thing once, from where it
//! is first.

mod call;
mod items;
pub(super) mod read;
mod texts;

use super::chain::Link;
use super::terminal;
use crate::chat::classify;
use crate::event::{Event, Finish};
use crate::json::{Invalid, Reader};
use crate::reply::{Facts, Progress, ReplyFault, ReplyOptions};
use items::{Items, Kind, Place};
use read::{Fields, Item, Part, Response, malformed};
use std::borrow::Cow;
use texts::Holds;
use turnkeep_wire::sse::Frame;

pub(in crate::responses) use call::within;

/// Reads one streamed answer.
#[derive(Debug)]
pub struct StreamDecoder {
    started: bool,
    items: Items,
    created: Option<u64>,
    /// What it says of its chain.
    link: Link,
    /// The answer is read for another use of it in its own dialect: all of it must be read.
    own: bool,
}

/// What an event cannot hold, in an answer of which nothing may be passed over.
fn passed_over() -> ReplyFault {
    ReplyFault::malformed("an answer that has one form only, as it holds more than texts and calls")
}

fn closed() -> ReplyFault {
    ReplyFault::malformed("a piece of an output item that is done")
}

impl StreamDecoder {
    /// For one answer.
    pub fn new(options: &ReplyOptions) -> Self {
        Self::with(options, false)
    }

    /// For one answer of our own record: what an event cannot hold (tools of the provider's own, annotations, log
    /// probabilities, phases) is a fault and not passed over.
    pub fn strict(options: &ReplyOptions) -> Self {
        Self::with(options, true)
    }

    fn with(options: &ReplyOptions, own: bool) -> Self {
        let items = Items::new(&options.id, own, options.max_event);
        StreamDecoder { started: false, items, created: None, link: Link::default(), own }
    }

    /// When the answer was made, in Unix seconds, by its own word.
    pub fn created(&self) -> Option<u64> {
        self.created
    }

    /// Keeps what has been read of the answer's chain.
    pub fn note_link(&self, facts: &mut Facts) {
        if facts.link != self.link {
            facts.link.clone_from(&self.link);
        }
    }

    /// Reads a frame; appends its events. An `error` event is a fault, and so is an answer that failed.
    pub fn frame(&mut self, frame: &Frame, events: &mut Vec<Event>) -> Result<Progress, ReplyFault> {
        let Some(data) = read::data(frame) else { return Ok(Progress::Open) };
        let fields = read::fields(frame, data)?;
        if self.own && fields.unread {
            return Err(passed_over());
        }
        // An event of another name is nothing of the answer's, and never its end.
        let Some(kind) = fields.kind.strip_prefix("response.") else {
            return match &*fields.kind {
                "error" => Err(classify::in_band(&String::from_utf8_lossy(data))),
                "" if fields.error => Err(classify::in_band(&String::from_utf8_lossy(data))),
                "keepalive" => Ok(Progress::Open),
                _ if self.own => Err(passed_over()),
                _ => Ok(Progress::Open),
            };
        };
        if let Some(status) = terminal(kind) {
            let response = Response::over(fields.response.unwrap_or("{}"))?;
            return self.end(&response, status, events).map(|()| Progress::Done);
        }
        match kind {
            "created" | "in_progress" | "queued" => {
                self.start(&Response::over(fields.response.unwrap_or("{}"))?, events);
            }
            "output_item.added" | "output_item.done" => self.item(&fields, events)?,
            "output_text.delta" => self.text(fields, Holds::Text, events)?,
            "refusal.delta" => self.text(fields, Holds::Refusal, events)?,
            "reasoning_summary_text.delta" => self.text(fields, Holds::Summary, events)?,
            "reasoning_text.delta" => self.text(fields, Holds::Reasoning, events)?,
            "output_text.done" => self.whole_text(fields, Holds::Text, events)?,
            "refusal.done" => self.whole_text(fields, Holds::Refusal, events)?,
            "reasoning_summary_text.done" => self.whole_text(fields, Holds::Summary, events)?,
            "reasoning_text.done" => self.whole_text(fields, Holds::Reasoning, events)?,
            "content_part.done" | "reasoning_summary_part.done" => self.part(&fields, events)?,
            "function_call_arguments.delta" => self.arguments(&fields, Kind::Call, events)?,
            "custom_tool_call_input.delta" => self.arguments(&fields, Kind::Custom, events)?,
            "function_call_arguments.done" => self.whole_arguments(&fields, Kind::Call, events)?,
            "custom_tool_call_input.done" => self.whole_arguments(&fields, Kind::Custom, events)?,
            "content_part.added" | "reasoning_summary_part.added" => {}
            _ if self.own => return Err(passed_over()),
            // Of the provider's own tools, or of a later version.
            _ => {}
        }
        Ok(Progress::Open)
    }

    /// An answer that begins without its `response.created` begins all the same.
    fn start(&mut self, response: &Response<'_>, events: &mut Vec<Event>) {
        self.created = self.created.or(response.created);
        if response.id.is_some() {
            self.link.stored = response.link.stored;
            self.link.previous = response.link.previous.clone().or(self.link.previous.take());
        }
        if !std::mem::replace(&mut self.started, true) {
            let id = response.id.as_deref().map(str::to_owned);
            if let Some(id) = &id {
                self.items.answer_id.clone_from(id);
            }
            events.push(Event::Start { id, model: response.model.as_deref().map(str::to_owned), usage: None });
        }
    }

    fn item(&mut self, fields: &Fields<'_>, events: &mut Vec<Event>) -> Result<(), ReplyFault> {
        self.start(&Response::default(), events);
        let Some(raw) = fields.item else {
            return if self.own { Err(ReplyFault::malformed("an event without its `item`")) } else { Ok(()) };
        };
        let item = Item::over(raw)?;
        let id = item.id.as_deref().or(fields.item_id.as_deref());
        let place = Place { output: fields.output_index, item: id, call: item.call_id.as_deref(), part: None };
        if fields.kind.ends_with(".added") {
            self.items.added(place, &item, events)
        } else {
            self.items.done(place, &item, events)
        }
    }

    fn text(&mut self, fields: Fields<'_>, holds: Holds, events: &mut Vec<Event>) -> Result<(), ReplyFault> {
        self.start(&Response::default(), events);
        let text = fields.delta.unwrap_or(Cow::Borrowed(""));
        let place = place(fields.output_index, fields.item_id.as_deref(), fields.part_index);
        self.items.text(place, holds, text, events)
    }

    fn whole_text(&mut self, fields: Fields<'_>, holds: Holds, events: &mut Vec<Event>) -> Result<(), ReplyFault> {
        self.start(&Response::default(), events);
        let Some(text) = fields.whole else { return Ok(()) };
        let place = place(fields.output_index, fields.item_id.as_deref(), fields.part_index);
        self.items.whole_text(place, holds, text, events)
    }

    fn part(&mut self, fields: &Fields<'_>, events: &mut Vec<Event>) -> Result<(), ReplyFault> {
        self.start(&Response::default(), events);
        let Some(raw) = fields.part else { return Ok(()) };
        let place = place(fields.output_index, fields.item_id.as_deref(), fields.part_index);
        self.items.part(place, Part::over(raw).map_err(malformed)?, events)
    }

    fn arguments(&mut self, fields: &Fields<'_>, kind: Kind, events: &mut Vec<Event>) -> Result<(), ReplyFault> {
        self.start(&Response::default(), events);
        let place = place(fields.output_index, fields.item_id.as_deref(), None);
        self.items.arguments(place, kind, fields.delta.as_deref().unwrap_or_default(), events)
    }

    fn whole_arguments(&mut self, fields: &Fields<'_>, kind: Kind, events: &mut Vec<Event>) -> Result<(), ReplyFault> {
        self.start(&Response::default(), events);
        let place = place(fields.output_index, fields.item_id.as_deref(), None);
        self.items.whole_arguments(place, kind, fields.whole.as_deref().unwrap_or_default(), events)
    }

    /// The terminal event, or a whole answer: what of its output has not been read, then usage, finish and end.
    fn end(&mut self, response: &Response<'_>, said: &str, events: &mut Vec<Event>) -> Result<(), ReplyFault> {
        let ending = response.ending(said)?;
        self.start(response, events);
        let mut raws = Vec::new();
        Reader::over(response.output.unwrap_or("[]"))
            .array::<Invalid>(|r, _| r.raw().map(|raw| raws.push(raw)))
            .map_err(malformed)?;
        for (index, raw) in raws.into_iter().enumerate() {
            self.items.listed(index, &Item::over(raw)?, events)?;
        }
        self.items.close_all(events)?;
        let reason = match ending {
            Some(reason) => reason,
            // It says that it is complete, and stopped in the middle of a call.
            None if self.items.cut() => Finish::Length,
            None if self.items.called() => Finish::ToolCalls,
            None if self.items.refused => Finish::Refusal,
            None => Finish::Stop,
        };
        events.extend(response.usage.map(Event::Usage));
        events.push(Event::Finish { reason, stop_sequence: None });
        events.push(Event::End);
        Ok(())
    }
}

fn place<'a>(output: Option<u64>, item: Option<&'a str>, part: Option<u64>) -> Place<'a> {
    Place { output, item, call: None, part }
}

/// Decodes a whole answer as [`StreamDecoder::strict`] does a streamed one; tells when it was made by its own word.
pub fn plain_strict(body: &[u8], options: &ReplyOptions) -> Result<(Vec<Event>, Option<u64>), ReplyFault> {
    read_plain(body, StreamDecoder::strict(options))
}

/// Decodes a whole answer.
pub fn plain(body: &[u8], options: &ReplyOptions) -> Result<Vec<Event>, ReplyFault> {
    read_plain(body, StreamDecoder::new(options)).map(|(events, _)| events)
}

fn read_plain(body: &[u8], mut decoder: StreamDecoder) -> Result<(Vec<Event>, Option<u64>), ReplyFault> {
    let response = read::answer(body)?;
    let mut events = Vec::new();
    decoder.end(&response, "", &mut events)?;
    Ok((events, decoder.created))
}
