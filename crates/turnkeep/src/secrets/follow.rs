//! One account's refreshing: by its clock, and when asked. One task does it, so an account's refreshes never overlap.

use super::entry::{Entry, Following};
use super::running::Running;
use super::{SecretSource, Shared};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use turnkeep_base::{AccountId, Secret};

impl Shared {
    /// Starts an entry's task, if its source can ever give another secret and it has none yet. `first` is a run that has
    /// begun, whose answer is taken as a refresh's.
    pub(super) fn follow(self: &Arc<Self>, id: &AccountId, entry: &mut Entry, first: Option<Running>) {
        let Some(source) = &entry.source else { return };
        let every = match source {
            SecretSource::Command { every, .. } => Some(*every),
            SecretSource::File(_) => None,
            SecretSource::Env(_) | SecretSource::Plain(_) | SecretSource::NotNeeded => return,
        };
        if entry.following.is_some() {
            // Its own task fetches it, so that two answers never come in the wrong order.
            if first.is_some() {
                entry.ask();
            }
            return;
        }
        let task = Task {
            shared: self.clone(),
            id: id.clone(),
            serial: entry.serial,
            source: source.clone(),
            every,
            asks: entry.asks(),
            asked_at: None,
        };
        let due = self.due(every, entry.problem.is_none());
        entry.following = Some(Following(tokio::spawn(task.run(due, first)).abort_handle()));
    }

    /// When the next refresh is due.
    fn due(&self, every: Option<Duration>, well: bool) -> Option<Instant> {
        let every = every?;
        Some(Instant::now() + if well { every } else { every.min(self.bounds.after_failure) })
    }
}

struct Task {
    shared: Arc<Shared>,
    id: AccountId,
    serial: u64,
    source: SecretSource,
    every: Option<Duration>,
    asks: watch::Receiver<u64>,
    /// When the last refresh that was asked for began.
    asked_at: Option<Instant>,
}

impl Task {
    async fn run(mut self, mut due: Option<Instant>, first: Option<Running>) {
        if let Some(mut first) = first {
            let answer = first.answer().await;
            let Some(well) = self.settle(answer, false) else { return };
            due = self.shared.due(self.every, well);
        }
        loop {
            let between = self.shared.bounds.between_asked;
            let not_before = self.asked_at.map(|at| at + between);
            let asks = &mut self.asks;
            let asked = async {
                let open = asks.changed().await.is_ok();
                sleep_maybe(not_before).await;
                open
            };
            let by_ask = tokio::select! {
                () = sleep_until_some(due) => false,
                open = asked => match open {
                    true => true,
                    false => return,
                },
            };
            if by_ask {
                self.asked_at = Some(Instant::now());
            }
            let fetched = self.shared.fetch(&self.source).await;
            let Some(well) = self.settle(fetched, by_ask) else { return };
            due = self.shared.due(self.every, well);
        }
    }

    /// Keeps what was fetched and tells of it. Whether it went well; nothing when the entry is gone.
    fn settle(&mut self, fetched: Result<Secret, String>, by_ask: bool) -> Option<bool> {
        // Until the watcher is told no other source takes this one's place: its secret would be told before this one.
        let _order = self.shared.telling();
        let failed = fetched.as_ref().err().cloned();
        let (changed, secret) = {
            let mut state = self.shared.state();
            let entry = state.entries.get_mut(&self.id).filter(|entry| entry.serial == self.serial)?;
            // Whoever asked until now is answered.
            self.asks.mark_unchanged();
            (entry.settle(fetched), entry.secret.clone())
        };
        let id = &self.id;
        if let Some(why) = &failed {
            tracing::warn!(account = %id, %why, "a secret could not be refreshed; the one there is stays");
        }
        if changed {
            tracing::info!(account = %id, "a secret was refreshed and is another now");
        }
        if changed || by_ask && failed.is_none() {
            (self.shared.on_change)(id, secret);
        }
        Some(failed.is_none())
    }
}

/// Until then; at once where there is no such time.
async fn sleep_maybe(until: Option<Instant>) {
    if let Some(until) = until {
        sleep_until(until).await;
    }
}

/// Until then; for ever where there is no such time.
async fn sleep_until_some(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}
