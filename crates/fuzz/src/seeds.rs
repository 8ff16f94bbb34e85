//! What mutants are made of: the files of `seeds/<target>/`, and for requests the bodies of the repository's `fixtures/`,
//! by their path.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use turnkeep_base::Dialect;

/// Bytes of a fixture that mutants are made of; a longer one is run as it is.
pub const SMALL: usize = 12 << 10;

/// One input with its name.
#[derive(Clone, Debug)]
pub struct Seed {
    /// The file that it is.
    pub path: PathBuf,
    /// Its bytes.
    pub data: Vec<u8>,
}

/// Which of the fixtures a target reads too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fixtures {
    /// None.
    None,
    /// The recorded requests of clients of this dialect: those that generate.
    Requests(Dialect),
}

/// The folder of a target's seeds.
pub fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target)
}

/// All files of a target's folder, in the order of their names.
///
/// # Errors
/// The folder cannot be read.
pub fn own(target: &str) -> io::Result<Vec<Seed>> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder(target))?.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<_>>()?;
    paths.sort();
    paths.into_iter().map(|path| fs::read(&path).map(|data| Seed { path, data })).collect()
}

/// The bodies of the fixtures, in the order of their paths.
///
/// # Errors
/// The folder cannot be read, or a fixture is not of its form.
pub fn fixtures(which: Fixtures) -> io::Result<Vec<Seed>> {
    let Fixtures::Requests(dialect) = which else { return Ok(Vec::new()) };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/captures");
    let mut paths = Vec::new();
    for folder in fs::read_dir(root)? {
        for file in fs::read_dir(folder?.path())? {
            paths.push(file?.path());
        }
    }
    paths.sort();
    let mut seeds = Vec::new();
    for path in paths.into_iter().filter(|path| path.extension().is_some_and(|kind| kind == "json")) {
        let bad = |what: &str| io::Error::other(format!("{}: {what}", path.display()));
        let capture: serde_json::Value =
            serde_json::from_slice(&fs::read(&path)?).map_err(|error| bad(&error.to_string()))?;
        let target = capture["target"].as_str().ok_or_else(|| bad("no target"))?;
        if of(target) == Some(dialect) && capture["body"].is_object() {
            seeds.push(Seed { data: capture["body"].to_string().into_bytes(), path });
        }
    }
    Ok(seeds)
}

fn of(target: &str) -> Option<Dialect> {
    let path = target.split('?').next().unwrap_or_default();
    if path.ends_with("/chat/completions") {
        Some(Dialect::Chat)
    } else if path.ends_with("/responses") {
        Some(Dialect::Responses)
    } else if path.ends_with("/messages") {
        Some(Dialect::Messages)
    } else if path.ends_with("enerateContent") {
        Some(Dialect::Gemini)
    } else {
        None
    }
}
