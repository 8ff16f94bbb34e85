//! The accounts of an upstream, those of the configuration and those of the store, and whether their secrets are there.

use super::look::{Look, Seen};
use super::{Failure, Probe, Probed};
use crate::config::{Account, Credential, DEFAULT_MAX_IN_FLIGHT, SecretRef, Upstream};
use crate::{secrets, wiring};
use std::io::Write;
use std::path::Path;
use turnkeep_base::Secret;

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
        match &account.credential {
            Credential::Surroundings { home, .. } => {
                missing += surroundings_lines(out, &head, (upstream, account), home, probe).await?;
            }
            Credential::Secret(Some(source)) | Credential::Member { secret: Some(source), .. } => {
                missing += account_lines(out, &head, (upstream, account), source, &source.to_string(), probe).await?
            }
            Credential::Secret(None) | Credential::Member { secret: None, .. } => writeln!(out, "{head}, NO SECRET")?,
        }
    }
    let of_file = |seen: &&Seen| upstream.accounts.iter().any(|account| *account.name == *seen.record.id.account);
    let of_store = look.accounts.iter().filter(|seen| *seen.record.id.upstream == *upstream.name);
    for seen in of_store.filter(|seen| !of_file(seen)) {
        let account = account_of(seen);
        let head = format!("  account {}, in the store, {}", account.name, limits(&account));
        match &seen.secret {
            _ if upstream.speaks.accounts_in_file_only() => {
                writeln!(out, "{head}, SERVES NOTHING: accounts of this kind stand in the file")?;
            }
            _ if !seen.record.enabled => writeln!(out, "{head}, disabled")?,
            Ok(source) => {
                let place = match source {
                    SecretRef::Plain(_) => "the store, sealed".to_owned(),
                    SecretRef::Env(_) | SecretRef::File(_) | SecretRef::Command { .. } | SecretRef::NotNeeded => {
                        source.to_string()
                    }
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
        credential: Credential::Secret(None),
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
    probe_lines(out, upstream, account, &secret, probe).await
}

/// An account that is known by what is around its process.
async fn surroundings_lines(
    out: &mut impl Write,
    head: &str,
    (upstream, account): (&Upstream, &Account),
    home: &Path,
    probe: Option<&dyn Probe>,
) -> Result<usize, Failure> {
    let state = match std::fs::metadata(home) {
        Ok(metadata) if metadata.is_dir() => "found",
        Ok(_) => {
            writeln!(out, "{head}, home {} MISSING: it is not a folder", home.display())?;
            return Ok(1);
        }
        Err(_) => "made at the first start",
    };
    if let Err(why) = wiring::surroundings_of(account).await {
        writeln!(out, "{head}, secret MISSING: {why}")?;
        return Ok(1);
    }
    writeln!(out, "{head}, home {} {state}", home.display())?;
    probe_lines(out, upstream, account, &Secret::new(String::new()), probe).await
}

async fn probe_lines(
    out: &mut impl Write,
    upstream: &Upstream,
    account: &Account,
    secret: &Secret,
    probe: Option<&dyn Probe>,
) -> Result<usize, Failure> {
    let Some(probe) = probe else { return Ok(0) };
    match probe.models(upstream, account, secret).await {
        Ok(Probed::Models(models)) => {
            writeln!(out, "    {} models: {}", models.len(), models.join(", "))?;
            Ok(0)
        }
        Ok(Probed::Words(words)) => {
            writeln!(out, "    {words}")?;
            Ok(0)
        }
        Err(why) => {
            writeln!(out, "    PROBE FAILED: {why}")?;
            Ok(1)
        }
    }
}
