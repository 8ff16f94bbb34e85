//! The store of a configuration, opened for the command line beside a gateway that may be running.

use super::Failure;
use crate::config::{Config, Store as StoreConfig, StoreUrl};
use std::path::Path;
use std::sync::Arc;
use turnkeep_store::{AuditEntry, MasterKey, RecordError, Role, SqliteStore, Store, StoreOptions, SystemClock};

/// The database's file.
pub(super) fn path(config: &Config) -> Result<&Path, Failure> {
    match &config.store.url {
        StoreUrl::Sqlite(path) => Ok(path),
        StoreUrl::Memory => {
            let words = "store.url is memory:, which ends with its gateway and which no other process can reach; \
                         name a file, as in \"sqlite:turnkeep.db\"";
            Err(Failure::Usage(words.into()))
        }
    }
}

/// Opens it, making it where there is none.
pub(super) fn open(config: &Config) -> Result<SqliteStore, Failure> {
    let path = path(config)?;
    let master_key = master_key(&config.store).map_err(|why| Failure::Usage(format!("store.master_key: {why}")))?;
    let options = StoreOptions { role: Role::Tool, master_key, clock: Arc::new(SystemClock) };
    SqliteStore::open(path, options).map_err(Failure::operation)
}

/// Opens the one that is there: a look into it makes none.
pub(super) fn open_existing(config: &Config) -> Result<SqliteStore, Failure> {
    let path = path(config)?;
    if !path.exists() {
        let words = "there is no store yet; it is made when the gateway starts, or when a key or an account is added";
        return Err(Failure::Operation(format!("{}: {words}", path.display())));
    }
    open(config)
}

/// The configured master key, if there is one.
pub(crate) fn master_key(store: &StoreConfig) -> Result<Option<MasterKey>, String> {
    let Some(reference) = &store.master_key else { return Ok(None) };
    let text = reference.resolve()?;
    MasterKey::parse(&text).map(Some).map_err(|error| format!("{reference}: {error}"))
}

/// Notes a change in the audit log.
pub(super) async fn audit(store: &dyn Store, action: &str, subject: String, detail: String) -> Result<(), Failure> {
    let at_ms = turnkeep_engine::ports::WallClock::unix_ms(&SystemClock);
    let (actor, action) = ("command line".to_owned(), action.to_owned());
    store.audit(AuditEntry { at_ms, actor, action, subject, detail }).await.map_err(Failure::operation)
}

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Self {
        match error {
            RecordError::Invalid(_) => Failure::Usage(error.to_string()),
            RecordError::Exists(_)
            | RecordError::Unknown(_)
            | RecordError::Revoked(_)
            | RecordError::NoMasterKey
            | RecordError::Damaged(_)
            | RecordError::Store(_) => Failure::Operation(error.to_string()),
        }
    }
}

/// A moment for people and programs; `-` where it is none.
pub(super) fn moment(unix_ms: Option<u64>) -> String {
    let moment = unix_ms.and_then(|ms| i64::try_from(ms / 1000).ok());
    let moment = moment.and_then(|s| time::OffsetDateTime::from_unix_timestamp(s).ok());
    let text = moment.and_then(|moment| moment.format(&time::format_description::well_known::Rfc3339).ok());
    text.unwrap_or_else(|| "-".into())
}
