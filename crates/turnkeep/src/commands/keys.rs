//! `turnkeep keys`: callers' keys in the store. A secret is printed once, alone on its line, and kept as a hash.

use super::open_store::{audit, moment, open};
use super::{Failure, table};
use crate::cli::{KeyCreateArgs, KeysCommand};
use crate::config::Config;
use serde_json::{Value, json};
use std::io::Write;
use std::time::Duration;
use turnkeep_store::{KeyRecord, NewKey, Store};

/// Runs one of the commands on the store of its configuration. A running gateway takes the change up by itself.
///
/// # Errors
/// Usage: the configuration, or a name that cannot be one. Operation: the store, or there is no such key.
pub async fn run(command: &KeysCommand, out: &mut impl Write) -> Result<(), Failure> {
    let file = match command {
        KeysCommand::Create(args) => &args.file,
        KeysCommand::List(args) => &args.file,
        KeysCommand::Revoke(args) => &args.file,
        KeysCommand::Rotate(args) => &args.key.file,
    };
    let config = Config::load(&file.config)?;
    let store = open(&config)?;
    let result = on_store(command, &config, &store, out).await;
    store.shutdown().await.map_err(Failure::operation)?;
    result
}

async fn on_store(
    command: &KeysCommand,
    config: &Config,
    store: &dyn Store,
    out: &mut impl Write,
) -> Result<(), Failure> {
    match command {
        KeysCommand::Create(args) => create(args, config, store, out).await,
        KeysCommand::List(args) => list(args.json, store, out).await,
        KeysCommand::Revoke(args) => {
            let record = store.revoke_key(args.name.clone()).await?;
            audit(store, "revoke", format!("key {}", record.name), String::new()).await?;
            writeln!(out, "revoked {}", record.name)?;
            Ok(())
        }
        KeysCommand::Rotate(args) => {
            let overlap = args.overlap.unwrap_or(Duration::ZERO);
            let (record, secret) = store.rotate_key(args.key.name.clone(), overlap).await?;
            writeln!(out, "{}", secret.expose())?;
            let detail = format!("overlap {} s", overlap.as_secs());
            audit(store, "rotate", format!("key {}", record.name), detail).await
        }
    }
}

async fn create(args: &KeyCreateArgs, config: &Config, store: &dyn Store, out: &mut impl Write) -> Result<(), Failure> {
    if config.keys.iter().any(|key| key.name == args.name) {
        return Err(Failure::Operation(format!("the config has a key {:?} already; take another name", args.name)));
    }
    let scopes: Vec<String> = args.scopes.iter().map(|scope| scope.name().to_owned()).collect();
    let new = NewKey { scopes, models: args.models.clone(), ..NewKey::named(args.name.clone()) };
    let (record, secret) = store.create_key(new).await?;
    if args.json {
        let mut value = to_json(&record);
        if let Value::Object(fields) = &mut value {
            fields.insert("secret".into(), secret.expose().into());
        }
        writeln!(out, "{value}")?;
    } else {
        writeln!(out, "{}", secret.expose())?;
    }
    let detail = format!("scopes {}, models {}", record.scopes.join(","), record.models.join(","));
    audit(store, "create", format!("key {}", record.name), detail).await
}

async fn list(as_json: bool, store: &dyn Store, out: &mut impl Write) -> Result<(), Failure> {
    let keys = store.list_keys().await.map_err(Failure::operation)?;
    if as_json {
        writeln!(out, "{}", Value::Array(keys.iter().map(to_json).collect()))?;
        return Ok(());
    }
    let row = |key: &KeyRecord| {
        let revoked = key.revoked_ms.map(|ms| format!("revoked {}", moment(Some(ms))));
        let status = revoked.unwrap_or_else(|| "active".into());
        vec![key.name.clone(), key.scopes.join(","), key.models.join(","), moment(Some(key.created_ms)), status]
    };
    let rows: Vec<Vec<String>> = keys.iter().map(row).collect();
    table::write(out, &["NAME", "SCOPES", "MODELS", "CREATED", "STATUS"], &rows)?;
    Ok(())
}

fn to_json(key: &KeyRecord) -> Value {
    json!({
        "name": key.name,
        "scopes": key.scopes,
        "models": key.models,
        "created": moment(Some(key.created_ms)),
        "expires": key.expires_ms.map(|ms| moment(Some(ms))),
        "revoked": key.revoked_ms.map(|ms| moment(Some(ms))),
    })
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
