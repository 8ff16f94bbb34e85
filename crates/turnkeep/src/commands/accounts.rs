//! `turnkeep accounts`: upstream accounts in the store, beside those of the configuration.

use super::open_store::{audit, moment, open};
use super::{Failure, table};
use crate::cli::{AccountAddArgs, AccountArgs, AccountsCommand, SecretSource};
use crate::config::{Config, nearest};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::path::PathBuf;
use turnkeep_base::{AccountId, Secret};
use turnkeep_store::{AccountRecord, NewAccount, SecretInput, SecretKind, SecretRef, Store};

/// The longest secret that is read from standard input, in bytes.
const MAX_SECRET: u64 = 64 * 1024;

/// Runs one of the commands on the store of its configuration; `input` is standard input, read only for a secret.
///
/// # Errors
/// Usage: the configuration, an upstream it does not have, a secret that cannot be one. Operation: the store, or there
/// is no such account.
pub async fn run(command: &AccountsCommand, input: &mut impl Read, out: &mut impl Write) -> Result<(), Failure> {
    let file = match command {
        AccountsCommand::Add(args) => &args.account.file,
        AccountsCommand::List(args) => &args.file,
        AccountsCommand::Enable(args) | AccountsCommand::Disable(args) | AccountsCommand::Remove(args) => &args.file,
        AccountsCommand::Rotate(args) => &args.account.file,
    };
    let config = Config::load(&file.config)?;
    let store = open(&config)?;
    let result = on_store(command, &config, &store, input, out).await;
    store.shutdown().await.map_err(Failure::operation)?;
    result
}

async fn on_store(
    command: &AccountsCommand,
    config: &Config,
    store: &dyn Store,
    input: &mut impl Read,
    out: &mut impl Write,
) -> Result<(), Failure> {
    match command {
        AccountsCommand::Add(args) => add(args, config, store, input, out).await,
        AccountsCommand::List(args) => list(args.json, store, out).await,
        AccountsCommand::Enable(args) => enable(args, true, config, store, out).await,
        AccountsCommand::Disable(args) => enable(args, false, config, store, out).await,
        AccountsCommand::Remove(args) => {
            let id = id(args);
            let configured = config.upstream(&args.upstream);
            if configured.is_some_and(|upstream| upstream.accounts.iter().any(|account| account.name == args.name)) {
                return Err(Failure::Usage(format!("{id} is in the config, not in the store; remove it there")));
            }
            store.remove_account(id.clone(), "command line".into()).await?;
            writeln!(out, "removed {id}; a running gateway gives it no new attempt within seconds")?;
            Ok(())
        }
        AccountsCommand::Rotate(args) => {
            let secret = read_secret(&args.secret, input)?;
            let record = store.rotate_account_secret(id(&args.account), secret).await?;
            audit(store, "rotate", format!("account {}", record.id), secret_words(&record.secret)).await?;
            writeln!(
                out,
                "rotated {}, secret {}; a running gateway takes it up within seconds",
                record.id,
                secret_words(&record.secret)
            )?;
            Ok(())
        }
    }
}

fn id(args: &AccountArgs) -> AccountId {
    AccountId { upstream: args.upstream.as_str().into(), account: args.name.as_str().into() }
}

async fn add(
    args: &AccountAddArgs,
    config: &Config,
    store: &dyn Store,
    input: &mut impl Read,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let AccountArgs { upstream, name, .. } = &args.account;
    let Some(configured) = config.upstream(upstream) else {
        let names: Vec<&str> = config.upstreams.iter().map(|upstream| upstream.name.as_str()).collect();
        let hint = nearest(upstream, &names).map(|near| format!("did you mean {near:?}?"));
        let hint = hint.unwrap_or_else(|| format!("it has: {}", names.join(", ")));
        return Err(Failure::Usage(format!("the config has no upstream {upstream:?}; {hint}")));
    };
    if configured.accounts.iter().any(|account| account.name == *name) {
        return Err(Failure::Operation(format!("the config has an account {name:?} of {upstream:?} already")));
    }
    if configured.speaks.accounts_in_file_only() {
        let kind = configured.speaks.kind().name();
        return Err(Failure::Usage(format!(
            "{upstream:?} is of kind {kind:?}, whose accounts need what only the file can say; add it there, below \
             [[upstreams.accounts]]"
        )));
    }
    let secret = read_secret(&args.secret, input)?;
    let (models, max_in_flight) = (args.models.clone(), Some(args.max_in_flight));
    let new = NewAccount {
        models,
        max_in_flight,
        limit_group: args.limit_group.clone(),
        requests_per_minute: args.requests_per_minute,
        tokens_per_minute: args.tokens_per_minute,
        ..NewAccount::new(id(&args.account), secret)
    };
    let record = store.add_account(new).await?;
    audit(store, "add", format!("account {}", record.id), secret_words(&record.secret)).await?;
    writeln!(
        out,
        "added {}, secret {}; a running gateway takes it up within seconds",
        record.id,
        secret_words(&record.secret)
    )?;
    Ok(())
}

/// Switches an account of the configuration or of the store. Enabling also ends a suspension and an errored episode. How
/// the account stands is the gateway's to write: it takes the switch up, cooldowns stay.
async fn enable(
    args: &AccountArgs,
    enabled: bool,
    config: &Config,
    store: &dyn Store,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let id = id(args);
    let upstream = config.upstream(&args.upstream);
    let configured = upstream.is_some_and(|upstream| upstream.accounts.iter().any(|account| account.name == args.name));
    if !configured {
        store.set_account_enabled(id.clone(), enabled).await?;
    }
    store.switch_account(id.clone(), enabled, "command line".into()).await.map_err(Failure::operation)?;
    let done = if enabled { "enabled" } else { "disabled" };
    writeln!(out, "{done} {id}; a running gateway takes it up within seconds")?;
    Ok(())
}

async fn list(as_json: bool, store: &dyn Store, out: &mut impl Write) -> Result<(), Failure> {
    let accounts = store.list_accounts().await.map_err(Failure::operation)?;
    if as_json {
        writeln!(out, "{}", Value::Array(accounts.iter().map(to_json).collect()))?;
        return Ok(());
    }
    let row = |account: &AccountRecord| {
        vec![
            account.id.upstream.to_string(),
            account.id.account.to_string(),
            secret_words(&account.secret),
            account.models.join(","),
            account.max_in_flight.map_or_else(|| "-".into(), |most| most.to_string()),
            moment(Some(account.created_ms)),
            if account.enabled { "enabled".into() } else { "disabled".into() },
        ]
    };
    let rows: Vec<Vec<String>> = accounts.iter().map(row).collect();
    table::write(out, &["UPSTREAM", "NAME", "SECRET", "MODELS", "IN FLIGHT", "CREATED", "STATUS"], &rows)?;
    Ok(())
}

fn to_json(account: &AccountRecord) -> Value {
    json!({
        "upstream": &*account.id.upstream,
        "name": &*account.id.account,
        "secret": secret_words(&account.secret),
        "models": account.models,
        "max_in_flight": account.max_in_flight,
        "requests_per_minute": account.requests_per_minute,
        "tokens_per_minute": account.tokens_per_minute,
        "limit_group": account.limit_group,
        "enabled": account.enabled,
        "created": moment(Some(account.created_ms)),
        "generation": account.generation,
    })
}

/// Where the secret is; never the secret.
fn secret_words(kind: &SecretKind) -> String {
    match kind {
        SecretKind::Reference(reference) => reference.to_string(),
        SecretKind::Sealed => "sealed".into(),
    }
}

fn read_secret(source: &SecretSource, input: &mut impl Read) -> Result<SecretInput, Failure> {
    if let Some(name) = &source.secret_env {
        return Ok(SecretInput::Reference(SecretRef::Env(name.clone())));
    }
    if let Some(path) = &source.secret_file {
        return Ok(SecretInput::Reference(SecretRef::File(whole_path(path)?)));
    }
    let mut text = String::new();
    let told = |error: std::io::Error| Failure::Usage(format!("the secret on standard input cannot be read: {error}"));
    input.take(MAX_SECRET + 1).read_to_string(&mut text).map_err(told)?;
    let secret = text.strip_suffix('\n').unwrap_or(&text);
    let secret = secret.strip_suffix('\r').unwrap_or(secret);
    if secret.trim().is_empty() || secret.contains(['\n', '\r', '\0']) || text.len() as u64 > MAX_SECRET {
        return Err(Failure::Usage("standard input must hold the secret alone, on one line".into()));
    }
    Ok(SecretInput::Literal(Secret::new(secret.to_owned())))
}

/// The gateway may run in another folder than this command, so it is told the whole path.
fn whole_path(path: &PathBuf) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}

#[cfg(test)]
#[path = "accounts_tests.rs"]
mod tests;
