//! Accounts that the operator adds at run time, and how their secrets are given: by reference, or literally and then
//! sealed under the master key. Whoever reads a reference follows it; the store does not.

use crate::error::RecordError;
use crate::key::check_name;
use crate::seal::SealKey;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use turnkeep_base::{AccountId, Secret};

/// Where a secret is kept outside of the store. Printed and read as `env:NAME` or `file:PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretRef {
    /// An environment variable.
    Env(String),
    /// A file.
    File(PathBuf),
}

impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SecretRef::Env(name) => write!(f, "env:{name}"),
            SecretRef::File(path) => write!(f, "file:{}", path.display()),
        }
    }
}

impl FromStr for SecretRef {
    type Err = RecordError;

    /// The text is not in the error: it may be a secret given in the wrong place.
    fn from_str(text: &str) -> Result<Self, RecordError> {
        if let Some(name) = text.strip_prefix("env:") {
            return Ok(SecretRef::Env(name.to_owned())).and_then(checked);
        }
        if let Some(path) = text.strip_prefix("file:") {
            return Ok(SecretRef::File(path.into())).and_then(checked);
        }
        if text.starts_with("command:") {
            let words = "a secret that a command prints belongs to an account in the configuration; \
                         the store keeps env:NAME or file:PATH";
            return Err(RecordError::Invalid(words.into()));
        }
        Err(RecordError::Invalid("a secret is given as env:NAME or file:PATH".into()))
    }
}

fn checked(reference: SecretRef) -> Result<SecretRef, RecordError> {
    match &reference {
        SecretRef::Env(name) => {
            let good = !name.is_empty()
                && !name.starts_with(|c: char| c.is_ascii_digit())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !good {
                let words = "an environment variable's name has letters, digits and underscores only; \
                             a secret itself is not a reference";
                return Err(RecordError::Invalid(words.into()));
            }
        }
        SecretRef::File(path) => {
            if path.as_os_str().is_empty() || path.to_str().is_none() {
                return Err(RecordError::Invalid("a secret's file has a path in UTF-8".into()));
            }
        }
    }
    Ok(reference)
}

/// A secret as the operator gives it.
#[derive(Clone, Debug)]
pub enum SecretInput {
    /// By reference.
    Reference(SecretRef),
    /// The text itself. Needs a master key.
    Literal(Secret),
}

/// An account to be added.
#[derive(Clone, Debug)]
pub struct NewAccount {
    /// Its identity; each name has 1 to 128 characters, no control characters, no slash.
    pub id: AccountId,
    /// Its secret.
    pub secret: SecretInput,
    /// The models it serves, as patterns; none means all.
    pub models: Vec<String>,
    /// Turns at once.
    pub max_in_flight: Option<u32>,
    /// What it shares a provider-side limit with; a name as the account's own.
    pub limit_group: Option<String>,
    /// At least 1, as the next one.
    pub requests_per_minute: Option<u32>,
    /// Tokens in and out.
    pub tokens_per_minute: Option<u32>,
}

impl NewAccount {
    /// An account for every model, without a limit of its own.
    pub fn new(id: AccountId, secret: SecretInput) -> Self {
        NewAccount {
            id,
            secret,
            models: Vec::new(),
            max_in_flight: None,
            limit_group: None,
            requests_per_minute: None,
            tokens_per_minute: None,
        }
    }
}

/// How an account's secret is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretKind {
    /// Elsewhere.
    Reference(SecretRef),
    /// Here, sealed.
    Sealed,
}

/// An account as it is kept, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountRecord {
    /// Its identity.
    pub id: AccountId,
    /// How its secret is kept.
    pub secret: SecretKind,
    /// The models it serves, as patterns; none means all.
    pub models: Vec<String>,
    /// Turns at once.
    pub max_in_flight: Option<u32>,
    /// What it shares a provider-side limit with.
    pub limit_group: Option<String>,
    /// At least 1.
    pub requests_per_minute: Option<u32>,
    /// At least 1; tokens in and out.
    pub tokens_per_minute: Option<u32>,
    /// Whether it may serve.
    pub enabled: bool,
    /// Unix milliseconds.
    pub created_ms: u64,
    /// Which secret this is, from 1.
    pub generation: u64,
}

/// A secret, or where to find it.
#[derive(Clone, Debug)]
pub enum OpenedSecret {
    /// Elsewhere.
    Reference(SecretRef),
    /// Here.
    Literal(Secret),
}

/// A secret as it is written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoredSecret {
    Reference(SecretRef),
    Sealed(Vec<u8>),
}

impl StoredSecret {
    pub fn kind(&self) -> SecretKind {
        match self {
            StoredSecret::Reference(reference) => SecretKind::Reference(reference.clone()),
            StoredSecret::Sealed(_) => SecretKind::Sealed,
        }
    }
}

/// The record of a new account, and its secret fit to be written down.
pub(crate) fn admit(
    key: Option<&SealKey>,
    new: NewAccount,
    now_ms: u64,
) -> Result<(AccountRecord, StoredSecret), RecordError> {
    check_name("upstream", &new.id.upstream)?;
    check_name("account", &new.id.account)?;
    if let Some(group) = &new.limit_group {
        check_name("limit group", group)?;
    }
    if [new.requests_per_minute, new.tokens_per_minute].contains(&Some(0)) {
        return Err(RecordError::Invalid(
            "an account's limit per minute is at least 1; disable it to have none".into(),
        ));
    }
    let secret = keep(key, &new.id, new.secret)?;
    let record = AccountRecord {
        id: new.id,
        secret: secret.kind(),
        models: new.models,
        max_in_flight: new.max_in_flight,
        limit_group: new.limit_group,
        requests_per_minute: new.requests_per_minute,
        tokens_per_minute: new.tokens_per_minute,
        enabled: true,
        created_ms: now_ms,
        generation: 1,
    };
    Ok((record, secret))
}

/// The record after its secret was replaced by this one.
pub(crate) fn rotated(record: AccountRecord, secret: &StoredSecret) -> AccountRecord {
    AccountRecord { secret: secret.kind(), generation: record.generation.saturating_add(1), ..record }
}

/// Makes a given secret fit to be written down. The owner's printed form is unambiguous, as names have no slash.
pub(crate) fn keep(key: Option<&SealKey>, id: &AccountId, secret: SecretInput) -> Result<StoredSecret, RecordError> {
    match secret {
        SecretInput::Reference(reference) => Ok(StoredSecret::Reference(checked(reference)?)),
        SecretInput::Literal(text) => {
            let key = key.ok_or(RecordError::NoMasterKey)?;
            if text.expose().is_empty() {
                return Err(RecordError::Invalid("the secret is empty".into()));
            }
            Ok(StoredSecret::Sealed(key.seal(&id.to_string(), &text)?))
        }
    }
}

pub(crate) fn open(key: Option<&SealKey>, id: &AccountId, kept: StoredSecret) -> Result<OpenedSecret, RecordError> {
    match kept {
        StoredSecret::Reference(reference) => Ok(OpenedSecret::Reference(reference)),
        StoredSecret::Sealed(sealed) => {
            let owner = id.to_string();
            let key = key.ok_or(RecordError::NoMasterKey)?;
            key.open(&owner, &sealed).map(OpenedSecret::Literal).ok_or(RecordError::Damaged(owner))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_reads_back_as_it_was_printed() {
        for text in ["env:OPENAI_API_KEY", "file:/run/secrets/a b"] {
            assert_eq!(text.parse::<SecretRef>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_command_is_sent_to_the_configuration_and_not_repeated() {
        let error = "command:vault read key".parse::<SecretRef>().unwrap_err().to_string();
        assert!(error.contains("configuration") && !error.contains("vault"), "{error}");
    }

    #[test]
    fn a_secret_in_the_place_of_a_reference_is_refused_and_not_repeated() {
        for text in ["sk-abc", "env:sk-abc", "env:", "file:", "env:1A"] {
            let error = text.parse::<SecretRef>().unwrap_err().to_string();
            assert!(!error.contains("sk-abc"), "{error}");
        }
    }
}
