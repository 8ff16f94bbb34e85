//! Where a turn may go: an upstream with its clocks, and the model it is asked for.

use crate::ports::Upstream;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use turnkeep_base::Dialect;

/// The times of one upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// Until the first content of a stream.
    pub first_content: Duration,
    /// Between two events of a stream.
    pub between: Duration,
    /// The whole of a plain turn; a stream until its answer begins.
    pub total: Duration,
    /// A stream after its answer has begun.
    pub max_turn: Duration,
}

impl Default for Clocks {
    fn default() -> Self {
        Clocks {
            first_content: Duration::from_secs(120),
            between: Duration::from_secs(60),
            total: Duration::from_secs(600),
            max_turn: Duration::from_secs(60 * 60),
        }
    }
}

/// One endpoint of a provider, ready to be asked.
pub struct UpstreamEntry {
    /// Its name in the configuration.
    pub name: Arc<str>,
    /// What it speaks.
    pub dialect: Dialect,
    /// Its times.
    pub clocks: Clocks,
    /// Its driver.
    pub port: Arc<dyn Upstream>,
}

impl fmt::Debug for UpstreamEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamEntry").field("name", &self.name).field("dialect", &self.dialect).finish()
    }
}

/// One way to serve a model.
#[derive(Clone, Debug)]
pub struct Route {
    /// The upstream.
    pub upstream: Arc<UpstreamEntry>,
    /// The upstream's name for the model.
    pub model: Arc<str>,
}
