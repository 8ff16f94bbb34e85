//! The output items of one answer, out of their events.
//!
//! By the protocol an event belongs to an item by `output_index` and `item_id`, every item is added and done once, and
//! several may grow at once. Servers leave out the indexes, the ids, the `added`, the `done`, or send deltas first; what
//! an item holds is taken from whichever event has it first, once.

use super::call::{Call, within};
use super::read::{self, Part};
use super::{closed, passed_over};
use crate::event::{Block, Delta, Event};
use crate::json::Kind::Object;
use crate::json::{Invalid, Reader};
use crate::reply::ReplyFault;
use crate::responses::REDACTED;
use std::borrow::Cow;
use turnkeep_base::Dialect;

/// Items of one answer that are taken; each costs memory.
const MAX_ITEMS: usize = 4096;

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Message,
    Reasoning,
    Call,
    Custom,
    /// Nothing that an event can hold (tools of the provider's own).
    Other,
}

impl Kind {
    pub(super) fn of(name: &str) -> Self {
        match name {
            "message" => Kind::Message,
            "reasoning" => Kind::Reasoning,
            "function_call" => Kind::Call,
            "custom_tool_call" => Kind::Custom,
            _ => Kind::Other,
        }
    }
}

/// What a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    Text,
    Refusal,
    /// A summary of reasoning.
    Summary,
    /// Reasoning itself.
    Reasoning,
}

impl Holds {
    /// What it is a part of.
    fn kind(self) -> Kind {
        match self {
            Holds::Text | Holds::Refusal => Kind::Message,
            Holds::Summary | Holds::Reasoning => Kind::Reasoning,
        }
    }

    /// By the type of a part.
    pub(super) fn of(part: &str) -> Option<Self> {
        match part {
            "output_text" | "text" => Some(Holds::Text),
            "refusal" => Some(Holds::Refusal),
            "summary_text" => Some(Holds::Summary),
            "reasoning_text" => Some(Holds::Reasoning),
            _ => None,
        }
    }
}

/// Where an event says that it belongs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub(super) output: Option<u64>,
    pub(super) item: Option<&'a str>,
    /// The index of the part.
    pub(super) part: Option<u64>,
}

/// The items of one answer.
#[derive(Debug)]
pub(super) struct Items {
    items: Vec<Item>,
    /// The next block's number.
    next: u32,
    /// All of the answer must be read.
    own: bool,
    /// Bytes that a call may hold back.
    limit: usize,
    /// For calls without an id.
    pub(super) answer_id: String,
    pub(super) refused: bool,
}

#[derive(Debug)]
struct Item {
    output: Option<u64>,
    id: Option<String>,
    kind: Kind,
    added: bool,
    done: bool,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Message(Vec<Text>),
    Reasoning(Thought),
    Call(Call),
    Other,
}

/// A text part of a message.
#[derive(Debug)]
struct Text {
    holds: Holds,
    part: Option<u64>,
    block: u32,
    sent: usize,
    open: bool,
}

/// Reasoning is one block, as its proof is for the whole item.
#[derive(Debug, Default)]
struct Thought {
    block: Option<u32>,
    /// Which of its two forms is read; the other says the same in other words.
    holds: Option<Holds>,
    part: Option<u64>,
    /// Bytes of the part at hand, and of all.
    sent: usize,
    all: usize,
}

impl Items {
    pub(super) fn new(answer_id: &str, own: bool, limit: usize) -> Self {
        Items { items: Vec::new(), next: 0, own, limit, answer_id: answer_id.into(), refused: false }
    }

    /// The model has called a tool.
    pub(super) fn called(&self) -> bool {
        self.items.iter().any(|item| matches!(&item.content, Content::Call(call) if call.is_open()))
    }

    /// Arguments of a call stopped in the middle.
    pub(super) fn cut(&self) -> bool {
        self.items.iter().any(|item| matches!(&item.content, Content::Call(call) if call.is_cut()))
    }

    /// The item's place in the list, which it gets if it has none yet.
    fn item(&mut self, place: Place<'_>, kind: Kind) -> Result<usize, ReplyFault> {
        match self.find(place, kind) {
            Some(at) => Ok(at),
            None => self.create(place, kind),
        }
    }

    fn create(&mut self, place: Place<'_>, kind: Kind) -> Result<usize, ReplyFault> {
        if self.items.len() >= MAX_ITEMS {
            return Err(ReplyFault::malformed(format!("more than {MAX_ITEMS} output items")));
        }
        let content = match kind {
            Kind::Message => Content::Message(Vec::new()),
            Kind::Reasoning => Content::Reasoning(Thought::default()),
            Kind::Call => Content::Call(Call::new(false)),
            Kind::Custom => Content::Call(Call::new(true)),
            Kind::Other => Content::Other,
        };
        let id = place.item.map(str::to_owned);
        self.items.push(Item { output: place.output, id, kind, added: false, done: false, content });
        Ok(self.items.len() - 1)
    }

    /// By id, else by index (some servers give every event another id), else the last one that is growing.
    fn find(&self, place: Place<'_>, kind: Kind) -> Option<usize> {
        let by = |fits: &dyn Fn(&Item) -> bool| self.items.iter().rposition(|item| item.kind == kind && fits(item));
        if let Some(id) = place.item
            && let Some(at) = by(&|item| item.id.as_deref() == Some(id))
        {
            return Some(at);
        }
        match (place.output, place.item) {
            (Some(output), None) => by(&|item| item.output == Some(output)),
            (Some(output), Some(_)) => by(&|item| item.output == Some(output) && !item.done),
            // An id that is not known: of an item that has none yet.
            (None, Some(_)) => by(&|item| item.id.is_none() && item.output.is_none() && !item.done),
            (None, None) => by(&|item| !item.done),
        }
    }

    /// `output_item.added`: a new item, or one whose deltas have come before it.
    pub(super) fn added(
        &mut self,
        place: Place<'_>,
        item: &read::Item<'_>,
        events: &mut Vec<Event>,
    ) -> Result<(), ReplyFault> {
        let kind = Kind::of(&item.kind);
        self.readable(kind, item)?;
        let known = |item: &Item| place.item.is_some() && item.id.as_deref() == place.item;
        let early = |item: &Item| !item.added && !item.done && item.output == place.output;
        let found = self.items.iter().rposition(|item| item.kind == kind && (known(item) || early(item)));
        let at = match found {
            Some(at) => at,
            None => self.create(place, kind)?,
        };
        self.name(at, place, item, events);
        Ok(())
    }

    fn readable(&self, kind: Kind, item: &read::Item<'_>) -> Result<(), ReplyFault> {
        if self.own && (kind == Kind::Other || item.unread) { Err(passed_over()) } else { Ok(()) }
    }

    /// Keeps what an item says of itself; a call opens its block once its name is known.
    fn name(&mut self, at: usize, place: Place<'_>, item: &read::Item<'_>, events: &mut Vec<Event>) {
        let Some(known) = self.items.get_mut(at) else { return };
        known.added = true;
        known.output = known.output.or(place.output);
        if known.id.is_none() {
            known.id = place.item.map(str::to_owned);
        }
        if let Content::Call(call) = &mut known.content {
            let id = item.call_id.as_deref().or(item.id.as_deref());
            let name = item.name.as_deref().map(|name| match item.namespace.as_deref() {
                Some(namespace) => Cow::Owned(within(namespace, name)),
                None => Cow::Borrowed(name),
            });
            call.name(id, name.as_deref(), (&self.answer_id, at), &mut self.next, events);
        }
    }

    /// A piece of text.
    pub(super) fn text(
        &mut self,
        place: Place<'_>,
        holds: Holds,
        text: Cow<'_, str>,
        events: &mut Vec<Event>,
    ) -> Result<(), ReplyFault> {
        let at = self.item(place, holds.kind())?;
        self.text_of(at, place.part, holds, text, events)
    }

    fn text_of(
        &mut self,
        at: usize,
        part: Option<u64>,
        holds: Holds,
        text: Cow<'_, str>,
        events: &mut Vec<Event>,
    ) -> Result<(), ReplyFault> {
        let (own, next) = (self.own, &mut self.next);
        let Some(item) = self.items.get_mut(at).filter(|_| !text.is_empty()) else { return Ok(()) };
        if item.done {
            return if own { Err(closed()) } else { Ok(()) };
        }
        match &mut item.content {
            Content::Message(parts) => {
                self.refused |= holds == Holds::Refusal;
                text_delta(parts, part, holds, text.into_owned(), next, events);
            }
            Content::Reasoning(thought) if own && thought.holds.is_some_and(|known| known != holds) => {
                return Err(passed_over());
            }
            Content::Reasoning(thought) => thought.delta(part, holds, text.into_owned(), next, events),
            Content::Call(_) | Content::Other => {}
        }
        Ok(())
    }

    /// A text that is whole. It is read only where no delta of it came.
    pub(super) fn whole_text(
        &mut self,
        place: Place<'_>,
        holds: Holds,
        text: Cow<'_, str>,
        events: &mut Vec<Event>,
    ) -> Result<(), ReplyFault> {
        let at = self.item(place, holds.kind())?;
        self.whole_text_of(at, place.part, holds, text, events)
    }

    fn whole_text_of(
        &mut self,
        at: usize,
        part: Option<u64>,
        holds: Holds,
        text: Cow<'_, str>,
        events: &mut Vec<Event>,
    ) -> Result<(), ReplyFault> {
        let Some(item) = self.items.get_mut(at).filter(|item| !item.done) else { return Ok(()) };
        let length = text.len();
        // Whether what came of it is as long; `None` where nothing came.
        let fits = match &mut item.content {
            Content::Message(parts) => find_part(parts, part, holds).map(|part| part.sent == length),
            Content::Reasoning(thought) => thought.fits(part, holds, length),
            Content::Call(_) | Content::Other => None,
        };
        match fits {
            None => self.text_of(at, part, holds, text, events)?,
            Some(false) if self.own => {
                return Err(ReplyFault::malformed("a text that is not what its pieces were"));
            }
            Some(true | false) => {}
        }
        // The block of a text ends here; that of reasoning goes on, as its proof is still to come.
        if let Some(Item { content: Content::Message(parts), .. }) = self.items.get_mut(at)
            && let Some(part) = find_part(parts, part, holds)
        {
            part.close(events);
        }
        Ok(())
    }

    /// A part that is whole.
    pub(super) fn part(&mut self, place: Place<'_>, part: Part<'_>, events: &mut Vec<Event>) -> Result<(), ReplyFault> {
        let Some(holds) = self.holds(&part)? else { return Ok(()) };
        self.whole_text(place, holds, part.text, events)
    }

    fn holds(&self, part: &Part<'_>) -> Result<Option<Holds>, ReplyFault> {
        let holds = Holds::of(&part.kind);
        if self.own && (part.unread || holds.is_none()) { Err(passed_over()) } else { Ok(holds) }
    }

    /// A piece of a call's arguments, or of a custom tool's input.
    pub(super) fn arguments(
        &mut self,
        place: Place<'_>,
        kind: Kind,
        text: &str,
        events: &mut Vec<Event>,
    ) -> Result<(), ReplyFault> {
        let at = self.item(place, kind)?;
        match self.items.get_mut(at) {
            Some(Item { done: true, .. }) if self.own => Err(closed()),
            Some(Item { content: Content::Call(call), done: false, .. }) => call.delta(text, self.limit, events),
            Some(_) | None => Ok(()),
        }
    }

    /// A call's arguments, or a custom tool's input, whole.
    pub(super) fn whole_arguments(
        &mut self,
        place: Place<'_>,
        kind: Kind,
        text: &str,
        events: &mut Vec<Event>,
    ) -> Result<(), ReplyFault> {
        let at = self.item(place, kind)?;
        self.whole_arguments_of(at, text, events)
    }

    fn whole_arguments_of(&mut self, at: usize, text: &str, events: &mut Vec<Event>) -> Result<(), ReplyFault> {
        match self.items.get_mut(at) {
            Some(Item { content: Content::Call(call), done: false, .. }) => {
                call.whole(text, self.own, self.limit, events)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// `output_item.done`: what has not come yet is in it.
    pub(super) fn done(
        &mut self,
        place: Place<'_>,
        item: &read::Item<'_>,
        events: &mut Vec<Event>,
    ) -> Result<(), ReplyFault> {
        let kind = Kind::of(&item.kind);
        self.readable(kind, item)?;
        let at = self.item(place, kind)?;
        self.finish(at, place, item, events)
    }

    /// An item of the whole output, which came as a whole and may never have been streamed.
    pub(super) fn listed(
        &mut self,
        index: usize,
        item: &read::Item<'_>,
        events: &mut Vec<Event>,
    ) -> Result<(), ReplyFault> {
        let kind = Kind::of(&item.kind);
        self.readable(kind, item)?;
        let id = item.id.as_deref();
        let by = |fits: &dyn Fn(&Item) -> bool| self.items.iter().position(|known| known.kind == kind && fits(known));
        let found = by(&|known| id.is_some() && known.id.as_deref() == id)
            .or_else(|| by(&|known| known.output == Some(index as u64)))
            .or_else(|| self.items.get(index).filter(|known| known.kind == kind).map(|_| index));
        let place = Place { output: Some(index as u64), item: id, part: None };
        let at = match found {
            Some(at) => at,
            None => self.create(place, kind)?,
        };
        self.finish(at, place, item, events)
    }

    fn finish(
        &mut self,
        at: usize,
        place: Place<'_>,
        item: &read::Item<'_>,
        events: &mut Vec<Event>,
    ) -> Result<(), ReplyFault> {
        if self.items.get(at).is_none_or(|known| known.done) {
            return Ok(());
        }
        self.name(at, place, item, events);
        // Of calls none of these is there, and of all others no arguments.
        self.parts(at, item.summary, events)?;
        self.parts(at, item.content, events)?;
        if let Some(arguments) = &item.arguments {
            self.whole_arguments_of(at, arguments, events)?;
        }
        self.close(at, item.encrypted.as_deref(), events)
    }

    /// The parts of an item that is whole.
    fn parts(&mut self, at: usize, parts: Option<&str>, events: &mut Vec<Event>) -> Result<(), ReplyFault> {
        let mut raws = Vec::new();
        Reader::over(parts.unwrap_or("[]"))
            .array::<Invalid>(|r, _| {
                if r.kind()? == Object {
                    raws.push(r.raw()?)
                } else {
                    r.skip().map(drop)?
                }
                Ok(())
            })
            .map_err(read::malformed)?;
        for (index, raw) in (0u64..).zip(raws) {
            let part = Part::over(raw).map_err(read::malformed)?;
            if let Some(holds) = self.holds(&part)? {
                self.whole_text_of(at, Some(index), holds, part.text, events)?;
            }
        }
        Ok(())
    }

    /// Ends an item; reasoning with its proof.
    fn close(&mut self, at: usize, proof: Option<&str>, events: &mut Vec<Event>) -> Result<(), ReplyFault> {
        let Some(item) = self.items.get_mut(at) else { return Ok(()) };
        if std::mem::replace(&mut item.done, true) {
            return Ok(());
        }
        match &mut item.content {
            Content::Message(parts) => parts.iter_mut().for_each(|part| part.close(events)),
            Content::Reasoning(thought) => thought.close(proof, &mut self.next, events),
            Content::Call(call) => call.close(events)?,
            Content::Other => {}
        }
        Ok(())
    }

    /// The answer is at its end: so is every item.
    pub(super) fn close_all(&mut self, events: &mut Vec<Event>) -> Result<(), ReplyFault> {
        (0..self.items.len()).try_for_each(|at| self.close(at, None, events))
    }
}

fn open(kind: Block, next: &mut u32, events: &mut Vec<Event>) -> u32 {
    let block = *next;
    *next += 1;
    events.push(Event::BlockStart { block, kind });
    block
}

/// By the part's index where both sides know it, else the last one that holds the like.
fn find_part(parts: &mut [Text], part: Option<u64>, holds: Holds) -> Option<&mut Text> {
    parts.iter_mut().rev().find(|known| {
        let same = match (known.part, part) {
            (Some(known), Some(part)) => known == part,
            (Some(_), None) | (None, Some(_)) | (None, None) => true,
        };
        known.holds == holds && same
    })
}

fn text_delta(
    parts: &mut Vec<Text>,
    part: Option<u64>,
    holds: Holds,
    text: String,
    next: &mut u32,
    events: &mut Vec<Event>,
) {
    let length = text.len();
    let block = match find_part(parts, part, holds).filter(|known| known.open) {
        Some(known) => {
            known.sent += length;
            known.block
        }
        None => {
            // A part begins where the one before has ended.
            parts.iter_mut().for_each(|known| known.close(events));
            let kind = if holds == Holds::Refusal { Block::Refusal } else { Block::Text };
            let block = open(kind, next, events);
            parts.push(Text { holds, part, block, sent: length, open: true });
            block
        }
    };
    events.push(Event::Delta { block, delta: Delta::Text(text) });
}

impl Text {
    fn close(&mut self, events: &mut Vec<Event>) {
        if std::mem::replace(&mut self.open, false) {
            events.push(Event::BlockStop { block: self.block });
        }
    }
}

impl Thought {
    fn delta(&mut self, part: Option<u64>, holds: Holds, text: String, next: &mut u32, events: &mut Vec<Event>) {
        if *self.holds.get_or_insert(holds) != holds {
            return;
        }
        let block = *self.block.get_or_insert_with(|| open(Block::Thinking, next, events));
        if self.all > 0 && part.is_some() && self.part != part {
            self.sent = 0;
            events.push(Event::Delta { block, delta: Delta::Thinking("\n\n".into()) });
        }
        self.part = part;
        self.sent += text.len();
        self.all += text.len();
        events.push(Event::Delta { block, delta: Delta::Thinking(text) });
    }

    /// Whether what came of a part is as long as the whole; `None` where nothing came. How long an earlier part was is no
    /// longer known.
    fn fits(&self, part: Option<u64>, holds: Holds, length: usize) -> Option<bool> {
        if self.holds? != holds {
            // The other form, of which nothing is read.
            return Some(length == 0);
        }
        match (part, self.part) {
            (Some(part), Some(last)) if part > last => None,
            (Some(part), Some(last)) if part < last => Some(true),
            (Some(_) | None, Some(_) | None) => Some(self.sent == length),
        }
    }

    fn close(&mut self, proof: Option<&str>, next: &mut u32, events: &mut Vec<Event>) {
        if let (None, Some(data)) = (self.block, proof.and_then(|proof| proof.strip_prefix(REDACTED))) {
            let block = open(Block::RedactedThinking(data.into()), next, events);
            events.push(Event::BlockStop { block });
            return;
        }
        if self.block.is_none() && proof.is_none() {
            return;
        }
        let block = *self.block.get_or_insert_with(|| open(Block::Thinking, next, events));
        if let Some(proof) = proof {
            let sealed = crate::envelope::seal(Dialect::Responses, proof).into_owned();
            events.push(Event::Delta { block, delta: Delta::Signature(sealed) });
        }
        events.push(Event::BlockStop { block });
    }
}
