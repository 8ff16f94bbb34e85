//! `[[keys]]`: who may call. More callers live in the store.

use super::read::{Item, Known, Names};
use super::secret::{self, SecretRef};
use super::{amounts, expiry};
use std::collections::BTreeMap;
use turnkeep_policy::limits::Limits;

/// A caller's key.
#[derive(Clone, Debug)]
pub struct CallerKey {
    /// Its name, in metrics and in the ledger.
    pub name: String,
    /// What the caller sends.
    pub secret: SecretRef,
    /// What it opens; at least one.
    pub scopes: Vec<Scope>,
    /// Patterns of the model names it may use; `*` stands for any characters.
    pub models: Vec<String>,
    /// Many users stand behind it.
    pub shared: bool,
    /// Words to add usage up by.
    pub labels: BTreeMap<String, String>,
    /// What it may use.
    pub limits: Limits,
    /// When it ends by itself, Unix milliseconds; that moment is already its end.
    pub expires_ms: Option<u64>,
}

/// What a key opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// Turns, and the list of models.
    Chat,
    /// `GET /metrics`.
    Metrics,
    /// Reading the operator API.
    Viewer,
    /// Reading and writing the operator API.
    Admin,
}

impl Scope {
    /// All of them.
    pub const ALL: [Scope; 4] = [Scope::Chat, Scope::Metrics, Scope::Viewer, Scope::Admin];

    /// The word in configuration and store.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Chat => "chat",
            Scope::Metrics => "metrics",
            Scope::Viewer => "viewer",
            Scope::Admin => "admin",
        }
    }

    /// The scope of a word.
    pub fn from_name(name: &str) -> Option<Scope> {
        Scope::ALL.into_iter().find(|scope| scope.name() == name)
    }
}

const KEY: Known = Known {
    table: "[[keys]]",
    keys: &[
        "name",
        "secret",
        "scopes",
        "models",
        "shared",
        "labels",
        "requests_per_minute",
        "tokens_per_minute",
        "max_in_flight",
        "budget",
        "expires",
    ],
    later: &[],
};

pub(super) fn read(item: Item<'_>, plain: bool, names: &mut Names) -> Option<CallerKey> {
    let fields = item.table(&KEY)?;
    let name = fields.require("name", r#"name = "laptop""#).and_then(|item| item.name(names));
    let secret = fields.require("secret", r#"secret = { env = "TURNKEEP_KEY" }"#);
    let secret = secret.and_then(|item| secret::read(&item, plain));
    let scopes = match fields.get("scopes") {
        Some(item) => read_scopes(&item)?,
        None => vec![Scope::Chat],
    };
    let models = match fields.get("models") {
        Some(item) => some_patterns(&item)?,
        None => vec!["*".to_owned()],
    };
    let shared = fields.get("shared").and_then(|item| item.boolean()).unwrap_or_default();
    let labels = fields.get("labels").map(|item| read_labels(&item)).unwrap_or_default();
    let number = |key: &str, most: u32| fields.get(key).and_then(|item| item.integer(1, most));
    let limits = Limits {
        requests_per_minute: number("requests_per_minute", u32::MAX),
        tokens_per_minute: number("tokens_per_minute", u32::MAX),
        max_in_flight: number("max_in_flight", MOST_IN_FLIGHT),
        budget: fields.get("budget").and_then(|item| amounts::read_budget(&item)),
    };
    let expires_ms = fields.get("expires").and_then(|item| item.told(expiry::parse(item.date()?)));
    Some(CallerKey { name: name?, secret: secret?, scopes, models, shared, labels, limits, expires_ms })
}

/// The most turns that a key may be allowed at once.
pub(crate) const MOST_IN_FLIGHT: u32 = 100_000;
/// The most labels of a key.
const MOST_LABELS: usize = 16;

/// Whether a key may have this label.
///
/// # Errors
/// Why not.
pub(crate) fn check_label(name: &str, value: &str) -> Result<(), String> {
    let fits = |text: &str, most: usize| {
        !text.is_empty() && text.chars().count() <= most && !text.chars().any(char::is_control)
    };
    if !fits(name, 64) || name.contains('=') {
        return Err("a label's name is 1 to 64 characters, without control characters and \"=\"".into());
    }
    if !fits(value, 256) {
        return Err(format!("the label {name:?} has a value of 1 to 256 characters, without control characters"));
    }
    Ok(())
}

/// Whether a key may have so many labels.
///
/// # Errors
/// Why not.
pub(crate) fn check_label_count(count: usize) -> Result<(), String> {
    if count > MOST_LABELS { Err(format!("a key has {MOST_LABELS} labels at most")) } else { Ok(()) }
}

fn read_labels(item: &Item<'_>) -> BTreeMap<String, String> {
    let entries = item.free_table().unwrap_or_default();
    item.told(check_label_count(entries.len()));
    let read_one = |(name, item): (&str, Item<'_>)| {
        let value = item.text()?;
        item.told(check_label(name, value)).map(|()| (name.to_owned(), value.to_owned()))
    };
    entries.into_iter().filter_map(read_one).collect()
}

fn read_scopes(item: &Item<'_>) -> Option<Vec<Scope>> {
    let words = Scope::ALL.map(|scope| (scope.name(), scope));
    let items = item.list()?;
    if items.is_empty() {
        return item.fail(r#"names no scope, so the key opens nothing; write ["chat"] or remove the key"#);
    }
    let mut scopes: Vec<Scope> = items.iter().filter_map(|item| item.word(&words, &[])).collect();
    scopes.sort();
    scopes.dedup();
    Some(scopes)
}

/// Patterns of model names, at least one.
pub(super) fn some_patterns(item: &Item<'_>) -> Option<Vec<String>> {
    let patterns = item.texts()?;
    if patterns.is_empty() && item.list().is_some_and(|items| items.is_empty()) {
        return item.fail(r#"names no model, so nothing would be allowed; write ["*"] for all"#);
    }
    Some(patterns)
}
