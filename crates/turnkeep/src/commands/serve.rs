//! `turnkeep serve`: the gateway.

use super::Failure;
use crate::cli::ConfigFile;
use crate::config::Config;
use crate::{logs, wiring};
use std::io::Write;
use tokio::signal::unix::{SignalKind, signal};
use turnkeep_http::Bound;

/// Serves until `stop` is done.
///
/// # Errors
/// Usage: the configuration cannot work. Operation: a file, an address or the store is not to be had.
pub async fn run(args: &ConfigFile, out: &mut impl Write, stop: impl Future<Output = ()>) -> Result<(), Failure> {
    let config = Config::load(&args.config)?;
    logs::start(&config.telemetry);
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    let scheme = if config.server.tls.is_some() { "https" } else { "http" };
    let wired = wiring::wire(config).await?.following(args.config.clone());
    for bound in &wired.bound {
        match bound {
            Bound::Tcp(address) => writeln!(out, "listening on {scheme}://{address}")?,
            Bound::Unix(path) => writeln!(out, "listening on unix:{}", path.display())?,
        }
    }
    if let Some(key) = &wired.made_key {
        writeln!(out, "no caller key was configured, so one was made; it is shown this once:\n{}", key.expose())?;
    }
    out.flush()?;
    if wired.recovered > 0 {
        tracing::warn!(attempts = wired.recovered, "attempts of an earlier run were closed as interrupted");
    }
    // A limit on the size of files is a full disk to the store, which says so; the signal would end the process instead.
    let _file_size = signal(SignalKind::from_raw(SIGXFSZ)).ok();
    wired.serve(stop).await
}

/// The signal of a file that may not grow, the same number on every system that has it.
const SIGXFSZ: i32 = 25;
