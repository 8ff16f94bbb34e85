//! Doubts about a configuration as a whole, which no single key shows.

use super::problems::Problems;
use super::{Account, Config, Model};
use std::collections::BTreeMap;
use turnkeep_policy::glob::Globs;
use turnkeep_policy::limits::Amount;

pub(super) fn warn_as_a_whole(config: &Config, problems: &Problems) {
    if config.upstreams.is_empty() {
        problems.warn("upstreams", "there is none, so every turn is refused; add [[upstreams]]".into());
    }
    for (at, upstream) in config.upstreams.iter().enumerate().filter(|(_, upstream)| upstream.accounts.is_empty()) {
        let name = &upstream.name;
        problems.warn(
            &format!("upstreams[{at}].accounts"),
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
    warn_of_lonely_groups(config, problems);
    warn_of_idle_fallbacks(config, problems);
    warn_of_unpriced_models(config, problems);
    if config.store.master_key.is_none() {
        let words = "there is none, so accounts in the store hold references to secrets only, and cached, held and idempotent \
                     answers are kept in memory and end with the process";
        problems.warn("store.master_key", words.into());
    }
    let public = config.server.listen.iter().find(|listen| !listen.is_local());
    if let (Some(listen), None) = (public, &config.server.tls) {
        problems.warn("server.tls", format!("plain http on {listen}: keys and prompts cross the network readable"));
    }
}

/// A budget in money holds only where the price is known, so a key with one is refused models without.
fn warn_of_unpriced_models(config: &Config, problems: &Problems) {
    for (at, key) in config.keys.iter().enumerate() {
        if !key.limits.budget.is_some_and(|budget| matches!(budget.amount, Amount::NanoUsd(_))) {
            continue;
        }
        let allowed = Globs::new(key.models.clone());
        // What the catch-all takes has no name to be allowed or not.
        let may = |model: &&Model| model.price.is_none() && (model.is_any() || allowed.allow(&model.name));
        let names: Vec<String> = config.models.iter().filter(may).map(|model| format!("{:?}", model.name)).collect();
        if !names.is_empty() {
            let names = names.join(", ");
            let words = "is in US dollars, and is refused models without a price: set price in the [[models]] entry of";
            problems.warn(&format!("keys[{at}].budget"), format!("{words} {names}"));
        }
    }
}

fn warn_of_lonely_groups(config: &Config, problems: &Problems) {
    let mut members: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (upstream, account, at) in accounts(config) {
        if let Some(group) = &account.limit_group {
            let key = format!("upstreams[{upstream}].accounts[{at}].limit_group");
            members.entry(group).or_default().push(key);
        }
    }
    for (group, keys) in members {
        if let [only] = keys.as_slice() {
            let words = "no other account has it, so it changes nothing; an account without one is a group of its own";
            problems.warn(only, format!("{group:?}: {words}"));
        }
    }
}

fn accounts(config: &Config) -> impl Iterator<Item = (usize, &Account, usize)> {
    config.upstreams.iter().enumerate().flat_map(|(at, upstream)| {
        upstream.accounts.iter().enumerate().map(move |(index, account)| (at, account, index))
    })
}

/// A model that has nowhere else to go than the model it stands in for.
fn warn_of_idle_fallbacks(config: &Config, problems: &Problems) {
    for (at, model) in config.models.iter().enumerate() {
        for (key, names) in [("fallbacks", &model.fallbacks), ("larger", &model.larger)] {
            for name in names {
                let Some(other) = config.models.iter().find(|other| other.name == *name) else { continue };
                let own: Vec<_> = places(model).collect();
                if places(other).all(|place| own.contains(&place)) {
                    let words = "goes only where this model goes already, so it can never help; give it another route";
                    problems.warn(&format!("models[{at}].{key}"), format!("{name:?} {words}"));
                }
            }
        }
    }
}

fn places(model: &Model) -> impl Iterator<Item = (&str, &str)> {
    model.routes.iter().map(|route| (route.upstream.as_str(), model.upstream_model(route, &model.name)))
}
