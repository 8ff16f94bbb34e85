//! One call of a tool, out of its events. A custom tool takes free text, which is held until it is whole, as an event has
//! arguments in JSON.

use crate::chat::reply_decode::{Shape, made_id};
use crate::event::{Block, Delta, Event};
use crate::json::Object;
use crate::reply::ReplyFault;

/// The name, in events, of a tool that stands in a namespace.
pub(in crate::responses) fn within(namespace: &str, name: &str) -> String {
    format!("{namespace}__{name}")
}

#[derive(Debug)]
pub(super) struct Call {
    custom: bool,
    /// Once the name is known.
    block: Option<u32>,
    /// What came before the name, or a custom tool's input so far.
    held: String,
    /// Bytes of arguments that came as deltas.
    sent: usize,
    shape: Shape,
}

impl Call {
    pub(super) fn new(custom: bool) -> Self {
        Call { custom, block: None, held: String::new(), sent: 0, shape: Shape::default() }
    }

    /// Its name is known.
    pub(super) fn is_open(&self) -> bool {
        self.block.is_some()
    }

    /// Its arguments have begun and are not at their end.
    pub(super) fn is_cut(&self) -> bool {
        !self.custom && self.sent > 0 && !self.shape.whole()
    }

    /// Opens the block, if there is a name now and was none before. `made` is what an id is made of where none was given.
    pub(super) fn name(
        &mut self,
        id: Option<&str>,
        name: Option<&str>,
        made: (&str, usize),
        next: &mut u32,
        events: &mut Vec<Event>,
    ) {
        let (None, Some(name)) = (self.block, name) else { return };
        let id = id.map_or_else(|| made_id(made.0, made.1), str::to_owned);
        let block = *next;
        *next += 1;
        self.block = Some(block);
        events.push(Event::BlockStart { block, kind: Block::ToolCall { id, name: name.to_owned() } });
        if !self.custom {
            let held = std::mem::take(&mut self.held);
            self.arguments(&held, events);
        }
    }

    fn arguments(&mut self, text: &str, events: &mut Vec<Event>) {
        // What follows a whole object is a repetition or white space.
        let taken = self.shape.take(text);
        let (Some(block), Some(text)) = (self.block, text.get(..taken).filter(|text| !text.is_empty())) else { return };
        events.push(Event::Delta { block, delta: Delta::Arguments(text.to_owned()) });
    }

    pub(super) fn delta(&mut self, text: &str, limit: usize, events: &mut Vec<Event>) -> Result<(), ReplyFault> {
        self.sent += text.len();
        if self.custom || self.block.is_none() {
            return self.hold(text, limit);
        }
        self.arguments(text, events);
        Ok(())
    }

    fn hold(&mut self, text: &str, limit: usize) -> Result<(), ReplyFault> {
        if self.held.len().saturating_add(text.len()) > limit {
            return Err(ReplyFault::malformed(format!(
                "a tool call with more than {limit} bytes that have to be held"
            )));
        }
        self.held.push_str(text);
        Ok(())
    }

    /// All of it at once. It is read only where nothing of it came before.
    pub(super) fn whole(
        &mut self,
        text: &str,
        own: bool,
        limit: usize,
        events: &mut Vec<Event>,
    ) -> Result<(), ReplyFault> {
        if self.sent == 0 {
            return self.delta(text, limit, events);
        }
        if own && self.sent != text.len() {
            return Err(ReplyFault::malformed("arguments that are not what their pieces were"));
        }
        Ok(())
    }

    /// Ends the call. One that never had a name is none.
    pub(super) fn close(&mut self, events: &mut Vec<Event>) -> Result<(), ReplyFault> {
        let Some(block) = self.block else { return Err(ReplyFault::malformed("a tool call without a name")) };
        if self.custom {
            let mut arguments = Vec::new();
            Object::open(&mut arguments).string("input", &std::mem::take(&mut self.held));
            let arguments = String::from_utf8_lossy(&arguments).into_owned();
            events.push(Event::Delta { block, delta: Delta::Arguments(arguments) });
        }
        events.push(Event::BlockStop { block });
        Ok(())
    }
}
