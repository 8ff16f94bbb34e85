//! The order of events that decoders keep and encoders rely on, as a state machine that says what breaks it. It costs
//! next to nothing, so every translated answer is checked by it.

use super::{Block, Delta, Event};

/// Watches one answer.
#[derive(Debug, Default)]
pub struct Order {
    started: bool,
    /// By block number.
    blocks: Vec<Slot>,
    open: usize,
    finished: bool,
    ended: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    Text,
    Thinking,
    Redacted,
    Call,
    Closed,
}

impl Order {
    /// Takes an event; the error tells what may not stand there.
    pub fn event(&mut self, event: &Event) -> Result<(), String> {
        if self.ended {
            return Err("an event after the end".into());
        }
        if !self.started && !matches!(event, Event::Start { .. }) {
            return Err("an event before the start".into());
        }
        match event {
            Event::Start { .. } if self.started => Err("a second start".into()),
            Event::Start { .. } => {
                self.started = true;
                Ok(())
            }
            Event::BlockStart { block, .. } if self.finished => Err(format!("block {block} begins after the finish")),
            Event::BlockStart { block, kind } => {
                if usize::try_from(*block) != Ok(self.blocks.len()) {
                    return Err(format!("block {block} begins after {} blocks", self.blocks.len()));
                }
                self.open += 1;
                self.blocks.push(match kind {
                    Block::Text | Block::Refusal => Slot::Text,
                    Block::Thinking => Slot::Thinking,
                    Block::RedactedThinking(_) => Slot::Redacted,
                    Block::ToolCall { .. } => Slot::Call,
                });
                Ok(())
            }
            Event::Delta { block, delta } => match (self.slot(*block).copied(), delta) {
                (Some(Slot::Text), Delta::Text(_))
                | (Some(Slot::Thinking), Delta::Thinking(_) | Delta::Signature(_))
                | (Some(Slot::Call), Delta::Arguments(_)) => Ok(()),
                (None | Some(Slot::Closed), _) => Err(format!("a delta of block {block}, which is not open")),
                (Some(Slot::Text | Slot::Thinking | Slot::Redacted | Slot::Call), _) => {
                    Err(format!("a delta of another kind than block {block}"))
                }
            },
            Event::BlockStop { block } => match self.slot(*block) {
                Some(slot) if *slot != Slot::Closed => {
                    *slot = Slot::Closed;
                    self.open -= 1;
                    Ok(())
                }
                Some(_) | None => Err(format!("a stop of block {block}, which is not open")),
            },
            Event::Finish { .. } if self.finished => Err("a second finish".into()),
            Event::Finish { .. } => {
                self.finished = true;
                Ok(())
            }
            Event::Usage(_) => Ok(()),
            Event::End if !self.finished => Err("an end without a finish".into()),
            Event::End if self.open > 0 => Err(format!("an end with {} open blocks", self.open)),
            Event::End => {
                self.ended = true;
                Ok(())
            }
        }
    }

    fn slot(&mut self, block: u32) -> Option<&mut Slot> {
        self.blocks.get_mut(usize::try_from(block).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Finish;

    fn start() -> Event {
        Event::Start { id: None, model: None, usage: None }
    }

    fn begin(block: u32, kind: Block) -> Event {
        Event::BlockStart { block, kind }
    }

    fn text(block: u32) -> Event {
        Event::Delta { block, delta: Delta::Text("x".into()) }
    }

    fn stop(block: u32) -> Event {
        Event::BlockStop { block }
    }

    fn finish() -> Event {
        Event::Finish { reason: Finish::Stop, stop_sequence: None }
    }

    /// Where the first event that may not stand there stands.
    fn wrong(events: &[Event]) -> Option<usize> {
        let mut order = Order::default();
        events.iter().position(|event| order.event(event).is_err())
    }

    #[test]
    fn interleaved_blocks_are_in_order() {
        let call = Block::ToolCall { id: "a".into(), name: "f".into() };
        let arguments = Event::Delta { block: 1, delta: Delta::Arguments("{}".into()) };
        let good = [
            start(),
            begin(0, Block::Text),
            begin(1, call),
            text(0),
            arguments,
            stop(0),
            stop(1),
            Event::Usage(turnkeep_base::Usage::default()),
            finish(),
            Event::End,
        ];
        assert_eq!(wrong(&good), None);
    }

    #[test]
    fn what_breaks_the_order_is_found_where_it_stands() {
        let (at, call) = (|events: &[Event]| wrong(events), Block::ToolCall { id: "a".into(), name: "f".into() });
        assert_eq!(at(&[begin(0, Block::Text)]), Some(0));
        assert_eq!(at(&[start(), start()]), Some(1));
        assert_eq!(at(&[start(), begin(1, Block::Text)]), Some(1));
        assert_eq!(at(&[start(), text(0)]), Some(1));
        assert_eq!(at(&[start(), begin(0, call), text(0)]), Some(2));
        assert_eq!(at(&[start(), begin(0, Block::RedactedThinking("x".into())), text(0)]), Some(2));
        assert_eq!(at(&[start(), begin(0, Block::Text), stop(0), text(0)]), Some(3));
        assert_eq!(at(&[start(), begin(0, Block::Text), stop(0), stop(0)]), Some(3));
        assert_eq!(at(&[start(), finish(), begin(0, Block::Text)]), Some(2));
        assert_eq!(at(&[start(), finish(), finish()]), Some(2));
        assert_eq!(at(&[start(), Event::End]), Some(1));
        assert_eq!(at(&[start(), begin(0, Block::Text), finish(), Event::End]), Some(3));
        assert_eq!(at(&[start(), finish(), Event::End, Event::End]), Some(3));
    }
}
