//! Secrets from real commands, and how they change. Commands say that they ran by a line in a file.

mod late;
mod places;
mod refreshing;
mod running;

use super::{Bounds, Keeper, SecretSource, Sourced};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use turnkeep_base::{AccountId, Secret};

/// Long enough for anything that ends, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(20);

fn id(account: &str) -> AccountId {
    AccountId { upstream: "up".into(), account: account.into() }
}

/// `sh` with a script, run in the background's own time again every `every`.
fn script(text: &str, every: Duration) -> SecretSource {
    SecretSource::Command { words: ["/bin/sh", "-c", text].map(str::to_owned).into(), every }
}

fn hourly(text: &str) -> SecretSource {
    script(text, Duration::from_secs(3600))
}

/// A folder in which a script prints what `secret` holds, after a line in `runs`.
struct Place(tempfile::TempDir);

impl Place {
    fn new(secret: &str) -> Self {
        let place = Place(tempfile::tempdir().unwrap());
        place.write("secret", secret);
        place.write("runs", "");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// All at once, as the script may read it at any time.
    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path("new"), text).unwrap();
        std::fs::rename(self.path("new"), self.path(name)).unwrap();
    }

    fn script(&self, before: &str) -> String {
        let folder = self.0.path().display();
        format!("cd {folder}; echo run >> runs; {before} cat secret")
    }

    fn runs(&self) -> usize {
        std::fs::read_to_string(self.path("runs")).unwrap().lines().count()
    }
}

/// Asks a condition that nothing tells about until it holds.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let asked = async {
        let mut every = tokio::time::interval(Duration::from_millis(5));
        while !holds() {
            every.tick().await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, asked).await.is_ok(), "{what} did not come");
}

/// What the watcher is told.
struct Told(mpsc::Receiver<(AccountId, Option<Secret>)>);

impl Told {
    async fn next(&mut self) -> (String, String) {
        let (id, secret) = tokio::time::timeout(PATIENCE, self.0.recv()).await.unwrap().unwrap();
        (id.to_string(), secret.unwrap().expose().to_owned())
    }
}

/// A keeper with bounds that a test can wait for.
fn watched(bounds: Bounds) -> (Arc<Keeper>, Told) {
    let (tell, told) = mpsc::channel(64);
    let on_change = Arc::new(move |id: &AccountId, secret| tell.try_send((id.clone(), secret)).unwrap());
    (Keeper::within(bounds, on_change), Told(told))
}

fn sourced(account: &str, source: SecretSource) -> Sourced {
    (id(account), Ok(source))
}

/// Bounds that a test can wait for.
fn quick() -> Bounds {
    let tick = Duration::from_millis(50);
    Bounds { run: PATIENCE, find: PATIENCE, between_asked: tick, after_failure: tick }
}

fn current(keeper: &Keeper, account: &str) -> Option<String> {
    keeper.current(&id(account)).map(|secret| secret.expose().to_owned())
}
