//! The texts of one answer: parts of messages, each a block, and reasoning, which is one block with one proof.

use super::items::Kind;
use crate::envelope::REDACTED;
use crate::event::{Block, Delta, Event};
use turnkeep_base::Dialect;

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
    pub(super) fn kind(self) -> Kind {
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

/// A text part of a message.
#[derive(Debug)]
pub(super) struct Text {
    holds: Holds,
    part: Option<u64>,
    block: u32,
    pub(super) sent: usize,
    open: bool,
}

/// Reasoning is one block, as its proof is for the whole item.
#[derive(Debug, Default)]
pub(super) struct Thought {
    block: Option<u32>,
    /// Which of its two forms is read; the other says the same in other words.
    pub(super) holds: Option<Holds>,
    part: Option<u64>,
    /// Bytes of the part at hand, and of all.
    sent: usize,
    all: usize,
}

fn open(kind: Block, next: &mut u32, events: &mut Vec<Event>) -> u32 {
    let block = *next;
    *next += 1;
    events.push(Event::BlockStart { block, kind });
    block
}

/// By the part's index where both sides know it, else the last one that holds the like.
pub(super) fn find(parts: &mut [Text], part: Option<u64>, holds: Holds) -> Option<&mut Text> {
    parts.iter_mut().rev().find(|known| {
        let same = match (known.part, part) {
            (Some(known), Some(part)) => known == part,
            (Some(_), None) | (None, Some(_)) | (None, None) => true,
        };
        known.holds == holds && same
    })
}

pub(super) fn delta(
    parts: &mut Vec<Text>,
    part: Option<u64>,
    holds: Holds,
    text: String,
    next: &mut u32,
    events: &mut Vec<Event>,
) {
    let length = text.len();
    let block = match find(parts, part, holds).filter(|known| known.open) {
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
    pub(super) fn close(&mut self, events: &mut Vec<Event>) {
        if std::mem::replace(&mut self.open, false) {
            events.push(Event::BlockStop { block: self.block });
        }
    }
}

impl Thought {
    pub(super) fn delta(
        &mut self,
        part: Option<u64>,
        holds: Holds,
        text: String,
        next: &mut u32,
        events: &mut Vec<Event>,
    ) {
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
    pub(super) fn fits(&self, part: Option<u64>, holds: Holds, length: usize) -> Option<bool> {
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

    pub(super) fn close(&mut self, proof: Option<&str>, next: &mut u32, events: &mut Vec<Event>) {
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
