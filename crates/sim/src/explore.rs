//! Every state that a few events can lead the pure machines to, breadth first: two accounts with their attempts, two
//! conversations with their loans. States that look alike are gone on from once; what must hold is looked at in each.
//!
//! A state is its path: the machines cannot be copied where something is lent (nor should they), so each is made again by
//! walking there.

mod accounts;
mod conversations;

pub use accounts::Accounts;
pub use conversations::Conversations;

use std::collections::BTreeSet;
use std::fmt::Debug;

/// A machine that can be walked.
pub trait Machine: Default {
    /// What can happen to it.
    type Event: Copy + Debug + 'static;
    /// All that can happen in some state.
    const EVENTS: &'static [Self::Event];

    /// Lets it happen; `None`: it cannot happen here. An error: something does not hold.
    fn happen(&mut self, event: Self::Event) -> Option<Result<(), String>>;

    /// What is the same of two states that go on alike.
    fn looks(&self) -> String;
}

/// How far an exploration came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explored {
    /// States that look different.
    pub states: usize,
    /// Steps from the first one, at most.
    pub depth: usize,
    /// No state was left to go on from.
    pub closed: bool,
}

/// Walks to every state within `depth` events, but for no more than `most` states.
///
/// # Errors
/// Something does not hold: what, and the way there.
pub fn explore<M: Machine>(depth: usize, most: usize) -> Result<Explored, String> {
    let mut known = BTreeSet::new();
    known.insert(print(&M::default()));
    let mut edge: Vec<Vec<M::Event>> = vec![Vec::new()];
    for steps in 0..depth {
        let mut next = Vec::new();
        for path in &edge {
            for event in M::EVENTS {
                let mut machine = M::default();
                // These have been walked before, and held.
                path.iter().for_each(|event| drop(machine.happen(*event)));
                match machine.happen(*event) {
                    None => continue,
                    Some(Ok(())) => {}
                    Some(Err(what)) => return Err(format!("{what}\n  by {path:?}, then {event:?}")),
                }
                if known.insert(print(&machine)) {
                    let mut path = path.clone();
                    path.push(*event);
                    next.push(path);
                }
                if known.len() >= most {
                    return Ok(Explored { states: known.len(), depth: steps, closed: false });
                }
            }
        }
        if next.is_empty() {
            return Ok(Explored { states: known.len(), depth: steps, closed: true });
        }
        edge = next;
    }
    Ok(Explored { states: known.len(), depth, closed: false })
}

fn print(machine: &impl Machine) -> [u8; 32] {
    *blake3::hash(machine.looks().as_bytes()).as_bytes()
}
