//! Who among the waiting turns gets the next free slot: round robin over callers, first come first served within one.
//! The queue knows no accounts; its owner asks it for an order and says who could be served.

use std::collections::BTreeMap;
use turnkeep_base::limit::QUEUE_PLACES;

/// A waiting turn's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

#[derive(Debug)]
struct Waiter<T> {
    ticket: Ticket,
    caller: String,
    upstream: String,
    wants: T,
}

/// The waiting turns, bounded per upstream.
#[derive(Debug)]
pub struct Queue<T> {
    waiters: Vec<Waiter<T>>,
    /// When each caller was last served; callers without waiters are forgotten.
    served: BTreeMap<String, u64>,
    next: u64,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Queue { waiters: Vec::new(), served: BTreeMap::new(), next: 1 }
    }
}

impl<T> Queue<T> {
    /// Takes a place for a caller's turn whose first choice is `upstream`. `None` when the upstream's queue is full, or
    /// the caller holds its share of it: at least 8 places, else the queue over the waiting callers.
    pub fn join(&mut self, caller: &str, upstream: &str, wants: T) -> Option<Ticket> {
        let same = |waiter: &&Waiter<T>| waiter.upstream == upstream;
        let waiting = self.waiters.iter().filter(same).count();
        let own = self.waiters.iter().filter(same).filter(|waiter| waiter.caller == caller).count();
        let mut callers: Vec<&str> = self.waiters.iter().filter(same).map(|waiter| waiter.caller.as_str()).collect();
        callers.push(caller);
        callers.sort_unstable();
        callers.dedup();
        let share = (QUEUE_PLACES / callers.len()).max(8);
        if waiting >= QUEUE_PLACES || own >= share {
            return None;
        }
        let ticket = Ticket(self.next);
        self.next += 1;
        self.waiters.push(Waiter { ticket, caller: caller.to_owned(), upstream: upstream.to_owned(), wants });
        Some(ticket)
    }

    /// Gives a place up.
    pub fn leave(&mut self, ticket: Ticket) -> Option<T> {
        let at = self.waiters.iter().position(|waiter| waiter.ticket == ticket)?;
        let waiter = self.waiters.remove(at);
        self.forget();
        Some(waiter.wants)
    }

    /// Takes out the next waiter that `can_serve` accepts, in order of fairness.
    pub fn next_for<R>(&mut self, mut can_serve: impl FnMut(&T) -> Option<R>) -> Option<(T, R)> {
        let mut order: Vec<usize> = (0..self.waiters.len()).collect();
        order.sort_by_key(|&at| {
            let waiter = &self.waiters[at];
            (self.served.get(&waiter.caller).copied().unwrap_or(0), waiter.ticket)
        });
        let (at, served) = order.into_iter().find_map(|at| can_serve(&self.waiters[at].wants).map(|r| (at, r)))?;
        let waiter = self.waiters.remove(at);
        self.served.insert(waiter.caller, self.next);
        self.next += 1;
        self.forget();
        Some((waiter.wants, served))
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiters.len()
    }

    /// Nobody waits.
    pub fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    fn forget(&mut self) {
        let waiters = &self.waiters;
        self.served.retain(|caller, _| waiters.iter().any(|waiter| &waiter.caller == caller));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serve(queue: &mut Queue<&'static str>) -> Option<&'static str> {
        queue.next_for(|_| Some(())).map(|(wants, ())| wants)
    }

    #[test]
    fn a_caller_with_many_turns_does_not_keep_another_waiting_behind_all_of_them() {
        let mut queue = Queue::default();
        for wants in ["a1", "a2", "a3"] {
            queue.join("a", "u", wants);
        }
        queue.join("b", "u", "b1");
        let order: Vec<_> = std::iter::from_fn(|| serve(&mut queue)).collect();
        assert_eq!(order, ["a1", "b1", "a2", "a3"]);
    }

    #[test]
    fn a_turn_that_cannot_be_served_does_not_block_those_behind_it() {
        let mut queue = Queue::default();
        queue.join("a", "u", "no");
        queue.join("b", "u", "yes");
        let served = queue.next_for(|wants| (*wants == "yes").then_some(()));
        assert_eq!(served.map(|(wants, ())| wants), Some("yes"));
        assert_eq!(queue.len(), 1);
    }

    #[test]
    fn places_are_bounded_per_upstream_and_per_caller() {
        let mut queue = Queue::default();
        let alone = (0..2 * QUEUE_PLACES).filter(|_| queue.join("a", "u", "x").is_some()).count();
        assert_eq!(alone, QUEUE_PLACES);
        assert!(queue.join("b", "u", "x").is_none());
        assert!(queue.join("b", "other", "x").is_some());
        let mut queue = Queue::default();
        queue.join("b", "u", "x");
        let shared = (0..2 * QUEUE_PLACES).filter(|_| queue.join("a", "u", "x").is_some()).count();
        assert_eq!(shared, QUEUE_PLACES / 2);
    }

    #[test]
    fn a_turn_that_leaves_frees_its_place() {
        let mut queue = Queue::default();
        let ticket = queue.join("a", "u", "x").unwrap();
        assert_eq!(queue.leave(ticket), Some("x"));
        assert_eq!((queue.leave(ticket), queue.is_empty()), (None, true));
    }
}
