//! The accounts of the configuration and of the store, with their secrets resolved.

use crate::commands::Failure;
use crate::config::{Config, SecretRef};
use std::collections::BTreeSet;
use turnkeep_base::{AccountId, Secret};
use turnkeep_policy::accounts::AccountSpec;
use turnkeep_policy::glob::Globs;
use turnkeep_store::{OpenedSecret, Store};

/// An account and its secret.
pub struct Gathered {
    /// For the pool.
    pub spec: AccountSpec,
    /// `None` when it could not be found; the account then serves nothing and is shown as misconfigured.
    pub secret: Option<Secret>,
}

/// All accounts, those of the configuration first. One that both name is the configuration's.
pub async fn gather(config: &Config, store: &dyn Store) -> Result<Vec<Gathered>, Failure> {
    let mut out = Vec::new();
    let mut seen = BTreeSet::new();
    let stored = store.list_accounts().await.map_err(Failure::operation)?;
    for upstream in &config.upstreams {
        for account in &upstream.accounts {
            let id = AccountId { upstream: upstream.name.as_str().into(), account: account.name.as_str().into() };
            let secret = match &account.secret {
                Some(reference) => resolved(&id, reference.resolve()),
                None => resolved(&id, Err("it has no secret".into())),
            };
            let spec = AccountSpec {
                max_in_flight: account.max_in_flight,
                models: Globs::new(account.models.clone()),
                has_secret: secret.is_some(),
                enabled: true,
                id: id.clone(),
            };
            seen.insert(id);
            out.push(Gathered { spec, secret });
        }
    }
    for record in stored {
        if seen.contains(&record.id) {
            continue;
        }
        if config.upstream(&record.id.upstream).is_none() {
            tracing::warn!(account = %record.id, "an account of the store belongs to no configured upstream");
            continue;
        }
        let opened = store.open_secret(record.id.clone()).await.map_err(|error| error.to_string());
        let secret = opened.and_then(|opened| match opened {
            OpenedSecret::Literal(secret) => Ok(secret),
            OpenedSecret::Reference(turnkeep_store::SecretRef::Env(name)) => SecretRef::Env(name).resolve(),
            OpenedSecret::Reference(turnkeep_store::SecretRef::File(path)) => SecretRef::File(path).resolve(),
        });
        let secret = resolved(&record.id, secret);
        let spec = AccountSpec {
            max_in_flight: record.max_in_flight.unwrap_or(crate::config::DEFAULT_MAX_IN_FLIGHT),
            models: Globs::new(record.models),
            has_secret: secret.is_some(),
            enabled: record.enabled,
            id: record.id,
        };
        out.push(Gathered { spec, secret });
    }
    Ok(out)
}

fn resolved(id: &AccountId, secret: Result<Secret, String>) -> Option<Secret> {
    secret.inspect_err(|why| tracing::warn!(account = %id, %why, "an account without a usable secret")).ok()
}
