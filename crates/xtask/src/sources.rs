//! Looks for text that only some crates may contain: promises that a manifest cannot express.
//!
//! A plain text search, on purpose: it skips comment lines and test code (files and folders named `tests`, and what
//! follows an inline `#[cfg(test)] mod`), and does not try to understand Rust.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::rules::{Scope, SourceRule};

/// Every broken rule as `file:line: …`, over `crates/*/src` below `root`.
pub fn check(root: &Path, rules: &[SourceRule]) -> Result<Vec<String>> {
    let mut broken = Vec::new();
    for folder in entries(&root.join("crates"))? {
        let name = file_name(&folder);
        let binding: Vec<&SourceRule> = rules.iter().filter(|rule| binds(rule, &name)).collect();
        // The rules' own table spells out every needle.
        if name == "xtask" || binding.is_empty() {
            continue;
        }
        for file in rust_files(&folder.join("src"))? {
            let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
            let shown = file.strip_prefix(root).unwrap_or(&file).display().to_string();
            broken.extend(complaints(&shown, &text, &binding));
        }
    }
    Ok(broken)
}

fn binds(rule: &SourceRule, folder: &str) -> bool {
    match rule.scope {
        Scope::OnlyIn(list) => !list.contains(&folder),
        Scope::NotIn(list) => list.contains(&folder),
    }
}

fn complaints(file: &str, text: &str, rules: &[&SourceRule]) -> Vec<String> {
    let mut broken = Vec::new();
    for (number, line) in shipped_lines(text) {
        for rule in rules {
            if line.contains(rule.needle) {
                broken.push(format!("{file}:{number}: `{}` may not stand here: {}", rule.needle, rule.why));
            }
        }
    }
    broken
}

/// The lines that are neither comments nor behind an inline test module, numbered from 1.
fn shipped_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines: Vec<&str> = text.lines().collect();
    let inline_tests = lines.windows(2).position(|pair| {
        pair[0].trim() == "#[cfg(test)]"
            && pair[1].trim_start().starts_with("mod ")
            && pair[1].trim_end().ends_with('{')
    });
    let end = inline_tests.unwrap_or(lines.len());
    lines
        .into_iter()
        .take(end)
        .enumerate()
        .map(|(at, line)| (at + 1, line))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in entries(folder)? {
        let name = file_name(&path);
        if name == "tests" || name == "tests.rs" {
            continue;
        }
        if path.is_dir() {
            found.extend(rust_files(&path)?);
        } else if name.ends_with(".rs") {
            found.push(path);
        }
    }
    Ok(found)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        paths.push(entry.with_context(|| format!("cannot list {}", folder.display()))?.path());
    }
    paths.sort();
    Ok(paths)
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::SOURCES;

    fn said_of(folder: &str, text: &str) -> Vec<String> {
        let binding: Vec<&SourceRule> = SOURCES.iter().filter(|rule| binds(rule, folder)).collect();
        complaints(&format!("crates/{folder}/src/x.rs"), text, &binding)
    }

    #[test]
    fn a_mint_made_outside_the_wiring_is_refused_with_file_and_line() {
        let said = said_of("http", "use base::Mint;\nlet mint = Mint::new();\n");
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("crates/http/src/x.rs:2: `Mint::`"), "{said:?}");
    }

    #[test]
    fn a_mint_made_by_the_wiring_is_allowed() {
        assert!(said_of("turnkeep", "let mint = Mint::new();\n").is_empty());
        assert!(said_of("base", "Mint::new();\n").is_empty());
    }

    #[test]
    fn a_pure_crate_that_asks_the_clock_is_refused() {
        for folder in ["base", "wire", "dialect", "policy"] {
            assert_eq!(said_of(folder, "let now = Instant::now();\n").len(), 1, "{folder}");
        }
    }

    #[test]
    fn comments_and_inline_tests_are_not_searched() {
        let text = "/// see Mint::new\n#[cfg(test)]\nmod tests {\n    let mint = Mint::new();\n}\n";
        assert!(said_of("engine", text).is_empty());
    }

    #[test]
    fn code_before_an_inline_test_module_is_searched() {
        let text = "let mint = Mint::new();\n#[cfg(test)]\nmod tests {\n}\n";
        assert_eq!(said_of("engine", text).len(), 1);
    }
}
