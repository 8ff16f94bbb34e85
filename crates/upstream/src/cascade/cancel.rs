//! What stands behind a turn from its send to its final step: dropped before, it has the server end the turn, and the
//! conversation with it, as no one may go on in what was left half way.

use super::link::{CANCEL_WAIT, Link};
use std::fmt;
use tokio::runtime::Handle;

/// A turn that may be under way at the server.
pub(super) struct Guard {
    /// `None`: the turn is over.
    armed: Option<Link>,
    handle: String,
    position: u64,
}

impl fmt::Debug for Guard {
    /// Without the conversation's name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("armed", &self.armed.is_some()).finish_non_exhaustive()
    }
}

impl Guard {
    pub(super) fn new(link: Link, handle: &str, position: u64) -> Self {
        Guard { armed: Some(link), handle: handle.to_owned(), position }
    }

    /// Stands behind the same turn in another place.
    pub(super) fn take(&mut self) -> Guard {
        Guard { armed: self.armed.take(), handle: self.handle.clone(), position: self.position }
    }

    /// The turn is over, or never began, and the conversation goes on.
    pub(super) fn disarm(&mut self) {
        self.armed = None;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let Some(link) = self.armed.take() else { return };
        let upstream = link.links.name().clone();
        // Nobody waits for it, so there may be only so many, and each only for so long.
        let (Ok(permit), Ok(runtime)) = (link.links.cancels.clone().try_acquire_owned(), Handle::try_current()) else {
            tracing::warn!(%upstream, "a turn is not cancelled: too many are being cancelled already");
            return;
        };
        let (handle, position) = (std::mem::take(&mut self.handle), self.position);
        runtime.spawn(async move {
            let _permit = permit;
            match tokio::time::timeout(CANCEL_WAIT, link.close(handle, position)).await {
                Ok(Ok(())) => {}
                Ok(Err(fault)) => {
                    link.heard(&fault);
                    tracing::debug!(%upstream, %fault, "a turn could not be cancelled");
                }
                Err(_) => tracing::debug!(%upstream, "a call to cancel a turn took longer than 5 s"),
            }
        });
    }
}
