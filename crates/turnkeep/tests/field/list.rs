//! The list of public reports in `docs/field-faults.md` cannot rot: every test that it names is there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// The functions that are tests, in every crate's tests and sources.
fn tests() -> BTreeSet<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(crates).unwrap() {
        for folder in ["tests", "src"].map(|name| entry.as_ref().unwrap().path().join(name)) {
            if folder.is_dir() {
                sources(&folder, &mut files);
            }
        }
    }
    let mut names = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(file).unwrap();
        let mut is_test = false;
        for line in text.lines().map(str::trim) {
            if line.starts_with("#[tokio::test") || line == "#[test]" {
                is_test = true;
            } else if let Some((_, rest)) = line.split_once("fn ")
                && std::mem::take(&mut is_test)
            {
                names.insert(rest.split('(').next().unwrap().to_owned());
            }
        }
    }
    names
}

#[test]
fn every_test_that_the_list_of_field_faults_names_exists() {
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/field-faults.md");
    let list = std::fs::read_to_string(list).unwrap();
    let tests = tests();
    let mut rows = 0;
    let mut named = BTreeSet::new();
    for line in list.lines().filter(|line| line.starts_with("| ") && line.contains('#')) {
        rows += 1;
        let covered = line.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        if covered.starts_with("does not apply: ") {
            continue;
        }
        let names: Vec<&str> = covered.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "names no test and gives no reason: {line}");
        for name in names {
            assert!(tests.contains(name), "there is no test {name}: {line}");
            named.insert(name);
        }
    }
    assert!(rows > 100, "the list has only {rows} rows");
    // And the other way round: a test of this folder belongs to a report.
    let mut here = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/field"), &mut here);
    let here: String = here.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    for name in tests.iter().filter(|name| here.contains(&format!("async fn {name}("))) {
        assert!(named.contains(name.as_str()), "{name} is not in the list");
    }
}
