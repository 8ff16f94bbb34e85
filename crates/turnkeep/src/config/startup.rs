//! Who may call a gateway that has no keys: nobody from outside.

use super::Config;

/// What to do about caller keys at start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyRule {
    /// There are keys.
    AsConfigured,
    /// There are none, and only this machine can call: make one, print it once, store its hash.
    MakeOne,
    /// There are none, and others can call: refuse to start.
    RefusePublic,
}

/// Judges a start. `store_has_keys`: the store holds a key that is not revoked.
pub fn startup_rule(config: &Config, store_has_keys: bool) -> KeyRule {
    if store_has_keys || !config.keys.is_empty() {
        return KeyRule::AsConfigured;
    }
    if config.server.listen.iter().all(super::Listen::is_local) { KeyRule::MakeOne } else { KeyRule::RefusePublic }
}
