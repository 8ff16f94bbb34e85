//! Logs to standard error; standard output is for results.

use crate::config::{LogFormat, Telemetry};
use tracing_subscriber::EnvFilter;

/// Starts logging. A second call changes nothing.
pub fn start(telemetry: &Telemetry) {
    let filter = EnvFilter::try_new(&telemetry.log).unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false);
    let started = match telemetry.log_format {
        LogFormat::Json => builder.json().flatten_event(true).with_target(false).try_init(),
        LogFormat::Pretty => builder.compact().with_target(false).try_init(),
    };
    // Only a test that runs several commands in one process comes here twice.
    let _ = started;
}
