//! Who starts processes: the system, or a program that embeds the gateway and has a way of its own to run what a spec names.

use super::process::Ended;
use super::spec::ProcessSpec;
use std::fmt;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

/// A process's standard input. It closes when it is dropped.
pub type Input = Box<dyn AsyncWrite + Send + Sync + Unpin>;
/// A process's standard output.
pub type Output = Box<dyn AsyncRead + Send + Sync + Unpin>;

/// Who starts processes.
#[derive(Clone, Default)]
pub enum Launch {
    /// The system.
    #[default]
    System,
    /// Somebody else.
    By(Arc<dyn Launcher>),
}

impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Launch::System => f.write_str("System"),
            Launch::By(_) => f.write_str("By(..)"),
        }
    }
}

/// Whoever starts processes in the system's place.
pub trait Launcher: Send + Sync {
    /// Starts what this spec names. Called within a Tokio runtime; does not wait.
    ///
    /// # Errors
    /// It cannot be started; nothing of it is left.
    fn launch(&self, spec: &ProcessSpec) -> io::Result<Launched>;
}

/// What was started.
pub struct Launched {
    /// What it reads.
    pub stdin: Input,
    /// What it says.
    pub stdout: Output,
    /// Becomes how it ended, once it has; a sender that is dropped before counts as an end of which nothing is known.
    pub ended: watch::Receiver<Option<Ended>>,
    /// Becomes true when it is asked to end, and is closed when nobody holds it any more: it is to end then, too.
    pub stop: watch::Sender<bool>,
}

impl fmt::Debug for Launched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launched").finish_non_exhaustive()
    }
}
