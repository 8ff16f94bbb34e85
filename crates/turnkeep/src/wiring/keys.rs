//! Callers' keys from the configuration and the store, as the client side checks them.

use crate::commands::Failure;
use crate::config::{Config, KeyRule, startup_rule};
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::sync::Arc;
use turnkeep_base::Secret;
use turnkeep_http::callers::{Caller, Callers, KeyDigest, Known, Scope};
use turnkeep_policy::glob::Globs;
use turnkeep_store::{KeySnapshot, NewKey, Pepper, Store, hash_key};

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
        let caller = Caller {
            name: key.name.as_str().into(),
            scopes: key.scopes.iter().map(|scope| scope_of(scope.name())).collect::<Option<_>>().unwrap_or_default(),
            models: Globs::new(key.models.clone()),
        };
        let known = Known { caller: Arc::new(caller), until_ms: None };
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
        let caller = Arc::new(Caller {
            name: key.name.as_str().into(),
            scopes: key.scopes.iter().filter_map(|scope| scope_of(scope)).collect(),
            models: Globs::new(key.models.clone()),
        });
        if let Some((old, until)) = &key.old_hash {
            let until_ms = Some(key.expires_ms.map_or(*until, |end| end.min(*until)));
            out.insert(*old.bytes(), Known { caller: caller.clone(), until_ms });
        }
        out.insert(*key.hash.bytes(), Known { caller, until_ms: key.expires_ms });
    }
    out
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
