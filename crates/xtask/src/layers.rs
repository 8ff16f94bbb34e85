//! Compares the dependency graph with the layer table. It knows nothing of the rules themselves: those are in `rules`.

use crate::graph::Graph;
use crate::rules::{CrateRule, Externals};

/// Every broken rule as one line for a person; empty when the graph keeps to the table.
pub fn check(graph: &Graph, rules: &[CrateRule]) -> Vec<String> {
    let mut broken = Vec::new();
    for (name, declared) in graph.members() {
        let Some(rule) = rules.iter().find(|rule| rule.name == name) else {
            broken.push(format!("{name} has no row in the layer table: say which layer it belongs to"));
            continue;
        };
        for dependency in declared {
            let allowed = if graph.is_member(dependency) {
                rule.crates.contains(&dependency.as_str())
            } else {
                match rule.externals {
                    Externals::Only(list) => list.contains(&dependency.as_str()),
                    Externals::Any => true,
                }
            };
            if !allowed {
                broken.push(format!("{name} may not depend on {dependency}: {}", rule.why));
            }
        }
        for never in rule.never {
            if let Some(chain) = graph.path(name, never) {
                broken.push(format!("{name} must never see {never} ({}): {}", chain.join(" -> "), rule.why));
            }
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::CRATES;

    /// `(name, is it ours, [(dependency, kind)])`.
    type Package<'a> = (&'a str, bool, &'a [(&'a str, &'a str)]);

    /// Metadata as cargo prints it.
    fn metadata(packages: &[Package<'_>]) -> Graph {
        let id = |name: &str| format!("path+file:///fixture/{name}#1.0.0");
        let kind = |kind: &str| if kind == "normal" { serde_json::Value::Null } else { kind.into() };
        let json = serde_json::json!({
            "packages": packages.iter().map(|(name, _, below)| serde_json::json!({
                "name": name, "version": "1.0.0", "id": id(name), "source": null, "description": null,
                "license": null, "license_file": null, "targets": [], "features": {},
                "manifest_path": format!("/fixture/{name}/Cargo.toml"), "metadata": null, "publish": null,
                "authors": [], "categories": [], "keywords": [], "readme": null, "repository": null,
                "homepage": null, "documentation": null, "edition": "2024", "links": null,
                "default_run": null, "rust_version": null,
                "dependencies": below.iter().map(|(to, how)| serde_json::json!({
                    "name": to, "source": null, "req": "*", "kind": kind(how), "rename": null, "optional": false,
                    "uses_default_features": true, "features": [], "target": null, "registry": null
                })).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
            "workspace_members": packages.iter().filter(|(_, ours, _)| *ours).map(|(name, ..)| id(name)).collect::<Vec<_>>(),
            "workspace_default_members": [],
            "resolve": {
                "nodes": packages.iter().map(|(name, _, below)| serde_json::json!({
                    "id": id(name), "features": [],
                    "dependencies": below.iter().map(|(to, _)| id(to)).collect::<Vec<_>>(),
                    "deps": below.iter().map(|(to, how)| serde_json::json!({
                        "name": to, "pkg": id(to), "dep_kinds": [{ "kind": kind(how), "target": null }]
                    })).collect::<Vec<_>>(),
                })).collect::<Vec<_>>(),
                "root": null
            },
            "target_directory": "/fixture/target", "version": 1, "workspace_root": "/fixture", "metadata": null
        });
        Graph::from_metadata(&cargo_metadata::MetadataCommand::parse(json.to_string()).unwrap())
    }

    fn only_complaint(packages: &[Package<'_>]) -> String {
        let broken = check(&metadata(packages), CRATES);
        assert_eq!(broken.len(), 1, "{broken:?}");
        broken.into_iter().next().unwrap()
    }

    #[test]
    fn a_workspace_that_keeps_to_the_table_has_no_complaint() {
        let graph = metadata(&[
            ("turnkeep-base", true, &[("bytes", "normal")]),
            ("turnkeep-engine", true, &[("turnkeep-base", "normal"), ("tokio", "normal")]),
            ("bytes", false, &[]),
            ("tokio", false, &[]),
        ]);
        assert_eq!(check(&graph, CRATES), Vec::<String>::new());
    }

    #[test]
    fn a_layer_0_crate_that_names_a_package_outside_its_list_is_refused() {
        let said = only_complaint(&[("turnkeep-wire", true, &[("regex", "normal")]), ("regex", false, &[])]);
        assert!(said.contains("turnkeep-wire may not depend on regex"), "{said}");
    }

    #[test]
    fn an_engine_that_sees_hyper_through_another_package_is_refused_with_the_chain() {
        let said = only_complaint(&[
            ("turnkeep-engine", true, &[("http", "normal")]),
            ("http", false, &[("between", "normal")]),
            ("between", false, &[("hyper", "normal")]),
            ("hyper", false, &[]),
        ]);
        assert!(said.contains("turnkeep-engine -> http -> between -> hyper"), "{said}");
    }

    #[test]
    fn a_layer_3_crate_that_sees_another_layer_3_crate_is_refused() {
        let said = only_complaint(&[
            ("turnkeep-upstream", true, &[("turnkeep-store", "normal")]),
            ("turnkeep-store", true, &[]),
        ]);
        assert!(said.contains("turnkeep-upstream may not depend on turnkeep-store"), "{said}");
    }

    #[test]
    fn an_http_crate_that_sees_an_upstream_or_a_store_is_refused() {
        for seen in ["turnkeep-upstream", "turnkeep-store"] {
            let said = only_complaint(&[("turnkeep-http", true, &[(seen, "normal")]), (seen, true, &[])]);
            assert!(said.contains(&format!("turnkeep-http may not depend on {seen}")), "{said}");
        }
    }

    #[test]
    fn a_policy_crate_that_draws_random_numbers_is_refused() {
        let broken = check(
            &metadata(&[("turnkeep-policy", true, &[("getrandom", "normal")]), ("getrandom", false, &[])]),
            CRATES,
        );
        assert!(broken.iter().any(|said| said.contains("turnkeep-policy must never see getrandom")), "{broken:?}");
    }

    #[test]
    fn a_lab_that_shares_code_with_what_it_tests_is_refused() {
        let said = only_complaint(&[
            ("turnkeep-lab", true, &[("turnkeep-dialect", "normal")]),
            ("turnkeep-dialect", true, &[]),
        ]);
        assert!(said.contains("turnkeep-lab may not depend on turnkeep-dialect"), "{said}");
    }

    #[test]
    fn a_crate_without_a_row_is_refused() {
        let said = only_complaint(&[("turnkeep-new", true, &[])]);
        assert!(said.contains("turnkeep-new has no row"), "{said}");
    }

    #[test]
    fn a_dev_dependency_is_free() {
        let graph = metadata(&[("turnkeep-base", true, &[("tokio", "dev")]), ("tokio", false, &[])]);
        assert_eq!(check(&graph, CRATES), Vec::<String>::new());
    }

    #[test]
    fn a_build_dependency_counts_as_a_dependency() {
        let said = only_complaint(&[("turnkeep-base", true, &[("cc", "build")]), ("cc", false, &[])]);
        assert!(said.contains("turnkeep-base may not depend on cc"), "{said}");
    }
}
