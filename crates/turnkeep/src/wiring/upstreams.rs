//! The upstreams' drivers, and the model names that lead to them. A driver whose configuration has not changed is kept when
//! another configuration is taken up, and with it its connections; a replaced one lives on until its last exchange ends.

use crate::commands::Failure;
use crate::config::{Config, Fetch, Kind, Model, Upstream};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use turnkeep_engine::ports::Fetch as FetchPort;
use turnkeep_engine::route::{Clocks, Reuse, Speech, UpstreamEntry};
use turnkeep_http::catalog::{AnyModel, Catalog, ModelEntry};
use turnkeep_policy::accounts::UpstreamSpec;
use turnkeep_upstream::{Endpoint, EndpointSpec, Fetcher};

/// One upstream's driver and what it was made from.
#[derive(Clone)]
pub(super) struct Built {
    made_from: Recipe,
    pub(super) entry: Arc<UpstreamEntry>,
    pub(super) endpoint: Arc<Endpoint>,
}

/// All of them, by name.
pub(super) type Upstreams = BTreeMap<String, Built>;

/// What decides a driver. Two equal ones make the same.
#[derive(Clone, PartialEq)]
struct Recipe {
    kind: Kind,
    base_url: String,
    headers: Vec<(String, String)>,
    ca: Option<Vec<u8>>,
    proxy: Option<String>,
    timeouts: crate::config::Timeouts,
    max_in_flight: usize,
}

impl Recipe {
    fn of(upstream: &Upstream, max_in_flight: usize) -> Result<Recipe, Failure> {
        let headers = upstream.headers.iter().map(|(name, value)| (name.clone(), value.expose().to_owned()));
        Ok(Recipe {
            kind: upstream.kind,
            base_url: upstream.base_url.clone(),
            headers: headers.collect(),
            ca: upstream.ca.as_deref().map(read_file).transpose()?,
            proxy: upstream.proxy.as_ref().map(|proxy| proxy.expose().to_owned()),
            timeouts: upstream.timeouts,
            max_in_flight,
        })
    }

    fn endpoint(&self, name: &str, loopback_only: bool) -> Result<Endpoint, Failure> {
        let kind = match self.kind {
            Kind::Openai => turnkeep_upstream::Kind::OpenAi,
            Kind::OpenaiResponses => turnkeep_upstream::Kind::OpenAiResponses,
            Kind::Anthropic => turnkeep_upstream::Kind::Anthropic,
            Kind::Gemini => turnkeep_upstream::Kind::Gemini,
        };
        let mut spec = EndpointSpec::new(name, kind, self.base_url.as_str());
        spec.headers.clone_from(&self.headers);
        spec.ca_pem.clone_from(&self.ca);
        spec.proxy.clone_from(&self.proxy);
        spec.connect_timeout = self.timeouts.connect;
        spec.max_connections = spec.max_connections.max(self.max_in_flight);
        spec.loopback_only = loopback_only;
        Endpoint::new(spec).map_err(|error| Failure::Usage(error.to_string()))
    }
}

/// The drivers of a configuration; those of `old` that would come out the same are kept. `slots` gives the most slots that
/// an account of an upstream has.
pub(super) fn build(
    config: &Config,
    old: &Upstreams,
    slots: impl Fn(&str) -> u32,
    loopback_only: bool,
) -> Result<Upstreams, Failure> {
    let mut out = Upstreams::new();
    for upstream in &config.upstreams {
        let recipe = Recipe::of(upstream, slots(&upstream.name) as usize)?;
        let built = match old.get(&upstream.name).filter(|old| old.made_from == recipe) {
            Some(kept) if kept.entry.on_client_gone == upstream.on_client_gone => kept.clone(),
            // The same driver, and its connections, under other rules.
            Some(kept) => Built { entry: entry(upstream, &kept.endpoint), ..kept.clone() },
            None => {
                let endpoint = Arc::new(recipe.endpoint(&upstream.name, loopback_only)?);
                Built { made_from: recipe, entry: entry(upstream, &endpoint), endpoint }
            }
        };
        out.insert(upstream.name.clone(), built);
    }
    Ok(out)
}

fn entry(upstream: &Upstream, endpoint: &Arc<Endpoint>) -> Arc<UpstreamEntry> {
    let clocks = Clocks {
        first_content: upstream.timeouts.first_content,
        between: upstream.timeouts.between,
        total: upstream.timeouts.total,
        max_turn: upstream.timeouts.max_turn,
    };
    Arc::new(UpstreamEntry {
        name: upstream.name.as_str().into(),
        speech: Speech::Dialect {
            dialect: endpoint.kind().dialect(),
            chains: endpoint.kind() == turnkeep_upstream::Kind::OpenAiResponses,
            port: endpoint.clone(),
        },
        reuse: Reuse::default(),
        clocks,
        on_client_gone: upstream.on_client_gone,
    })
}

/// What fetches for requests; none where the operator has it off.
pub(super) fn fetcher(config: &Fetch, loopback_only: bool) -> Option<Arc<dyn FetchPort>> {
    let spec = config.spec(loopback_only)?;
    Some(Arc::new(Fetcher::new(spec)))
}

/// The driver of one configured upstream, for a look at its models.
pub(crate) fn endpoint(upstream: &Upstream, loopback_only: bool, max_in_flight: usize) -> Result<Endpoint, Failure> {
    Recipe::of(upstream, max_in_flight)?.endpoint(&upstream.name, loopback_only)
}

fn read_file(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::Usage(format!("{} cannot be read: {error}", path.display())))
}

/// The upstreams as admission knows them.
pub(super) fn specs(upstreams: &Upstreams) -> Vec<UpstreamSpec> {
    let spec = |built: &Built| UpstreamSpec { name: built.entry.name.clone(), egress: built.endpoint.egress().clone() };
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
