//! A fetch that goes on where nobody waits for it any more. It ends with its handle, and its command with it.

use super::{SecretSource, Shared};
use std::sync::Arc;
use tokio::task::JoinHandle;
use turnkeep_base::Secret;

pub(super) struct Running {
    source: SecretSource,
    task: JoinHandle<Result<Secret, String>>,
}

impl Running {
    pub(super) fn start(shared: Arc<Shared>, source: SecretSource) -> Self {
        let fetched = source.clone();
        Running { source, task: tokio::spawn(async move { shared.fetch(&fetched).await }) }
    }

    /// Waits for the answer, which comes once: it is given to whoever waits to the end first. Giving up loses nothing.
    pub(super) async fn answer(&mut self) -> Result<Secret, String> {
        let source = &self.source;
        (&mut self.task).await.unwrap_or_else(|_| Err(format!("{source} was given up")))
    }

    /// What is said of it until it has answered.
    pub(super) fn not_yet(&self) -> String {
        format!("{} has not answered yet; its secret is taken up as soon as it does", self.source)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}
