//! The configuration: TOML text, plus overrides from the environment, to typed values that are checked as a whole.
//!
//! It exists so that a mistake is told before the gateway serves a turn, with the place to mend. It opens no socket and
//! no store, and it reads a secret only when asked to ([`SecretRef::resolve`]).

mod amounts;
mod caller;
mod digest;
mod document;
mod environment;
mod error;
mod expiry;
mod fetch;
mod listen;
mod model;
mod problems;
mod read;
mod reload;
mod secret;
mod server;
mod startup;
mod store;
mod summary;
mod telemetry;
pub mod template;
mod text;
mod tuning;
mod units;
mod upstream;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Arc;
use turnkeep_policy::Tuning;

pub(crate) use amounts::{budget as parse_budget, show_budget};
pub use caller::{CallerKey, Scope};
pub(crate) use caller::{MOST_IN_FLIGHT, check_label, check_label_count};
pub use error::{ConfigError, ConfigErrors, Warning};
pub(crate) use expiry::parse as parse_expiry;
pub use fetch::Fetch;
pub use listen::Listen;
pub use model::{ANY_MODEL, Model, Route};
pub use reload::{RESTART_KEYS, needs_restart};
pub(crate) use secret::FILE_WAIT;
pub use secret::SecretRef;
pub use server::{DEFAULT_PORT, Server, Tls};
pub use startup::{KeyRule, startup_rule};
pub use store::{Keep, Store, StoreUrl};
pub use telemetry::{LogFormat, Telemetry};
pub(crate) use text::nearest;
pub use tuning::Stream;
pub use units::{duration as parse_duration, show_duration, show_size};
pub use upstream::{
    Account, CascadeServer, Codec, Credential, DEFAULT_MAX_IN_FLIGHT, EnvValue, Kind, Permissions, Process, Remote,
    Rpc, RpcProtocol, Speaks, Timeouts, ToolActivity, Upstream,
};

use document::Origin;
use problems::Problems;
use read::{Known, Names};

/// The file that commands read when none is named.
pub const DEFAULT_FILE: &str = "turnkeep.toml";

/// The largest configuration file that is read, in bytes.
pub const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// A whole configuration: every default filled in, every name that refers to another checked.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// `[server]`.
    pub server: Server,
    /// `[store]`.
    pub store: Store,
    /// `[[upstreams]]`, in file order.
    pub upstreams: Vec<Upstream>,
    /// `[[models]]`, in file order. Without any in the file: one [`ANY_MODEL`] with every upstream as a route.
    pub models: Vec<Model>,
    /// `[[keys]]`.
    pub keys: Vec<CallerKey>,
    /// `[fetch]`.
    pub fetch: Fetch,
    /// `[telemetry]`.
    pub telemetry: Telemetry,
    /// `[tuning]`, but for what [`Config::stream`] holds.
    pub tuning: Tuning,
    /// What a client that streams gets while its turn waits; in `[tuning]`.
    pub stream: Stream,
    /// What is allowed but probably not meant.
    pub warnings: Vec<Warning>,
    /// The file's text as it was read, told apart from another by its hash; none of a text that is in no file.
    pub(crate) text_hash: Option<u64>,
    /// What tells one configuration from another for people: a digest of its keys and values, overrides applied and secrets
    /// left out. Comments and the order of keys are not in it; none of one that was not parsed.
    pub(crate) digest: Option<String>,
}

const TOP: Known = Known {
    table: "the top level",
    keys: &["allow_plain_secrets", "server", "store", "upstreams", "models", "keys", "fetch", "telemetry", "tuning"],
    later: &["cluster"],
};

impl Config {
    /// Reads a file and the overrides of this process's environment.
    ///
    /// # Errors
    /// All mistakes found, in file order; a file that cannot be read is one error without a line.
    pub fn load(file: &Path) -> Result<Config, ConfigErrors> {
        let text = read_file(file).map_err(|message| ConfigErrors::whole_file(file, message))?;
        let config = Config::parse(&text, file, std::env::vars_os())?;
        Ok(Config { text_hash: Some(hash(&text)), ..config })
    }

    /// What tells the text of a file apart from another; nothing of one that cannot be read.
    pub(crate) fn text_hash_of(file: &Path) -> Option<u64> {
        read_file(file).ok().map(|text| hash(&text))
    }

    /// Checks a text as if it stood in `file`: messages name that file, and relative paths start at its folder.
    /// `environment` gives the overrides; [`std::iter::empty`] gives none.
    ///
    /// # Errors
    /// All mistakes found, in file order.
    pub fn parse(
        text: &str,
        file: &Path,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Config, ConfigErrors> {
        let origin = Origin::File(Arc::from(file.display().to_string()));
        let problems = Problems::default();
        let mut root = document::parse(text, &origin).map_err(ConfigErrors::one)?;
        environment::apply(&mut root, environment, &problems);
        let folder = file.parent().unwrap_or(Path::new(""));
        let config = read_config(&root, folder, &problems);
        problems.finish(config.map(|config| Config { digest: Some(digest::of(&root)), ..config }))
    }

    /// The entry that answers for a model name: by name, by alias, else the catch-all.
    pub fn model(&self, requested: &str) -> Option<&Model> {
        self.models.iter().find(|model| model.is_called(requested)).or_else(|| self.models.iter().find(|m| m.is_any()))
    }

    /// The upstream of this name.
    pub fn upstream(&self, name: &str) -> Option<&Upstream> {
        self.upstreams.iter().find(|upstream| upstream.name == name)
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

fn read_file(file: &Path) -> Result<String, String> {
    let told = |error: std::io::Error| match error.kind() == std::io::ErrorKind::NotFound {
        true => "there is no such file; `turnkeep init` writes one, `--config FILE` names another".to_owned(),
        false => format!("cannot be read: {error}"),
    };
    let length = std::fs::metadata(file).map_err(told)?.len();
    if length > MAX_FILE_BYTES {
        return Err(format!("is {length} bytes long; at most {MAX_FILE_BYTES} are read"));
    }
    let bytes = std::fs::read(file).map_err(told)?;
    String::from_utf8(bytes).map_err(|error| {
        format!("is not UTF-8 text: byte {} is wrong; save it as UTF-8", error.utf8_error().valid_up_to() + 1)
    })
}

fn read_config(root: &document::Node, folder: &Path, problems: &Problems) -> Option<Config> {
    let top = read::Item::root(root, folder, problems).table(&TOP)?;
    let plain = top.get("allow_plain_secrets").and_then(|item| item.boolean()).unwrap_or(false);
    let server = top.get("server").and_then(server::read).unwrap_or_default();
    let store = store::read(top.get("store"), folder, plain);
    let upstreams = read_all(top.get("upstreams"), |item, names| upstream::read(item, plain, names));
    let mut models = match top.get("models") {
        Some(item) => model::read_all(item, &upstreams),
        None => Vec::new(),
    };
    if models.is_empty() && !upstreams.is_empty() {
        models.push(Model::any(upstreams.iter().map(|upstream| upstream.name.clone())));
    }
    let keys = read_all(top.get("keys"), |item, names| caller::read(item, plain, names));
    let fetch = top.get("fetch").and_then(fetch::read).unwrap_or_default();
    let telemetry = top.get("telemetry").and_then(telemetry::read).unwrap_or_default();
    let tuning::Both { tuning, stream } = top.get("tuning").and_then(tuning::read).unwrap_or_default();
    let mut config = Config {
        server,
        store,
        upstreams,
        models,
        keys,
        fetch,
        telemetry,
        tuning,
        stream,
        warnings: Vec::new(),
        text_hash: None,
        digest: None,
    };
    summary::warn_as_a_whole(&config, problems);
    config.warnings = problems.take_warnings();
    Some(config)
}

fn read_all<T>(item: Option<read::Item<'_>>, mut one: impl FnMut(read::Item<'_>, &mut Names) -> Option<T>) -> Vec<T> {
    let mut names: Names = BTreeMap::new();
    let Some(item) = item else { return Vec::new() };
    item.list_of_tables().into_iter().filter_map(|entry| one(entry, &mut names)).collect()
}
