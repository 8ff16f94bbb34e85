//! The model names that clients use, and where each goes.

use std::collections::BTreeMap;
use std::sync::Arc;
use turnkeep_engine::route::{Route, UpstreamEntry};
use turnkeep_policy::glob::Globs;

/// Where a name goes.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The configured name, `*` for one that passes through.
    pub label: Arc<str>,
    /// In order.
    pub routes: Arc<[Route]>,
}

/// A configured model.
#[derive(Clone, Debug)]
pub struct ModelEntry {
    /// Its name.
    pub name: String,
    /// Other names of it.
    pub aliases: Vec<String>,
    /// In order.
    pub routes: Vec<Route>,
}

/// All names.
#[derive(Debug, Default)]
pub struct Catalog {
    names: BTreeMap<String, Resolved>,
    /// For any other name.
    any: Vec<Arc<UpstreamEntry>>,
    any_models: Vec<Option<Arc<str>>>,
}

impl Catalog {
    /// From the configured models; `any` are the routes of `*`, with a model where one is fixed.
    pub fn new(models: Vec<ModelEntry>, any: Vec<(Arc<UpstreamEntry>, Option<Arc<str>>)>) -> Self {
        let mut names = BTreeMap::new();
        for model in models {
            let routes: Arc<[Route]> = model.routes.into();
            let label: Arc<str> = model.name.as_str().into();
            for name in model.aliases.into_iter().chain([model.name]) {
                names.insert(name, Resolved { label: label.clone(), routes: routes.clone() });
            }
        }
        let (any, any_models) = any.into_iter().unzip();
        Catalog { names, any, any_models }
    }

    /// Where a name goes.
    pub fn resolve(&self, name: &str) -> Option<Resolved> {
        if let Some(resolved) = self.names.get(name) {
            return Some(resolved.clone());
        }
        if self.any.is_empty() {
            return None;
        }
        let routes = self.any.iter().zip(&self.any_models).map(|(upstream, model)| Route {
            upstream: upstream.clone(),
            model: model.clone().unwrap_or_else(|| name.into()),
        });
        Some(Resolved { label: "*".into(), routes: routes.collect() })
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

    fn catalog(names: &[&str]) -> Catalog {
        let entry = |name: &&str| ModelEntry { name: (*name).to_owned(), aliases: vec![], routes: vec![] };
        Catalog::new(names.iter().map(entry).collect(), vec![])
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
