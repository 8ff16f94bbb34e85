//! Caller keys: what a presented key may do. Keys are known only by their keyed hashes.

use arc_swap::ArcSwap;
use std::collections::BTreeMap;
use std::sync::Arc;
use turnkeep_policy::glob::Globs;
use turnkeep_policy::limits::Limits;

/// What a key opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Turns.
    Chat,
    /// `/metrics`.
    Metrics,
    /// Every read of the operator API.
    Viewer,
    /// Every write, too.
    Admin,
}

/// A caller.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The key's name.
    pub name: Arc<str>,
    /// What it opens.
    pub scopes: Vec<Scope>,
    /// The models it may use, by the clients' names.
    pub models: Globs,
    /// Many users stand behind it.
    pub shared: bool,
    /// Words to add usage up by, as a JSON object of strings.
    pub labels: Arc<str>,
    /// What it may use.
    pub limits: Limits,
}

impl Caller {
    /// Of one person or program, without labels and limits.
    pub fn named(name: impl Into<Arc<str>>, scopes: Vec<Scope>, models: Globs) -> Self {
        Caller { name: name.into(), scopes, models, shared: false, labels: "{}".into(), limits: Limits::default() }
    }

    /// Whether the key opens this; `admin` opens all that an operator may do.
    pub fn may(&self, scope: Scope) -> bool {
        let operator = matches!(scope, Scope::Metrics | Scope::Viewer);
        self.scopes.contains(&scope) || (operator && self.scopes.contains(&Scope::Admin))
    }
}

/// A hash of a presented key, made with the process's own hash key.
pub type KeyDigest = [u8; 32];

/// A key and until when it is accepted.
#[derive(Clone, Debug)]
pub struct Known {
    /// Whose.
    pub caller: Arc<Caller>,
    /// Unix milliseconds; `None` for ever.
    pub until_ms: Option<u64>,
}

/// All known keys; replaced as a whole.
pub struct Callers {
    keys: ArcSwap<BTreeMap<KeyDigest, Known>>,
    hash: Box<dyn Fn(&str) -> KeyDigest + Send + Sync>,
}

impl Callers {
    /// Over a hash that the store's records were made with.
    pub fn new(hash: impl Fn(&str) -> KeyDigest + Send + Sync + 'static, keys: BTreeMap<KeyDigest, Known>) -> Self {
        Callers { keys: ArcSwap::from_pointee(keys), hash: Box::new(hash) }
    }

    /// Replaces all keys at once.
    pub fn replace(&self, keys: BTreeMap<KeyDigest, Known>) {
        self.keys.store(Arc::new(keys));
    }

    /// Whose key this is, and its hash for [`Callers::still`]. The look-up is by hash, so its time tells nothing of any
    /// secret.
    pub fn find(&self, presented: &str, now_ms: u64) -> Option<(Arc<Caller>, KeyDigest)> {
        let digest = (self.hash)(presented);
        let keys = self.keys.load();
        let known = keys.get(&digest)?;
        known.until_ms.is_none_or(|until| now_ms < until).then(|| (known.caller.clone(), digest))
    }

    /// The key is still accepted.
    pub fn still(&self, digest: &KeyDigest, now_ms: u64) -> bool {
        self.keys.load().get(digest).is_some_and(|known| known.until_ms.is_none_or(|until| now_ms < until))
    }

    /// The callers, each once or, while a replaced secret is still accepted, twice.
    pub fn all(&self) -> Vec<Arc<Caller>> {
        self.keys.load().values().map(|known| known.caller.clone()).collect()
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.keys.load().len()
    }

    /// There is no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
