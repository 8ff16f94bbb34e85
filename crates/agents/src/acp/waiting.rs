//! What the agent was asked and has not answered yet.

use super::faults::{Broken, Failed};
use super::mailbox::{Item, Mailbox};
use super::rpc;
use super::sessions::PromptEnd;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Calls whose callers have left and whose answers are still looked for: a session that one began is to be closed.
const LEFT: usize = 64;

/// Who waits for an answer.
pub(super) enum Waiting {
    Call { method: &'static str, told: oneshot::Sender<Result<Box<RawValue>, Failed>> },
    Turn { session: Arc<str>, mailbox: Arc<Mailbox> },
}

/// All who wait, by the number of what was asked. Bounded by the calls and turns under way, and [`LEFT`].
#[derive(Default)]
pub(super) struct Waits(Mutex<BTreeMap<u64, Waiting>>);

impl Waits {
    /// One more. Where too many have left, the answers to the oldest are looked for no longer.
    pub(super) fn insert(&self, id: u64, waiting: Waiting) {
        let mut all = self.0.lock();
        let left: Vec<u64> = all.iter().filter(|(_, waiting)| waiting.has_left()).map(|(id, _)| *id).collect();
        for id in left.iter().take((left.len() + 1).saturating_sub(LEFT)) {
            all.remove(id);
        }
        all.insert(id, waiting);
    }

    /// The one with this number; `None` for a number of nobody's.
    pub(super) fn remove(&self, id: u64) -> Option<Waiting> {
        self.0.lock().remove(&id)
    }

    /// Everyone.
    pub(super) fn take_all(&self) -> impl Iterator<Item = Waiting> {
        std::mem::take(&mut *self.0.lock()).into_values()
    }
}

impl Waiting {
    fn has_left(&self) -> bool {
        match self {
            Waiting::Call { told, .. } => told.is_closed(),
            Waiting::Turn { .. } => false,
        }
    }

    /// Tells what came of it.
    pub(super) fn tell(self, outcome: Result<Box<RawValue>, Failed>) {
        match self {
            // Nobody may be there any more.
            Waiting::Call { told, .. } => drop(told.send(outcome)),
            Waiting::Turn { mailbox, .. } => mailbox.push(Item::Ended(outcome.and_then(|result| {
                rpc::object::<PromptEnd>(result.get()).map_err(|error| {
                    Failed::Broken(Broken::Malformed(format!("the answer to session/prompt: {error}")))
                })
            }))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_calls_whose_callers_have_left_the_oldest_go_and_no_other() {
        let waits = Waits::default();
        let call = || {
            let (told, answer) = oneshot::channel();
            (Waiting::Call { method: "session/new", told }, answer)
        };
        let (waiting, stays) = call();
        waits.insert(0, waiting);
        waits.insert(1, Waiting::Turn { session: "s".into(), mailbox: Arc::default() });
        for id in 2..200 {
            waits.insert(id, call().0);
        }
        let known: Vec<u64> = waits.0.lock().keys().copied().collect();
        let expected: Vec<u64> = [0, 1].into_iter().chain(200 - LEFT as u64..200).collect();
        assert_eq!(known, expected);
        drop(stays);
        assert_eq!(waits.take_all().count(), LEFT + 2);
        assert!(waits.remove(0).is_none());
    }
}
