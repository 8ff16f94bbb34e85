//! `[[keys]]`: who may call. More callers live in the store.

use super::read::{Item, Known, Names};
use super::secret::{self, SecretRef};

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
    keys: &["name", "secret", "scopes", "models"],
    later: &["shared", "labels", "requests_per_minute", "tokens_per_minute", "max_in_flight", "budget"],
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
    Some(CallerKey { name: name?, secret: secret?, scopes, models })
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
