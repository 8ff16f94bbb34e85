//! The running configuration, and how another one is taken up: everything that can fail first, then all of it at once.
//!
//! One task owns this ([`super::reload`]), so there is no lock and no half-taken configuration. An attempt that runs goes on
//! as it began; a new one, of a running turn too, gets today's driver, credential and accounts. Standings, cooldowns and
//! slots live in admission and survive.

use super::accounts::Gathered;
use super::drivers::Outside;
use super::health::Notices;
use super::standing::{self, Book};
use super::upstreams::{self, Upstreams};
use super::whereabouts::Whereabouts;
use super::{accounts, keys};
use crate::commands::Failure;
use crate::config::{Config, KeyRule, needs_restart, startup_rule};
use crate::secrets::Keeper;
use http::HeaderName;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use turnkeep_base::AccountId;
use turnkeep_engine::admission::Setup;
use turnkeep_engine::route::Rules;
use turnkeep_http::Gateway;
use turnkeep_http::callers::{KeyDigest, Known};
use turnkeep_http::proxies::Proxies;
use turnkeep_store::Store;

/// What a configuration is applied to.
pub(super) struct Parts {
    pub(super) gateway: Arc<Gateway>,
    pub(super) book: Book,
    pub(super) store: Arc<dyn Store>,
    pub(super) keeper: Arc<Keeper>,
    pub(super) notices: Arc<Notices>,
    pub(super) outside: Outside,
}

impl Parts {
    /// Unix milliseconds.
    pub(super) fn unix_ms(&self) -> u64 {
        self.gateway.engine().clock.unix_ms()
    }
}

/// The running configuration.
pub(super) struct Live {
    pub(super) parts: Parts,
    pub(super) config: Config,
    /// As it was at the start: what needs a restart is measured from it.
    started: Config,
    upstreams: Upstreams,
    /// Where the conversations of each account are kept.
    whereabouts: BTreeMap<AccountId, Whereabouts>,
    /// The configuration's own keys, as they were when it was taken up.
    keys: BTreeMap<KeyDigest, Known>,
}

/// What is taken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Occasion {
    /// The first configuration.
    Start,
    /// Another one.
    File,
    /// Changes in the store, under the configuration that runs: what its files held then still holds.
    Store,
}

/// A turn's share of the configured numbers.
pub(super) fn rules(config: &Config) -> Rules {
    Rules {
        serve_unrecorded: config.store.serve_on_failure,
        ..Rules::of(&config.tuning, config.stream.open_after, config.stream.heartbeat)
    }
}

/// Two keys of one name would be one caller: what is kept for one would be given to the other.
fn refuse_same_names<'a>(config: &Config, mut stored: impl Iterator<Item = &'a Known>) -> Result<(), Failure> {
    let named = |known: &&Known| config.keys.iter().any(|key| *key.name == *known.caller.name);
    match stored.find(named) {
        None => Ok(()),
        Some(known) => Err(Failure::Usage(format!(
            "keys {:?}: the store has a key of this name, too; give one of them another name, or end the store's with \
             `turnkeep keys revoke {}`",
            known.caller.name, known.caller.name
        ))),
    }
}

impl Live {
    /// Takes the first configuration up.
    pub(super) async fn begin(parts: Parts, config: Config) -> Result<Live, Failure> {
        let (started, upstreams, whereabouts) = (config.clone(), Upstreams::new(), BTreeMap::new());
        let mut live = Live { parts, config: config.clone(), started, upstreams, whereabouts, keys: BTreeMap::new() };
        live.apply(config, Occasion::Start).await?;
        live.parts.book.take_up_switches().await?;
        let now = live.parts.unix_ms();
        live.parts.notices.change(|state| state.loaded_ms = now);
        Ok(live)
    }

    /// Takes another configuration up, or nothing of it. Gives the keys that only a restart takes up.
    pub(super) async fn take_up(&mut self, config: Config) -> Result<Vec<String>, Failure> {
        let later: Vec<String> = needs_restart(&self.started, &config).into_iter().map(str::to_owned).collect();
        self.apply(config, Occasion::File).await?;
        Ok(later)
    }

    /// Takes up what the command line has changed in the store: accounts and keys.
    pub(super) async fn store_changed(&mut self) -> Result<(), Failure> {
        self.apply(self.config.clone(), Occasion::Store).await
    }

    async fn apply(&mut self, config: Config, occasion: Occasion) -> Result<(), Failure> {
        let Parts { gateway, store, keeper, outside, .. } = &self.parts;
        let admission = &gateway.engine().admission;
        let known: BTreeSet<AccountId> = admission.snapshots().into_iter().map(|snapshot| snapshot.id).collect();
        let Gathered { specs, sources, places, whereabouts } = accounts::gather(&config, store.as_ref()).await?;
        let found = keeper.find(sources).await;
        let slots = |upstream: &str| {
            let its = specs.iter().filter(|account| &*account.id.upstream == upstream);
            its.map(|account| account.max_in_flight).max().unwrap_or(1)
        };
        let upstreams = match upstreams::build(&config, &self.upstreams, slots, &places, outside) {
            Ok(built) => built,
            // A file that has gone since keeps nobody from being revoked.
            Err(_) if occasion == Occasion::Store => self.upstreams.clone(),
            Err(failure) => return Err(failure),
        };
        let snapshot = store.keys_snapshot().await.map_err(Failure::operation)?;
        let own_keys = match occasion {
            Occasion::Start | Occasion::File => keys::of_config(&config, &snapshot.pepper).await?,
            Occasion::Store => self.keys.clone(),
        };
        let mut callers = keys::of_store(&snapshot);
        if occasion != Occasion::Store {
            refuse_same_names(&config, callers.values())?;
        }
        callers.extend(own_keys.clone());
        if occasion == Occasion::File {
            self.refuse_empty(&config, callers.is_empty())?;
        }
        if startup_rule(&config, !callers.is_empty()) == KeyRule::RefusePublic {
            return Err(Failure::Usage("no caller key would be left, and others than this machine can call".into()));
        }
        let fetch = match occasion {
            Occasion::Start => Some(upstreams::fetcher(&config.fetch, &outside.egress)),
            // The one that runs holds the places of those who wait.
            Occasion::File | Occasion::Store if self.config.fetch == config.fetch => None,
            Occasion::File | Occasion::Store => Some(upstreams::fetcher(&config.fetch, &outside.egress)),
        };
        let configured: BTreeSet<AccountId> = specs.iter().map(|account| account.id.clone()).collect();
        let new: Vec<AccountId> =
            specs.iter().map(|account| account.id.clone()).filter(|id| !known.contains(id)).collect();
        let standings = standing::load(store.as_ref(), &new).await?;

        // From here on nothing fails.
        let left: Vec<AccountId> = known.into_iter().filter(|id| !configured.contains(id)).collect();
        let saved = standing::restored(standings, self.parts.unix_ms());
        keeper.take_into(found, |secrets| {
            gateway.take_up_keys(callers);
            admission.reconfigure(Setup {
                tuning: config.tuning.clone(),
                upstreams: upstreams::specs(&upstreams),
                entries: upstreams.values().map(|built| built.entry.clone()).collect(),
                accounts: specs.into_iter().zip(secrets).collect(),
                routes: upstreams::pairs(&config),
                saved,
            });
        });
        for (id, place) in &whereabouts {
            if let Some(changed) = self.whereabouts.get(id).and_then(|before| place.changed_since(before)) {
                tracing::info!(account = %id, changed, "it is at another place: its conversations are dropped");
            }
        }
        // Nobody goes on with the conversations of an account that is gone, or at another place.
        gateway.engine().conversations.sweep(admission.present());
        // What runs on the connections and processes of an account that is gone, or has changed, may finish; those that wait
        // end.
        for (name, old) in &self.upstreams {
            old.driver.let_go(upstreams.get(name).map(|built| &built.driver));
        }
        for id in left {
            if let Some(built) = upstreams.get(&*id.upstream) {
                built.driver.forget_account(&id);
            }
        }
        gateway.engine().set_rules(rules(&config));
        if let Some(digest) = &config.digest {
            gateway.engine().set_config_digest(digest.as_str());
        }
        gateway.keep_stored_for(config.store.keep.responses);
        let max_body = usize::try_from(config.server.max_body).unwrap_or(usize::MAX);
        let user_header = config.server.user_header.as_deref().and_then(|name| HeaderName::try_from(name).ok());
        let proxies = Proxies { trusted: config.server.trusted_proxies.clone(), user_header };
        if let Some(fetch) = fetch {
            gateway.take_up_fetch(fetch);
        }
        gateway.take_up(upstreams::catalog(&config, &upstreams), max_body, proxies);
        self.upstreams = upstreams;
        self.whereabouts = whereabouts;
        self.keys = own_keys;
        self.config = config;
        Ok(())
    }

    /// A file that was emptied, or is half written, looks like a configuration that wants nothing any more. One that
    /// would leave a serving gateway without an upstream or a key is a mistake; stopping the gateway is the way to mean it.
    fn refuse_empty(&self, config: &Config, no_key: bool) -> Result<(), Failure> {
        if config.upstreams.is_empty() && !self.config.upstreams.is_empty() {
            return Err(Failure::Usage("the file names no upstream any more; is it half written?".into()));
        }
        if no_key && !self.parts.gateway.callers().is_empty() {
            return Err(Failure::Usage("no caller key would be left; is the file half written?".into()));
        }
        let gone = self.config.upstreams.iter().filter(|old| config.upstream(&old.name).is_none());
        for upstream in gone {
            tracing::warn!(upstream = upstream.name, "an upstream is no longer in the configuration");
        }
        let kept = |key: &crate::config::CallerKey| config.keys.iter().any(|other| other.name == key.name);
        for key in self.config.keys.iter().filter(|key| !kept(key)) {
            tracing::warn!(key = key.name, "a caller's key is no longer in the configuration");
        }
        Ok(())
    }
}
