//! The places of fetches: so many at once, and of one caller no more than half of them, so that nobody's pictures keep all
//! others waiting.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// The places.
pub(super) struct Places {
    all: Semaphore,
    /// The most of one caller.
    share: usize,
    /// Of those who hold a place or wait for one; others are let go of when the next comes.
    callers: Mutex<BTreeMap<Box<str>, Arc<Semaphore>>>,
}

/// A place that is held until this is dropped.
pub(super) struct Place<'p> {
    _all: SemaphorePermit<'p>,
    _own: OwnedSemaphorePermit,
}

impl Places {
    /// So many, but at least 1.
    pub(super) fn new(at_once: usize) -> Places {
        let at_once = at_once.clamp(1, Semaphore::MAX_PERMITS);
        Places { all: Semaphore::new(at_once), share: at_once.div_ceil(2), callers: Mutex::default() }
    }

    /// Waits for one; `None` is never given as long as the places exist. A caller's own share comes first: who waits for
    /// it stands in nobody else's way.
    pub(super) async fn take(&self, caller: &str) -> Option<Place<'_>> {
        let own = self.of(caller).acquire_owned().await.ok()?;
        let all = self.all.acquire().await.ok()?;
        Some(Place { _all: all, _own: own })
    }

    fn of(&self, caller: &str) -> Arc<Semaphore> {
        let mut callers = self.callers.lock();
        callers.retain(|_, own| Arc::strong_count(own) > 1);
        match callers.get(caller) {
            Some(own) => own.clone(),
            None => {
                let own = Arc::new(Semaphore::new(self.share));
                callers.insert(caller.into(), own.clone());
                own
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn one_caller_has_half_of_the_places_and_the_others_the_rest() {
        let places = Places::new(4);
        let take = |caller| places.take(caller).now_or_never().flatten();
        let (first, second) = (take("greedy").unwrap(), take("greedy").unwrap());
        assert!(take("greedy").is_none());
        let others = (take("other").unwrap(), take("another").unwrap());
        assert!(take("third").is_none());
        drop(others);
        // There is room, and not for this one.
        assert!(take("greedy").is_none() && take("third").is_some());
        drop(first);
        assert!(take("greedy").is_some());
        drop(second);
    }

    #[test]
    fn who_waits_for_its_own_share_keeps_nobody_else_from_a_place() {
        let places = Places::new(2);
        let held = places.take("greedy").now_or_never().flatten().unwrap();
        let mut waiting = Box::pin(places.take("greedy"));
        assert!(waiting.as_mut().now_or_never().is_none());
        assert!(places.take("other").now_or_never().flatten().is_some());
        drop(held);
        assert!(waiting.now_or_never().flatten().is_some());
    }

    #[test]
    fn a_single_place_is_anybodys_and_callers_who_are_done_are_forgotten() {
        let places = Places::new(0);
        for caller in ["a", "b", "c"] {
            assert!(places.take(caller).now_or_never().flatten().is_some());
        }
        assert_eq!(places.callers.lock().len(), 1);
    }
}
