//! The callers' keys: whether their secrets are there, differ and are long, and whether `serve` would start with them.

use super::Failure;
use super::look::Look;
use crate::config::{Config, KeyRule, show_budget, startup_rule};
use std::io::Write;
use turnkeep_engine::ports::WallClock;
use turnkeep_policy::limits::Limits;
use turnkeep_store::SystemClock;

/// A caller's secret shorter than this is told as weak, in characters.
const SHORT_KEY: usize = 16;

/// Prints them; gives how many cannot be used.
pub(super) fn lines(out: &mut impl Write, config: &Config, look: &Look) -> Result<usize, Failure> {
    let mut missing = 0;
    let mut taken = Vec::new();
    for key in &config.keys {
        let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.name()).collect();
        let secret = match key.secret.resolve() {
            Ok(secret) => {
                let short = secret.expose().chars().count() < SHORT_KEY;
                let other = taken.iter().find(|(_, other): &&(&str, _)| same(other, &secret)).map(|(name, _)| *name);
                let words = match (other, short) {
                    (Some(other), _) => {
                        missing += 1;
                        format!("found in {}, but it is THE SAME as that of {other}; give each its own", key.secret)
                    }
                    (None, true) => {
                        format!("found in {}, but WEAK: shorter than {SHORT_KEY} characters", key.secret)
                    }
                    (None, false) => format!("found in {}", key.secret),
                };
                taken.push((key.name.as_str(), secret));
                words
            }
            Err(why) => {
                missing += 1;
                format!("MISSING: {why}")
            }
        };
        writeln!(out, "key       {}: {} for {}, secret {secret}", key.name, scopes.join(", "), key.models.join(", "))?;
        if let Some(words) = limit_words(&key.limits) {
            writeln!(out, "  limits  {words}")?;
        }
        if key.expires_ms.is_some_and(|end| end <= SystemClock.unix_ms()) {
            writeln!(out, "  EXPIRED: it opens nothing any more; give it another end, or remove it")?;
        }
    }
    let none = "none here, none in the store";
    match (startup_rule(config, look.keys.unwrap_or(0) > 0), look.keys) {
        (KeyRule::AsConfigured, _) => {}
        (KeyRule::MakeOne, Some(_)) => writeln!(out, "key       {none}; the first start makes one and prints it")?,
        (KeyRule::MakeOne, None) => {
            writeln!(out, "key       none here; without one in the store the first start makes one")?;
        }
        (KeyRule::RefusePublic, Some(_)) => {
            missing += 1;
            writeln!(
                out,
                "key       NONE here, none in the store, and the address is public, so `serve` refuses to start; make one \
                 with `turnkeep keys create NAME`"
            )?;
        }
        (KeyRule::RefusePublic, None) => writeln!(
            out,
            "key       none here, and the address is public: `serve` refuses to start unless the store has one \
             (`turnkeep keys create NAME`)"
        )?,
    }
    Ok(missing)
}

fn limit_words(limits: &Limits) -> Option<String> {
    let parts = [
        limits.requests_per_minute.map(|number| format!("{number} requests a minute")),
        limits.tokens_per_minute.map(|number| format!("{number} tokens a minute")),
        limits.max_in_flight.map(|number| format!("{number} turns at once")),
        limits.budget.map(|budget| show_budget(&budget)),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn same(one: &turnkeep_base::Secret, other: &turnkeep_base::Secret) -> bool {
    one.expose() == other.expose()
}
