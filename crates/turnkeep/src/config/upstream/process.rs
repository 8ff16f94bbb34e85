//! An upstream that is a program, which the gateway starts and watches over.

use crate::config::read::{Fields, Item};
use crate::config::secret::{self, SecretRef};
use std::path::PathBuf;

/// A program and its bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// The program and its arguments, at least the one; no shell reads them. A path is whole, a bare name is looked for.
    pub command: Vec<String>,
    /// How much memory it may use with all that it starts, in bytes; above it is ended and started anew.
    pub memory: u64,
    /// Where working directories are made.
    pub state: PathBuf,
}

/// What a process may use when nothing else is said.
const DEFAULT_MEMORY: u64 = 4 << 30;
/// The least bound of memory that is no mistake.
const LEAST_MEMORY: u64 = 16 << 20;
const MOST_MEMORY: u64 = 1 << 40;

/// Reads `command` and `memory` of the upstream of this name.
pub(super) fn read(fields: &Fields<'_>, upstream: &str) -> Option<Process> {
    let command = fields.require("command", r#"command = ["PROGRAM", "ARGUMENT"], which the gateway starts"#);
    let command = command.and_then(|item| secret::read_command(&item));
    let memory = match fields.get("memory") {
        Some(item) => item.size(LEAST_MEMORY, MOST_MEMORY),
        None => Some(DEFAULT_MEMORY),
    };
    // No account has its home there unless the file says so: the names of folders that are made begin with no dot.
    let state = fields.item().in_folder(&format!("agents/{upstream}/.state"));
    Some(Process { command: command?, memory: memory?, state })
}

/// What one of a process's own variables holds.
#[derive(Clone, Debug)]
pub enum EnvValue {
    /// A text that is no secret.
    Text(String),
    /// A secret, by its place.
    Secret(SecretRef),
}

/// Names of variables that are the process's surroundings, and the gateway's to set.
const OWN_VARIABLES: &[&str] = &["HOME", "TURNKEEP_LISTEN", "TURNKEEP_SECRET"];

/// Endings of names whose value is likely a secret.
const SECRET_ENDINGS: &[&str] = &["KEY", "TOKEN", "SECRET", "PASSWORD"];

/// Most variables of one process.
const MOST_VARIABLES: usize = 256;

/// Reads `env`: texts, and secrets by their places.
pub(super) fn read_env(item: &Item<'_>, plain: bool) -> Option<Vec<(String, EnvValue)>> {
    let entries = item.free_table()?;
    if entries.len() > MOST_VARIABLES {
        return item.fail(format!("has {} variables; at most {MOST_VARIABLES} are taken", entries.len()));
    }
    let mut variables = Vec::new();
    for (name, item) in entries {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(word) {
            item.fail::<()>("is not the name of a variable: letters, digits and underscores, no digit first");
        } else if OWN_VARIABLES.contains(&name) {
            item.fail::<()>(format!("the gateway sets {name} itself; remove it (HOME is the account's home)"));
        } else if item.is_table() {
            variables.extend(secret::read(&item, plain).map(|place| (name.to_owned(), EnvValue::Secret(place))));
        } else if let Some(text) = item.text() {
            if text.contains('\0') {
                item.fail::<()>("holds a character that no variable can hold");
                continue;
            }
            if !plain && item.variable().is_none() && SECRET_ENDINGS.iter().any(|ending| name.ends_with(ending)) {
                item.warn("looks like a secret in this file; write { env = \"NAME\" } or { file = \"path\" }");
            }
            variables.push((name.to_owned(), EnvValue::Text(text.to_owned())));
        }
    }
    Some(variables)
}
