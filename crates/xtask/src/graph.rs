//! What the layer check needs of `cargo metadata`: names, declared dependencies, and the resolved tree below each package.
//!
//! Dev-dependencies are left out everywhere; two versions of one package count as one name.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, Metadata, PackageId};

/// The workspace's packages and what they lean on, by name.
pub struct Graph {
    members: BTreeMap<String, BTreeSet<String>>,
    edges: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    /// Reads the normal and build dependencies out of `metadata`.
    pub fn from_metadata(metadata: &Metadata) -> Self {
        let names: BTreeMap<&PackageId, String> =
            metadata.packages.iter().map(|package| (&package.id, package.name.to_string())).collect();
        let mut members = BTreeMap::new();
        for package in metadata.packages.iter().filter(|package| metadata.workspace_members.contains(&package.id)) {
            let declared = package
                .dependencies
                .iter()
                .filter(|dependency| dependency.kind != DependencyKind::Development)
                .map(|dependency| dependency.name.clone())
                .collect();
            members.insert(package.name.to_string(), declared);
        }
        let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for node in metadata.resolve.iter().flat_map(|resolve| &resolve.nodes) {
            let Some(from) = names.get(&node.id) else { continue };
            let below = edges.entry(from.clone()).or_default();
            for dependency in &node.deps {
                let shipped = dependency.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal);
                if let (true, Some(to)) = (shipped, names.get(&dependency.pkg)) {
                    below.insert(to.clone());
                }
            }
        }
        Self { members, edges }
    }

    /// The workspace's packages with the dependencies that their manifests declare.
    pub fn members(&self) -> impl Iterator<Item = (&str, &BTreeSet<String>)> {
        self.members.iter().map(|(name, declared)| (name.as_str(), declared))
    }

    /// Whether `name` is a package of this workspace.
    pub fn is_member(&self, name: &str) -> bool {
        self.members.contains_key(name)
    }

    /// The shortest chain of packages from `from` down to `to`, both included, or `None` when `to` is not below it.
    pub fn path(&self, from: &str, to: &str) -> Option<Vec<String>> {
        let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
        let mut ring = vec![from];
        while !ring.is_empty() {
            let mut next = Vec::new();
            for at in ring {
                for below in self.edges.get(at).into_iter().flatten() {
                    if below == from || came_from.contains_key(below.as_str()) {
                        continue;
                    }
                    came_from.insert(below, at);
                    if below == to {
                        let mut chain = vec![below.clone()];
                        let mut step = at;
                        while step != from {
                            chain.push(step.to_owned());
                            step = came_from.get(step).copied().unwrap_or(from);
                        }
                        chain.push(from.to_owned());
                        chain.reverse();
                        return Some(chain);
                    }
                    next.push(below.as_str());
                }
            }
            ring = next;
        }
        None
    }
}
