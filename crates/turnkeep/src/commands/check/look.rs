//! A look at the store that the configuration names: whether a gateway could use it, and which accounts and keys it has.
//! A store that is not there is not made.

use crate::commands::open_store::{self, master_key};
use crate::config::{Config, SecretRef, StoreUrl};
use std::fs::OpenOptions;
use std::path::Path;
use turnkeep_store::{AccountRecord, OpenedSecret, SqliteStore, Store};

/// What was seen.
#[derive(Default)]
pub(super) struct Look {
    /// For the line of the store.
    pub(super) words: String,
    /// How many things cannot be used.
    pub(super) problems: usize,
    /// The store's accounts.
    pub(super) accounts: Vec<Seen>,
    /// How many keys it has that are not revoked; nothing where that cannot be told.
    pub(super) keys: Option<usize>,
}

/// An account of the store.
pub(super) struct Seen {
    pub(super) record: AccountRecord,
    /// Where its secret is, or why that cannot be told.
    pub(super) secret: Result<SecretRef, String>,
}

pub(super) async fn look(config: &Config) -> Look {
    let mut look = Look::default();
    let sealed = match master_key(&config.store) {
        Ok(Some(_)) => "secrets encrypted at rest".to_owned(),
        Ok(None) => "no master key".to_owned(),
        Err(why) => {
            look.problems += 1;
            format!("MASTER KEY: {why}")
        }
    };
    let state = match &config.store.url {
        StoreUrl::Memory => {
            look.keys = Some(0);
            "gone with the process".to_owned()
        }
        StoreUrl::Sqlite(path) => match usable(path) {
            Err(why) => {
                look.problems += 1;
                why
            }
            Ok(false) => {
                look.keys = Some(0);
                "made at the first start".to_owned()
            }
            // Without its master key it cannot be opened, which was told.
            Ok(true) if look.problems > 0 => "not looked into".to_owned(),
            Ok(true) => match read(config, &mut look).await {
                Ok(()) => format!("{} accounts, {} keys", look.accounts.len(), look.keys.unwrap_or(0)),
                Err(why) => {
                    look.problems += 1;
                    format!("CANNOT BE OPENED: {why}")
                }
            },
        },
    };
    look.words = format!("{sealed}; {state}");
    look
}

/// Whether there is a database to read; or why a gateway could not use the place.
fn usable(path: &Path) -> Result<bool, String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let shown = folder.display();
    if !folder.is_dir() {
        return Err(format!("CANNOT BE MADE: there is no folder {shown}; make it first"));
    }
    // A file without a name: nobody sees it.
    tempfile::tempfile_in(folder).map_err(|error| format!("CANNOT BE USED: the folder {shown}: {error}"))?;
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err("CANNOT BE USED: it is not a file".into()),
        Ok(metadata) => {
            let opened = OpenOptions::new().read(true).write(true).open(path);
            opened.map_err(|error| format!("CANNOT BE USED: {error}"))?;
            Ok(metadata.len() > 0)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(format!("CANNOT BE USED: {error}")),
    }
}

async fn read(config: &Config, look: &mut Look) -> Result<(), String> {
    let store = open_store::open(config).map_err(|failure| failure.to_string())?;
    let read = read_open(&store, look).await;
    store.shutdown().await.map_err(|error| error.to_string())?;
    read
}

async fn read_open(store: &SqliteStore, look: &mut Look) -> Result<(), String> {
    for record in store.list_accounts().await.map_err(|error| error.to_string())? {
        let opened = store.open_secret(record.id.clone()).await.map_err(|error| error.to_string());
        let secret = opened.map(|opened| match opened {
            OpenedSecret::Literal(secret) => SecretRef::Plain(secret),
            OpenedSecret::Reference(turnkeep_store::SecretRef::Env(name)) => SecretRef::Env(name),
            OpenedSecret::Reference(turnkeep_store::SecretRef::File(path)) => SecretRef::File(path),
        });
        look.accounts.push(Seen { record, secret });
    }
    let snapshot = store.keys_snapshot().await.map_err(|error| error.to_string())?;
    look.keys = Some(snapshot.keys.len());
    Ok(())
}
