//! `turnkeep check`: whether a configuration is right, what it names is there and usable, and what would run. What
//! `serve` would refuse fails here too.

mod accounts;
mod callers;
mod look;
mod program;

use super::Failure;
use crate::cli::CheckArgs;
use crate::config::{Account, Config, Model, Route, StoreUrl, Upstream, show_duration, show_size};
use look::Look;
use std::io::Write;
use std::path::Path;
use std::pin::Pin;
use turnkeep_base::Secret;

/// What an upstream says of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probed {
    /// The models that it may use.
    Models(Vec<String>),
    /// It lists none; what can be said instead, in words.
    Words(String),
}

/// The answer of [`Probe::models`], or what went wrong in words without the secret.
pub type ProbeAnswer<'a> = Pin<Box<dyn Future<Output = Result<Probed, String>> + Send + 'a>>;

/// Asks an upstream what an account may use. Filled in by the wiring, so that `check` opens no socket itself.
pub trait Probe: Sync {
    /// Lists the account's models; spends no tokens.
    fn models<'a>(&'a self, upstream: &'a Upstream, account: &'a Account, secret: &'a Secret) -> ProbeAnswer<'a>;
}

/// Prints what the configuration says and every doubt about it.
///
/// # Errors
/// Usage: the configuration is wrong. Operation: it is right, but a secret, a file, the store or a probed account cannot
/// be used, or `serve` would refuse to start.
pub async fn run(args: &CheckArgs, out: &mut impl Write, probe: &dyn Probe) -> Result<(), Failure> {
    let config = Config::load(&args.file.config)?;
    let mut missing = 0;
    for listen in &config.server.listen {
        let scheme = if config.server.tls.is_some() { "https" } else { "http" };
        writeln!(out, "listen    {listen} ({scheme})")?;
    }
    missing += tls_lines(out, &config)?;
    let look = look::look(&config).await;
    missing += look.problems;
    writeln!(out, "store     {} ({})", config.store.url, look.words)?;
    writeln!(out, "{}", content_line(&config))?;
    for upstream in &config.upstreams {
        missing += upstream_lines(out, upstream)?;
        missing += accounts::lines(out, upstream, &look, args.probe.then_some(probe)).await?;
    }
    for model in &config.models {
        writeln!(out, "{}", model_line(model))?;
    }
    missing += callers::lines(out, &config, &look)?;
    warning_lines(out, &config, &look)?;
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

/// An upstream, and whether the files it names are there.
fn upstream_lines(out: &mut impl Write, upstream: &Upstream) -> Result<usize, Failure> {
    let (name, kind) = (&upstream.name, upstream.speaks.kind().name());
    let mut missing = 0;
    if let Some(remote) = upstream.speaks.remote() {
        writeln!(out, "upstream  {name} ({kind}) {}", remote.base_url)?;
        if let Some(ca) = &remote.ca {
            missing += file_line(out, "  ca", ca)?;
        }
    }
    if let Some(process) = upstream.speaks.process() {
        // Its arguments are the operator's business.
        let program = process.command.first().map_or("", String::as_str);
        let memory = show_size(process.memory);
        writeln!(out, "upstream  {name} ({kind}) runs {program}, with at most {memory} of memory")?;
        missing += program::line(out, program)?;
    }
    Ok(missing)
}

/// Where the content of turns is kept, by which its operator knows whom to protect it from.
fn content_line(config: &Config) -> String {
    let place = match (&config.store.url, config.store.master_key.is_some()) {
        (StoreUrl::Sqlite(_), true) => "in the store, sealed under the master key",
        (StoreUrl::Sqlite(_), false) => "in memory, gone with the process, as there is no master key",
        (StoreUrl::Memory, _) => "in memory, gone with the process",
    };
    let idle = config.store.keep.responses;
    let (idle, most) = (show_duration(idle), show_duration(idle.saturating_mul(3)));
    format!("stored    responses and conversations live {place}; {idle} unused, {most} at most")
}

fn model_line(model: &Model) -> String {
    let routes: Vec<String> = model.routes.iter().map(|route| route_words(model, route)).collect();
    let aliases = if model.aliases.is_empty() { String::new() } else { format!(" ({})", model.aliases.join(", ")) };
    let mut line = format!("model     {}{aliases} -> {}", model.name, routes.join(", then "));
    if !model.fallbacks.is_empty() {
        line += &format!("; if none can serve: {}", model.fallbacks.join(", then "));
    }
    if !model.larger.is_empty() {
        line += &format!("; if a request is too long: {}", model.larger.join(", then "));
    }
    line
}

fn route_words(model: &Model, route: &Route) -> String {
    match (&route.model, model.is_any()) {
        (Some(name), _) => format!("{} as {name}", route.upstream),
        (None, true) => route.upstream.clone(),
        (None, false) => format!("{} as {}", route.upstream, model.name),
    }
}

fn tls_lines(out: &mut impl Write, config: &Config) -> Result<usize, Failure> {
    let Some(tls) = &config.server.tls else { return Ok(0) };
    let missing = file_line(out, "tls cert", &tls.cert)? + file_line(out, "tls key", &tls.key)?;
    if missing > 0 {
        return Ok(missing);
    }
    match turnkeep_http::tls_config(&tls.cert, &tls.key) {
        Ok(_) => Ok(0),
        Err(error) => {
            writeln!(out, "tls       CANNOT BE USED: {error}")?;
            Ok(1)
        }
    }
}

fn warning_lines(out: &mut impl Write, config: &Config, look: &Look) -> Result<(), Failure> {
    // An upstream without accounts in the file may have some in the store, which was looked into.
    let served = |(at, upstream): (usize, &Upstream)| {
        look.accounts
            .iter()
            .any(|seen| *seen.record.id.upstream == *upstream.name)
            .then(|| format!("upstreams[{at}].accounts"))
    };
    let served: Vec<String> = config.upstreams.iter().enumerate().filter_map(served).collect();
    for warning in config.warnings.iter().filter(|warning| !served.contains(&warning.key)) {
        writeln!(out, "warning   {warning}")?;
    }
    for seen in look.accounts.iter().filter(|seen| config.upstream(&seen.record.id.upstream).is_none()) {
        writeln!(
            out,
            "warning   account {} of the store belongs to no upstream here, so it serves nothing",
            seen.record.id
        )?;
    }
    Ok(())
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

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
