//! The accounts of an upstream, those of the configuration and those of the store, and whether their secrets are there.

use super::look::{Look, Seen};
use super::{Failure, Probe};
use crate::config::{Account, DEFAULT_MAX_IN_FLIGHT, SecretRef, Upstream};
use crate::secrets;
use std::io::Write;

/// Prints them; gives how many cannot be used.
pub(super) async fn lines(
    out: &mut impl Write,
    upstream: &Upstream,
    look: &Look,
    probe: Option<&dyn Probe>,
) -> Result<usize, Failure> {
    let mut missing = 0;
    for account in &upstream.accounts {
        let head = format!("  account {}, {}", account.name, limits(account));
        match &account.secret {
            Some(source) => {
                missing += account_lines(out, &head, (upstream, account), source, &source.to_string(), probe).await?
            }
            None => writeln!(out, "{head}, NO SECRET")?,
        }
    }
    let of_file = |seen: &&Seen| upstream.accounts.iter().any(|account| *account.name == *seen.record.id.account);
    let of_store = look.accounts.iter().filter(|seen| *seen.record.id.upstream == *upstream.name);
    for seen in of_store.filter(|seen| !of_file(seen)) {
        let account = account_of(seen);
        let head = format!("  account {}, in the store, {}", account.name, limits(&account));
        match &seen.secret {
            _ if !seen.record.enabled => writeln!(out, "{head}, disabled")?,
            Ok(source) => {
                let place = match source {
                    SecretRef::Plain(_) => "the store, sealed".to_owned(),
                    SecretRef::Env(_) | SecretRef::File(_) | SecretRef::Command { .. } => source.to_string(),
                };
                missing += account_lines(out, &head, (upstream, &account), source, &place, probe).await?;
            }
            Err(why) => {
                writeln!(out, "{head}, secret CANNOT BE OPENED: {why}")?;
                missing += 1;
            }
        }
    }
    Ok(missing)
}

/// As the configuration would have it.
fn account_of(seen: &Seen) -> Account {
    Account {
        name: seen.record.id.account.to_string(),
        secret: None,
        max_in_flight: seen.record.max_in_flight.unwrap_or(DEFAULT_MAX_IN_FLIGHT),
        models: seen.record.models.clone(),
        limit_group: seen.record.limit_group.clone(),
        requests_per_minute: seen.record.requests_per_minute,
        tokens_per_minute: seen.record.tokens_per_minute,
    }
}

fn limits(account: &Account) -> String {
    let mut words = format!("at most {} at once", account.max_in_flight);
    if let Some(requests) = account.requests_per_minute {
        words += &format!(", {requests} requests a minute");
    }
    if let Some(tokens) = account.tokens_per_minute {
        words += &format!(", {tokens} tokens a minute");
    }
    if let Some(group) = &account.limit_group {
        words += &format!(", limit group {group}");
    }
    words
}

async fn account_lines(
    out: &mut impl Write,
    head: &str,
    (upstream, account): (&Upstream, &Account),
    source: &SecretRef,
    place: &str,
    probe: Option<&dyn Probe>,
) -> Result<usize, Failure> {
    if let (SecretRef::Command { .. }, None) = (source, probe) {
        writeln!(out, "{head}, secret from {source}, which is run only with --probe")?;
        return Ok(0);
    }
    let secret = match secrets::fetch(source).await {
        Ok(secret) => secret,
        Err(why) => {
            writeln!(out, "{head}, secret MISSING: {why}")?;
            return Ok(1);
        }
    };
    writeln!(out, "{head}, secret found in {place}")?;
    let Some(probe) = probe else { return Ok(0) };
    match probe.models(upstream, account, &secret).await {
        Ok(models) => {
            writeln!(out, "    {} models: {}", models.len(), models.join(", "))?;
            Ok(0)
        }
        Err(why) => {
            writeln!(out, "    PROBE FAILED: {why}")?;
            Ok(1)
        }
    }
}
