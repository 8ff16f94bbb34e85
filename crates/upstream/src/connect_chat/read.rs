//! The service's events as canonical ones, in their order. What breaks the order, or is of a kind that a block cannot be made
//! of, is `malformed_response`; a step of a kind that is not known is passed over.

use super::STATE;
use std::collections::VecDeque;
use turnkeep_base::{Evidence, Fault, FaultKind, Phase, Usage};
use turnkeep_dialect::event::{Block, Delta, Event, Finish, Order};
use turnkeep_proto::connect::v1 as wire;
use wire::chat_event::Event as Step;

/// Reads one answer.
#[derive(Debug, Default)]
pub(crate) struct Events {
    order: Order,
    started: bool,
    ended: bool,
    /// What the last step became: two events at most.
    ready: VecDeque<Result<Event, String>>,
}

impl Events {
    /// Takes the next step in.
    pub(crate) fn take(&mut self, event: wire::ChatEvent) {
        let Some(step) = event.event else { return };
        if !self.started {
            self.started = true;
            if !matches!(step, Step::Start(_)) {
                self.ready.push_back(Ok(Event::Start { id: None, model: None, usage: None }));
            }
        }
        self.ready.extend(read(step).transpose());
    }

    /// The stream has ended as the protocol says.
    pub(crate) fn end(&mut self) {
        self.ended = true;
        self.ready.push_back(Ok(Event::End));
    }

    /// Nothing more can come.
    pub(crate) fn are_ended(&self) -> bool {
        self.ended
    }

    /// The next event that is ready.
    pub(crate) fn next_event(&mut self) -> Result<Option<Event>, Fault> {
        let Some(next) = self.ready.pop_front() else { return Ok(None) };
        let checked = next.and_then(|event| self.order.event(&event).map(|()| event));
        checked.map(Some).map_err(|what| {
            self.ended = true;
            self.ready.clear();
            Fault::new(FaultKind::MalformedResponse, Phase::Answered, Evidence::text(what))
        })
    }
}

/// A step as an event; `None` for one that is not known.
fn read(step: Step) -> Result<Option<Event>, String> {
    let event = match step {
        Step::Start(wire::Start { id, model, usage }) => {
            Event::Start { id: named(id), model: named(model), usage: usage.map(counts) }
        }
        Step::BlockStart(wire::BlockStart { block, kind }) => {
            let kind = kind.ok_or_else(|| format!("block {block} is of no known kind"))?;
            Event::BlockStart { block, kind: begun(block, kind)? }
        }
        Step::Delta(wire::Delta { block, delta }) => {
            let Some(delta) = delta else { return Ok(None) };
            Event::Delta { block, delta: grown(delta) }
        }
        Step::BlockStop(wire::BlockStop { block }) => Event::BlockStop { block },
        Step::Finish(finish) => Event::Finish { reason: reason(&finish)?, stop_sequence: finish.stop_sequence },
        Step::Usage(usage) => Event::Usage(counts(usage)),
    };
    Ok(Some(event))
}

fn named(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

fn counts(usage: wire::Usage) -> Usage {
    let wire::Usage { input, cache_read, cache_write, output, reasoning } = usage;
    Usage { input, cache_read, cache_write, output, reasoning }
}

fn begun(block: u32, kind: wire::block_start::Kind) -> Result<Block, String> {
    use wire::block_start::Kind;
    match kind {
        Kind::Text(wire::TextBlock {}) => Ok(Block::Text),
        Kind::Thinking(wire::ThinkingBlock {}) => Ok(Block::Thinking),
        Kind::RedactedThinking(wire::RedactedThinkingBlock { data }) => {
            Ok(Block::RedactedThinking(format!("{STATE}{data}")))
        }
        Kind::ToolCall(wire::ToolCallBlock { id, name }) => {
            if id.is_empty() || name.is_empty() {
                return Err(format!(
                    "block {block} is a tool call without {}",
                    if id.is_empty() { "an id" } else { "a name" }
                ));
            }
            Ok(Block::ToolCall { id, name })
        }
        Kind::Refusal(wire::RefusalBlock {}) => Ok(Block::Refusal),
    }
}

fn grown(delta: wire::delta::Delta) -> Delta {
    use wire::delta::Delta as Grown;
    match delta {
        Grown::Text(text) => Delta::Text(text),
        Grown::Thinking(text) => Delta::Thinking(text),
        Grown::Signature(signature) => Delta::Signature(format!("{STATE}{signature}")),
        Grown::Arguments(json) => Delta::Arguments(json),
    }
}

fn reason(finish: &wire::Finish) -> Result<Finish, String> {
    use wire::finish::Reason;
    match Reason::try_from(finish.reason) {
        Ok(Reason::Stop) => Ok(Finish::Stop),
        Ok(Reason::StopSequence) => Ok(Finish::StopSequence),
        Ok(Reason::Length) => Ok(Finish::Length),
        Ok(Reason::ContextFull) => Ok(Finish::ContextFull),
        Ok(Reason::ToolCalls) => Ok(Finish::ToolCalls),
        Ok(Reason::Refusal) => Ok(Finish::Refusal),
        Ok(Reason::Pause) => Ok(Finish::Pause),
        Ok(Reason::Unspecified) | Err(_) => Err(format!("a finish for no known reason ({})", finish.reason)),
    }
}
