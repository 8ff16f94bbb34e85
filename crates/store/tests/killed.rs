//! A gateway killed at any point loses no entry that was acknowledged. This binary runs itself as the victim. Some
//! victims are killed from outside; some end themselves in the instant of an acknowledgement, with the other tasks'
//! entries under way in the same transaction: an acknowledgement before its commit would show there.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code outside of #[test] functions")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use support::{again, closed, opened, turn_at};
use turnkeep_engine::ports::{Again, AttemptClosed, AttemptOpened, AttemptOutcome};
use turnkeep_store::{Ledger, LedgerEntry, Spend, Store};

const FOLDER: &str = "STORE_TEST_VICTIM_FOLDER";
const ABORT_AT: &str = "STORE_TEST_VICTIM_ABORT_AT";
const TASKS: u128 = 64;
const DAY: u64 = 86_400_000;

/// Not a test by itself: it does nothing unless a parent below has named a folder. Then it opens entries until killed,
/// and prints the turn of each one that was acknowledged.
#[test]
fn victim() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let abort_at: Option<u64> = std::env::var(ABORT_AT).ok().map(|at| at.parse().unwrap());
    let acknowledged = Arc::new(AtomicU64::new(0));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        let store = support::sqlite(Path::new(&folder));
        let tasks: Vec<_> = (0..TASKS)
            .map(|task| {
                let (store, acknowledged) = (store.clone(), acknowledged.clone());
                tokio::spawn(async move {
                    for turn in 0.. {
                        let random = turn * TASKS + task;
                        let entry = AttemptOpened {
                            estimated_cost: Some(3),
                            ..opened(turn_at(DAY * (random as u64 % 3), random), 1)
                        };
                        store.open(entry.clone()).await.unwrap();
                        // One write call a line, so that a kill leaves whole lines.
                        std::io::stderr().write_all(format!("{random:08}\n").as_bytes()).unwrap();
                        if Some(acknowledged.fetch_add(1, Ordering::SeqCst) + 1) == abort_at {
                            std::process::abort();
                        }
                        if turn % 2 == 0 {
                            let cost = (turn % 4 == 0).then_some(7);
                            let end = closed(entry.attempt, AttemptOutcome::Completed, 1);
                            store.close(AttemptClosed { cost, ..end }).await.unwrap();
                        }
                        if turn % 3 == 0 {
                            store.again(again(turn_at(2_000, random), Again::Hit));
                        }
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
}

#[tokio::test]
async fn killed_at_any_point_every_acknowledged_entry_is_there_and_none_stays_open() {
    // The later ones fall among checkpoints of the log.
    for lines in [1, 100, 5_000, 20_000] {
        check(lines, false).await;
    }
}

#[tokio::test]
async fn ended_in_the_instant_of_an_acknowledgement_the_entry_is_there() {
    for lines in (1..=20).chain([65, 129, 1_000]) {
        check(lines, true).await;
    }
}

/// Lets a victim acknowledge this many entries, ends it, and looks at what it left.
async fn check(lines: usize, by_itself: bool) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "victim", "--nocapture"]).env(FOLDER, folder.path());
    if by_itself {
        command.env(ABORT_AT, lines.to_string());
    }
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut acknowledged = BTreeSet::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        acknowledged.insert(line.parse::<u128>().unwrap_or_else(|_| panic!("the victim says: {line}")));
        if acknowledged.len() == lines && !by_itself {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(acknowledged.len() >= lines, "the victim ended too early");

    let store = support::sqlite(folder.path());
    let mut entries = store.ledger_entries(usize::MAX).await.unwrap();
    agree(&entries, &store.spent(0).await.unwrap());
    entries.retain(|entry| entry.attempt.number > 0);
    let there: BTreeSet<_> = entries.iter().map(|entry| entry.attempt.turn.bits() & ((1 << 80) - 1)).collect();
    let lost: Vec<_> = acknowledged.difference(&there).collect();
    assert!(lost.is_empty(), "ended after {lines}: lost {lost:?}");
    // Beyond those, only what each task may have had under way.
    assert!(there.len() <= acknowledged.len() + TASKS as usize);
    assert_eq!(there.len(), entries.len());
    assert_eq!(store.ledger_open_count().await.unwrap(), 0);
    let interrupted = entries.iter().filter(|entry| entry.closed.as_ref().unwrap().outcome == "interrupted").count();
    assert_eq!(store.recovered(), interrupted);
    store.shutdown().await.unwrap();
}

/// What callers have spent is what the ledger adds up to, day by day.
fn agree(entries: &[LedgerEntry], spend: &[Spend]) {
    let mut days = BTreeMap::<u32, (u64, u64)>::new();
    for entry in entries.iter().filter(|entry| entry.attempt.number > 0) {
        let end = entry.closed.as_ref().unwrap();
        if end.outcome == "interrupted" {
            assert_eq!((end.usage.input, end.cost, end.exact), (77, Some(3), false));
        }
        let day = days.entry(u32::try_from(entry.opened_ms / DAY).unwrap()).or_default();
        day.0 += end.usage.input + end.usage.output;
        day.1 += end.cost.unwrap_or(0);
    }
    let kept: BTreeMap<_, _> = spend.iter().map(|spend| (spend.day, (spend.tokens, spend.nano_usd))).collect();
    assert_eq!((kept, spend.len()), (days.clone(), days.len()));
}
