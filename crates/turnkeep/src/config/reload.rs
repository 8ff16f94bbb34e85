//! What a running gateway can take up of a changed configuration, and what waits for its next start.

use super::{Config, SecretRef};

/// A key that waits for the next start, and whether two configurations differ in it.
type Row = (&'static str, fn(&Config, &Config) -> bool);

/// Everything that is not here is taken up while the gateway runs.
const ROWS: &[Row] = &[
    ("server.listen", |old, new| old.server.listen != new.server.listen),
    ("server.tls", |old, new| old.server.tls != new.server.tls),
    ("server.shutdown_grace", |old, new| old.server.shutdown_grace != new.server.shutdown_grace),
    ("server.delivery", |old, new| old.server.delivery != new.server.delivery),
    ("store.url", |old, new| old.store.url != new.store.url),
    ("store.master_key", |old, new| !same_place(old.store.master_key.as_ref(), new.store.master_key.as_ref())),
    ("telemetry.log", |old, new| old.telemetry.log != new.telemetry.log),
    ("telemetry.log_format", |old, new| old.telemetry.log_format != new.telemetry.log_format),
];

/// The keys that wait for the next start.
pub const RESTART_KEYS: [&str; ROWS.len()] = {
    let mut keys = [""; ROWS.len()];
    let mut at = 0;
    while at < ROWS.len() {
        keys[at] = ROWS[at].0;
        at += 1;
    }
    keys
};

/// The keys in which `new` differs from `old` and which a running gateway cannot take up. What a file or a variable
/// holds is not compared, only which one is named.
pub fn needs_restart(old: &Config, new: &Config) -> Vec<&'static str> {
    ROWS.iter().filter(|(_, differs)| differs(old, new)).map(|(key, _)| *key).collect()
}

fn same_place(old: Option<&SecretRef>, new: Option<&SecretRef>) -> bool {
    match (old, new) {
        (Some(old), Some(new)) => old.is_same(new),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}
