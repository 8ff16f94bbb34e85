//! What is known of each account's secret.

use super::SecretSource;
use std::collections::BTreeMap;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use turnkeep_base::{AccountId, Secret};

pub(super) struct State {
    pub(super) entries: BTreeMap<AccountId, Entry>,
    /// Raised with each entry made, so that a refresh of an entry that is gone settles nothing.
    pub(super) serial: u64,
}

pub(super) struct Entry {
    /// Nothing where there is none; then the problem says why.
    pub(super) source: Option<SecretSource>,
    pub(super) serial: u64,
    pub(super) secret: Option<Secret>,
    pub(super) problem: Option<String>,
    /// Counts the asks.
    asks: watch::Sender<u64>,
    pub(super) following: Option<Following>,
}

/// A refreshing task, which ends with its entry.
pub(super) struct Following(pub(super) AbortHandle);

impl Drop for Following {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Entry {
    pub(super) fn new(source: Option<SecretSource>, serial: u64) -> Self {
        Entry { source, serial, secret: None, problem: None, asks: watch::Sender::new(0), following: None }
    }

    /// It has this source.
    pub(super) fn is_of(&self, source: Option<&SecretSource>) -> bool {
        match (&self.source, source) {
            (Some(own), Some(source)) => own.is_same(source),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    pub(super) fn ask(&self) {
        self.asks.send_modify(|asks| *asks = asks.wrapping_add(1));
    }

    pub(super) fn asks(&self) -> watch::Receiver<u64> {
        self.asks.subscribe()
    }

    /// Takes what was found, and tells whether the secret is another. What was not found leaves the one there is.
    pub(super) fn settle(&mut self, fetched: Result<Secret, String>) -> bool {
        match fetched {
            Ok(secret) => {
                self.problem = None;
                let same = self.secret.as_ref().is_some_and(|old| old.expose() == secret.expose());
                if !same {
                    self.secret = Some(secret);
                }
                !same
            }
            Err(why) => {
                self.problem = Some(why);
                false
            }
        }
    }
}
