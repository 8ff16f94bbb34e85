//! An upstream's Messages answer as canonical events. Looser than the protocol where servers are: pings and unknown
//! events are passed over, unknown blocks leave no gap in the numbers, missing fields get what they mean.

use super::{classify, kind, stop, usage::Counts};
use crate::event::{Block, Delta, Event, Finish};
use crate::json::{Invalid, Kind, Reader};
use crate::reply::{Progress, ReplyFault, ReplyOptions};
use std::borrow::Cow;
use std::collections::BTreeSet;
use turnkeep_wire::sse::Frame;

/// Reads one streamed answer. Memory is bounded by the number of blocks.
#[derive(Debug)]
pub struct StreamDecoder {
    /// For tool calls without an id.
    id: String,
    /// The ids of the calls so far.
    ids: BTreeSet<String>,
    started: bool,
    slots: Vec<Slot>,
    next: u32,
    called: bool,
    finished: bool,
    counts: Counts,
    /// The answer is read for another use of it in its own dialect: all of it must be read.
    own: bool,
}

/// A block that is open upstream.
#[derive(Debug)]
struct Slot {
    index: u64,
    /// Our number and what it holds; `None` for a block that is passed over.
    kept: Option<(u32, Holds)>,
    /// A tool call's input that came whole with its start, until deltas show otherwise.
    input: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Text,
    Thinking,
    Redacted,
    Call,
}

/// One event's fields, unread where they are objects, but for the `delta`: nearly all events have one.
#[derive(Default)]
struct Fields<'a> {
    kind: Cow<'a, str>,
    index: u64,
    message: Option<&'a str>,
    block: Option<&'a str>,
    delta: Piece<'a>,
    usage: Option<&'a str>,
}

/// The `delta` of a block, or of the message.
#[derive(Default)]
struct Piece<'a> {
    kind: Cow<'a, str>,
    value: Option<Cow<'a, str>>,
    reason: Option<Finish>,
    sequence: Option<Cow<'a, str>>,
    /// It is no object but this.
    other: Option<&'a str>,
}

impl<'a> Piece<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Self, Invalid> {
        let mut piece = Piece::default();
        if r.kind()? != Kind::Object {
            piece.other = Some(r.raw()?);
            return Ok(piece);
        }
        r.object::<Invalid>(|r, key| {
            match (key, r.kind()?) {
                ("type", Kind::String) => piece.kind = r.string()?,
                ("text" | "thinking" | "signature" | "partial_json", Kind::String) => piece.value = Some(r.string()?),
                ("stop_reason", Kind::String) => piece.reason = Some(stop::finish(&r.string()?)),
                ("stop_sequence", Kind::String) => piece.sequence = Some(r.string()?),
                _ => r.skip().map(drop)?,
            }
            Ok(())
        })?;
        Ok(piece)
    }
}

fn malformed(invalid: Invalid) -> ReplyFault {
    ReplyFault::malformed(invalid.to_string())
}

fn read_fields(data: &[u8]) -> Result<Fields<'_>, Invalid> {
    let mut fields = Fields::default();
    let mut r = Reader::new(data)?;
    r.object::<Invalid>(|r, key| {
        match key {
            "type" => fields.kind = r.string()?,
            "index" if r.kind()? == Kind::Number => fields.index = r.u64()?,
            "message" => fields.message = Some(r.raw()?),
            "content_block" => fields.block = Some(r.raw()?),
            "delta" => fields.delta = Piece::read(r)?,
            "usage" => fields.usage = Some(r.raw()?),
            _ => r.skip().map(drop)?,
        }
        Ok(())
    })?;
    r.end()?;
    Ok(fields)
}

impl StreamDecoder {
    /// A decoder for one answer that is read for another use of it in its own dialect: what an event cannot hold
    /// (citations, tools of the provider's own) is a fault and not passed over.
    pub fn strict(options: &ReplyOptions) -> Self {
        StreamDecoder { own: true, ..Self::new(options) }
    }

    /// A decoder for one answer.
    pub fn new(options: &ReplyOptions) -> Self {
        StreamDecoder {
            id: options.id.clone(),
            ids: BTreeSet::new(),
            started: false,
            slots: Vec::new(),
            next: 0,
            called: false,
            finished: false,
            counts: Counts::default(),
            own: false,
        }
    }

    fn unread(&self) -> Result<(), Invalid> {
        let message = "an answer that has one form only, as it holds more than texts and calls".into();
        if self.own { Err(Invalid { path: String::new(), message, at: 0 }) } else { Ok(()) }
    }

    /// Reads one frame and appends what it means. An `error` event is a fault; so are data that are no JSON, pieces of
    /// a block that is not open, and a block after the end's reason.
    pub fn frame(&mut self, frame: &Frame, events: &mut Vec<Event>) -> Result<Progress, ReplyFault> {
        let Some(data) = frame.data.as_ref().filter(|data| !data.trim_ascii().is_empty() && **data != b"[DONE]"[..])
        else {
            return Ok(Progress::Open);
        };
        let mut fields = read_fields(data).map_err(malformed)?;
        if let Some(name) = kind::named(frame.event.as_deref()) {
            fields.kind = String::from_utf8_lossy(name);
        }
        match &*fields.kind {
            "message_start" => self.message_start(fields.message, events).map_err(malformed)?,
            "content_block_start" if self.finished => {
                return Err(ReplyFault::malformed("a block after the `stop_reason`"));
            }
            "content_block_start" => {
                self.start(events);
                let block = fields.block.unwrap_or("{}");
                self.block_start(fields.index, block, events).map_err(malformed)?;
            }
            "content_block_delta" => self.delta(fields.index, fields.delta, events)?,
            "content_block_stop" => self.block_stop(fields.index, events),
            "message_delta" => {
                self.start(events);
                self.message_delta(fields.delta, fields.usage, events).map_err(malformed)?;
            }
            "message_stop" => {
                self.start(events);
                self.finish(Finish::Stop, None, events);
                events.push(Event::End);
                return Ok(Progress::Done);
            }
            "error" => return Err(classify::in_stream(data)),
            _ => {}
        }
        Ok(Progress::Open)
    }

    /// An answer that begins without `message_start` begins all the same.
    fn start(&mut self, events: &mut Vec<Event>) {
        if !self.started {
            self.started = true;
            events.push(Event::Start { id: None, model: None, usage: None });
        }
    }

    fn message_start(&mut self, message: Option<&str>, events: &mut Vec<Event>) -> Result<(), Invalid> {
        if self.started {
            return Ok(());
        }
        self.started = true;
        let (mut id, mut model) = (None, None);
        let mut r = Reader::over(message.unwrap_or("{}"));
        if r.kind()? == Kind::Object {
            r.object(|r, key| match (key, r.kind()?) {
                ("id", Kind::String) => r.string().map(|text| id = Some(text.into_owned())),
                ("model", Kind::String) => r.string().map(|text| model = Some(text.into_owned())),
                ("usage", Kind::Object) => self.counts.merge(r),
                _ => r.skip().map(drop),
            })?;
        }
        events.push(Event::Start {
            id: id.filter(|id| !id.is_empty()),
            model: model.filter(|model| !model.is_empty()),
            usage: self.counts.get(),
        });
        Ok(())
    }

    fn block_start(&mut self, index: u64, block: &str, events: &mut Vec<Event>) -> Result<(), Invalid> {
        // A server that forgot the stop of the same index.
        self.block_stop(index, events);
        let read = ReadBlock::read(&mut Reader::over(block))?;
        let kind = match read.kind.as_str() {
            "text" => Some((Block::Text, Holds::Text)),
            "thinking" => Some((Block::Thinking, Holds::Thinking)),
            "redacted_thinking" => Some((Block::RedactedThinking(read.data), Holds::Redacted)),
            "tool_use" if read.name.is_empty() => {
                let message = "a tool call without a name".to_owned();
                return Err(Invalid { path: String::new(), message, at: 0 });
            }
            "tool_use" => {
                self.called = true;
                // A result is joined to its call by the id, so an id that was there before is as good as none.
                let id = read.id.filter(|id| !id.is_empty() && !self.ids.contains(id));
                let id = id.unwrap_or_else(|| format!("toolu_{}_{}", self.id, self.next));
                self.ids.insert(id.clone());
                Some((Block::ToolCall { id, name: read.name }, Holds::Call))
            }
            _ => None,
        };
        if kind.is_none() || read.unread {
            self.unread()?;
        }
        let Some((kind, holds)) = kind else {
            self.slots.push(Slot { index, kept: None, input: None });
            return Ok(());
        };
        let number = self.next;
        self.next += 1;
        events.push(Event::BlockStart { block: number, kind });
        if holds == Holds::Text {
            push_delta(number, Delta::Text(read.text), events);
        }
        if holds == Holds::Thinking {
            push_delta(number, Delta::Thinking(read.thinking), events);
            push_delta(number, Delta::Signature(read.signature), events);
        }
        let input = if holds == Holds::Call { read.input } else { None };
        self.slots.push(Slot { index, kept: Some((number, holds)), input });
        Ok(())
    }

    fn delta(&mut self, index: u64, piece: Piece<'_>, events: &mut Vec<Event>) -> Result<(), ReplyFault> {
        let Some(slot) = self.slots.iter_mut().find(|slot| slot.index == index) else {
            return Err(ReplyFault::malformed(format!("a delta of block {index}, which is not open")));
        };
        let Some((number, holds)) = slot.kept else { return Ok(()) };
        let Piece { kind, value, other, reason: _, sequence: _ } = piece;
        if let Some(other) = other {
            Reader::over(other).object::<Invalid>(|r, _| r.skip().map(drop)).map_err(malformed)?;
        }
        let value = value.map(Cow::into_owned).unwrap_or_default();
        let delta = match (&*kind, holds) {
            ("text_delta", Holds::Text) => Delta::Text(value),
            ("thinking_delta", Holds::Thinking) => Delta::Thinking(value),
            ("signature_delta", Holds::Thinking) => Delta::Signature(value),
            ("input_json_delta", Holds::Call) => {
                if !value.is_empty() {
                    slot.input = None;
                }
                Delta::Arguments(value)
            }
            ("text_delta" | "thinking_delta" | "signature_delta" | "input_json_delta", _) => {
                return Err(ReplyFault::malformed(format!("a {kind} in block {index}, which holds something else")));
            }
            _ => return self.unread().map_err(malformed),
        };
        push_delta(number, delta, events);
        Ok(())
    }

    fn block_stop(&mut self, index: u64, events: &mut Vec<Event>) {
        let Some(at) = self.slots.iter().position(|slot| slot.index == index) else { return };
        let slot = self.slots.remove(at);
        close(slot, events);
    }

    fn message_delta(&mut self, delta: Piece<'_>, usage: Option<&str>, events: &mut Vec<Event>) -> Result<(), Invalid> {
        if let Some(reason) = delta.reason {
            self.finish(reason, delta.sequence.map(Cow::into_owned), events);
        }
        if let Some(usage) = usage {
            self.counts.merge(&mut Reader::over(usage))?;
            events.extend(self.counts.get().map(Event::Usage));
        }
        Ok(())
    }

    /// Closes what is open and tells why the answer ended, once.
    fn finish(&mut self, reason: Finish, stop_sequence: Option<String>, events: &mut Vec<Event>) {
        if self.finished {
            return;
        }
        self.finished = true;
        for slot in self.slots.drain(..) {
            close(slot, events);
        }
        events.push(Event::Finish { reason: stop::derived(reason, self.called), stop_sequence });
    }
}

fn close(slot: Slot, events: &mut Vec<Event>) {
    let Some((number, _)) = slot.kept else { return };
    if let Some(input) = slot.input {
        push_delta(number, Delta::Arguments(input), events);
    }
    events.push(Event::BlockStop { block: number });
}

fn push_delta(block: u32, delta: Delta, events: &mut Vec<Event>) {
    let empty = match &delta {
        Delta::Text(text) | Delta::Thinking(text) | Delta::Signature(text) | Delta::Arguments(text) => text.is_empty(),
    };
    if !empty {
        events.push(Event::Delta { block, delta });
    }
}

/// A content block of an answer.
#[derive(Default)]
struct ReadBlock {
    kind: String,
    id: Option<String>,
    name: String,
    text: String,
    thinking: String,
    signature: String,
    data: String,
    /// Only if it says something.
    input: Option<String>,
    /// It says something else besides.
    unread: bool,
}

impl ReadBlock {
    fn read(r: &mut Reader<'_>) -> Result<Self, Invalid> {
        let mut block = ReadBlock::default();
        r.object::<Invalid>(|r, key| {
            let kind = r.kind()?;
            match (key, kind) {
                ("type", Kind::String) => block.kind = r.string()?.into_owned(),
                ("id", Kind::String) => block.id = Some(r.string()?.into_owned()),
                ("name", Kind::String) => block.name = r.string()?.into_owned(),
                ("text", Kind::String) => block.text = r.string()?.into_owned(),
                ("thinking", Kind::String) => block.thinking = r.string()?.into_owned(),
                ("signature", Kind::String) => block.signature = r.string()?.into_owned(),
                ("data", Kind::String) => block.data = r.string()?.into_owned(),
                ("input", Kind::Object) => {
                    let raw = r.raw()?;
                    let empty = raw[1..raw.len() - 1].trim().is_empty();
                    block.input = (!empty).then(|| raw.to_owned());
                }
                _ => block.unread |= !super::nothing::says_nothing(r.raw()?),
            }
            Ok(())
        })?;
        Ok(block)
    }
}

/// Reads a whole answer. One without a `stop_reason` is malformed: it is not known to be complete.
pub fn plain(body: &[u8], options: &ReplyOptions) -> Result<Vec<Event>, ReplyFault> {
    read_plain(body, StreamDecoder::new(options))
}

/// Reads a whole answer as [`StreamDecoder::strict`] does a streamed one.
pub fn plain_strict(body: &[u8], options: &ReplyOptions) -> Result<Vec<Event>, ReplyFault> {
    read_plain(body, StreamDecoder::strict(options))
}

fn read_plain(body: &[u8], mut decoder: StreamDecoder) -> Result<Vec<Event>, ReplyFault> {
    let head = super::tap::read_plain(body)?;
    decoder.started = true;
    let mut events = vec![Event::Start { id: head.id, model: head.model, usage: None }];
    let mut content = Reader::over(head.content);
    content
        .array::<Invalid>(|r, index| {
            let index = index as u64;
            decoder.block_start(index, r.raw()?, &mut events)?;
            decoder.block_stop(index, &mut events);
            Ok(())
        })
        .map_err(malformed)?;
    decoder.finish(head.finish, head.stop_sequence, &mut events);
    events.extend(head.usage.map(Event::Usage));
    events.push(Event::End);
    Ok(events)
}
