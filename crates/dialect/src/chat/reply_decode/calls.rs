//! The tool calls of one answer, out of their fragments.
//!
//! Fragments belong to a call by `index`, several calls may grow at once, and servers leave out ids, repeat names, send
//! every call under index 0 or leave the index out. A call stays open until its arguments are a whole JSON object and
//! something else begins, or until the answer finishes.

use crate::envelope;
use crate::event::{Block, Delta, Event};
use crate::reply::ReplyFault;
use turnkeep_base::Dialect;

use super::chunk::CallPart;

/// Calls of one answer that are taken; each costs memory.
const MAX_CALLS: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: Vec<Call>,
    any: bool,
}

#[derive(Debug)]
struct Call {
    index: u64,
    id: Option<String>,
    /// Gemini's proof of it, until it is told.
    proof: Option<String>,
    /// Once its name is known.
    block: Option<u32>,
    stopped: bool,
    /// Arguments that came before the name.
    early: String,
    shape: Shape,
}

impl Calls {
    /// The model has called a tool.
    pub(super) fn any(&self) -> bool {
        self.any
    }

    /// Takes a fragment. `open` closes what must not stay open beside a call and gives the number of a new block; it may be
    /// called more than once, as a proof stands in a block of its own.
    pub(super) fn part(
        &mut self,
        part: CallPart<'_>,
        answer_id: &str,
        events: &mut Vec<Event>,
        mut open: impl FnMut(&mut Vec<Event>) -> u32,
    ) -> Result<(), ReplyFault> {
        let at = match self.find(&part) {
            Some(at) => at,
            None => {
                if self.calls.len() >= MAX_CALLS {
                    return Err(ReplyFault::malformed(format!("more than {MAX_CALLS} tool calls")));
                }
                let next = self.calls.iter().map(|call| call.index.saturating_add(1)).max().unwrap_or(0);
                self.calls.push(Call {
                    index: part.index.unwrap_or(next),
                    id: None,
                    proof: None,
                    block: None,
                    stopped: false,
                    early: String::new(),
                    shape: Shape::default(),
                });
                self.calls.len() - 1
            }
        };
        let number = at;
        let Some(call) = self.calls.get_mut(at) else { return Ok(()) };
        if call.id.is_none() {
            call.id = part.id.map(|id| id.into_owned());
        }
        if let Some(proof) = part.proof {
            call.proof = Some(proof.into_owned());
        }
        let mut arguments = part.arguments.map(|arguments| arguments.into_owned()).unwrap_or_default();
        let block = match (call.block, part.name) {
            (Some(block), _) => block,
            (None, None) => {
                call.early.push_str(&arguments);
                return Ok(());
            }
            (None, Some(name)) => {
                let id = call.id.clone().unwrap_or_else(|| made_id(answer_id, number));
                call.id = Some(id.clone());
                arguments.insert_str(0, &std::mem::take(&mut call.early));
                let proof = call.proof.take();
                self.any = true;
                self.close(true, events);
                if let Some(proof) = proof {
                    let block = open(events);
                    events.push(Event::BlockStart { block, kind: Block::Thinking });
                    let signature = envelope::seal(Dialect::Gemini, &proof).into_owned();
                    events.push(Event::Delta { block, delta: Delta::Signature(signature) });
                    events.push(Event::BlockStop { block });
                }
                let block = open(events);
                events.push(Event::BlockStart { block, kind: Block::ToolCall { id, name: name.into_owned() } });
                block
            }
        };
        let Some(call) = self.calls.get_mut(at) else { return Ok(()) };
        call.block = Some(block);
        // What follows a whole object is a repetition (some servers send all arguments again at the end) or white space.
        if !part.free {
            let taken = call.shape.take(&arguments);
            arguments.truncate(taken);
        }
        if !arguments.is_empty() && !call.stopped {
            events.push(Event::Delta { block, delta: Delta::Arguments(arguments) });
        }
        Ok(())
    }

    fn find(&self, part: &CallPart<'_>) -> Option<usize> {
        let starts = part.id.is_some() || part.name.is_some();
        let Some(index) = part.index else {
            let same = |call: &Call| part.id.is_some() && call.id.as_deref() == part.id.as_deref();
            let by_id = self.calls.iter().rposition(same);
            return if starts { by_id } else { by_id.or(self.calls.len().checked_sub(1)) };
        };
        let at = self.calls.iter().rposition(|call| call.index == index)?;
        let call = self.calls.get(at)?;
        // All calls under one index: a new id and a name where the call before is whole.
        let other_id = part.id.is_some() && call.id.as_deref() != part.id.as_deref();
        if other_id && part.name.is_some() && call.shape.whole() { None } else { Some(at) }
    }

    /// Every call that was begun has a name.
    pub(super) fn check(&self) -> Result<(), ReplyFault> {
        let nameless = |call: &Call| call.block.is_none() && !(call.early.is_empty() && call.id.is_none());
        if self.calls.iter().any(nameless) {
            return Err(ReplyFault::malformed("a tool call without a name"));
        }
        Ok(())
    }

    /// Closes the calls whose arguments are whole, or all.
    pub(super) fn close(&mut self, only_whole: bool, events: &mut Vec<Event>) {
        for call in &mut self.calls {
            if let Some(block) = call.block
                && !call.stopped
                && (!only_whole || call.shape.whole())
            {
                call.stopped = true;
                events.push(Event::BlockStop { block });
            }
        }
    }
}

/// An id for the call of an upstream that gives none: the same for the same answer, at most 40 characters.
pub(crate) fn made_id(answer_id: &str, number: usize) -> String {
    let own = answer_id.strip_prefix("chatcmpl-").unwrap_or(answer_id);
    let own: Vec<char> = own.chars().filter(char::is_ascii_alphanumeric).collect();
    let own: String = own.iter().skip(own.len().saturating_sub(24)).collect();
    format!("call_{own}_{number}")
}

/// How far a JSON object has come, by its brackets and quotes alone.
#[derive(Debug, Default)]
pub(crate) struct Shape {
    depth: u32,
    in_string: bool,
    escaped: bool,
    begun: bool,
}

impl Shape {
    pub(crate) fn whole(&self) -> bool {
        self.begun && self.depth == 0
    }

    /// It has begun and is not at its end.
    pub(crate) fn cut(&self) -> bool {
        self.begun && self.depth > 0
    }

    /// Reads on; tells how many bytes belong to the object.
    pub(crate) fn take(&mut self, text: &str) -> usize {
        for (at, byte) in text.bytes().enumerate() {
            if self.whole() {
                return at;
            }
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => {
                    self.depth = self.depth.saturating_add(1);
                    self.begun = true;
                }
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        text.len()
    }
}
