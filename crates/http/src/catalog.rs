//! The model names that clients use, and where each goes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use turnkeep_base::Price;
use turnkeep_engine::route::{Route, Tier, UpstreamEntry};
use turnkeep_policy::glob::Globs;

/// Where a name goes.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The configured name, `*` for one that passes through.
    pub label: Arc<str>,
    /// In order: the model's own, those of its fallbacks, those for requests that are too long for it.
    pub routes: Arc<[Route]>,
    /// How long the model's answers may be used again, if its cache is on.
    pub cache: Option<Duration>,
}

impl Resolved {
    /// Without the routes to other models that a key may not use.
    pub fn within(self, allowed: &Globs) -> Resolved {
        let may = |route: &Route| route.tier == Tier::Own || allowed.allow(&route.name);
        if self.routes.iter().all(may) {
            return self;
        }
        let routes = self.routes.iter().filter(|route| may(route)).cloned().collect();
        Resolved { routes, ..self }
    }

    /// Without the routes that have no price: what a budget in money can tell of. `None` if none of the model's own is
    /// left.
    pub fn priced(self) -> Option<Resolved> {
        if self.routes.iter().all(|route| route.price.is_some()) {
            return Some(self);
        }
        let routes: Arc<[Route]> = self.routes.iter().filter(|route| route.price.is_some()).cloned().collect();
        routes.iter().any(|route| route.tier == Tier::Own).then_some(Resolved { routes, ..self })
    }
}

/// A configured model.
#[derive(Clone, Debug)]
pub struct ModelEntry {
    /// Its name.
    pub name: String,
    /// Other names of it.
    pub aliases: Vec<String>,
    /// In order; the upstream and its name for the model.
    pub routes: Vec<(Arc<UpstreamEntry>, Arc<str>)>,
    /// The models that may answer in its place when none of its routes can; by name.
    pub fallbacks: Vec<String>,
    /// The models that may take a request which is too long for it; by name.
    pub larger: Vec<String>,
    /// What its tokens cost.
    pub price: Option<Price>,
    /// How long its answers may be used again, if its cache is on.
    pub cache: Option<Duration>,
}

/// All names.
#[derive(Debug, Default)]
pub struct Catalog {
    names: BTreeMap<String, Resolved>,
    any: AnyModel,
}

/// Where any other name goes.
#[derive(Clone, Debug, Default)]
pub struct AnyModel {
    /// In order, with a model where one is fixed.
    pub routes: Vec<(Arc<UpstreamEntry>, Option<Arc<str>>)>,
    /// What its tokens cost, whatever the name.
    pub price: Option<Price>,
    /// How long its answers may be used again, if its cache is on.
    pub cache: Option<Duration>,
}

impl Catalog {
    /// From the configured models, and `*`.
    pub fn new(models: Vec<ModelEntry>, any: AnyModel) -> Self {
        let mut names = BTreeMap::new();
        for model in &models {
            let label: Arc<str> = model.name.as_str().into();
            let mut routes = routes(model, Tier::Own);
            for (others, tier) in [(&model.fallbacks, Tier::Fallback), (&model.larger, Tier::Larger)] {
                let named = others.iter().filter_map(|name| models.iter().find(|other| other.name == *name));
                routes.extend(named.flat_map(|other| self::routes(other, tier)));
            }
            let routes: Arc<[Route]> = routes.into();
            for name in model.aliases.iter().chain([&model.name]) {
                names.insert(
                    name.clone(),
                    Resolved { label: label.clone(), routes: routes.clone(), cache: model.cache },
                );
            }
        }
        Catalog { names, any }
    }

    /// Where a name goes.
    pub fn resolve(&self, name: &str) -> Option<Resolved> {
        if let Some(resolved) = self.names.get(name) {
            return Some(resolved.clone());
        }
        if self.any.routes.is_empty() {
            return None;
        }
        let label: Arc<str> = "*".into();
        let routes = self.any.routes.iter().map(|(upstream, model)| Route {
            upstream: upstream.clone(),
            model: model.clone().unwrap_or_else(|| name.into()),
            tier: Tier::Own,
            name: label.clone(),
            price: self.any.price,
        });
        Some(Resolved { routes: routes.collect(), label, cache: self.any.cache })
    }

    /// The names that a key may use, in order.
    pub fn names(&self, allowed: &Globs) -> Vec<&str> {
        self.names.keys().map(String::as_str).filter(|name| allowed.allow(name)).collect()
    }

    /// Up to three names nearest to one that is unknown, among those a key may use.
    pub fn nearest(&self, unknown: &str, allowed: &Globs) -> Vec<&str> {
        let mut near: Vec<(usize, &str)> = self
            .names(allowed)
            .into_iter()
            .map(|name| (distance(&unknown.to_lowercase(), &name.to_lowercase()), name))
            .filter(|(distance, name)| *distance <= name.len().max(unknown.len()) / 2)
            .collect();
        near.sort_unstable();
        near.into_iter().take(3).map(|(_, name)| name).collect()
    }
}

fn routes(model: &ModelEntry, tier: Tier) -> Vec<Route> {
    let name: Arc<str> = model.name.as_str().into();
    let route = |(upstream, asked): &(Arc<UpstreamEntry>, Arc<str>)| Route {
        upstream: upstream.clone(),
        model: asked.clone(),
        tier,
        name: name.clone(),
        price: model.price,
    };
    model.routes.iter().map(route).collect()
}

/// Edits between two names; names are cut to 128 characters first, to bound the work.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().take(128).collect();
    let right: Vec<char> = right.chars().take(128).collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (at, a) in left.iter().enumerate() {
        let mut corner = row[0];
        row[0] = at + 1;
        for (to, b) in right.iter().enumerate() {
            let swapped = corner + usize::from(a != b);
            corner = row[to + 1];
            row[to + 1] = swapped.min(row[to] + 1).min(corner + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnkeep_engine::route::{Reuse, Speech};

    struct Nowhere;

    impl turnkeep_engine::ports::Upstream for Nowhere {
        fn send(
            &self,
            _: turnkeep_engine::ports::Call,
        ) -> futures_util::future::BoxFuture<'_, Result<turnkeep_engine::ports::Answer, turnkeep_base::Fault>> {
            Box::pin(std::future::pending())
        }
    }

    fn entry(name: &str) -> ModelEntry {
        ModelEntry {
            name: name.to_owned(),
            aliases: vec![],
            routes: vec![],
            fallbacks: vec![],
            larger: vec![],
            price: None,
            cache: None,
        }
    }

    fn catalog(names: &[&str]) -> Catalog {
        Catalog::new(names.iter().map(|name| entry(name)).collect(), AnyModel::default())
    }

    #[test]
    fn fallbacks_follow_the_models_own_routes_and_a_key_gets_only_those_to_models_that_it_may_use() {
        let upstream = Arc::new(UpstreamEntry {
            name: "u".into(),
            speech: Speech::Dialect { dialect: turnkeep_base::Dialect::Chat, chains: false, port: Arc::new(Nowhere) },
            reuse: Reuse::Off,
            clocks: turnkeep_engine::route::Clocks::default(),
            on_client_gone: turnkeep_engine::route::OnClientGone::Cancel,
        });
        let with = |name: &str| ModelEntry { routes: vec![(upstream.clone(), name.into())], ..entry(name) };
        let small = ModelEntry {
            fallbacks: vec!["other".into(), "third".into()],
            larger: vec!["large".into()],
            ..with("small")
        };
        // A fallback's own fallbacks are not followed.
        let other = ModelEntry { fallbacks: vec!["large".into()], ..with("other") };
        let catalog = Catalog::new(vec![with("large"), small, with("third"), other], AnyModel::default());
        let shown = |resolved: Resolved| -> Vec<(String, Tier)> {
            resolved.routes.iter().map(|route| (route.name.to_string(), route.tier)).collect()
        };
        let all = catalog.resolve("small").unwrap();
        let expected =
            [("small", Tier::Own), ("other", Tier::Fallback), ("third", Tier::Fallback), ("large", Tier::Larger)];
        assert_eq!(shown(all.clone()), expected.map(|(name, tier)| (name.to_owned(), tier)));
        let some = all.within(&Globs::new(vec!["small".into(), "th*".into()]));
        assert_eq!(shown(some), [("small".to_owned(), Tier::Own), ("third".to_owned(), Tier::Fallback)]);
    }

    #[test]
    fn a_budget_in_money_gets_only_routes_with_a_price_and_none_to_a_model_without_one() {
        let upstream = Arc::new(UpstreamEntry {
            name: "u".into(),
            speech: Speech::Dialect { dialect: turnkeep_base::Dialect::Chat, chains: false, port: Arc::new(Nowhere) },
            reuse: Reuse::Off,
            clocks: turnkeep_engine::route::Clocks::default(),
            on_client_gone: turnkeep_engine::route::OnClientGone::Cancel,
        });
        let with =
            |name: &str, price| ModelEntry { routes: vec![(upstream.clone(), name.into())], price, ..entry(name) };
        let price = Some(Price { input: 1, output: 2, cache_read: 1, cache_write: 1 });
        let paid = ModelEntry { fallbacks: vec!["free".into()], ..with("paid", price) };
        let free = ModelEntry { fallbacks: vec!["paid".into()], ..with("free", None) };
        let catalog = Catalog::new(vec![paid, free], AnyModel::default());
        let routes = catalog.resolve("paid").unwrap().priced().unwrap().routes;
        assert_eq!(routes.iter().map(|route| &*route.name).collect::<Vec<_>>(), ["paid"]);
        assert!(catalog.resolve("free").unwrap().priced().is_none());
    }

    #[test]
    fn an_unknown_name_is_told_the_nearest_ones_that_the_key_may_use() {
        let catalog = catalog(&["claude-sonnet-4-5", "claude-opus-4", "gpt-5"]);
        assert_eq!(catalog.nearest("claude-sonet-4-5", &Globs::default()), ["claude-sonnet-4-5", "claude-opus-4"]);
        let only_gpt = Globs::new(vec!["gpt-*".into()]);
        assert!(catalog.nearest("claude-sonet-4-5", &only_gpt).is_empty());
        assert!(catalog.resolve("gpt-6").is_none());
    }
}
