//! The upstreams' drivers, and the model names that lead to them. A driver whose configuration has not changed is kept when
//! another configuration is taken up, and with it its connections; a replaced one lives on until its last exchange ends. The
//! one that replaces it goes on with the processes of accounts that have not changed.

use super::drivers::{Driver, Outside, Recipe};
use super::surroundings::Surroundings;
use crate::commands::Failure;
use crate::config::{Config, Fetch, Model, Upstream};
use std::collections::BTreeMap;
use std::sync::Arc;
use turnkeep_engine::ports::Fetch as FetchPort;
use turnkeep_engine::route::{Clocks, UpstreamEntry};
use turnkeep_http::catalog::{AnyModel, Catalog, ModelEntry};
use turnkeep_policy::accounts::UpstreamSpec;
use turnkeep_upstream::{Egress, Fetcher};

/// One upstream's driver and what it was made from.
#[derive(Clone)]
pub(super) struct Built {
    made_from: Recipe,
    pub(super) entry: Arc<UpstreamEntry>,
    pub(super) driver: Driver,
}

/// All of them, by name.
pub(super) type Upstreams = BTreeMap<String, Built>;

/// The drivers of a configuration; those of `old` that would come out the same are kept. `slots` gives the most slots that
/// an account of an upstream has, `places` what accounts' processes have around them.
pub(super) fn build(
    config: &Config,
    old: &Upstreams,
    slots: impl Fn(&str) -> u32,
    places: &Surroundings,
    outside: &Outside,
) -> Result<Upstreams, Failure> {
    let mut out = Upstreams::new();
    for upstream in &config.upstreams {
        let recipe = Recipe::of(upstream, places, slots(&upstream.name) as usize)?;
        let built = match old.get(&upstream.name).filter(|old| old.made_from == recipe) {
            Some(kept) if has_rules(&kept.entry, upstream) => kept.clone(),
            // The same driver, with its connections, processes and conversations, under other rules.
            Some(kept) => Built { entry: entry(upstream, &kept.driver), ..kept.clone() },
            None => {
                let before = old.get(&upstream.name).map(|old| &old.driver);
                let driver = recipe.make(&upstream.name, outside, before)?;
                Built { made_from: recipe, entry: entry(upstream, &driver), driver }
            }
        };
        out.insert(upstream.name.clone(), built);
    }
    Ok(out)
}

fn clocks(upstream: &Upstream) -> Clocks {
    Clocks {
        first_content: upstream.timeouts.first_content,
        between: upstream.timeouts.between,
        total: upstream.timeouts.total,
        max_turn: upstream.timeouts.max_turn,
    }
}

/// What the entry says beside its driver is what the configuration says.
fn has_rules(entry: &UpstreamEntry, upstream: &Upstream) -> bool {
    let (gone, reuse) = (upstream.on_client_gone, upstream.speaks.reuse());
    entry.on_client_gone == gone && entry.reuse == reuse && entry.clocks == clocks(upstream)
}

fn entry(upstream: &Upstream, driver: &Driver) -> Arc<UpstreamEntry> {
    Arc::new(UpstreamEntry {
        name: upstream.name.as_str().into(),
        speech: driver.speech(),
        reuse: upstream.speaks.reuse(),
        clocks: clocks(upstream),
        on_client_gone: upstream.on_client_gone,
    })
}

/// What fetches for requests; none where the operator has it off.
pub(super) fn fetcher(config: &Fetch, egress: &Egress) -> Option<Arc<dyn FetchPort>> {
    let spec = config.spec(!egress.is_open())?;
    Some(Arc::new(Fetcher::new(spec)))
}

/// The driver of one configured upstream, for a look at what one of its accounts may use.
///
/// # Errors
/// Usage: what the upstream names cannot be used.
pub(crate) fn driver(upstream: &Upstream, places: &Surroundings, outside: &Outside) -> Result<Driver, Failure> {
    Recipe::of(upstream, places, 1)?.make(&upstream.name, outside, None)
}

/// The upstreams as admission knows them.
pub(super) fn specs(upstreams: &Upstreams) -> Vec<UpstreamSpec> {
    let spec = |built: &Built| UpstreamSpec { name: built.entry.name.clone(), egress: built.driver.egress() };
    upstreams.values().map(spec).collect()
}

/// The configured (upstream, model) pairs, by the upstreams' names for the models; names that pass through are none.
pub(super) fn pairs(config: &Config) -> Vec<(Arc<str>, Arc<str>)> {
    let named = config.models.iter().filter(|model| !model.is_any());
    let pairs = named.flat_map(|model| {
        model.routes.iter().map(|route| {
            let asked = model.upstream_model(route, &model.name);
            (Arc::from(route.upstream.as_str()), Arc::from(asked))
        })
    });
    pairs.collect()
}

/// The model names and where they lead.
pub(super) fn catalog(config: &Config, upstreams: &Upstreams) -> Catalog {
    let mut models = Vec::new();
    let mut any = AnyModel::default();
    for model in &config.models {
        if model.is_any() {
            let known = model.routes.iter().filter_map(|route| {
                let upstream = upstreams.get(&route.upstream)?;
                Some((upstream.entry.clone(), route.model.as_deref().map(Arc::from)))
            });
            any.routes.extend(known);
            (any.price, any.cache) = (model.price, model.cache);
        } else {
            models.push(ModelEntry {
                name: model.name.clone(),
                aliases: model.aliases.clone(),
                routes: routes(model, upstreams),
                fallbacks: model.fallbacks.clone(),
                larger: model.larger.clone(),
                price: model.price,
                cache: model.cache,
            });
        }
    }
    Catalog::new(models, any)
}

fn routes(model: &Model, upstreams: &Upstreams) -> Vec<(Arc<UpstreamEntry>, Arc<str>)> {
    let route = |route: &crate::config::Route| {
        let upstream = upstreams.get(&route.upstream)?.entry.clone();
        Some((upstream, Arc::from(model.upstream_model(route, &model.name))))
    };
    model.routes.iter().filter_map(route).collect()
}
