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
    ended: bool,
    cancelled: bool,
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

    /// Adds an event; answers the bytes of all.
    pub(super) fn add(&self, number: u64, frame: Bytes) -> usize {
        self.change(|live| {
            if live.ended {
                return live.bytes;
            }
            if live.lost || live.bytes + frame.len() > EVENT_BYTES || live.events.len() >= EVENTS {
                (live.events, live.bytes, live.lost) = (Vec::new(), 0, true);
                return 0;
            }
            live.bytes += frame.len();
            live.events.push((number, frame));
            live.bytes
        })
    }

    /// Its events find no room any more.
    pub(super) fn lose_events(&self) {
        self.change(|live| (live.events, live.bytes, live.lost) = (Vec::new(), 0, true));
    }

    /// It ends without an answer; this is its response object.
    pub(super) fn fail(&self, response: &str) {
        let number = self.live.lock().events.last().map_or(0, |(number, _)| number + 1);
        let mut data = Vec::new();
        let mut object = Object::open(&mut data);
        object.string("type", "response.failed");
        object.number("sequence_number", number);
        object.raw("response", response);
        drop(object);
        let mut frame = Vec::new();
        sse::write(&mut frame, Some("response.failed"), &data);
        self.add(number, frame.into());
    }

    /// Nothing more comes.
    pub(super) fn end(&self) {
        self.change(|live| live.ended = true);
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
            running.add(number, Bytes::from(number.to_string()));
        }
        let mut seen = 0;
        assert_eq!(texts(running.next(&mut seen, Some(0))), ["1", "2"]);
        assert_eq!(texts(running.next(&mut seen, Some(0))), ["waiting"]);
        running.add(3, Bytes::from_static(b"3"));
        running.end();
        assert_eq!(texts(running.next(&mut seen, Some(0))), ["3"]);
        assert_eq!(texts(running.next(&mut seen, Some(0))), ["ended"]);
        assert_eq!(texts(running.next(&mut 0, Some(9))), ["ended"]);
    }

    #[test]
    fn events_beyond_the_bound_are_not_kept_and_nobody_takes_the_rest_for_all() {
        let running = Running::new();
        running.add(0, Bytes::from_static(b"x"));
        assert_eq!(running.add(1, Bytes::from(vec![0; EVENT_BYTES])), 0);
        running.add(2, Bytes::from_static(b"y"));
        assert_eq!(texts(running.next(&mut 0, None)), ["lost"]);
        assert!(!running.can_be_followed() && running.status() == "in_progress");
    }

    #[test]
    fn what_fails_ends_with_the_next_number() {
        let running = Running::new();
        running.add(4, Bytes::from_static(b"x"));
        running.fail(&outline().ended(&Outcome::Failed { code: "c", message: "why".into() }));
        let told = texts(running.next(&mut 1, None)).remove(0);
        assert!(told.starts_with("event: response.failed\n") && told.contains(r#""sequence_number":5"#), "{told}");
        assert!(told.contains(r#""error":{"code":"c","message":"why"}"#), "{told}");
    }
}
