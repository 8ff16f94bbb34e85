//! The output items of one answer, out of their events.
//!
//! By the protocol an event belongs to an item by `output_index` and `item_id`, every item is added and done once, and
//! several may grow at once. Servers leave out the indexes, the ids, the `added`, the `done`, or send deltas first; what
//! an item holds is taken from whichever event has it first, once.

use super::call::{Call, within};
use super::read::{self, Part};
use super::texts::{self, Holds, Text, Thought};
use super::{closed, passed_over};
use crate::event::Event;
use crate::json::Kind::Object;
use crate::json::{Invalid, Reader};
use crate::reply::ReplyFault;
use std::borrow::Cow;

/// Items of one answer, and parts of them, that are taken; each costs memory.
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

/// Where an event says that it belongs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub(super) output: Option<u64>,
    pub(super) item: Option<&'a str>,
    /// `call_id`: some servers give a call no other id, and mean it by `item_id`.
    pub(super) call: Option<&'a str>,
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
    call: Option<String>,
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

impl Item {
    fn is(&self, id: &str) -> bool {
        self.id.as_deref() == Some(id) || self.call.as_deref() == Some(id)
    }
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
        let Some(at) = self.find(place, kind) else { return self.create(place, kind) };
        if let (Some(item), Some(id)) = (self.items.get_mut(at), place.item)
            && item.id.is_none()
        {
            item.id = Some(id.to_owned());
        }
        Ok(at)
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
        let (id, call) = (place.item.map(str::to_owned), place.call.map(str::to_owned));
        self.items.push(Item { output: place.output, id, call, kind, added: false, done: false, content });
        Ok(self.items.len() - 1)
    }

    /// By id, else by index (some servers give every event another id), else the last one that is growing.
    fn find(&self, place: Place<'_>, kind: Kind) -> Option<usize> {
        let by = |fits: &dyn Fn(&Item) -> bool| self.items.iter().rposition(|item| item.kind == kind && fits(item));
        let by_name = place.item.and_then(|id| by(&|item| item.is(id)));
        if let Some(at) = by_name.or_else(|| by(&|item| place.call.is_some() && item.call.as_deref() == place.call)) {
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
        let known = |item: &Item| [place.item, place.call].into_iter().flatten().any(|id| item.is(id));
        let early = |item: &Item| {
            let nameless = item.id.is_none() || place.item.is_none() || place.output.is_some();
            !item.added && !item.done && item.output == place.output && nameless
        };
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
        if known.call.is_none() {
            known.call = place.call.map(str::to_owned);
        }
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
        if usize::try_from(self.next).is_ok_and(|blocks| blocks > MAX_ITEMS) {
            return Err(ReplyFault::malformed(format!("more than {MAX_ITEMS} parts of output items")));
        }
        let (own, next) = (self.own, &mut self.next);
        let Some(item) = self.items.get_mut(at).filter(|_| !text.is_empty()) else { return Ok(()) };
        if item.done {
            return if own { Err(closed()) } else { Ok(()) };
        }
        match &mut item.content {
            Content::Message(parts) => {
                self.refused |= holds == Holds::Refusal;
                texts::delta(parts, part, holds, text.into_owned(), next, events);
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
            Content::Message(parts) => texts::find(parts, part, holds).map(|part| part.sent == length),
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
            && let Some(part) = texts::find(parts, part, holds)
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
        let call = item.call_id.as_deref();
        let found = by(&|known| [id, call].into_iter().flatten().any(|id| known.is(id)))
            .or_else(|| by(&|known| known.output == Some(index as u64)))
            .or_else(|| {
                self.items.get(index).filter(|known| known.kind == kind && known.output.is_none()).map(|_| index)
            });
        let place = Place { output: Some(index as u64), item: id, call, part: None };
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
