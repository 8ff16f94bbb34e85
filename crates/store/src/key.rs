//! Callers' keys: how a secret is made, hashed and checked. A secret is shown once and kept as a hash; there is no way
//! back from the one to the other.

use crate::error::RecordError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use subtle::ConstantTimeEq;
use turnkeep_base::Secret;
use turnkeep_engine::ports::StoreError;
use zeroize::Zeroizing;

const PREFIX: &str = "tk_";
const CHARS: usize = 43;
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A database's own random value, mixed into its hashes so that a hash tells nothing outside of it.
#[derive(Clone, Copy)]
pub struct Pepper([u8; 32]);

impl Pepper {
    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Self {
        Pepper(bytes)
    }

    pub(crate) fn random() -> Result<Self, StoreError> {
        random_bytes().map(Pepper)
    }

    /// A key of its own for other hashes, that tells nothing of the pepper.
    pub(crate) fn fingerprint_key(&self) -> [u8; 32] {
        blake3::derive_key("turnkeep store v1 fingerprints", &self.0)
    }
}

impl fmt::Debug for Pepper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[pepper]")
    }
}

/// The hash of a key's secret. Compared in constant time; `Debug` does not show it.
#[derive(Clone, Copy)]
pub struct KeyHash([u8; 32]);

impl KeyHash {
    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Self {
        KeyHash(bytes)
    }

    /// The bytes, for a look-up table.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl PartialEq for KeyHash {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for KeyHash {}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hash]")
    }
}

/// The hash of a presented secret. A keyed BLAKE3 is enough for our own secrets, which carry 256 random bits; a secret
/// that a person thought up would need a slow hash, and none is taken here.
pub fn hash_key(pepper: &Pepper, secret: &str) -> [u8; 32] {
    *blake3::keyed_hash(&pepper.0, secret.as_bytes()).as_bytes()
}

/// What a key may use; `None` is no limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeyLimits {
    /// Requests a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u32>,
    /// Tokens a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<u64>,
    /// Turns at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_in_flight: Option<u32>,
    /// Money or tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
}

/// A caller's budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// US dollars; exact to the billionth up to a million. One of the two amounts is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
    /// Tokens, in and out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Per what: `day`, `week` or `month`.
    pub per: String,
}

/// A key to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct NewKey {
    /// Its name: 1 to 128 characters, no control characters, no slash.
    pub name: String,
    /// What it opens: `chat`, `metrics`, `viewer`, `admin`.
    pub scopes: Vec<String>,
    /// The models it may name, as patterns.
    pub models: Vec<String>,
    /// Its limits.
    pub limits: KeyLimits,
    /// Words to add usage up by.
    pub labels: BTreeMap<String, String>,
    /// Many users stand behind it.
    pub shared: bool,
    /// When it ends by itself, Unix milliseconds.
    pub expires_ms: Option<u64>,
}

impl NewKey {
    /// An unlimited key with the `chat` scope for every model.
    pub fn named(name: impl Into<String>) -> Self {
        NewKey {
            name: name.into(),
            scopes: vec!["chat".into()],
            models: vec!["*".into()],
            limits: KeyLimits::default(),
            labels: BTreeMap::new(),
            shared: false,
            expires_ms: None,
        }
    }
}

/// A key as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyRecord {
    /// Its name.
    pub name: String,
    /// The hash of its secret.
    pub hash: KeyHash,
    /// The hash of the secret before, and until when that is accepted, Unix milliseconds.
    pub old_hash: Option<(KeyHash, u64)>,
    /// What it opens.
    pub scopes: Vec<String>,
    /// The models it may name.
    pub models: Vec<String>,
    /// Its limits.
    pub limits: KeyLimits,
    /// Words to add usage up by.
    pub labels: BTreeMap<String, String>,
    /// Many users stand behind it.
    pub shared: bool,
    /// Unix milliseconds.
    pub created_ms: u64,
    /// When it ends by itself, Unix milliseconds.
    pub expires_ms: Option<u64>,
    /// When it was revoked, Unix milliseconds.
    pub revoked_ms: Option<u64>,
}

impl KeyRecord {
    /// Whether a secret with this hash opens the key at this time. Ends are exclusive: at `expires_ms` it is over.
    pub fn accepts(&self, hash: &[u8; 32], now_ms: u64) -> bool {
        let hash = KeyHash(*hash);
        let current = self.hash == hash;
        let old = self.old_hash.is_some_and(|(old, until_ms)| now_ms < until_ms && old == hash);
        (current || old) && self.revoked_ms.is_none() && self.expires_ms.is_none_or(|end| now_ms < end)
    }
}

/// The keys to check callers against.
#[derive(Clone, Debug)]
pub struct KeySnapshot {
    /// For [`hash_key`].
    pub pepper: Pepper,
    /// The keys that are not revoked.
    pub keys: Vec<KeyRecord>,
}

pub(crate) fn make(pepper: &Pepper, new: NewKey, now_ms: u64) -> Result<(KeyRecord, Secret), RecordError> {
    check_name("key", &new.name)?;
    let secret = new_secret()?;
    let record = KeyRecord {
        hash: KeyHash(hash_key(pepper, secret.expose())),
        old_hash: None,
        name: new.name,
        scopes: new.scopes,
        models: new.models,
        limits: new.limits,
        labels: new.labels,
        shared: new.shared,
        created_ms: now_ms,
        expires_ms: new.expires_ms,
        revoked_ms: None,
    };
    Ok((record, secret))
}

pub(crate) fn rotate(
    pepper: &Pepper,
    mut record: KeyRecord,
    overlap: Duration,
    now_ms: u64,
) -> Result<(KeyRecord, Secret), RecordError> {
    if record.revoked_ms.is_some() {
        return Err(RecordError::Revoked(record.name));
    }
    let secret = new_secret()?;
    let overlap_ms = u64::try_from(overlap.as_millis()).unwrap_or(u64::MAX);
    record.old_hash = (overlap_ms > 0).then(|| (record.hash, now_ms.saturating_add(overlap_ms)));
    record.hash = KeyHash(hash_key(pepper, secret.expose()));
    Ok((record, secret))
}

pub(crate) fn check_name(what: &str, name: &str) -> Result<(), RecordError> {
    let length = name.chars().count();
    if length == 0 || length > 128 {
        return Err(RecordError::Invalid(format!("the name of a {what} has 1 to 128 characters")));
    }
    if name.chars().any(|c| c.is_control() || c == '/') {
        return Err(RecordError::Invalid(format!("the name of a {what} has no slash and no control character")));
    }
    Ok(())
}

/// `tk_` and 43 base-62 characters: 256 random bits.
fn new_secret() -> Result<Secret, StoreError> {
    let mut text = String::with_capacity(PREFIX.len() + CHARS);
    text.push_str(PREFIX);
    while text.len() < PREFIX.len() + CHARS {
        let bytes = Zeroizing::new(random_bytes::<64>()?);
        // Only bytes below the largest multiple of 62 are taken, so that every character is equally likely.
        let digits = bytes.iter().filter(|&&byte| byte < 248).map(|byte| char::from(BASE62[usize::from(byte % 62)]));
        text.extend(digits.take(PREFIX.len() + CHARS - text.len()));
    }
    Ok(Secret::new(text))
}

pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N], StoreError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| StoreError(format!("the system gave no randomness: {error}")))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_its_form_and_is_never_made_twice() {
        let (first, second) = (new_secret().unwrap(), new_secret().unwrap());
        assert_ne!(first.expose(), second.expose());
        let digits = first.expose().strip_prefix("tk_").unwrap();
        assert!(digits.len() == 43 && digits.bytes().all(|b| b.is_ascii_alphanumeric()), "{digits}");
    }

    #[test]
    fn the_same_secret_hashes_differently_in_another_database() {
        let (one, two) = (Pepper::random().unwrap(), Pepper::random().unwrap());
        assert_eq!(hash_key(&one, "tk_x"), hash_key(&one, "tk_x"));
        assert_ne!(hash_key(&one, "tk_x"), hash_key(&two, "tk_x"));
    }

    #[test]
    fn a_budget_is_read_as_it_was_written_before_there_were_tokens() {
        let read = |text: &str| serde_json::from_str::<Budget>(text).unwrap();
        let old = Budget { usd: Some(20.5), tokens: None, per: "day".into() };
        assert_eq!(read(r#"{"usd":20.5,"per":"day"}"#), old);
        assert_eq!(serde_json::to_string(&old).unwrap(), r#"{"usd":20.5,"per":"day"}"#);
        let tokens = Budget { usd: None, tokens: Some(7), per: "week".into() };
        assert_eq!(read(&serde_json::to_string(&tokens).unwrap()), tokens);
    }

    #[test]
    fn a_rotated_key_accepts_its_old_secret_until_the_overlap_ends_and_an_expired_one_nothing() {
        let pepper = Pepper::random().unwrap();
        let new = NewKey { expires_ms: Some(10_000), ..NewKey::named("a") };
        let (record, old) = make(&pepper, new, 1_000).unwrap();
        let (record, fresh) = rotate(&pepper, record, Duration::from_secs(2), 1_000).unwrap();
        let (old, fresh) = (hash_key(&pepper, old.expose()), hash_key(&pepper, fresh.expose()));
        assert!(record.accepts(&old, 2_999) && record.accepts(&fresh, 2_999));
        assert!(!record.accepts(&old, 3_000) && record.accepts(&fresh, 9_999));
        assert!(!record.accepts(&fresh, 10_000));
        let revoked = KeyRecord { revoked_ms: Some(1), ..record };
        assert!(!revoked.accepts(&fresh, 2_000));
    }
}
