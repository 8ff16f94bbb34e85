//! What the commands do, apart from the two that run a gateway. Each writes its results to the `out` it is given and
//! tells a failure by a [`Failure`], so that the binary alone prints and exits.

pub mod accounts;
pub mod backup;
pub mod check;
pub mod demo;
pub mod explain;
pub mod init;
pub mod keys;
pub mod lab;
pub(crate) mod open_store;
pub mod rekey;
pub mod replay;
pub mod restore;
pub mod serve;
#[cfg(test)]
mod store_tests;
mod table;
pub mod usage;
pub mod validate;

use crate::config::ConfigErrors;
use std::fmt;

/// Why a command failed, and so its exit status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The operation failed: status 1.
    Operation(String),
    /// The command line or the configuration is wrong: status 2.
    Usage(String),
}

impl Failure {
    /// The exit status.
    pub fn status(&self) -> u8 {
        match self {
            Failure::Operation(_) => 1,
            Failure::Usage(_) => 2,
        }
    }

    pub(crate) fn operation(error: impl fmt::Display) -> Self {
        Failure::Operation(error.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Operation(message) | Failure::Usage(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Failure {}

impl From<ConfigErrors> for Failure {
    fn from(errors: ConfigErrors) -> Self {
        Failure::Usage(errors.to_string())
    }
}

impl From<std::io::Error> for Failure {
    /// Of writing results.
    fn from(error: std::io::Error) -> Self {
        Failure::Operation(format!("cannot write the result: {error}"))
    }
}
