//! What is made of the table elsewhere says the same as the table.

#![allow(clippy::unwrap_used, reason = "a helper of a test may fail the test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use turnkeep_fuzz::{TARGETS, docs};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn names() -> BTreeSet<String> {
    TARGETS.iter().map(|target| target.name.to_owned()).collect()
}

fn stems(folder: &Path) -> BTreeSet<String> {
    let all = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    all.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

#[test]
fn every_target_has_its_libfuzzer_target_and_no_other_is_there() {
    let folder = root().join("fuzz/fuzz_targets");
    assert_eq!(stems(&folder), names());
    for target in TARGETS {
        let text = fs::read_to_string(folder.join(format!("{}.rs", target.name))).unwrap();
        assert!(text.contains(&format!("turnkeep_fuzz::targets::{}(data)", target.name)), "{text}");
    }
    let manifest = fs::read_to_string(root().join("fuzz/Cargo.toml")).unwrap();
    let listed: BTreeSet<String> = manifest
        .lines()
        .filter_map(|line| line.strip_prefix("path = \"fuzz_targets/")?.strip_suffix(".rs\""))
        .map(str::to_owned)
        .collect();
    assert_eq!(listed, names());
}

#[test]
fn every_target_has_a_folder_of_seeds_and_no_other_is_there() {
    assert_eq!(stems(&root().join("crates/fuzz/seeds")), names());
}

#[test]
fn the_documentation_has_the_tables_of_the_program() {
    let page = fs::read_to_string(root().join("docs/fuzzing.md")).unwrap();
    for (what, table) in [("targets", docs::targets()), ("differences", docs::differences())] {
        assert!(page.contains(&table), "docs/fuzzing.md: the {what} are now:\n{table}");
    }
}
