//! A turn that the agent has been given. Let go of before its end, it is cancelled there.

use super::directories::Directories;
use super::mailbox::Mailbox;
use super::process::Hold;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// A conversation at the agent: a session in a process, and its working directory.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) hold: Hold,
    pub(super) directories: Arc<Directories>,
    pub(super) directory: String,
    pub(super) session: Arc<str>,
}

impl Place {
    /// Nobody goes on with it.
    pub(super) fn give_up(&self) {
        self.hold.peer().shared.close(&self.session);
        self.directories.remove(&self.directory);
    }
}

/// A session in which the turn has not begun. Let go of, a new one is given up: nobody else knows of it.
pub(super) struct Unbegun {
    place: Place,
    given_up: bool,
}

impl Unbegun {
    /// A session that was made for this turn.
    pub(super) fn fresh(place: Place) -> Self {
        Unbegun { place, given_up: true }
    }

    /// One that goes on, with this turn or another.
    pub(super) fn goes_on(place: Place) -> Self {
        Unbegun { place, given_up: false }
    }

    /// Where it is.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// The turn begins in it.
    pub(super) fn begins(mut self) -> Place {
        self.given_up = false;
        self.place.clone()
    }
}

impl Drop for Unbegun {
    fn drop(&mut self) {
        if self.given_up {
            self.place.give_up();
        }
    }
}

/// A turn under way.
pub(super) struct Turn {
    pub(super) place: Place,
    pub(super) mailbox: Arc<Mailbox>,
    id: u64,
    cancel_within: Duration,
    /// The agent has answered, or nothing more comes from it.
    over: bool,
}

impl Turn {
    pub(super) fn new(place: Place, (id, mailbox): (u64, Arc<Mailbox>), cancel_within: Duration) -> Self {
        Turn { place, mailbox, id, cancel_within, over: false }
    }

    /// The agent has answered, or nothing more comes from it: there is nothing to cancel.
    pub(super) fn over(&mut self) {
        self.over = true;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let Turn { place, mailbox, id, cancel_within, .. } = self;
        let shared = &place.hold.peer().shared;
        if shared.broken().is_some() {
            place.directories.remove(&place.directory);
            return;
        }
        let told = shared.cancel(&place.session, *id);
        let Ok(runtime) = Handle::try_current() else {
            place.directories.remove(&place.directory);
            return;
        };
        let (place, mailbox, within) = (place.clone(), mailbox.clone(), *cancel_within);
        // New turns wait until this is confirmed, or given up.
        let cancelling = shared.cancellation();
        runtime.spawn(async move {
            let confirmed = told && tokio::time::timeout(within, poll_fn(|cx| mailbox.poll_ended(cx))).await.is_ok();
            if confirmed {
                place.give_up();
            } else {
                tracing::warn!(
                    process = %place.hold.running.process.name(),
                    "a cancelled turn was not confirmed within {} ms: its process gets no new turns",
                    within.as_millis()
                );
                place.hold.retire();
                place.directories.remove(&place.directory);
            }
            drop(cancelling);
        });
    }
}
