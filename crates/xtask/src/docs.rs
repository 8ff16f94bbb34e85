//! The pages of docs/ that are printed by the running build, so that they cannot drift from it.
//!
//! It does not build the binary: it runs the one beside itself (or the one that `TURNKEEP_BIN` names).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// A page and the arguments that make the binary print it.
struct Page {
    file: &'static str,
    args: &'static [&'static str],
}

const PAGES: &[Page] = &[
    Page { file: "docs/faults.md", args: &["explain", "faults"] },
    Page { file: "docs/translation.md", args: &["explain", "translation"] },
];

/// Writes every page below `root`, or with `check` compares them; the answer is a line for a person.
pub fn run(root: &Path, check: bool) -> Result<String> {
    let binary = binary()?;
    for page in PAGES {
        let fresh = render(page, &printed_by(&binary, page.args)?);
        let path = root.join(page.file);
        if check {
            let kept = fs::read_to_string(&path)
                .with_context(|| format!("{} is missing; write it with `make docs`", page.file))?;
            if let Some(differs) = first_difference(&kept, &fresh) {
                bail!("{} is out of date, {differs}\nwrite it anew with `make docs`", page.file);
            }
        } else {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
            }
            fs::write(&path, fresh).with_context(|| format!("cannot write {}", page.file))?;
        }
    }
    Ok(format!("docs: {} generated page(s) {}", PAGES.len(), if check { "are up to date" } else { "written" }))
}

fn binary() -> Result<PathBuf> {
    let path = match std::env::var_os("TURNKEEP_BIN") {
        Some(named) => PathBuf::from(named),
        None => std::env::current_exe().context("cannot find the xtask binary itself")?.with_file_name("turnkeep"),
    };
    if !path.is_file() {
        bail!("no turnkeep binary at {}; build it first: cargo build --profile ci -p turnkeep", path.display());
    }
    Ok(path)
}

fn printed_by(binary: &Path, args: &[&str]) -> Result<String> {
    let said = Command::new(binary).args(args).output().with_context(|| format!("cannot run {}", binary.display()))?;
    if !said.status.success() {
        bail!("`turnkeep {}` ended with {}: {}", args.join(" "), said.status, String::from_utf8_lossy(&said.stderr));
    }
    String::from_utf8(said.stdout).with_context(|| format!("`turnkeep {}` printed invalid UTF-8", args.join(" ")))
}

fn render(page: &Page, printed: &str) -> String {
    format!("<!-- Printed by `turnkeep {}`, kept by `make docs`; do not edit. -->\n\n{printed}", page.args.join(" "))
}

/// Where two texts part, as `line N: kept …, fresh …`; `None` when they are equal.
fn first_difference(kept: &str, fresh: &str) -> Option<String> {
    if kept == fresh {
        return None;
    }
    let (mut old, mut new) = (kept.lines(), fresh.lines());
    let mut number = 1;
    loop {
        match (old.next(), new.next()) {
            (Some(a), Some(b)) if a == b => number += 1,
            (None, None) => return Some(format!("line {number}: only the line ends differ")),
            (a, b) => {
                let show = |line: Option<&str>| line.map_or("(the end)".to_owned(), |text| format!("`{text}`"));
                return Some(format!("line {number}: kept {}, the build prints {}", show(a), show(b)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_pages_have_no_difference() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
    }

    #[test]
    fn a_difference_names_the_first_line_that_differs() {
        let said = first_difference("a\nb\nc\n", "a\nx\nc\n").unwrap();
        assert_eq!(said, "line 2: kept `b`, the build prints `x`");
    }

    #[test]
    fn a_page_that_ends_early_is_different() {
        assert!(first_difference("a\n", "a\nb\n").unwrap().contains("kept (the end)"));
    }
}
