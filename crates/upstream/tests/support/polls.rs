//! Dropping what is polled after so many of its polls.

use std::future::poll_fn;
use std::task::{Context, Poll};

/// More polls than any turn of these tests takes.
pub const MANY: usize = 500;

/// When a thing is dropped that has had all its polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// With the last of them: nothing has moved since.
    AtOnce,
    /// When it would be polled once more: what it waits for has come, and it does not know.
    Woken,
}

/// Both.
pub const EITHER: [Dropped; 2] = [Dropped::AtOnce, Dropped::Woken];

/// The polls that are left.
pub struct Polls {
    left: usize,
    dropped: Dropped,
}

impl Polls {
    pub fn of(left: usize, dropped: Dropped) -> Polls {
        Polls { left, dropped }
    }

    /// Polls until it is ready; `None`: there are no polls left, and it is to be dropped.
    pub async fn ready<T>(&mut self, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Option<T> {
        poll_fn(|cx| {
            if self.left == 0 {
                return Poll::Ready(None);
            }
            self.left -= 1;
            match poll(cx) {
                Poll::Ready(ready) => Poll::Ready(Some(ready)),
                Poll::Pending if self.left == 0 && self.dropped == Dropped::AtOnce => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }
}
