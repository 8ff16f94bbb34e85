//! A gateway killed at any point loses no entry that was acknowledged. This binary runs itself as the victim.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code outside of #[test] functions")]

mod support;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use support::{closed, opened, turn_at};
use turnkeep_engine::ports::AttemptOutcome;
use turnkeep_store::{Ledger, Store};

const FOLDER: &str = "STORE_TEST_VICTIM_FOLDER";
const TASKS: u128 = 8;

/// Not a test by itself: it does nothing unless a parent below has named a folder. Then it opens entries until killed,
/// and prints the turn of each one that was acknowledged.
#[test]
fn victim() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        let store = support::sqlite(Path::new(&folder));
        let tasks: Vec<_> = (0..TASKS)
            .map(|task| {
                let store = store.clone();
                tokio::spawn(async move {
                    for turn in 0.. {
                        let random = turn * TASKS + task;
                        let entry = opened(turn_at(1_000, random), 1);
                        store.open(entry.clone()).await.unwrap();
                        // One write call a line, so that a kill leaves whole lines.
                        std::io::stderr().write_all(format!("{random:08}\n").as_bytes()).unwrap();
                        if turn % 2 == 0 {
                            store.close(closed(entry.attempt, AttemptOutcome::Completed, 1)).await.unwrap();
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
    for lines_before_the_kill in [1, 2, 7, 100, 1_000, 5_000] {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "victim", "--nocapture"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut acknowledged = BTreeSet::new();
        for line in BufReader::new(child.stderr.take().unwrap()).lines() {
            let line = line.unwrap();
            acknowledged.insert(line.parse::<u128>().unwrap_or_else(|_| panic!("the victim says: {line}")));
            if acknowledged.len() == lines_before_the_kill {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        assert!(acknowledged.len() >= lines_before_the_kill, "the victim ended by itself");

        let store = support::sqlite(folder.path());
        let entries = store.ledger_entries(usize::MAX).await.unwrap();
        let there: BTreeSet<_> = entries.iter().map(|entry| entry.attempt.turn.bits() & ((1 << 80) - 1)).collect();
        let lost: Vec<_> = acknowledged.difference(&there).collect();
        assert!(lost.is_empty(), "killed after {lines_before_the_kill}: lost {lost:?}");
        // Beyond those, only what each task may have had under way.
        assert!(there.len() <= acknowledged.len() + TASKS as usize);
        assert_eq!(there.len(), entries.len());
        assert_eq!(store.ledger_open_count().await.unwrap(), 0);
        let interrupted =
            entries.iter().filter(|entry| entry.closed.as_ref().unwrap().outcome == "interrupted").count();
        assert_eq!(store.recovered(), interrupted);
        assert!(interrupted >= acknowledged.len() / 2, "every other one was never closed");
        store.shutdown().await.unwrap();
    }
}
