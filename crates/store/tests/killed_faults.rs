//! A gateway killed at any point loses no fault that was flushed. Those noted since may be lost, and the file is whole.
//! This binary runs itself as the victim.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code outside of #[test] functions")]

mod support;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use support::{account, fault, turn_at};
use turnkeep_store::{FaultLog, Store};

const FOLDER: &str = "STORE_TEST_VICTIM_FOLDER";

/// Faults between two flushes.
const ROUND: u64 = 50;

/// Not a test by itself: it does nothing unless a parent below has named a folder. Then it notes faults until killed,
/// flushes now and then, and prints how many it had flushed.
#[test]
fn victim() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        let store = support::sqlite(Path::new(&folder));
        for round in 1.. {
            for number in (round - 1) * ROUND..round * ROUND {
                store.note(fault(number, turn_at(number, 0), Some(account("openai", "a"))));
            }
            store.flush().await.unwrap();
            // One write call a line, so that a kill leaves whole lines.
            std::io::stderr().write_all(format!("{}\n", round * ROUND).as_bytes()).unwrap();
        }
    });
}

#[tokio::test]
async fn killed_at_any_point_every_flushed_fault_is_there_and_the_file_is_whole() {
    for lines in [1, 2, 17, 300] {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "victim", "--nocapture"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut seen, mut flushed) = (0, 0);
        for line in BufReader::new(child.stderr.take().unwrap()).lines() {
            let line = line.unwrap();
            flushed = line.parse::<u64>().unwrap_or_else(|_| panic!("the victim says: {line}"));
            seen += 1;
            if seen == lines {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        assert!(seen >= lines, "the victim ended too early");

        let store = support::sqlite(folder.path());
        let there = store.faults_of_account(&account("openai", "a"), usize::MAX).await.unwrap();
        let mut expected = 0;
        for found in there.iter().rev() {
            assert_eq!(
                *found,
                fault(expected, turn_at(expected, 0), Some(account("openai", "a"))),
                "one whole, in a row"
            );
            expected += 1;
        }
        // Beyond those, only the round under way.
        assert!((flushed..=flushed + ROUND).contains(&expected), "flushed {flushed}, found {expected}");
        store.shutdown().await.unwrap();
        let outside = rusqlite::Connection::open(support::path(folder.path())).unwrap();
        let verdict: String = outside.pragma_query_value(None, "integrity_check", |row| row.get(0)).unwrap();
        assert_eq!(verdict, "ok");
    }
}
