//! The running configuration, and how another one is taken up: everything that can fail first, then all of it at once.
//!
//! One task owns this ([`super::reload`]), so there is no lock and no half-taken configuration. Turns that run keep the
//! routes, clocks and numbers they began with; standings, cooldowns and slots live in admission and survive.

use super::health::Notices;
use super::upstreams::{self, Upstreams};
use super::{accounts, keys, loopback_only, standing};
use crate::commands::Failure;
use crate::config::{Config, KeyRule, needs_restart, startup_rule};
use crate::secrets::Keeper;
use std::collections::BTreeSet;
use std::sync::Arc;
use turnkeep_base::AccountId;
use turnkeep_engine::admission::{Admission, Setup};
use turnkeep_engine::ports::WallClock;
use turnkeep_engine::route::Rules;
use turnkeep_http::Gateway;
use turnkeep_store::{Store, SystemClock};

/// What a configuration is applied to.
pub(super) struct Parts {
    pub(super) gateway: Arc<Gateway>,
    pub(super) admission: Arc<Admission>,
    pub(super) store: Arc<dyn Store>,
    pub(super) keeper: Arc<Keeper>,
    pub(super) notices: Arc<Notices>,
}

/// The running configuration.
pub(super) struct Live {
    pub(super) parts: Parts,
    pub(super) config: Config,
    upstreams: Upstreams,
}

/// A turn's share of the configured numbers.
pub(super) fn rules(config: &Config) -> Rules {
    Rules::of(&config.tuning, config.stream.open_after, config.stream.heartbeat)
}

impl Live {
    /// Takes the first configuration up.
    pub(super) async fn begin(parts: Parts, config: Config) -> Result<Live, Failure> {
        let mut live = Live { parts, config: config.clone(), upstreams: Upstreams::new() };
        live.apply(config).await?;
        live.parts.notices.change(|state| state.loaded_ms = SystemClock.unix_ms());
        Ok(live)
    }

    /// Takes another configuration up, or nothing of it. Gives the keys that only a restart takes up.
    pub(super) async fn take_up(&mut self, config: Config) -> Result<Vec<String>, Failure> {
        let later: Vec<String> = needs_restart(&self.config, &config).into_iter().map(str::to_owned).collect();
        self.apply(config).await?;
        Ok(later)
    }

    /// Takes up what the command line has changed in the store: accounts and keys.
    pub(super) async fn store_changed(&mut self) -> Result<(), Failure> {
        self.apply(self.config.clone()).await
    }

    async fn apply(&mut self, config: Config) -> Result<(), Failure> {
        let Parts { gateway, admission, store, keeper, .. } = &self.parts;
        let known: BTreeSet<AccountId> = admission.snapshots().into_iter().map(|snapshot| snapshot.id).collect();
        let (specs, sources) = accounts::gather(&config, store.as_ref()).await?;
        let found = keeper.find(sources).await;
        let slots = |upstream: &str| {
            let its = specs.iter().filter(|account| &*account.id.upstream == upstream);
            its.map(|account| account.max_in_flight).max().unwrap_or(1)
        };
        let upstreams = upstreams::build(&config, &self.upstreams, slots, loopback_only())?;
        let snapshot = store.keys_snapshot().await.map_err(Failure::operation)?;
        let mut callers = keys::of_store(&snapshot);
        callers.extend(keys::of_config(&config, &snapshot.pepper)?);
        if startup_rule(&config, !callers.is_empty()) == KeyRule::RefusePublic {
            return Err(Failure::Usage("no caller key would be left, and others than this machine can call".into()));
        }
        let new: Vec<AccountId> =
            specs.iter().map(|account| account.id.clone()).filter(|id| !known.contains(id)).collect();
        let standings = standing::load(store.as_ref(), &new).await?;

        // From here on nothing fails.
        let secrets = keeper.take(found);
        let setup = Setup {
            tuning: config.tuning.clone(),
            upstreams: upstreams::specs(&upstreams),
            accounts: specs.into_iter().zip(secrets).collect(),
            routes: upstreams::pairs(&config),
        };
        admission.reconfigure(setup);
        standing::restore(admission, standings, SystemClock.unix_ms());
        gateway.engine().set_rules(rules(&config));
        let max_body = usize::try_from(config.server.max_body).unwrap_or(usize::MAX);
        gateway.take_up(upstreams::catalog(&config, &upstreams), max_body);
        gateway.callers().replace(callers);
        self.upstreams = upstreams;
        self.config = config;
        Ok(())
    }
}
