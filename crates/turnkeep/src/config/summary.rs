//! Doubts about a configuration as a whole, which no single key shows.

use super::Config;
use super::read::Problems;

pub(super) fn warn_as_a_whole(config: &Config, problems: &Problems) {
    if config.upstreams.is_empty() {
        problems.warn("upstreams", "there is none, so every turn is refused; add [[upstreams]]".into());
    }
    for upstream in config.upstreams.iter().filter(|upstream| upstream.accounts.is_empty()) {
        let name = &upstream.name;
        problems.warn(
            "upstreams",
            format!(
                "{name:?} has no account here; without one in the store (`turnkeep accounts add`) it serves nothing"
            ),
        );
    }
    for upstream in &config.upstreams {
        let routed = config.models.iter().flat_map(|model| &model.routes).any(|r| r.upstream == upstream.name);
        if !routed {
            problems.warn("models", format!("no model has a route to {:?}, so it serves nothing", upstream.name));
        }
    }
    if config.store.master_key.is_none() {
        problems
            .warn("store.master_key", "there is none, so accounts in the store hold references to secrets only".into());
    }
    let public = config.server.listen.iter().find(|listen| !listen.is_local());
    if let (Some(listen), None) = (public, &config.server.tls) {
        problems.warn("server.tls", format!("plain http on {listen}: keys and prompts cross the network readable"));
    }
}
