//! `[[upstreams.accounts]]`: credentials at an upstream, each with its limits.

use super::kind::{self, Kind};
use super::process::{self, EnvValue};
use crate::config::caller::some_patterns;
use crate::config::read::{Fields, Item, Known, Names};
use crate::config::secret::{self, SecretRef};
use std::path::PathBuf;

/// A credential at an upstream, with its limits.
#[derive(Clone, Debug)]
pub struct Account {
    /// Its name, unlike any other of the upstream.
    pub name: String,
    /// By what it is itself there.
    pub credential: Credential,
    /// How many attempts run on it at once, at least 1.
    pub max_in_flight: u32,
    /// Patterns of the upstream's model names it serves; `*` stands for any characters.
    pub models: Vec<String>,
    /// Accounts of the same group share a limit of the provider; one that names none is a group of its own.
    pub limit_group: Option<String>,
    /// How many attempts it may start a minute, at least 1; without: any number.
    pub requests_per_minute: Option<u32>,
    /// How many tokens, in and out, it may use a minute, at least 1; without: any number.
    pub tokens_per_minute: Option<u32>,
}

/// By what an account is itself at its upstream. `None` as a secret: it can serve only once the store gives it one.
#[derive(Clone, Debug)]
pub enum Credential {
    /// A secret that its provider gave it.
    Secret(Option<SecretRef>),
    /// Such a secret, within an organization.
    Member {
        /// The secret.
        secret: Option<SecretRef>,
        /// The organization's id.
        organization: String,
    },
    /// What its process has around it; the gateway has no secret of it.
    Surroundings {
        /// Its HOME.
        home: PathBuf,
        /// Its own variables, by name.
        env: Vec<(String, EnvValue)>,
        /// By which of its methods an agent that wants a login is asked to log in; without: one that takes a key from its
        /// variables, if it has one.
        auth_method: Option<String>,
    },
}

impl Credential {
    /// The place of its secret; nothing where it has none, or needs none.
    pub fn secret(&self) -> Option<&SecretRef> {
        match self {
            Credential::Secret(secret) | Credential::Member { secret, .. } => secret.as_ref(),
            Credential::Surroundings { .. } => None,
        }
    }
}

/// How many attempts run on an account at once when nothing else is said.
pub const DEFAULT_MAX_IN_FLIGHT: u32 = 16;

const ACCOUNT: Known = Known {
    table: "[[upstreams.accounts]]",
    keys: &[
        "name",
        "secret",
        "max_in_flight",
        "requests_per_minute",
        "tokens_per_minute",
        "models",
        "limit_group",
        "home",
        "env",
        "auth_method",
        "organization",
    ],
    later: &[],
};

/// Whose account is read.
pub(super) struct Of<'a> {
    /// The upstream's name, if it has one.
    pub(super) upstream: &'a str,
    /// Its kind, if that is known.
    pub(super) kind: Option<Kind>,
    /// It is a process that the gateway starts.
    pub(super) started: bool,
}

pub(super) fn read(item: Item<'_>, plain: bool, of: &Of<'_>, names: &mut Names) -> Option<Account> {
    let fields = item.table(&ACCOUNT)?;
    let name = fields.require("name", r#"name = "main""#).and_then(|item| item.name(names));
    if let Some(kind) = of.kind {
        kind::refuse_account_keys_of_other_kinds(&fields, kind);
    }
    let credential = read_credential(&fields, plain, of, name.as_deref());
    let max_in_flight = match fields.get("max_in_flight") {
        Some(item) => item.integer(1, 100_000)?,
        None => DEFAULT_MAX_IN_FLIGHT,
    };
    let models = match fields.get("models") {
        Some(item) => some_patterns(&item)?,
        None => vec!["*".to_owned()],
    };
    let per_minute = |key: &str| fields.get(key).map(|item| item.integer(1, u32::MAX));
    let limit_group = fields.get("limit_group").map(|item| item.free_name());
    let (requests, tokens) = (per_minute("requests_per_minute"), per_minute("tokens_per_minute"));
    Some(Account {
        name: name?,
        credential: credential?,
        max_in_flight,
        models,
        limit_group: whole(limit_group)?,
        requests_per_minute: whole(requests)?,
        tokens_per_minute: whole(tokens)?,
    })
}

fn read_credential(fields: &Fields<'_>, plain: bool, of: &Of<'_>, name: Option<&str>) -> Option<Credential> {
    if of.started {
        return read_surroundings(fields, plain, of, name);
    }
    if of.kind == Some(Kind::Cascade) {
        for key in ["home", "env"] {
            if let Some(item) = fields.get(key) {
                item.fail::<()>("is a process's, and this server is called at its base_url; remove it");
            }
        }
    }
    let secret = match fields.get("secret") {
        Some(item) => secret::read_of_account(&item, plain).map(Some),
        None => {
            fields.item().warn("has no secret, so it serves nothing (no_credential); add one");
            Some(None)
        }
    };
    if of.kind != Some(Kind::Devin) {
        return Some(Credential::Secret(secret?));
    }
    let organization = fields.require("organization", r#"organization = "org-…", whose sessions it works with"#);
    let organization = organization.and_then(|item| read_organization(&item));
    Some(Credential::Member { secret: secret?, organization: organization? })
}

fn read_surroundings(fields: &Fields<'_>, plain: bool, of: &Of<'_>, name: Option<&str>) -> Option<Credential> {
    if let (Some(Kind::Cascade), Some(item)) = (of.kind, fields.get("secret")) {
        item.fail::<()>(
            "a process that the gateway starts (command) gets a secret of its own at each start; remove it",
        );
    }
    let home = match fields.get("home") {
        Some(item) => item.path(),
        None => {
            let name = name?;
            // A name of dots would lead elsewhere.
            if name.starts_with('.') {
                fields.require("home", r#"home = "FOLDER", the account's own"#)?;
            }
            Some(fields.item().in_folder(&format!("agents/{}/{name}", of.upstream)))
        }
    };
    let env = match fields.get("env") {
        Some(item) => process::read_env(&item, plain),
        None => Some(Vec::new()),
    };
    let auth_method = fields.get("auth_method").map(|item| item.filled_text().map(str::to_owned));
    Some(Credential::Surroundings { home: home?, env: env?, auth_method: whole(auth_method)? })
}

/// It becomes a part of paths.
fn read_organization(item: &Item<'_>) -> Option<String> {
    let id = item.filled_text()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if id.len() > 128 || !id.chars().all(plain) {
        return item.fail("is not the id of an organization, as in \"org-1a2b\": letters, digits, - and _");
    }
    Some(id.to_owned())
}

/// A key that need not be there, and that is right where it is.
fn whole<T>(read: Option<Option<T>>) -> Option<Option<T>> {
    match read {
        Some(Some(value)) => Some(Some(value)),
        Some(None) => None,
        None => Some(None),
    }
}
