//! The secrets of accounts while the gateway runs: found at start, kept, and refreshed - by a clock for those that a
//! command prints, and at once for those that a provider has rejected. A refresh that fails changes nothing and is
//! shown. It knows no provider and judges no account: whoever watches is told when a secret is another.

mod command;
mod entry;
mod follow;
#[cfg(test)]
mod tests;

use crate::config::SecretRef;
use entry::{Entry, State};
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use turnkeep_base::{AccountId, Secret};

/// Where an account's secret is found.
pub type SecretSource = SecretRef;

/// Is told that an account's secret is another from now on. Must not wait.
pub type OnChange = Arc<dyn Fn(&AccountId, Option<Secret>) + Send + Sync>;

/// The bounds of refreshing.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// How long a command may run.
    run: Duration,
    /// Between two refreshes of one account that were asked for.
    between_asked: Duration,
    /// After a refresh that failed, where the source's own interval is not shorter.
    after_failure: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            run: Duration::from_secs(30),
            between_asked: Duration::from_secs(30),
            after_failure: Duration::from_secs(60),
        }
    }
}

/// Commands that run at once.
const AT_ONCE: usize = 8;

/// Fetches a secret once, wherever it is; a command may run for 30 seconds.
///
/// # Errors
/// In words, without a secret.
pub async fn fetch(source: &SecretSource) -> Result<Secret, String> {
    fetch_within(source, Bounds::default().run, None).await
}

async fn fetch_within(source: &SecretSource, run: Duration, known: Option<&Secret>) -> Result<Secret, String> {
    match source {
        SecretSource::Env(_) | SecretSource::Plain(_) => source.resolve(),
        SecretSource::File(_) => {
            let source = source.clone();
            let read = tokio::task::spawn_blocking(move || source.resolve()).await;
            read.map_err(|error| format!("reading did not end: {error}"))?
        }
        SecretSource::Command { words, .. } => {
            let text = command::output(words, run, known).await.map_err(|why| format!("{source} {why}"))?;
            source.one_line(&text)
        }
    }
}

/// Holds the current secret of each account. Dropping it ends every refresh, and kills a command that runs.
pub struct Keeper {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    bounds: Bounds,
    commands: Semaphore,
}

impl Default for Keeper {
    fn default() -> Self {
        Keeper::new()
    }
}

impl Keeper {
    /// Without any account.
    pub fn new() -> Self {
        Keeper::within(Bounds::default())
    }

    fn within(bounds: Bounds) -> Self {
        let state = Mutex::new(State { entries: BTreeMap::new(), serial: 0, on_change: None });
        Keeper { shared: Arc::new(Shared { state, bounds, commands: Semaphore::new(AT_ONCE) }) }
    }

    /// Takes these accounts in place of those it has, and finds the secrets of new ones, of ones whose source is
    /// another, and of all that need no command. When it returns, [`Keeper::current`] and [`Keeper::problems`] tell
    /// what was found; the watcher is not told of it. A source that is the same keeps its secret if it cannot be found
    /// again; another source does not. Of two entries with one id the first counts. To be called by one at a time.
    pub async fn replace(&self, sources: Vec<(AccountId, SecretSource)>) {
        let mut wanted = BTreeMap::new();
        for (id, source) in sources {
            wanted.entry(id).or_insert(source);
        }
        let fetches = wanted.into_iter().map(|(id, source)| async move {
            let known = self.shared.state().same(&id, &source);
            let fetched = match (&source, known) {
                (SecretSource::Command { .. }, true) => None,
                (SecretSource::Command { .. }, false)
                | (SecretSource::Env(_) | SecretSource::File(_) | SecretSource::Plain(_), _) => {
                    Some(self.shared.fetch(&source, None).await)
                }
            };
            (id, source, fetched)
        });
        let fetched = join_all(fetches).await;
        let mut state = self.shared.state();
        let mut old = std::mem::take(&mut state.entries);
        for (id, source, fetched) in fetched {
            let same = old.remove(&id).filter(|entry| entry.source.is_same(&source));
            let mut entry = match same {
                Some(entry) => entry,
                None => {
                    state.serial += 1;
                    Entry::new(source, state.serial)
                }
            };
            if let Some(fetched) = fetched {
                entry.settle(fetched);
            }
            if state.on_change.is_some() {
                self.shared.follow(&id, &mut entry);
            }
            state.entries.insert(id, entry);
        }
    }

    /// Starts refreshing; `on_change` is told of every secret that is another from now on.
    pub fn watch(&self, on_change: OnChange) {
        let mut state = self.shared.state();
        state.on_change = Some(on_change);
        for (id, entry) in &mut state.entries {
            self.shared.follow(id, entry);
        }
    }

    /// The account's secret, if there is one.
    pub fn current(&self, id: &AccountId) -> Option<Secret> {
        self.shared.state().entries.get(id).and_then(|entry| entry.secret.clone())
    }

    /// Asks for a refresh now, because a provider has rejected the secret; does not wait. Asks while one runs are
    /// answered by it, and at most one in 30 seconds is run for an account: a later ask waits for its time. Nothing
    /// happens before [`Keeper::watch`], and with a source that cannot change while the process runs.
    pub fn refresh_now(&self, id: &AccountId) {
        if let Some(entry) = self.shared.state().entries.get(id) {
            entry.ask();
        }
    }

    /// The accounts whose last refresh failed, and why, without a secret. One with an older secret serves on with it.
    pub fn problems(&self) -> Vec<(AccountId, String)> {
        let state = self.shared.state();
        let problem = |(id, entry): (&AccountId, &Entry)| Some((id.clone(), entry.problem.clone()?));
        state.entries.iter().filter_map(problem).collect()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.shared.state().entries.clear();
    }
}

impl Shared {
    /// Nothing that can panic runs under this lock.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn fetch(&self, source: &SecretSource, known: Option<&Secret>) -> Result<Secret, String> {
        let _turn = match source {
            SecretSource::Command { .. } => self.commands.acquire().await.ok(),
            SecretSource::Env(_) | SecretSource::File(_) | SecretSource::Plain(_) => None,
        };
        fetch_within(source, self.bounds.run, known).await
    }
}
