//! What the agent says in one turn and has not been taken yet. The process's one reader fills it and never waits: a slow
//! client holds up its own turn alone, and one that is too slow loses it.

use super::faults::Failed;
use super::sessions::PromptEnd;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

/// Bytes that may wait for one client.
const MAX_WAITING: usize = 16 << 20;
/// What an item is taken for beside its text.
const ITEM: usize = 64;

/// One thing that the agent says.
#[derive(Debug)]
pub(super) enum Item {
    /// A piece of its answer.
    Text(String),
    /// A piece of its thinking.
    Thought(String),
    /// A line about what it does.
    Note(String),
    /// It does something that is not shown.
    Alive,
    /// The turn's end, and the last item.
    Ended(Result<PromptEnd, Failed>),
}

/// How a turn begins.
#[derive(Debug)]
pub(super) enum First {
    /// With something that the agent says or does, or a whole answer.
    Begun,
    /// With an error, before anything else.
    Failed(Failed),
}

#[derive(Debug, Default)]
struct Inner {
    items: VecDeque<Item>,
    bytes: usize,
    overflowed: bool,
    ended: bool,
    waker: Option<Waker>,
}

/// The mailbox of one turn.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    inner: Mutex<Inner>,
}

impl Mailbox {
    /// Adds an item. After the end nothing is taken.
    pub(super) fn push(&self, item: Item) {
        let waker = {
            let mut inner = self.inner.lock();
            inner.push(item);
            inner.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Takes the next item; `None` after the end.
    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<Item>> {
        let mut inner = self.inner.lock();
        match inner.items.pop_front() {
            Some(item) => {
                inner.bytes = inner.bytes.saturating_sub(size(&item));
                Poll::Ready(Some(item))
            }
            None if inner.overflowed => Poll::Ready(Some(Item::Ended(Err(Failed::TooSlow)))),
            None if inner.ended => Poll::Ready(None),
            None => inner.wait(cx),
        }
    }

    /// Waits for the first item, and takes it only if it is an error.
    pub(super) fn poll_first(&self, cx: &mut Context<'_>) -> Poll<First> {
        let mut inner = self.inner.lock();
        match inner.items.pop_front() {
            None => inner.wait(cx),
            Some(Item::Ended(Err(failed))) => Poll::Ready(First::Failed(failed)),
            Some(item) => {
                inner.items.push_front(item);
                Poll::Ready(First::Begun)
            }
        }
    }

    /// Waits for the end, whatever it is, passing over all else.
    pub(super) fn poll_ended(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.inner.lock();
        inner.items.clear();
        inner.bytes = 0;
        if inner.ended { Poll::Ready(()) } else { inner.wait(cx) }
    }
}

impl Inner {
    fn wait<T>(&mut self, cx: &mut Context<'_>) -> Poll<T> {
        self.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn push(&mut self, item: Item) {
        if self.ended {
            return;
        }
        if matches!(item, Item::Ended(_)) {
            self.ended = true;
            // Something is missing: no end can make it a whole answer.
            if self.overflowed {
                return;
            }
        } else if self.overflowed || self.bytes + size(&item) > MAX_WAITING {
            self.overflowed = true;
            return;
        }
        match (self.items.back_mut(), item) {
            (Some(Item::Alive), Item::Alive) => {}
            (Some(Item::Text(text)), Item::Text(more)) | (Some(Item::Thought(text)), Item::Thought(more)) => {
                self.bytes += more.len();
                text.push_str(&more);
            }
            (_, item) => {
                self.bytes += size(&item);
                self.items.push_back(item);
            }
        }
    }
}

fn size(item: &Item) -> usize {
    ITEM + match item {
        Item::Text(text) | Item::Thought(text) | Item::Note(text) => text.len(),
        Item::Alive | Item::Ended(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(mailbox: &Mailbox) -> Poll<Option<Item>> {
        mailbox.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn pieces_of_one_kind_that_wait_together_become_one() {
        let mailbox = Mailbox::default();
        for item in ["a", "b"] {
            mailbox.push(Item::Text(item.into()));
        }
        mailbox.push(Item::Alive);
        mailbox.push(Item::Alive);
        mailbox.push(Item::Thought("c".into()));
        assert!(matches!(take(&mailbox), Poll::Ready(Some(Item::Text(text))) if text == "ab"));
        assert!(matches!(take(&mailbox), Poll::Ready(Some(Item::Alive))));
        assert!(matches!(take(&mailbox), Poll::Ready(Some(Item::Thought(_)))));
        assert!(take(&mailbox).is_pending());
        assert_eq!(mailbox.inner.lock().bytes, 0);
    }

    #[test]
    fn a_client_that_is_too_slow_gets_what_waited_and_then_a_fault() {
        let mailbox = Mailbox::default();
        let piece = "x".repeat(1 << 20);
        for _ in 0..40 {
            mailbox.push(Item::Text(piece.clone()));
            mailbox.push(Item::Alive);
        }
        mailbox.push(Item::Ended(Ok(PromptEnd { stop_reason: "end_turn".into(), usage: serde_json::Value::Null })));
        let mut bytes = 0;
        loop {
            match take(&mailbox) {
                Poll::Ready(Some(Item::Text(text))) => bytes += text.len(),
                Poll::Ready(Some(Item::Alive)) => {}
                Poll::Ready(Some(Item::Ended(Err(Failed::TooSlow)))) => break,
                other @ (Poll::Ready(_) | Poll::Pending) => panic!("{other:?}"),
            }
        }
        assert!((15 << 20..=MAX_WAITING).contains(&bytes), "{bytes}");
    }

    #[test]
    fn only_an_error_that_comes_first_is_a_refusal() {
        let cx = &mut Context::from_waker(Waker::noop());
        let mailbox = Mailbox::default();
        assert!(mailbox.poll_first(cx).is_pending());
        mailbox.push(Item::Alive);
        mailbox.push(Item::Ended(Err(Failed::TooSlow)));
        assert!(matches!(mailbox.poll_first(cx), Poll::Ready(First::Begun)));
        let mailbox = Mailbox::default();
        mailbox.push(Item::Ended(Err(Failed::TooSlow)));
        assert!(matches!(mailbox.poll_first(cx), Poll::Ready(First::Failed(_))));
    }
}
