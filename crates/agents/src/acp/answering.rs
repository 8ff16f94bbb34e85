//! An agent's turn as an answer's events.

use super::faults::{self, Asked, Broken, Failed};
use super::handle;
use super::mailbox::Item;
use super::sessions::PromptEnd;
use super::turn::Turn;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};
use turnkeep_base::{Evidence, Fault, FaultKind, Phase};
use turnkeep_dialect::event::{Block, Delta, Event, Finish};
use turnkeep_engine::ports::{Happening, NativeAnswer};
use turnkeep_policy::conversations::Conversation;

/// The kind of the block that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    Text,
    Thinking,
}

/// The order of an answer's events: one block at a time, numbered from 0.
#[derive(Debug, Default)]
struct Blocks {
    next: u32,
    open: Option<(u32, Open)>,
}

impl Blocks {
    fn grow(&mut self, kind: Open, text: String, out: &mut VecDeque<Happening>) {
        if text.is_empty() {
            out.push_back(Happening::Alive);
            return;
        }
        let block = match self.open {
            Some((block, open)) if open == kind => block,
            Some(_) | None => {
                self.close(out);
                let block = self.next;
                self.next += 1;
                self.open = Some((block, kind));
                let kind = match kind {
                    Open::Text => Block::Text,
                    Open::Thinking => Block::Thinking,
                };
                out.push_back(Happening::Event(Event::BlockStart { block, kind }));
                block
            }
        };
        let delta = match kind {
            Open::Text => Delta::Text(text),
            Open::Thinking => Delta::Thinking(text),
        };
        out.push_back(Happening::Event(Event::Delta { block, delta }));
    }

    fn close(&mut self, out: &mut VecDeque<Happening>) {
        if let Some((block, _)) = self.open.take() {
            out.push_back(Happening::Event(Event::BlockStop { block }));
        }
    }
}

/// How the agent says that a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stopped {
    Finish(Finish),
    /// Nobody asked for that here.
    Cancelled,
}

/// Reads a `stopReason`; `None`: none of the protocol's.
fn stopped(reason: &str) -> Option<Stopped> {
    match reason {
        "end_turn" => Some(Stopped::Finish(Finish::Stop)),
        "max_tokens" | "max_turn_requests" => Some(Stopped::Finish(Finish::Length)),
        "refusal" => Some(Stopped::Finish(Finish::Refusal)),
        "cancelled" => Some(Stopped::Cancelled),
        _ => None,
    }
}

/// An answer under way.
pub(super) struct Answering {
    turn: Turn,
    blocks: Blocks,
    out: VecDeque<Happening>,
    resumed: bool,
    ended: bool,
    conversation: Option<Conversation>,
}

impl Answering {
    /// The answer of a turn that the agent has begun with.
    pub(super) fn new(turn: Turn, resumed: bool) -> Self {
        let id = None;
        let start = Event::Start { id, model: None, usage: None };
        let out = VecDeque::from([Happening::Event(start)]);
        Answering { turn, blocks: Blocks::default(), out, resumed, ended: false, conversation: None }
    }

    fn take(&mut self, item: Item) -> Result<(), Fault> {
        match item {
            Item::Text(text) => self.blocks.grow(Open::Text, text, &mut self.out),
            Item::Thought(text) | Item::Note(text) => self.blocks.grow(Open::Thinking, text, &mut self.out),
            Item::Alive => self.out.push_back(Happening::Alive),
            Item::Ended(Ok(end)) => {
                self.turn.over();
                self.end(&end)?;
            }
            Item::Ended(Err(failed)) => {
                match &failed {
                    // The agent is done with the turn.
                    Failed::Error(_) => {
                        self.turn.over();
                        self.turn.place.give_up();
                    }
                    Failed::Broken(Broken::Closed(_)) => {
                        self.turn.over();
                        self.turn.place.directories.remove(&self.turn.place.directory);
                    }
                    // It may still be at work: the turn is cancelled as it is dropped.
                    Failed::Broken(Broken::Malformed(_)) | Failed::TooSlow => {}
                }
                if self.turn.place.hold.peer().shared.broken().is_some() {
                    self.turn.place.hold.condemn();
                }
                let asked = Asked::turn(&self.turn.place.session, self.resumed);
                return Err(faults::of(&failed, asked, Phase::Answered));
            }
        }
        Ok(())
    }

    fn end(&mut self, end: &PromptEnd) -> Result<(), Fault> {
        let place = &self.turn.place;
        let reason = match stopped(&end.stop_reason) {
            Some(Stopped::Finish(reason)) => reason,
            Some(Stopped::Cancelled) => {
                place.give_up();
                let evidence = Evidence::text("the agent cancelled the turn by itself").with_code("cancelled");
                return Err(Fault::new(FaultKind::UpstreamUnavailable, Phase::Answered, evidence));
            }
            None => {
                // Whether the answer is whole, and what the session holds of it, cannot be known.
                place.give_up();
                let evidence = Evidence::text(format!("the stopReason {:?} is not the protocol's", end.stop_reason));
                return Err(Fault::new(FaultKind::MalformedResponse, Phase::Answered, evidence));
            }
        };
        self.blocks.close(&mut self.out);
        if let Some(usage) = end.usage() {
            self.out.push_back(Happening::Event(Event::Usage(usage)));
        }
        self.out.push_back(Happening::Event(Event::Finish { reason, stop_sequence: None }));
        self.out.push_back(Happening::Event(Event::End));
        if reason == Finish::Refusal {
            // The agent forgets a prompt that it refuses: its session is not the client's history any more.
            place.give_up();
        } else {
            self.conversation = Some(Conversation {
                handle: Arc::from(handle::write(&place.directory, &place.session)),
                position: None,
                instance: Some(place.hold.instance()),
            });
        }
        self.ended = true;
        Ok(())
    }
}

impl NativeAnswer for Answering {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Happening, Fault>>> {
        loop {
            if let Some(happening) = self.out.pop_front() {
                return Poll::Ready(Some(Ok(happening)));
            }
            if self.ended {
                return Poll::Ready(None);
            }
            match self.turn.mailbox.poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(item)) => {
                    if let Err(fault) = self.take(item) {
                        return Poll::Ready(Some(Err(fault)));
                    }
                }
            }
        }
    }

    fn conversation(&self) -> Option<Conversation> {
        self.conversation.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnkeep_dialect::event::Order;

    #[test]
    fn text_and_thinking_take_turns_in_blocks_of_their_own() {
        let (mut blocks, mut out) = (Blocks::default(), VecDeque::new());
        for (kind, text) in
            [(Open::Thinking, "a"), (Open::Thinking, ""), (Open::Text, "b"), (Open::Text, "c"), (Open::Thinking, "d")]
        {
            blocks.grow(kind, text.into(), &mut out);
        }
        blocks.close(&mut out);
        let mut order = Order::default();
        let start = Event::Start { id: None, model: None, usage: None };
        order.event(&start).expect("a start");
        for happening in &out {
            if let Happening::Event(event) = happening {
                order.event(event).expect("in order");
            }
        }
        assert_eq!((blocks.next, out.len()), (3, 11));
    }

    #[test]
    fn an_agents_reasons_to_stop_are_the_canonical_ones() {
        assert_eq!(stopped("end_turn"), Some(Stopped::Finish(Finish::Stop)));
        assert_eq!(stopped("max_tokens"), Some(Stopped::Finish(Finish::Length)));
        assert_eq!(stopped("max_turn_requests"), Some(Stopped::Finish(Finish::Length)));
        assert_eq!(stopped("refusal"), Some(Stopped::Finish(Finish::Refusal)));
        assert_eq!(stopped("cancelled"), Some(Stopped::Cancelled));
        for unknown in ["of_next_year", "END_TURN", ""] {
            assert_eq!(stopped(unknown), None, "{unknown:?}");
        }
    }
}
