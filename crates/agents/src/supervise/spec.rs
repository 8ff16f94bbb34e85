//! What a process is started with, and its bounds.

use super::Launch;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use turnkeep_base::Secret;

/// A process to be kept. `Debug` shows no value of its environment.
#[derive(Clone)]
pub struct ProcessSpec {
    /// What it is called in logs and errors, as `upstream/account`.
    pub name: Arc<str>,
    /// The program, looked up in `PATH`, and its arguments.
    pub command: Vec<String>,
    /// Its `HOME`, made if it is not there; `None`: it has none.
    pub home: Option<PathBuf>,
    /// Variables it gets beside `PATH`, `HOME`, `LANG`, `TMPDIR` and what its service adds; these win. Nothing else of the
    /// gateway's environment reaches it.
    pub env: BTreeMap<String, Secret>,
    /// Its working directory, made (for its owner alone) if it is not there.
    pub directory: PathBuf,
    /// Its bounds.
    pub limits: ProcessLimits,
    /// Who starts it.
    pub launch: Launch,
}

impl fmt::Debug for ProcessSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessSpec")
            .field("name", &self.name)
            .field("program", &self.command.first())
            .field("home", &self.home)
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

/// The bounds of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessLimits {
    /// From the start until it is ready.
    pub ready_within: Duration,
    /// Starts after a failure (an end that nobody asked for, or a start that did not become ready) within `window`; further
    /// ones are refused until the oldest failure is older than that.
    pub restarts: usize,
    /// See `restarts`.
    pub window: Duration,
    /// The wait before the second start after a failure; it doubles with each failure in the window.
    pub backoff: Duration,
    /// The longest such wait.
    pub longest_backoff: Duration,
    /// Bytes of resident memory that the whole process group may use, looked at every `memory_every`; more ends it.
    /// `None`: any. Without effect where there is no `/proc`.
    pub memory: Option<u64>,
    /// See `memory`.
    pub memory_every: Duration,
    /// From `TERM` to `KILL`.
    pub stop_within: Duration,
}

/// 25 s to become ready; 5 restarts in 10 min, the first at once, then after 0.5 s doubling to 10 s; 4 GiB of memory, looked
/// at every 2 s; 5 s from TERM to KILL.
impl Default for ProcessLimits {
    fn default() -> Self {
        ProcessLimits {
            ready_within: Duration::from_secs(25),
            restarts: 5,
            window: Duration::from_secs(10 * 60),
            backoff: Duration::from_millis(500),
            longest_backoff: Duration::from_secs(10),
            memory: Some(4 << 30),
            memory_every: Duration::from_secs(2),
            stop_within: Duration::from_secs(5),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environments_values_and_the_arguments_do_not_show() {
        let spec = ProcessSpec {
            name: "agent/me".into(),
            command: vec!["agent".into(), "--token=very-secret".into()],
            home: None,
            env: BTreeMap::from([("TOKEN".to_owned(), Secret::new("very-secret".into()))]),
            directory: "/nowhere".into(),
            limits: ProcessLimits::default(),
            launch: Launch::System,
        };
        let shown = format!("{spec:?}");
        assert!(shown.contains("TOKEN") && !shown.contains("very-secret"), "{shown}");
    }
}
