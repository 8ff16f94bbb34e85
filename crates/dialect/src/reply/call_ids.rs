//! No two calls of one translated answer with one id: the client's results name a call by it, and Messages and Gemini have
//! no answer with the same id twice. Servers that number calls anew in each message give such ids.

use crate::chat::reply_decode::made_id;
use crate::event::{Block, Event};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The ids of one answer's calls.
#[derive(Debug)]
pub(super) struct CallIds {
    /// Our own id of the answer, of which ids are made.
    answer: String,
    seen: BTreeSet<String>,
}

impl CallIds {
    pub(super) fn new(answer: &str) -> Self {
        CallIds { answer: answer.to_owned(), seen: BTreeSet::new() }
    }

    /// The event, a call's first with an id that no call before it has.
    pub(super) fn own<'e>(&mut self, event: &'e Event) -> Cow<'e, Event> {
        let Event::BlockStart { block, kind: Block::ToolCall { id, name } } = event else {
            return Cow::Borrowed(event);
        };
        if self.seen.insert(id.clone()) {
            return Cow::Borrowed(event);
        }
        let own = (self.seen.len()..).map(|number| made_id(&self.answer, number)).find(|own| !self.seen.contains(own));
        let id = own.unwrap_or_else(|| id.clone());
        self.seen.insert(id.clone());
        Cow::Owned(Event::BlockStart { block: *block, kind: Block::ToolCall { id, name: name.clone() } })
    }
}

/// The events with an id of its own for every call; `None` where they have that as they are.
pub(super) fn all(answer: &str, events: &[Event]) -> Option<Vec<Event>> {
    let mut ids = CallIds::new(answer);
    if events.iter().all(|event| matches!(ids.own(event), Cow::Borrowed(_))) {
        return None;
    }
    let mut ids = CallIds::new(answer);
    Some(events.iter().map(|event| ids.own(event).into_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_with_the_id_of_another_gets_one_of_its_own_that_no_third_has() {
        let mut ids = CallIds::new("a1");
        let call = |id: &str| Event::BlockStart { block: 0, kind: Block::ToolCall { id: id.into(), name: "f".into() } };
        let given: Vec<String> = ["x", "call_a1_2", "x", "x", "call_a1_3", "y"]
            .iter()
            .map(|id| {
                let Event::BlockStart { kind: Block::ToolCall { id, .. }, .. } = ids.own(&call(id)).into_owned() else {
                    panic!("another event");
                };
                id
            })
            .collect();
        assert_eq!(given, ["x", "call_a1_2", "call_a1_3", "call_a1_4", "call_a1_5", "y"]);
        let own: BTreeSet<&String> = given.iter().collect();
        assert_eq!(own.len(), given.len());
        assert!(matches!(ids.own(&Event::End), Cow::Borrowed(_)));
    }
}
