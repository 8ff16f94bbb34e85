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

/// Is told an account's secret.
type OnChange = Arc<dyn Fn(&AccountId, Option<Secret>) + Send + Sync>;

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
const AT_ONCE: usize = 32;

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
    on_change: OnChange,
}

/// An account and where its secret is; or why there is none.
pub type Sourced = (AccountId, Result<SecretSource, String>);

/// What was found for a set of accounts, not yet kept.
pub struct Found(Vec<FoundOne>);

struct FoundOne {
    id: AccountId,
    source: Option<SecretSource>,
    /// Nothing where a command has run for the same source already.
    fetched: Option<Result<Secret, String>>,
}

impl Keeper {
    /// Without any account. `on_change` is told of every secret that a refresh has found to be another, and once more
    /// of the same one where a refresh was asked for, so that nobody works on with an older one. It must not wait.
    pub fn new(on_change: impl Fn(&AccountId, Option<Secret>) + Send + Sync + 'static) -> Arc<Self> {
        Keeper::within(Bounds::default(), Arc::new(on_change))
    }

    fn within(bounds: Bounds, on_change: OnChange) -> Arc<Self> {
        let state = Mutex::new(State { entries: BTreeMap::new(), serial: 0 });
        let commands = Semaphore::new(AT_ONCE);
        Arc::new(Keeper { shared: Arc::new(Shared { state, bounds, commands, on_change }) })
    }

    /// Takes these accounts in place of those it has: [`Keeper::find`], then [`Keeper::take`].
    pub async fn keep(&self, sources: Vec<Sourced>) -> Vec<Option<Secret>> {
        let found = self.find(sources).await;
        self.take(found)
    }

    /// Finds the secrets of accounts that are new, whose source is another, or that need no command. Changes nothing
    /// and fails for no account: what is wrong with one is its problem once it is taken. Commands may take 30 seconds.
    pub async fn find(&self, sources: Vec<Sourced>) -> Found {
        let find = |(id, source): Sourced| async move {
            let source = match source {
                Ok(source) => source,
                Err(why) => return FoundOne { id, source: None, fetched: Some(Err(why)) },
            };
            let known = self.shared.state().entries.get(&id).is_some_and(|entry| entry.is_of(Some(&source)));
            let fetched = match (&source, known) {
                (SecretSource::Command { .. }, true) => None,
                (SecretSource::Command { .. }, false)
                | (SecretSource::Env(_) | SecretSource::File(_) | SecretSource::Plain(_), _) => {
                    Some(self.shared.fetch(&source, None).await)
                }
            };
            FoundOne { id, source: Some(source), fetched }
        };
        Found(join_all(sources.into_iter().map(find)).await)
    }

    /// Keeps what was found, in place of all it has, and refreshes it from now on. Gives the accounts' secrets in the
    /// order they were asked for; `on_change` is not told of them. A source that is the same keeps its secret where it
    /// could not be found again; another source does not. Of two entries with one id the first counts.
    pub fn take(&self, found: Found) -> Vec<Option<Secret>> {
        let mut state = self.shared.state();
        let mut old = std::mem::take(&mut state.entries);
        let mut secrets = Vec::new();
        for FoundOne { id, source, fetched } in found.0 {
            if let Some(first) = state.entries.get(&id) {
                secrets.push(first.secret.clone());
                continue;
            }
            let same = old.remove(&id).filter(|entry| entry.is_of(source.as_ref()));
            let mut entry = match same {
                Some(entry) => entry,
                None => {
                    state.serial += 1;
                    Entry::new(source, state.serial)
                }
            };
            if let Some(fetched) = fetched {
                if let Err(why) = &fetched {
                    tracing::warn!(account = %id, %why, "an account without a usable secret");
                }
                entry.settle(fetched);
            }
            self.shared.follow(&id, &mut entry);
            secrets.push(entry.secret.clone());
            state.entries.insert(id, entry);
        }
        secrets
    }

    /// The account's secret, if there is one.
    pub fn current(&self, id: &AccountId) -> Option<Secret> {
        self.shared.state().entries.get(id).and_then(|entry| entry.secret.clone())
    }

    /// Asks for a refresh now, because a provider has rejected the secret; does not wait. Asks while one runs are
    /// answered by it, and at most one in 30 seconds is run for an account: a later ask waits for its time. Nothing
    /// happens with a source that cannot change while the process runs.
    pub fn refresh_now(&self, id: &AccountId) {
        if let Some(entry) = self.shared.state().entries.get(id) {
            entry.ask();
        }
    }

    /// Why the account's last refresh failed, without a secret.
    pub fn problem(&self, id: &AccountId) -> Option<String> {
        self.shared.state().entries.get(id).and_then(|entry| entry.problem.clone())
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
