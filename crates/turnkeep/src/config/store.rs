//! `[store]`: what the gateway remembers, and how it is kept secret.

use super::read::{Item, Known};
use super::secret::{self, SecretRef};
use std::path::PathBuf;
use std::time::Duration;

/// `[store]`.
#[derive(Clone, Debug)]
pub struct Store {
    /// Where.
    pub url: StoreUrl,
    /// Encrypts secrets at rest. Without it accounts in the store hold references to secrets only.
    pub master_key: Option<SecretRef>,
    /// How long its records are kept.
    pub keep: Keep,
    /// Turns go on when it cannot write, and the loss is counted; otherwise they are refused.
    pub serve_on_failure: bool,
}

/// How long records are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// What is known of single turns.
    pub turns: Duration,
    /// Faults with their proofs, and what they did.
    pub evidence: Duration,
    /// The usage ledger.
    pub ledger: Duration,
    /// Stored responses and conversations, from their last use; three times as long from their making, however used.
    pub responses: Duration,
}

const DAY: Duration = Duration::from_secs(86_400);

impl Default for Keep {
    fn default() -> Self {
        Keep { turns: 7 * DAY, evidence: 30 * DAY, ledger: 400 * DAY, responses: 30 * DAY }
    }
}

/// Where the store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreUrl {
    /// A database file.
    Sqlite(PathBuf),
    /// In memory; gone when the process ends.
    Memory,
}

impl std::fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StoreUrl::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            StoreUrl::Memory => f.write_str("memory:"),
        }
    }
}

impl Default for Store {
    /// For a configuration without a file: beside the process. A file's default is beside the file.
    fn default() -> Self {
        Store {
            url: StoreUrl::Sqlite(DEFAULT_DATABASE.into()),
            master_key: None,
            keep: Keep::default(),
            serve_on_failure: false,
        }
    }
}

const DEFAULT_DATABASE: &str = "turnkeep.db";
const STORE: Known = Known { table: "[store]", keys: &["url", "master_key", "keep", "on_failure"], later: &[] };
const KEEP: Known = Known { table: "store.keep", keys: &["turns", "evidence", "ledger", "responses"], later: &[] };

pub(super) fn read(item: Option<Item<'_>>, folder: &std::path::Path, plain: bool) -> Store {
    let mut store = Store { url: StoreUrl::Sqlite(folder.join(DEFAULT_DATABASE)), ..Store::default() };
    let Some(fields) = item.and_then(|item| item.table(&STORE)) else { return store };
    if let Some(url) = fields.get("url").and_then(|item| read_url(&item)) {
        store.url = url;
    }
    store.master_key = fields.get("master_key").and_then(|item| secret::read(&item, plain));
    store.keep = fields.get("keep").map(|item| read_keep(&item)).unwrap_or_default();
    if let Some(item) = fields.get("on_failure") {
        store.serve_on_failure = item.word(&[("refuse", false), ("serve", true)], &[]).unwrap_or_default();
    }
    store
}

fn read_keep(item: &Item<'_>) -> Keep {
    let mut keep = Keep::default();
    let Some(fields) = item.table(&KEEP) else { return keep };
    let read_one = |key: &str, target: &mut Duration| {
        if let Some(time) = fields.get(key).and_then(|item| item.duration(DAY / 24, 3660 * DAY)) {
            *target = time;
        }
    };
    read_one("turns", &mut keep.turns);
    read_one("evidence", &mut keep.evidence);
    read_one("ledger", &mut keep.ledger);
    read_one("responses", &mut keep.responses);
    keep
}

fn read_url(item: &Item<'_>) -> Option<StoreUrl> {
    let text = item.filled_text()?;
    let shape = r#"it takes "sqlite:PATH" or "memory:""#;
    match text.split_once(':') {
        Some(("memory", "")) => Some(StoreUrl::Memory),
        Some(("sqlite", path)) => {
            // "sqlite://path" and "sqlite:///path" are common spellings of the same.
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() || path == ":memory:" {
                return item.fail(format!("names no file; {shape}"));
            }
            Some(StoreUrl::Sqlite(item.in_folder(path)))
        }
        Some(("postgres" | "postgresql", _)) => item.fail(format!("\"postgres:\" is not in this version; {shape}")),
        Some(_) | None => item.fail(format!("{text:?} is not a store; {shape}")),
    }
}
