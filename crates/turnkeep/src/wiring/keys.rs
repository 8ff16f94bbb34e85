//! Callers' keys from the configuration and the store, as the client side checks them.

use crate::commands::Failure;
use crate::config::{Config, KeyRule, startup_rule};
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::sync::Arc;
use turnkeep_base::Secret;
use turnkeep_http::callers::{Caller, Callers, KeyDigest, Known, Scope};
use turnkeep_policy::glob::Globs;
use turnkeep_policy::limits::{Amount, Budget, Limits, Per};
use turnkeep_store::{KeyLimits, KeySnapshot, NewKey, Pepper, Store, hash_key};

/// The name of the key that the gateway makes when there is none.
const FIRST_KEY: &str = "first";

/// All keys.
pub struct Loaded {
    /// As the client side checks them.
    pub callers: Callers,
    /// One that was made because there was none.
    pub made: Option<Secret>,
}

/// Loads all keys; makes one, to be shown once, when there is none and only this machine can call.
pub async fn load(config: &Config, store: &dyn Store) -> Result<Loaded, Failure> {
    let mut snapshot = store.keys_snapshot().await.map_err(Failure::operation)?;
    let made = match startup_rule(config, !snapshot.keys.is_empty()) {
        KeyRule::AsConfigured => None,
        KeyRule::RefusePublic => {
            let words = "no caller key is configured and others than this machine could call; \
                         make one with `turnkeep keys create NAME`, or listen on 127.0.0.1";
            return Err(Failure::Usage(words.into()));
        }
        KeyRule::MakeOne => {
            let taken = store.list_keys().await.map_err(Failure::operation)?;
            let names = std::iter::once(FIRST_KEY.to_owned()).chain((2..).map(|n| format!("{FIRST_KEY}-{n}")));
            // A revoked key keeps its name.
            let mut free = names.filter(|name| taken.iter().all(|key| &key.name != name));
            let name = free.next().unwrap_or_default();
            let new = NewKey { scopes: vec!["chat".into(), "viewer".into()], ..NewKey::named(name) };
            let (_, secret) = store.create_key(new).await?;
            snapshot = store.keys_snapshot().await.map_err(Failure::operation)?;
            Some(secret)
        }
    };
    let pepper = snapshot.pepper;
    // The keys themselves come with the configuration, as one with everything else of it.
    Ok(Loaded { callers: Callers::new(move |presented| hash_key(&pepper, presented), BTreeMap::new()), made })
}

/// The configuration's own keys.
///
/// # Errors
/// Usage: a secret is not to be had, or two keys have the same.
pub(super) async fn of_config(config: &Config, pepper: &Pepper) -> Result<BTreeMap<KeyDigest, Known>, Failure> {
    let mut configured = BTreeMap::new();
    let secrets = join_all(config.keys.iter().map(|key| crate::secrets::fetch(&key.secret))).await;
    for (key, secret) in config.keys.iter().zip(secrets) {
        let secret = secret.map_err(|why| Failure::Usage(format!("keys {:?}: {why}", key.name)))?;
        let scopes = key.scopes.iter().map(|scope| scope_of(scope.name())).collect::<Option<_>>().unwrap_or_default();
        let caller = Caller {
            shared: key.shared,
            labels: labels(&key.labels),
            limits: key.limits,
            ..Caller::named(key.name.as_str(), scopes, Globs::new(key.models.clone()))
        };
        let known = Known { caller: Arc::new(caller), until_ms: key.expires_ms };
        if let Some(other) = configured.insert(hash_key(pepper, secret.expose()), known) {
            let words =
                format!("keys {:?} and {:?} have the same secret; give each its own", other.caller.name, key.name);
            return Err(Failure::Usage(words));
        }
    }
    Ok(configured)
}

pub(super) fn of_store(snapshot: &KeySnapshot) -> BTreeMap<KeyDigest, Known> {
    let mut out = BTreeMap::new();
    for key in &snapshot.keys {
        let scopes = key.scopes.iter().filter_map(|scope| scope_of(scope)).collect();
        let caller = Arc::new(Caller {
            shared: key.shared,
            labels: labels(&key.labels),
            limits: limits(&key.name, &key.limits),
            ..Caller::named(key.name.as_str(), scopes, Globs::new(key.models.clone()))
        });
        if let Some((old, until)) = &key.old_hash {
            let until_ms = Some(key.expires_ms.map_or(*until, |end| end.min(*until)));
            out.insert(*old.bytes(), Known { caller: caller.clone(), until_ms });
        }
        out.insert(*key.hash.bytes(), Known { caller, until_ms: key.expires_ms });
    }
    out
}

fn labels(labels: &BTreeMap<String, String>) -> Arc<str> {
    serde_json::to_string(labels).unwrap_or_else(|_| "{}".into()).into()
}

/// The limits of a key of the store.
fn limits(key: &str, kept: &KeyLimits) -> Limits {
    let budget = kept.budget.as_ref().map(|budget| {
        let read = crate::commands::keys::budget_of(budget);
        read.unwrap_or_else(|| {
            // What cannot be read is no leave to spend.
            tracing::error!(key, "the key's budget cannot be read, so nothing may be spent; make the key anew");
            Budget { amount: Amount::Tokens(0), per: Per::Month }
        })
    });
    Limits {
        requests_per_minute: kept.requests_per_minute,
        tokens_per_minute: kept.tokens_per_minute.map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX)),
        max_in_flight: kept.max_in_flight,
        budget,
    }
}

fn scope_of(name: &str) -> Option<Scope> {
    match name {
        "chat" => Some(Scope::Chat),
        "metrics" => Some(Scope::Metrics),
        "viewer" => Some(Scope::Viewer),
        "admin" => Some(Scope::Admin),
        _ => None,
    }
}
