//! The one task that takes configurations up while the gateway runs: when its file changes, on SIGHUP, and when the command
//! line has changed keys or accounts in the store.

use super::live::Live;
use crate::commands::Failure;
use crate::config::{Config, ConfigErrors};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use turnkeep_store::Keep;

/// How often the store is asked whether anything has changed.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How often what is older than `store.keep` says is removed.
const PRUNE_EVERY: Duration = Duration::from_secs(60 * 60);
/// How often the configuration's file is looked at. Notices of the file system would wake the process at each write of the
/// store, which mostly lies in the same folder, and say nothing of links further up.
const FILE_LOOK_EVERY: Duration = Duration::from_millis(500);
/// An editor writes a file in several steps: it is read a moment after a change was seen.
const SETTLE: Duration = Duration::from_millis(200);

/// Where other configurations come from.
pub(super) enum Source {
    /// Nowhere.
    Nothing,
    /// A file, when it changes or SIGHUP comes.
    File(PathBuf),
    /// Whoever embeds the gateway.
    Brought(mpsc::Receiver<Config>),
}

/// Follows for as long as the gateway runs; without a file only the store.
pub(super) async fn follow(mut live: Live, source: Source) {
    let (file, mut hangup, mut brought) = match source {
        Source::Nothing => (None, hangup(), None),
        Source::File(file) => (Some(file), hangup(), None),
        Source::Brought(configs) => (None, None, Some(configs)),
    };
    // The store may have changed since the start has read it: the first look reads it again, whatever its revision is.
    let mut seen = None;
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut file_looks = interval(FILE_LOOK_EVERY);
    file_looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut prunes = interval(PRUNE_EVERY);
    prunes.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The text that was read last, whatever became of it. Looking at the text sees a file that was replaced, one behind
    // links that now lead elsewhere, and a change before the first look.
    let mut text = live.config.text_hash;
    let mut settled: Option<Instant> = None;
    loop {
        let due = settled.unwrap_or_else(Instant::now);
        tokio::select! {
            biased;
            Some(config) = next_of(&mut brought) => take_up(&mut live, Ok(config), "another one was brought").await,
            () = hung_up(&mut hangup) => {
                if let Some(file) = &file {
                    text = Config::text_hash_of(file);
                    reload(&mut live, file, "SIGHUP").await;
                }
                settled = None;
            }
            _ = file_looks.tick(), if file.is_some() => {
                let other = file.as_deref().and_then(Config::text_hash_of).filter(|now| text != Some(*now));
                if other.is_some() && settled.is_none() {
                    settled = Some(Instant::now() + SETTLE);
                }
            }
            () = sleep_until(due), if settled.is_some() => {
                settled = None;
                if let Some(file) = &file {
                    text = Config::text_hash_of(file);
                    reload(&mut live, file, "its file changed").await;
                }
            }
            _ = looks.tick() => {
                let Ok(revision) = live.parts.store.revision().await else { continue };
                if seen != Some(revision) {
                    match live.store_changed().await {
                        Ok(()) => {
                            seen = Some(revision);
                            tracing::info!("keys and accounts were read again from the store");
                        }
                        Err(failure) => tracing::warn!(%failure, "the store's keys and accounts could not be taken up"),
                    }
                }
            }
            _ = prunes.tick() => prune(&live).await,
        }
    }
}

async fn reload(live: &mut Live, file: &Path, why: &str) {
    take_up(live, Config::load(file), why).await;
}

async fn take_up(live: &mut Live, config: Result<Config, ConfigErrors>, why: &str) {
    let outcome = match config {
        Ok(config) => live.take_up(config).await,
        Err(errors) => Err(Failure::from(errors)),
    };
    let notices = live.parts.notices.clone();
    match outcome {
        Ok(later) => {
            for warning in &live.config.warnings {
                tracing::warn!("{warning}");
            }
            if later.is_empty() {
                tracing::info!(why, "the configuration was taken up");
            } else {
                let later = later.join(", ");
                tracing::warn!(why, later, "the configuration was taken up, but for what needs a restart");
            }
            let now = live.parts.unix_ms();
            notices.change(|state| {
                state.loaded_ms = now;
                state.reloads += 1;
                state.problem = None;
                state.needs_restart = later;
            });
        }
        Err(failure) => {
            tracing::error!(why, "the configuration was refused, and nothing has changed: {failure}");
            notices.change(|state| {
                state.refused += 1;
                state.problem = Some(failure.to_string());
            });
        }
    }
}

/// The next configuration that is brought, if any are.
async fn next_of(brought: &mut Option<mpsc::Receiver<Config>>) -> Option<Config> {
    match brought {
        Some(configs) => configs.recv().await,
        None => std::future::pending().await,
    }
}

fn hangup() -> Option<Signal> {
    signal(SignalKind::hangup()).inspect_err(|error| tracing::warn!(%error, "SIGHUP is not followed")).ok()
}

async fn hung_up(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

/// Removes what is older than `store.keep` says.
async fn prune(live: &Live) {
    let keep = &live.config.store.keep;
    let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let keep = Keep {
        turns_ms: ms(keep.turns),
        evidence_ms: ms(keep.evidence),
        ledger_ms: ms(keep.ledger),
        now_ms: live.parts.unix_ms(),
    };
    match live.parts.store.prune(keep).await {
        Ok(pruned) => tracing::debug!(?pruned, "what is too old was removed from the store"),
        Err(error) => tracing::warn!(%error, "what is too old could not be removed from the store"),
    }
}
