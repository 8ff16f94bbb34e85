//! `turnkeep explain account`: why an account stands as it does.

use super::fault;
use crate::cli::ExplainAccountArgs;
use crate::commands::Failure;
use crate::commands::open_store::{moment, open_existing};
use crate::config::{Config, nearest};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write;
use turnkeep_base::AccountId;
use turnkeep_engine::ports::{FaultRecord, WallClock};
use turnkeep_store::{StandingRecord, StandingStatus, Store, Switch, SystemClock};

pub(super) async fn run(args: &ExplainAccountArgs, out: &mut impl Write) -> Result<(), Failure> {
    let config = Config::load(&args.file.config)?;
    let store = open_existing(&config)?;
    let result = explain(args, &config, &store, out).await;
    store.shutdown().await.map_err(Failure::operation)?;
    result
}

async fn explain(
    args: &ExplainAccountArgs,
    config: &Config,
    store: &dyn Store,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let standings = store.load_standing().await.map_err(Failure::operation)?;
    let switches = store.open_switches().await.map_err(Failure::operation)?;
    let id = find(&args.name, config, store, &standings).await?;
    let switch = switches.into_iter().find(|switch| switch.account == id);
    let standing = standings.into_iter().find(|standing| standing.account == id);
    let faults = store.faults_of_account(&id, args.limit as usize).await.map_err(Failure::operation)?;
    let now = SystemClock.unix_ms();
    if args.json {
        writeln!(out, "{}", to_json(&id, standing.as_ref(), switch.as_ref(), &faults, now))?;
        return Ok(());
    }
    write_standing(&id, standing.as_ref(), now, out)?;
    if let Some(switch) = &switch {
        let (done, at) = (switched(switch), moment(Some(switch.at_ms)));
        writeln!(out, "{done} by the operator at {at}; a gateway takes it up within seconds, or when it starts")?;
    }
    writeln!(out)?;
    if faults.is_empty() {
        writeln!(out, "no fault is kept for it")?;
    } else {
        writeln!(out, "faults, the newest first:")?;
    }
    for record in &faults {
        fault::write(record, false, out)?;
    }
    Ok(())
}

/// The account of this name: of the configuration, of the store, or one that is no longer there but has a history.
async fn find(
    name: &str,
    config: &Config,
    store: &dyn Store,
    standings: &[StandingRecord],
) -> Result<AccountId, Failure> {
    let configured = config.upstreams.iter().flat_map(|upstream| {
        let id = |account: &crate::config::Account| AccountId {
            upstream: upstream.name.as_str().into(),
            account: account.name.as_str().into(),
        };
        upstream.accounts.iter().map(id)
    });
    let mut all: BTreeSet<AccountId> = configured.collect();
    let stored = store.list_accounts().await.map_err(Failure::operation)?;
    all.extend(stored.into_iter().map(|account| account.id));
    all.extend(standings.iter().map(|standing| standing.account.clone()));
    let asked: Vec<&AccountId> = all.iter().filter(|id| *id.account == *name || id.to_string() == name).collect();
    match asked[..] {
        [id] => Ok(id.clone()),
        [] => {
            let names: Vec<String> = all.iter().map(ToString::to_string).collect();
            let shown: Vec<&str> = names.iter().map(String::as_str).collect();
            let hint = match nearest(name, &shown) {
                Some(near) => format!("did you mean {near:?}?"),
                None if names.is_empty() => "there is none at all".to_owned(),
                None => format!("there is {}", names.join(", ")),
            };
            Err(Failure::Operation(format!("there is no account {name:?}; {hint}")))
        }
        _ => {
            let names: Vec<String> = asked.iter().map(ToString::to_string).collect();
            Err(Failure::Usage(format!("{name:?} is in several upstreams; name one: {}", names.join(", "))))
        }
    }
}

fn write_standing(
    id: &AccountId,
    standing: Option<&StandingRecord>,
    now: u64,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let Some(standing) = standing else {
        writeln!(out, "{id}: active; nothing has ever changed its standing")?;
        return Ok(());
    };
    write!(out, "{id}: {}", standing.status)?;
    if let Some(since) = standing.since_ms {
        write!(out, " since {}", moment(Some(since)))?;
    }
    if standing.status == StandingStatus::Errored {
        write!(out, ", episode {}, tried again from {}", standing.episode, moment(standing.retry_at_ms))?;
    }
    if standing.status == StandingStatus::Suspended {
        write!(out, "; `turnkeep accounts enable` brings it back")?;
    }
    if let Some(reason) = &standing.reason {
        write!(out, " ({reason})")?;
    }
    writeln!(out)?;
    let mut running = standing.cooldowns.iter().filter(|cooldown| cooldown.until_ms > now).peekable();
    if running.peek().is_none() {
        writeln!(out, "no cooldown runs")?;
    }
    for cooldown in running {
        let model = cooldown.model.as_ref().map(|model| format!(" {model}")).unwrap_or_default();
        let until = moment(Some(cooldown.until_ms));
        writeln!(out, "cooldown of {}{model} until {until}, caused by {}", cooldown.scope, cooldown.fault)?;
    }
    Ok(())
}

fn switched(switch: &Switch) -> &'static str {
    if switch.enabled { "enabled" } else { "disabled" }
}

fn to_json(
    id: &AccountId,
    standing: Option<&StandingRecord>,
    switch: Option<&Switch>,
    faults: &[FaultRecord],
    now: u64,
) -> Value {
    let cooldowns = standing.into_iter().flat_map(|standing| &standing.cooldowns);
    let cooldowns = cooldowns.filter(|cooldown| cooldown.until_ms > now).map(|cooldown| {
        json!({
            "scope": cooldown.scope.name(),
            "model": cooldown.model,
            "fault": cooldown.fault,
            "until": moment(Some(cooldown.until_ms)),
        })
    });
    json!({
        "account": id.to_string(),
        "status": standing.map_or(StandingStatus::Active, |standing| standing.status).name(),
        "since": standing.and_then(|standing| standing.since_ms).map(|since| moment(Some(since))),
        "episode": standing.map_or(0, |standing| standing.episode),
        "retry_at": standing.and_then(|standing| standing.retry_at_ms).map(|at| moment(Some(at))),
        "reason": standing.and_then(|standing| standing.reason.clone()),
        "cooldowns": cooldowns.collect::<Vec<_>>(),
        "switch": switch.map(|switch| json!({ "to": switched(switch), "at": moment(Some(switch.at_ms)) })),
        "faults": faults.iter().map(fault::to_json).collect::<Vec<_>>(),
    })
}
