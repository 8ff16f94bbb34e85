//! When the store cannot write, the log says so once, again every while it lasts, and once when it is over: not with
//! every turn.

use std::path::PathBuf;
use std::time::{Duration, Instant};
use turnkeep_engine::ports::StoreError;

/// Between two lines about the same trouble.
const AGAIN: Duration = Duration::from_secs(30);

pub(crate) struct Trouble {
    path: PathBuf,
    now: Option<Running>,
}

struct Running {
    since: Instant,
    said: Instant,
    failed: u64,
}

impl Trouble {
    pub fn new(path: PathBuf) -> Self {
        Trouble { path, now: None }
    }

    /// A transaction failed.
    pub fn failed(&mut self, error: &StoreError) {
        let now = Instant::now();
        let path = self.path.display();
        match &mut self.now {
            None => {
                tracing::error!(%path, %error, "the store cannot write; it goes on trying");
                self.now = Some(Running { since: now, said: now, failed: 1 });
            }
            Some(running) => {
                running.failed += 1;
                if now.duration_since(running.said) >= AGAIN {
                    running.said = now;
                    let for_s = now.duration_since(running.since).as_secs();
                    tracing::error!(%path, %error, for_s, failed = running.failed, "the store still cannot write");
                }
            }
        }
    }

    /// A transaction was committed.
    pub fn over(&mut self) {
        if let Some(running) = self.now.take() {
            let path = self.path.display();
            let for_s = running.since.elapsed().as_secs();
            tracing::info!(%path, for_s, failed = running.failed, "the store writes again");
        }
    }
}
