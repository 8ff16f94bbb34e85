//! `turnkeep check`: whether a configuration is right, its files and secrets are there, and what would run.

use super::Failure;
use super::open_store::master_key;
use crate::cli::CheckArgs;
use crate::config::{Account, Config, KeyRule, Upstream, startup_rule};
use std::io::Write;
use std::path::Path;
use std::pin::Pin;
use turnkeep_base::Secret;

/// The answer of [`Probe::models`]: the models' names, or what went wrong in words without the secret.
pub type ProbeAnswer<'a> = Pin<Box<dyn Future<Output = Result<Vec<String>, String>> + Send + 'a>>;

/// Asks an upstream what an account may use. Filled in by the wiring, so that `check` opens no socket itself.
pub trait Probe: Sync {
    /// Lists the account's models; spends no tokens.
    fn models<'a>(&'a self, upstream: &'a Upstream, account: &'a Account, secret: &'a Secret) -> ProbeAnswer<'a>;
}

/// A caller's secret shorter than this is told as weak, in characters.
const SHORT_KEY: usize = 16;

/// Prints what the configuration says and every doubt about it.
///
/// # Errors
/// Usage: the configuration is wrong. Operation: it is right, but a secret, a file or a probed account is not there.
pub async fn run(args: &CheckArgs, out: &mut impl Write, probe: &dyn Probe) -> Result<(), Failure> {
    let config = Config::load(&args.file.config)?;
    let mut missing = 0;
    for listen in &config.server.listen {
        let scheme = if config.server.tls.is_some() { "https" } else { "http" };
        writeln!(out, "listen    {listen} ({scheme})")?;
    }
    if let Some(tls) = &config.server.tls {
        missing += file_line(out, "tls cert", &tls.cert)? + file_line(out, "tls key", &tls.key)?;
    }
    let sealed = match master_key(&config.store) {
        Ok(Some(_)) => "secrets encrypted at rest".to_owned(),
        Ok(None) => "no master key".to_owned(),
        Err(why) => {
            missing += 1;
            format!("MASTER KEY: {why}")
        }
    };
    writeln!(out, "store     {} ({sealed})", config.store.url)?;
    for upstream in &config.upstreams {
        writeln!(out, "upstream  {} ({}) {}", upstream.name, upstream.kind.name(), upstream.base_url)?;
        if let Some(ca) = &upstream.ca {
            missing += file_line(out, "  ca", ca)?;
        }
        for account in &upstream.accounts {
            missing += account_lines(out, upstream, account, args.probe.then_some(probe)).await?;
        }
    }
    for model in &config.models {
        let routes: Vec<String> = model.routes.iter().map(|route| route_words(model, route)).collect();
        let aliases = if model.aliases.is_empty() { String::new() } else { format!(" ({})", model.aliases.join(", ")) };
        writeln!(out, "model     {}{aliases} -> {}", model.name, routes.join(", then "))?;
    }
    missing += key_lines(out, &config)?;
    for warning in &config.warnings {
        writeln!(out, "warning   {warning}")?;
    }
    let shown = args.file.config.display();
    match missing {
        0 => writeln!(out, "{shown} is right")?,
        _ => {
            let words = format!("{shown} is written right, but {missing} of the things it names cannot be used");
            return Err(Failure::Operation(words));
        }
    }
    Ok(())
}

fn route_words(model: &crate::config::Model, route: &crate::config::Route) -> String {
    match (&route.model, model.is_any()) {
        (Some(name), _) => format!("{} as {name}", route.upstream),
        (None, true) => route.upstream.clone(),
        (None, false) => format!("{} as {}", route.upstream, model.name),
    }
}

fn file_line(out: &mut impl Write, what: &str, path: &Path) -> Result<usize, Failure> {
    let opened = std::fs::File::open(path).and_then(|file| file.metadata());
    let problem = match opened {
        Ok(metadata) if metadata.is_file() => None,
        Ok(_) => Some("is not a file".to_owned()),
        Err(error) => Some(format!("cannot be read: {error}")),
    };
    let words = problem.as_deref().map_or_else(|| "found".to_owned(), |problem| format!("MISSING: {problem}"));
    writeln!(out, "{what:<9} {} {words}", path.display())?;
    Ok(usize::from(problem.is_some()))
}

async fn account_lines(
    out: &mut impl Write,
    upstream: &Upstream,
    account: &Account,
    probe: Option<&dyn Probe>,
) -> Result<usize, Failure> {
    let head = format!("  account {}, at most {} at once", account.name, account.max_in_flight);
    let Some(reference) = &account.secret else {
        writeln!(out, "{head}, NO SECRET")?;
        return Ok(0);
    };
    let secret = match reference.resolve() {
        Ok(secret) => secret,
        Err(why) => {
            writeln!(out, "{head}, secret MISSING: {why}")?;
            return Ok(1);
        }
    };
    writeln!(out, "{head}, secret found in {reference}")?;
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

fn key_lines(out: &mut impl Write, config: &Config) -> Result<usize, Failure> {
    let mut missing = 0;
    for key in &config.keys {
        let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.name()).collect();
        let secret = match key.secret.resolve() {
            Ok(secret) if secret.expose().chars().count() < SHORT_KEY => {
                format!("found in {}, but WEAK: shorter than {SHORT_KEY} characters", key.secret)
            }
            Ok(_) => format!("found in {}", key.secret),
            Err(why) => {
                missing += 1;
                format!("MISSING: {why}")
            }
        };
        writeln!(out, "key       {}: {} for {}, secret {secret}", key.name, scopes.join(", "), key.models.join(", "))?;
    }
    match startup_rule(config, false) {
        KeyRule::AsConfigured => {}
        KeyRule::MakeOne => writeln!(out, "key       none here; without one in the store the first start makes one")?,
        KeyRule::RefusePublic => writeln!(
            out,
            "key       none here, and the address is public: `serve` refuses to start unless the store has one \
             (`turnkeep keys create NAME`)"
        )?,
    }
    Ok(missing)
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
