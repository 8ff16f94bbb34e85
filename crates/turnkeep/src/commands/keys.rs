//! `turnkeep keys`: callers' keys in the store. A secret is printed once, alone on its line, and kept as a hash.

use super::open_store::{audit, moment, open};
use super::{Failure, table};
use crate::cli::{KeyCreateArgs, KeysCommand};
use crate::config::{Config, check_label_count, show_budget};
use serde_json::{Value, json};
use std::io::Write;
use std::time::Duration;
use turnkeep_policy::limits::{Amount, Budget, Per};
use turnkeep_store::{Budget as KeptBudget, KeyLimits, KeyRecord, NewKey, Store};

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
    check_label_count(args.labels.len()).map_err(Failure::Usage)?;
    let limits = KeyLimits {
        requests_per_minute: args.requests_per_minute,
        tokens_per_minute: args.tokens_per_minute.map(u64::from),
        max_in_flight: args.max_in_flight,
        budget: args.budget.as_ref().map(kept_budget),
    };
    let new = NewKey {
        scopes,
        models: args.models.clone(),
        limits,
        labels: args.labels.iter().cloned().collect(),
        shared: args.shared,
        expires_ms: args.expires,
        ..NewKey::named(args.name.clone())
    };
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
        let now_ms = turnkeep_engine::ports::WallClock::unix_ms(&turnkeep_store::SystemClock);
        let status = match (key.revoked_ms, key.expires_ms) {
            (Some(ms), _) => format!("revoked {}", moment(Some(ms))),
            (None, Some(ms)) if ms <= now_ms => format!("expired {}", moment(Some(ms))),
            (None, Some(ms)) => format!("active until {}", moment(Some(ms))),
            (None, None) => "active".into(),
        };
        let (scopes, models, created) = (key.scopes.join(","), key.models.join(","), moment(Some(key.created_ms)));
        vec![key.name.clone(), scopes, models, limit_words(&key.limits), created, status]
    };
    let rows: Vec<Vec<String>> = keys.iter().map(row).collect();
    table::write(out, &["NAME", "SCOPES", "MODELS", "LIMITS", "CREATED", "STATUS"], &rows)?;
    Ok(())
}

fn limit_words(limits: &KeyLimits) -> String {
    let number = |number: Option<u64>, unit: &str| number.map(|number| format!("{number}{unit}"));
    let parts = [
        number(limits.requests_per_minute.map(u64::from), " req/min"),
        number(limits.tokens_per_minute, " tok/min"),
        number(limits.max_in_flight.map(u64::from), " at once"),
        limits.budget.as_ref().map(|kept| budget_of(kept).map_or("UNREADABLE budget".into(), |b| show_budget(&b))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "-".into() } else { parts.join(", ") }
}

/// A budget as the store keeps it. US dollars go through a float there, which is exact up to the largest budget.
fn kept_budget(budget: &Budget) -> KeptBudget {
    let (usd, tokens) = match budget.amount {
        Amount::NanoUsd(nano) => (Some(nano as f64 / 1e9), None),
        Amount::Tokens(tokens) => (None, Some(tokens)),
    };
    KeptBudget { usd, tokens, per: budget.per.name().into() }
}

/// A budget of the store; `None` if it is none that this version knows.
pub(crate) fn budget_of(kept: &KeptBudget) -> Option<Budget> {
    let amount = match (kept.usd, kept.tokens) {
        (Some(usd), None) if usd.is_finite() && usd >= 0.0 => Amount::NanoUsd((usd * 1e9).round() as u64),
        (None, Some(tokens)) => Amount::Tokens(tokens),
        (Some(_) | None, _) => return None,
    };
    Some(Budget { amount, per: Per::from_name(&kept.per)? })
}

fn to_json(key: &KeyRecord) -> Value {
    json!({
        "name": key.name,
        "scopes": key.scopes,
        "models": key.models,
        "limits": key.limits,
        "labels": key.labels,
        "shared": key.shared,
        "created": moment(Some(key.created_ms)),
        "expires": key.expires_ms.map(|ms| moment(Some(ms))),
        "revoked": key.revoked_ms.map(|ms| moment(Some(ms))),
    })
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
