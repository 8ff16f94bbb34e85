//! Who among the waiting turns gets the next free slot: round robin over callers, first come first served within one.
//! The queue knows no accounts; its owner asks it for an order and says who could be served.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Places that a caller may hold of one upstream, however many callers wait.
const FAIR_PLACES: usize = 8;

/// A waiting turn's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

#[derive(Debug)]
struct Waiter<T> {
    upstream: Arc<str>,
    wants: T,
}

/// One caller's waiting turns.
#[derive(Debug)]
struct Line<T> {
    /// Where the caller stands in the ring.
    turn: u64,
    waiters: BTreeMap<Ticket, Waiter<T>>,
}

/// The places taken of one upstream, by caller.
#[derive(Debug, Default)]
struct Places {
    taken: usize,
    by_caller: BTreeMap<Arc<str>, usize>,
}

/// The waiting turns, bounded per upstream.
#[derive(Debug)]
pub struct Queue<T> {
    places: usize,
    lines: BTreeMap<Arc<str>, Line<T>>,
    /// The callers in the order of their turns. Whoever is served, or begins to wait, goes to the end, so that nobody
    /// waits behind more grants than there are others.
    ring: BTreeSet<(u64, Arc<str>)>,
    callers: BTreeMap<Ticket, Arc<str>>,
    upstreams: BTreeMap<Arc<str>, Places>,
    next: u64,
}

impl<T> Queue<T> {
    /// An empty queue of so many places for each upstream.
    pub fn new(places: usize) -> Self {
        Queue {
            places,
            lines: BTreeMap::new(),
            ring: BTreeSet::new(),
            callers: BTreeMap::new(),
            upstreams: BTreeMap::new(),
            next: 1,
        }
    }

    /// Another number of places; who waits already, waits on.
    pub fn set_places(&mut self, places: usize) {
        self.places = places;
    }

    fn count(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Takes a place for a caller's turn whose first choice is `upstream`. `None` when the upstream's queue is full, or
    /// the caller holds its share of it: at least 8 places, else the queue over the waiting callers.
    pub fn join(&mut self, caller: &str, upstream: &str, wants: T) -> Option<Ticket> {
        if let Some(places) = self.upstreams.get(upstream) {
            let own = places.by_caller.get(caller).copied();
            let callers = places.by_caller.len() + usize::from(own.is_none());
            let share = (self.places / callers.max(1)).max(FAIR_PLACES);
            if places.taken >= self.places || own.unwrap_or(0) >= share {
                return None;
            }
        } else if self.places == 0 {
            return None;
        }
        let ticket = Ticket(self.count());
        let caller = self.lines.get_key_value(caller).map_or_else(|| Arc::from(caller), |(caller, _)| caller.clone());
        let known = self.upstreams.get_key_value(upstream).map(|(upstream, _)| upstream.clone());
        let upstream = known.unwrap_or_else(|| Arc::from(upstream));
        let places = self.upstreams.entry(upstream.clone()).or_default();
        places.taken += 1;
        *places.by_caller.entry(caller.clone()).or_insert(0) += 1;
        self.callers.insert(ticket, caller.clone());
        if !self.lines.contains_key(&caller) {
            self.ring.insert((ticket.0, caller.clone()));
        }
        let line = self.lines.entry(caller).or_insert_with(|| Line { turn: ticket.0, waiters: BTreeMap::new() });
        line.waiters.insert(ticket, Waiter { upstream, wants });
        Some(ticket)
    }

    /// Gives a place up.
    pub fn leave(&mut self, ticket: Ticket) -> Option<T> {
        let caller = self.callers.remove(&ticket)?;
        let line = self.lines.get_mut(&caller)?;
        let waiter = line.waiters.remove(&ticket)?;
        if line.waiters.is_empty() {
            self.ring.remove(&(line.turn, caller.clone()));
            self.lines.remove(&caller);
        }
        if let Some(places) = self.upstreams.get_mut(&waiter.upstream) {
            places.taken -= 1;
            if let Some(own) = places.by_caller.get_mut(&caller) {
                *own -= 1;
                if *own == 0 {
                    places.by_caller.remove(&caller);
                }
            }
            if places.taken == 0 {
                self.upstreams.remove(&waiter.upstream);
            }
        }
        Some(waiter.wants)
    }

    /// Takes out the next waiter that `can_serve` accepts, in order of fairness. A caller none of whose turns can be
    /// served keeps its place in the ring.
    pub fn next_for<R>(&mut self, mut can_serve: impl FnMut(&T) -> Option<R>) -> Option<(T, R)> {
        let mut in_order = self.ring.iter().filter_map(|(_, caller)| self.lines.get_key_value(caller));
        let (caller, ticket, served) = in_order.find_map(|(caller, line)| {
            let mut waiters = line.waiters.iter();
            waiters.find_map(|(ticket, waiter)| can_serve(&waiter.wants).map(|r| (caller.clone(), *ticket, r)))
        })?;
        let end = self.count();
        if let Some(line) = self.lines.get_mut(&caller) {
            self.ring.remove(&(line.turn, caller.clone()));
            line.turn = end;
            self.ring.insert((end, caller));
        }
        self.leave(ticket).map(|wants| (wants, served))
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.callers.len()
    }

    /// Nobody waits.
    pub fn is_empty(&self) -> bool {
        self.callers.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnkeep_base::limit::QUEUE_PLACES;

    fn serve(queue: &mut Queue<&'static str>) -> Option<&'static str> {
        queue.next_for(|_| Some(())).map(|(wants, ())| wants)
    }

    #[test]
    fn a_caller_with_many_turns_does_not_keep_another_waiting_behind_all_of_them() {
        let mut queue = Queue::new(QUEUE_PLACES);
        for wants in ["a1", "a2", "a3"] {
            queue.join("a", "u", wants);
        }
        queue.join("b", "u", "b1");
        let order: Vec<_> = std::iter::from_fn(|| serve(&mut queue)).collect();
        assert_eq!(order, ["a1", "b1", "a2", "a3"]);
    }

    #[test]
    fn callers_that_keep_coming_do_not_push_one_back_that_waits() {
        let mut queue = Queue::new(QUEUE_PLACES);
        queue.join("a", "u", "a1");
        queue.join("a", "u", "a2");
        assert_eq!(serve(&mut queue), Some("a1"));
        for newcomer in ["b", "c", "d"] {
            queue.join(newcomer, "u", "new");
        }
        assert_eq!(serve(&mut queue), Some("a2"), "it waited before the newcomers came");
    }

    #[test]
    fn a_turn_that_cannot_be_served_does_not_block_those_behind_it() {
        let mut queue = Queue::new(QUEUE_PLACES);
        queue.join("a", "u", "no");
        queue.join("a", "u", "yes, later");
        queue.join("b", "u", "yes");
        let mut next = || queue.next_for(|wants| wants.starts_with("yes").then_some(())).map(|(wants, ())| wants);
        assert_eq!((next(), next(), next()), (Some("yes, later"), Some("yes"), None));
        assert_eq!(queue.len(), 1);
    }

    #[test]
    fn places_are_bounded_per_upstream_and_per_caller() {
        let mut queue = Queue::new(QUEUE_PLACES);
        let alone = (0..2 * QUEUE_PLACES).filter(|_| queue.join("a", "u", "x").is_some()).count();
        assert_eq!(alone, QUEUE_PLACES);
        assert!(queue.join("b", "u", "x").is_none());
        assert!(queue.join("b", "other", "x").is_some());
        let mut queue = Queue::new(QUEUE_PLACES);
        queue.join("b", "u", "x");
        let shared = (0..2 * QUEUE_PLACES).filter(|_| queue.join("a", "u", "x").is_some()).count();
        assert_eq!(shared, QUEUE_PLACES / 2);
        queue.set_places(4);
        assert!(queue.join("c", "u", "x").is_none());
    }

    #[test]
    fn a_turn_that_leaves_frees_its_place_and_nothing_is_kept_of_it() {
        let mut queue = Queue::new(1);
        let ticket = queue.join("a", "u", "x").unwrap();
        assert_eq!(queue.join("b", "u", "x"), None);
        assert_eq!(queue.leave(ticket), Some("x"));
        assert_eq!((queue.leave(ticket), queue.is_empty()), (None, true));
        assert!(queue.lines.is_empty() && queue.ring.is_empty() && queue.upstreams.is_empty());
        assert!(queue.join("b", "u", "x").is_some());
    }
}
