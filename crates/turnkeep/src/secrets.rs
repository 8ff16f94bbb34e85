//! The secrets of accounts while the gateway runs: found at start, kept, and refreshed - by a clock for those that a
//! command prints, and at once for those that a provider has rejected. A refresh that fails changes nothing and is
//! shown. It knows no provider and judges no account: whoever watches is told when a secret is another.

mod command;
mod entry;
mod follow;
mod running;
#[cfg(test)]
mod tests;

use crate::config::{FILE_WAIT, SecretRef};
use entry::{Entry, State};
use futures_util::future::join_all;
use running::Running;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit, oneshot};
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
    /// How long finding waits for what does not answer at once; what has not answered then is told later.
    find: Duration,
    /// Between two refreshes of one account that were asked for.
    between_asked: Duration,
    /// After a refresh that failed, where the source's own interval is not shorter.
    after_failure: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            run: Duration::from_secs(30),
            find: Duration::from_secs(2),
            between_asked: Duration::from_secs(30),
            after_failure: Duration::from_secs(60),
        }
    }
}

/// Commands that run at once.
const AT_ONCE: usize = 32;

/// Files that are read at once, those of mounts that hang included.
static FILES: Semaphore = Semaphore::const_new(256);

/// Fetches a secret once, wherever it is, without holding up a thread of the runtime or its end: a command may run for
/// 30 seconds, and a file is given up after [`FILE_WAIT`].
///
/// # Errors
/// In words, without a secret.
pub async fn fetch(source: &SecretSource) -> Result<Secret, String> {
    fetch_within(source, Bounds::default().run).await
}

async fn fetch_within(source: &SecretSource, run: Duration) -> Result<Secret, String> {
    match source {
        SecretSource::Env(_) | SecretSource::Plain(_) | SecretSource::NotNeeded => source.resolve(),
        SecretSource::File(_) => {
            let read = async { read_file(source, FILES.acquire().await.ok()).await };
            tokio::time::timeout(FILE_WAIT, read).await.unwrap_or_else(|_| Err(source.not_read_within(FILE_WAIT)))
        }
        SecretSource::Command { words, .. } => {
            // The place is named once, before everything that is said of it.
            let name = source.to_string();
            let accept = |text: &str| {
                source.one_line(text).map_err(|why| why.strip_prefix(&name).unwrap_or(&why).trim_start().to_owned())
            };
            command::output(words, run, accept).await.map_err(|why| format!("{name} {why}"))
        }
    }
}

async fn read_file(source: &SecretSource, turn: Option<SemaphorePermit<'static>>) -> Result<Secret, String> {
    let owned = source.clone();
    let read = move || {
        let read = owned.resolve_unbounded();
        drop(turn);
        read
    };
    apart(read).await.unwrap_or_else(|error| Err(format!("{source} cannot be read: {error}")))
}

/// Does something that may never end on a thread that is not the runtime's, which would wait for it at its end.
async fn apart<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    let (tell, told) = oneshot::channel();
    let run = move || {
        // Nobody listens where it was given up.
        let _ = tell.send(job());
    };
    std::thread::Builder::new().name("secret-file".into()).spawn(run).map_err(|error| error.to_string())?;
    told.await.map_err(|_| "its reader has ended".to_owned())
}

/// Holds the current secret of each account. Dropping it ends every refresh, and kills a command that runs.
pub struct Keeper {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// Held while the watcher is told and while others are taken, so that nobody is told of an account's secret after
    /// another source has taken its place. Locked before the state, never while it is held; the watcher may ask for a
    /// refresh, but takes no others.
    telling: Mutex<()>,
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
    answer: Answer,
}

enum Answer {
    /// A command has run for the same source already.
    Known,
    Here(Result<Secret, String>),
    Later(Running),
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
        let telling = Mutex::new(());
        Arc::new(Keeper { shared: Arc::new(Shared { state, telling, bounds, commands, on_change }) })
    }

    /// Takes these accounts in place of those it has: [`Keeper::find`], then [`Keeper::take`].
    pub async fn keep(&self, sources: Vec<Sourced>) -> Vec<Option<Secret>> {
        let found = self.find(sources).await;
        self.take(found)
    }

    /// Finds the secrets of accounts that are new, whose source is another, or that need no command. Changes nothing
    /// and fails for no account: what is wrong with one is its problem once it is taken. It waits for 2 seconds; a
    /// command that has not answered then runs on, and is told of when it has. Dropping what was found ends it.
    pub async fn find(&self, sources: Vec<Sourced>) -> Found {
        let find = |(id, source): Sourced| async move {
            let source = match source {
                Ok(source) => source,
                Err(why) => return FoundOne { id, source: None, answer: Answer::Here(Err(why)) },
            };
            let known = self.shared.state().entries.get(&id).is_some_and(|entry| entry.is_of(Some(&source)));
            let answer = match (&source, known) {
                (SecretSource::Command { .. }, true) => Answer::Known,
                (SecretSource::Env(_) | SecretSource::Plain(_) | SecretSource::NotNeeded, _) => {
                    Answer::Here(source.resolve())
                }
                (SecretSource::Command { .. }, false) | (SecretSource::File(_), _) => {
                    let mut running = Running::start(self.shared.clone(), source.clone());
                    match tokio::time::timeout(self.shared.bounds.find, running.answer()).await {
                        Ok(answer) => Answer::Here(answer),
                        Err(_) => Answer::Later(running),
                    }
                }
            };
            FoundOne { id, source: Some(source), answer }
        };
        Found(join_all(sources.into_iter().map(find)).await)
    }

    /// As [`Keeper::take_into`], for one who gives the secrets to nobody that is also told by `on_change`.
    pub fn take(&self, found: Found) -> Vec<Option<Secret>> {
        self.take_into(found, |secrets| secrets)
    }

    /// Keeps what was found, in place of all it has, and refreshes it from now on. Gives `then` the accounts' secrets in
    /// the order they were asked for; `on_change` is not told of them, and of no other before `then` is done: what it
    /// is told is newer. `then` must neither wait nor take others. A source that is the same keeps its secret where it
    /// could not be found again; another source does not. Of two entries with one id the first counts.
    pub fn take_into<T>(&self, found: Found, then: impl FnOnce(Vec<Option<Secret>>) -> T) -> T {
        let _quiet = self.shared.telling();
        let secrets = self.replace(found);
        then(secrets)
    }

    fn replace(&self, found: Found) -> Vec<Option<Secret>> {
        let mut state = self.shared.state();
        let mut old = std::mem::take(&mut state.entries);
        let mut secrets = Vec::new();
        for FoundOne { id, source, answer } in found.0 {
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
            let later = match answer {
                Answer::Known => None,
                Answer::Here(fetched) => {
                    if let Err(why) = &fetched {
                        tracing::warn!(account = %id, %why, "an account without a usable secret");
                    }
                    entry.settle(fetched);
                    None
                }
                Answer::Later(running) => {
                    let why = running.not_yet();
                    tracing::warn!(account = %id, %why, "an account whose secret comes later");
                    entry.settle(Err(why));
                    Some(running)
                }
            };
            self.shared.follow(&id, &mut entry, later);
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

    /// Likewise; the watcher, and whoever takes others, must not panic, and nothing is half done where they do.
    fn telling(&self) -> MutexGuard<'_, ()> {
        self.telling.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn fetch(&self, source: &SecretSource) -> Result<Secret, String> {
        let _turn = match source {
            SecretSource::Command { .. } => self.commands.acquire().await.ok(),
            SecretSource::Env(_) | SecretSource::File(_) | SecretSource::Plain(_) | SecretSource::NotNeeded => None,
        };
        fetch_within(source, self.bounds.run).await
    }
}
