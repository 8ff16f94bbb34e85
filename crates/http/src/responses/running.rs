//! What a response that is made in the background has said so far, for those who follow it.

use bytes::Bytes;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use turnkeep_dialect::json::Object;
use turnkeep_wire::sse;

/// Bytes of one response's events that are kept to be followed.
const EVENT_BYTES: usize = 16 << 20;
/// Events of one response.
const EVENTS: usize = 100_000;
/// How long a cancelled turn is waited for.
const CANCEL_WAIT: Duration = Duration::from_secs(6);

#[derive(Debug, Default)]
struct Live {
    /// With their numbers, in order.
    events: Vec<(u64, Bytes)>,
    bytes: usize,
    /// The events are not all here.
    lost: bool,
    /// The last event has been told.
    told: bool,
    /// Nobody adds events any more.
    drained: bool,
    /// What the turn came to is stored, as far as it could be.
    closed: bool,
    ended: bool,
    cancelled: bool,
}

impl Live {
    /// Adds an event, the last one or not; answers the bytes of all.
    fn push(&mut self, number: u64, frame: Bytes, last: bool) -> usize {
        if self.ended || self.told {
            return self.bytes;
        }
        self.told = last;
        if self.lost || self.bytes + frame.len() > EVENT_BYTES || self.events.len() >= EVENTS {
            (self.events, self.bytes, self.lost) = (Vec::new(), 0, true);
            return 0;
        }
        self.bytes += frame.len();
        self.events.push((number, frame));
        self.bytes
    }
}

/// A response that is made in the background.
#[derive(Debug)]
pub(super) struct Running {
    live: Mutex<Live>,
    changed: watch::Sender<u64>,
}

/// What a follower finds.
pub(super) enum Next {
    Events(Vec<Bytes>),
    Waiting,
    Ended,
    Lost,
}

impl Running {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Running { live: Mutex::default(), changed: watch::Sender::new(0) })
    }

    fn change<R>(&self, with: impl FnOnce(&mut Live) -> R) -> R {
        let result = with(&mut self.live.lock());
        self.changed.send_modify(|times| *times = times.wrapping_add(1));
        result
    }

    /// Adds an event, after which nothing comes if it is the `last`; answers the bytes of all.
    pub(super) fn add(&self, number: u64, frame: Bytes, last: bool) -> usize {
        self.change(|live| live.push(number, frame, last))
    }

    /// Its events find no room any more.
    pub(super) fn lose_events(&self) {
        self.change(|live| (live.events, live.bytes, live.lost) = (Vec::new(), 0, true));
    }

    /// It ends without an answer; this is its response object.
    pub(super) fn fail(&self, response: &str) {
        self.change(|live| {
            let number = live.events.last().map_or(0, |(number, _)| number + 1);
            let mut data = Vec::new();
            let mut object = Object::open(&mut data);
            object.string("type", "response.failed");
            object.number("sequence_number", number);
            object.raw("response", response);
            drop(object);
            let mut frame = Vec::new();
            sse::write(&mut frame, Some("response.failed"), &data);
            live.push(number, frame.into(), true);
        });
    }

    /// Nothing more comes.
    pub(super) fn end(&self) {
        self.change(|live| live.ended = true);
    }

    /// Nobody adds events any more. It ends when it is closed, too, or at once with its last event.
    pub(super) fn drained(&self) {
        self.change(|live| {
            live.drained = true;
            live.ended |= live.closed || live.told;
        });
    }

    /// What the turn came to is stored. It ends when its events have been taken, too.
    pub(super) fn closed(&self) {
        self.change(|live| {
            live.closed = true;
            live.ended |= live.drained;
        });
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.live.lock().cancelled
    }

    /// Its caller wants no answer any more.
    pub(super) fn cancel(&self) {
        self.change(|live| live.cancelled = true);
    }

    /// Something of the answer has come.
    fn has_begun(&self) -> bool {
        let live = self.live.lock();
        live.lost || !live.events.is_empty()
    }

    pub(super) fn status(&self) -> &'static str {
        if self.has_begun() { "in_progress" } else { "queued" }
    }

    /// What comes after the events that a follower has, beyond those up to `after`.
    pub(super) fn next(&self, seen: &mut usize, after: Option<u64>) -> Next {
        let live = self.live.lock();
        if live.lost {
            return Next::Lost;
        }
        let new = live.events.get(*seen..).unwrap_or_default();
        *seen = live.events.len();
        let wanted = new.iter().filter(|(number, _)| after.is_none_or(|after| *number > after));
        let wanted: Vec<Bytes> = wanted.map(|(_, frame)| frame.clone()).collect();
        match (wanted.is_empty(), live.ended) {
            (false, _) => Next::Events(wanted),
            (true, false) => Next::Waiting,
            (true, true) => Next::Ended,
        }
    }

    /// All of its events can be followed.
    pub(super) fn can_be_followed(&self) -> bool {
        !self.live.lock().lost
    }

    /// Tells of every change.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Waits until it has ended, for as long as a cancelled turn may take.
    pub(super) async fn ends(&self) {
        let mut changed = self.changed.subscribe();
        let ended = changed.wait_for(|_| self.live.lock().ended);
        let _late = tokio::time::timeout(CANCEL_WAIT, ended).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::responses::outline::Outcome;
    use crate::responses::outline::tests::outline;

    fn texts(next: Next) -> Vec<String> {
        match next {
            Next::Events(events) => events.iter().map(|bytes| String::from_utf8(bytes.to_vec()).unwrap()).collect(),
            Next::Waiting => vec!["waiting".into()],
            Next::Ended => vec!["ended".into()],
            Next::Lost => vec!["lost".into()],
        }
    }

    #[test]
    fn a_follower_gets_what_comes_after_a_number_and_then_what_is_new() {
        let running = Running::new();
        for number in 0..3 {
            running.add(number, Bytes::from(number.to_string()), false);
        }
        let mut seen = 0;
        assert_eq!(texts(running.next(&mut seen, Some(0))), ["1", "2"]);
        assert_eq!(texts(running.next(&mut seen, Some(0))), ["waiting"]);
        running.add(3, Bytes::from_static(b"3"), false);
        running.end();
        assert_eq!(texts(running.next(&mut seen, Some(0))), ["3"]);
        assert_eq!(texts(running.next(&mut seen, Some(0))), ["ended"]);
        assert_eq!(texts(running.next(&mut 0, Some(9))), ["ended"]);
    }

    #[test]
    fn events_beyond_the_bound_are_not_kept_and_nobody_takes_the_rest_for_all() {
        let running = Running::new();
        running.add(0, Bytes::from_static(b"x"), false);
        assert_eq!(running.add(1, Bytes::from(vec![0; EVENT_BYTES]), false), 0);
        running.add(2, Bytes::from_static(b"y"), false);
        assert_eq!(texts(running.next(&mut 0, None)), ["lost"]);
        assert!(!running.can_be_followed() && running.status() == "in_progress");
    }

    #[test]
    fn what_fails_ends_with_the_next_number() {
        let running = Running::new();
        running.add(4, Bytes::from_static(b"x"), false);
        running.fail(&outline().ended(&Outcome::Failed { code: "c", message: "why".into() }));
        let told = texts(running.next(&mut 1, None)).remove(0);
        assert!(told.starts_with("event: response.failed\n") && told.contains(r#""sequence_number":5"#), "{told}");
        assert!(told.contains(r#""error":{"code":"c","message":"why"}"#), "{told}");
        assert_eq!(
            told.matches('\n').count(),
            3,
            "one line of data, whatever the request had between its values: {told}"
        );
    }

    #[test]
    fn nothing_follows_the_last_event_whoever_tells_it() {
        let running = Running::new();
        running.add(4, Bytes::from_static(b"x"), false);
        running.fail("{}");
        running.add(5, Bytes::from_static(b"late"), false);
        let mut seen = 1;
        assert!(texts(running.next(&mut seen, None))[0].starts_with("event: response.failed\n"));
        assert_eq!(texts(running.next(&mut seen, None)), ["waiting"]);
        running.end();
        assert_eq!(texts(running.next(&mut seen, None)), ["ended"]);
        let complete = Running::new();
        complete.add(0, Bytes::from_static(b"completed"), true);
        complete.fail("{}");
        assert_eq!(texts(complete.next(&mut 0, None)), ["completed"]);
    }

    #[test]
    fn it_ends_when_it_is_closed_and_its_events_are_taken_in_either_order_or_with_its_last_event() {
        let ended = |running: &Running| running.live.lock().ended;
        for closed_first in [true, false] {
            let running = Running::new();
            if closed_first {
                running.closed()
            } else {
                running.drained()
            }
            assert!(!ended(&running), "{closed_first}");
            if closed_first {
                running.drained()
            } else {
                running.closed()
            }
            assert!(ended(&running), "{closed_first}");
        }
        let running = Running::new();
        running.add(0, Bytes::from_static(b"x"), true);
        running.drained();
        assert!(ended(&running), "it need not wait for its closing");
    }
}
