//! Where a secret is found. The file of the configuration itself holds none, unless the operator says so.

use super::read::{Item, Known};
use std::fmt;
use std::path::PathBuf;
use turnkeep_base::Secret;

/// The longest secret file that is read, in bytes.
const MAX_SECRET_FILE: u64 = 64 * 1024;

/// Where a secret is found.
#[derive(Clone, Debug)]
pub enum SecretRef {
    /// In an environment variable.
    Env(String),
    /// In a file.
    File(PathBuf),
    /// In the configuration, which `allow_plain_secrets` permits.
    Plain(Secret),
}

impl fmt::Display for SecretRef {
    /// The place, never the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SecretRef::Env(name) => write!(f, "environment variable {name}"),
            SecretRef::File(path) => write!(f, "file {}", path.display()),
            SecretRef::Plain(_) => f.write_str("the configuration itself"),
        }
    }
}

impl SecretRef {
    /// Fetches the secret now. The line end at the end of a file is not part of it.
    ///
    /// # Errors
    /// In words, with the place to mend: not set, not there, not text, empty, or with a line break inside (no provider
    /// issues one, and no header can carry it).
    pub fn resolve(&self) -> Result<Secret, String> {
        let text = match self {
            SecretRef::Plain(secret) => return Ok(secret.clone()),
            SecretRef::Env(name) => match std::env::var(name) {
                Ok(text) => text,
                Err(std::env::VarError::NotPresent) => return Err(format!("environment variable {name} is not set")),
                Err(std::env::VarError::NotUnicode(_)) => {
                    return Err(format!("environment variable {name} is not UTF-8 text"));
                }
            },
            SecretRef::File(path) => read_file(path)?,
        };
        let text = text.strip_suffix('\n').unwrap_or(&text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        if text.trim().is_empty() {
            return Err(format!("{self} is empty"));
        }
        if text.contains(['\n', '\r', '\0']) {
            return Err(format!("{self} holds more than one line; a secret is one line"));
        }
        Ok(Secret::new(text.to_owned()))
    }
}

fn read_file(path: &PathBuf) -> Result<String, String> {
    let told = |error: std::io::Error| format!("file {} cannot be read: {error}", path.display());
    let length = std::fs::metadata(path).map_err(told)?.len();
    if length > MAX_SECRET_FILE {
        return Err(format!("file {} is {length} bytes long; a secret has at most {MAX_SECRET_FILE}", path.display()));
    }
    let bytes = std::fs::read(path).map_err(told)?;
    String::from_utf8(bytes).map_err(|_| format!("file {} is not UTF-8 text", path.display()))
}

const SECRET: Known = Known { table: "a secret", keys: &["env", "file"], later: &["command", "every"] };

/// Reads `{ env = "NAME" }` or `{ file = "path" }`; a literal string only where `plain` allows it. A literal in an
/// override is in an environment variable already, and so allowed.
pub(super) fn read(item: &Item<'_>, plain: bool) -> Option<SecretRef> {
    if item.is_text() {
        let text = item.filled_text()?;
        if let Some(name) = item.variable() {
            return Some(SecretRef::Env(name));
        }
        if plain {
            return Some(SecretRef::Plain(Secret::new(text.to_owned())));
        }
        return item.fail(
            "a secret must not stand in this file; write { env = \"NAME\" } or { file = \"path\" }, or set \
             allow_plain_secrets = true at the top",
        );
    }
    if !item.is_table() {
        return item.fail("must be { env = \"NAME\" } or { file = \"path\" }");
    }
    let fields = item.table(&SECRET)?;
    if fields.get("command").is_some() {
        return None;
    }
    match (fields.get("env"), fields.get("file")) {
        (Some(env), None) => {
            let name = env.filled_text()?;
            let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(word) {
                // The text is not repeated: it may be a secret put in the wrong place.
                return env.fail("is not the name of a variable: letters, digits and underscores, no digit first");
            }
            Some(SecretRef::Env(name.to_owned()))
        }
        (None, Some(file)) => file.path().map(SecretRef::File),
        (Some(_), Some(_)) => item.fail("names both env and file; keep one"),
        (None, None) => item.fail("names no place; write { env = \"NAME\" } or { file = \"path\" }"),
    }
}
