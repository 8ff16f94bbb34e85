//! Where a secret is found. The file of the configuration itself holds none, unless the operator says so.

mod file;

use super::read::{Fields, Item, Known};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use turnkeep_base::Secret;

/// How long a file may take to be read; a file of a mount that hangs may never be.
pub(crate) const FILE_WAIT: Duration = Duration::from_secs(5);

/// Where a secret is found.
#[derive(Clone, Debug)]
pub enum SecretRef {
    /// In an environment variable.
    Env(String),
    /// In a file.
    File(PathBuf),
    /// In the configuration, which `allow_plain_secrets` permits.
    Plain(Secret),
    /// What a program prints.
    Command {
        /// The program and its arguments, at least the one; no shell reads them.
        words: Vec<String>,
        /// How often it is run again.
        every: Duration,
    },
    /// Nowhere, as none is needed: the account is known by what is around its process.
    NotNeeded,
}

impl fmt::Display for SecretRef {
    /// The place, never the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SecretRef::Env(name) => write!(f, "environment variable {name}"),
            SecretRef::File(path) => write!(f, "file {}", path.display()),
            SecretRef::Plain(_) => f.write_str("the configuration itself"),
            // Its arguments are the operator's business.
            SecretRef::Command { words, .. } => write!(f, "command {}", words.first().map_or("", String::as_str)),
            SecretRef::NotNeeded => f.write_str("no place, as none is needed"),
        }
    }
}

impl SecretRef {
    /// Both name the same place, and a command runs as often.
    pub fn is_same(&self, other: &SecretRef) -> bool {
        match (self, other) {
            (SecretRef::Env(a), SecretRef::Env(b)) => a == b,
            (SecretRef::File(a), SecretRef::File(b)) => a == b,
            (SecretRef::Plain(a), SecretRef::Plain(b)) => a.expose() == b.expose(),
            (SecretRef::Command { words: a, every: a_every }, SecretRef::Command { words: b, every: b_every }) => {
                a == b && a_every == b_every
            }
            (SecretRef::NotNeeded, SecretRef::NotNeeded) => true,
            (
                SecretRef::Env(_)
                | SecretRef::File(_)
                | SecretRef::Plain(_)
                | SecretRef::Command { .. }
                | SecretRef::NotNeeded,
                _,
            ) => false,
        }
    }

    /// Fetches the secret now, on this thread, within [`FILE_WAIT`]; a task calls [`crate::secrets::fetch`] instead. The
    /// line end at the end of a file is not part of it. A command is not run here: that takes time, and is the business
    /// of [`crate::secrets`].
    ///
    /// # Errors
    /// In words, with the place to mend: not set, not there, no regular file, not read in time, not text, empty, more
    /// than one line, or with a control character (no provider issues one, and no header can carry it).
    pub fn resolve(&self) -> Result<Secret, String> {
        match self {
            SecretRef::File(path) => self.one_line(&file::read_within(path, FILE_WAIT)?),
            SecretRef::Env(_) | SecretRef::Plain(_) | SecretRef::Command { .. } | SecretRef::NotNeeded => {
                self.resolve_unbounded()
            }
        }
    }

    /// The same, without a bound of time: for a thread that nobody waits for.
    ///
    /// # Errors
    /// As [`SecretRef::resolve`].
    pub(crate) fn resolve_unbounded(&self) -> Result<Secret, String> {
        let text = match self {
            SecretRef::NotNeeded => return Ok(Secret::new(String::new())),
            SecretRef::Plain(secret) => secret.expose().to_owned(),
            SecretRef::Env(name) => match std::env::var(name) {
                Ok(text) => text,
                Err(std::env::VarError::NotPresent) => return Err(format!("environment variable {name} is not set")),
                Err(std::env::VarError::NotUnicode(_)) => {
                    return Err(format!("environment variable {name} is not UTF-8 text"));
                }
            },
            SecretRef::File(path) => file::read(path)?,
            SecretRef::Command { .. } => return Err(format!("{self} is run by a gateway that serves, not here")),
        };
        self.one_line(&text)
    }

    /// The secret that a text from this place is.
    ///
    /// # Errors
    /// In words, without the text: empty, more than one line, or with a control character.
    pub(crate) fn one_line(&self, text: &str) -> Result<Secret, String> {
        let text = text.strip_suffix('\n').unwrap_or(text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        if text.trim().is_empty() {
            return Err(format!("{self} is empty"));
        }
        if text.contains(['\n', '\r']) {
            return Err(format!("{self} holds more than one line; a secret is one line"));
        }
        if let Some(control) = text.chars().find(|c| c.is_control()) {
            let number = u32::from(control);
            return Err(format!("{self} holds a control character (U+{number:04X}); a secret is plain text"));
        }
        Ok(Secret::new(text.to_owned()))
    }

    /// What is said of a place that gave nothing within a time.
    pub(crate) fn not_read_within(&self, limit: Duration) -> String {
        format!("{self} could not be read within {}", super::show_duration(limit))
    }
}

const SECRET: Known = Known { table: "a secret", keys: &["env", "file"], later: &[] };
const OF_ACCOUNT: Known =
    Known { table: "an account's secret", keys: &["env", "file", "command", "every"], later: &[] };

/// How often a command is run again when nothing else is said.
const EVERY: Duration = Duration::from_secs(50 * 60);

/// Reads `{ env = "NAME" }` or `{ file = "path" }`; a literal string only where `plain` allows it. A literal in an
/// override is in an environment variable already, and so allowed.
pub(super) fn read(item: &Item<'_>, plain: bool) -> Option<SecretRef> {
    if let Some(read) = read_literal(item, plain) {
        return read;
    }
    if item.quiet_get("command").is_some() {
        return item
            .fail("only an account's secret may come from a command; write { env = \"NAME\" } or { file = \"path\" }");
    }
    read_place(item, &item.table(&SECRET)?)
}

/// The same, or `{ command = ["PROGRAM", "ARGUMENT"], every = "50m" }`.
pub(super) fn read_of_account(item: &Item<'_>, plain: bool) -> Option<SecretRef> {
    if let Some(read) = read_literal(item, plain) {
        return read;
    }
    let fields = item.table(&OF_ACCOUNT)?;
    let Some(command) = fields.get("command") else {
        if let Some(every) = fields.get("every") {
            return every.fail("only a command is run again; remove it, or write command = [\"PROGRAM\"] beside it");
        }
        return read_place(item, &fields);
    };
    if fields.get("env").is_some() || fields.get("file").is_some() {
        return item.fail("names more than one place: keep one of env, file and command");
    }
    let words = read_command(&command);
    let every = match fields.get("every") {
        Some(every) => every.duration(Duration::from_secs(10), Duration::from_secs(86_400)),
        None => Some(EVERY),
    };
    Some(SecretRef::Command { words: words?, every: every? })
}

pub(super) fn read_command(command: &Item<'_>) -> Option<Vec<String>> {
    if command.is_text() {
        return command.fail("is run without a shell, so its words stand apart: [\"PROGRAM\", \"ARGUMENT\"]");
    }
    let items = command.list()?;
    let mut words = Vec::new();
    for item in &items {
        let word = item.text()?;
        if word.contains('\0') {
            return item.fail("holds a character that no word of a command can hold");
        }
        words.push(word.to_owned());
    }
    match (items.first(), words.first_mut()) {
        (Some(item), Some(program)) => {
            if program.trim().is_empty() {
                return item.fail("must not be empty; the first word names the program");
            }
            // A bare name is looked for as usual; a path starts at the file's folder, like every other.
            if program.contains('/') {
                let path = item.in_folder(program);
                *program = path.to_str()?.to_owned();
            }
            Some(words)
        }
        (Some(_) | None, _) => command.fail("names no program; write [\"PROGRAM\", \"ARGUMENT\"]"),
    }
}

/// A string; nothing where the item is none.
fn read_literal(item: &Item<'_>, plain: bool) -> Option<Option<SecretRef>> {
    // A variable's own text is the secret, also where it reads as a number.
    if let Some(name) = item.variable()
        && !item.is_table()
    {
        return Some(Some(SecretRef::Env(name)));
    }
    if item.is_text() {
        let text = item.filled_text();
        if plain {
            return Some(text.map(|text| SecretRef::Plain(Secret::new(text.to_owned()))));
        }
        return Some(item.fail(
            "a secret must not stand in this file; write { env = \"NAME\" } or { file = \"path\" }, or set \
             allow_plain_secrets = true at the top",
        ));
    }
    if !item.is_table() {
        return Some(item.fail("must be { env = \"NAME\" } or { file = \"path\" }"));
    }
    None
}

fn read_place(item: &Item<'_>, fields: &Fields<'_>) -> Option<SecretRef> {
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
