//! The accounts of the configuration and of the store, with their secrets resolved.

use super::surroundings::{self, Surroundings};
use super::whereabouts::Whereabouts;
use crate::commands::Failure;
use crate::config::{Config, SecretRef};
use crate::secrets::Sourced;
use std::collections::BTreeMap;
use std::sync::Arc;
use turnkeep_base::AccountId;
use turnkeep_policy::accounts::AccountSpec;
use turnkeep_policy::glob::Globs;
use turnkeep_store::{OpenedSecret, Store};

/// What was gathered of all accounts.
pub(super) struct Gathered {
    /// As admission knows them; it fills `has_secret` and `generation` in.
    pub(super) specs: Vec<AccountSpec>,
    /// Where the secret of each is, in the same order.
    pub(super) sources: Vec<Sourced>,
    /// What the processes of those that have any have around them.
    pub(super) places: Surroundings,
    /// Where the conversations of each are kept.
    pub(super) whereabouts: BTreeMap<AccountId, Whereabouts>,
}

/// All accounts, those of the configuration first. One that both the configuration and the store name is the
/// configuration's.
pub(super) async fn gather(config: &Config, store: &dyn Store) -> Result<Gathered, Failure> {
    let mut places = Surroundings::new();
    let mut specs = Vec::new();
    let mut sources = Vec::new();
    let mut whereabouts = BTreeMap::new();
    for upstream in &config.upstreams {
        for account in &upstream.accounts {
            let id = AccountId { upstream: upstream.name.as_str().into(), account: account.name.as_str().into() };
            let spec = AccountSpec {
                max_in_flight: account.max_in_flight,
                models: Globs::new(account.models.clone()),
                limit_group: account.limit_group.as_deref().map(Arc::from),
                requests_per_minute: account.requests_per_minute,
                tokens_per_minute: account.tokens_per_minute,
                ..spec(id.clone(), true, Whereabouts::of(upstream, Some(account)), &mut whereabouts)
            };
            specs.push(spec);
            let source = match surroundings::of(account).await {
                Ok(Some(place)) => {
                    places.insert(id.clone(), place);
                    Ok(SecretRef::NotNeeded)
                }
                Ok(None) => account.credential.secret().cloned().ok_or_else(|| "it has no secret".to_owned()),
                Err(why) => Err(why),
            };
            sources.push((id, source));
        }
    }
    for record in store.list_accounts().await.map_err(Failure::operation)? {
        if whereabouts.contains_key(&record.id) {
            continue;
        }
        let upstream = match config.upstream(&record.id.upstream) {
            None => {
                tracing::warn!(account = %record.id, "an account of the store belongs to no configured upstream");
                continue;
            }
            Some(upstream) if upstream.speaks.accounts_in_file_only() => {
                let kind = upstream.speaks.kind().name();
                tracing::warn!(account = %record.id, kind, "accounts of this kind stand in the file; the store's serves nothing");
                continue;
            }
            Some(upstream) => upstream,
        };
        let opened = store.open_secret(record.id.clone()).await.map_err(|error| error.to_string());
        let source = opened.map(|opened| match opened {
            OpenedSecret::Literal(secret) => SecretRef::Plain(secret),
            OpenedSecret::Reference(turnkeep_store::SecretRef::Env(name)) => SecretRef::Env(name),
            OpenedSecret::Reference(turnkeep_store::SecretRef::File(path)) => SecretRef::File(path),
        });
        specs.push(AccountSpec {
            max_in_flight: record.max_in_flight.unwrap_or(crate::config::DEFAULT_MAX_IN_FLIGHT),
            models: Globs::new(record.models),
            limit_group: record.limit_group.as_deref().map(Arc::from),
            requests_per_minute: record.requests_per_minute,
            tokens_per_minute: record.tokens_per_minute,
            ..spec(record.id.clone(), record.enabled, Whereabouts::of(upstream, None), &mut whereabouts)
        });
        sources.push((record.id, source));
    }
    Ok(Gathered { specs, sources, places, whereabouts })
}

fn spec(
    id: AccountId,
    enabled: bool,
    place: Whereabouts,
    whereabouts: &mut BTreeMap<AccountId, Whereabouts>,
) -> AccountSpec {
    let digest = place.digest();
    whereabouts.insert(id.clone(), place);
    AccountSpec {
        id,
        max_in_flight: crate::config::DEFAULT_MAX_IN_FLIGHT,
        models: Globs::default(),
        has_secret: false,
        enabled,
        limit_group: None,
        requests_per_minute: None,
        tokens_per_minute: None,
        generation: 0,
        place: digest,
    }
}
