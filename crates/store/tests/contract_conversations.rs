//! Upstreams' conversations, on every store; in a file: sealed or not there at all, and taken with the entry of the attempt
//! that goes on with one, before anything is sent.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code outside of #[test] functions")]

#[macro_use]
mod support;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use support::{NOW, closed, literal, opened, path, try_open, turn_at};
use turnkeep_base::Fingerprint;
use turnkeep_engine::ports::{AttemptOpened, AttemptOutcome, ConversationKey};
use turnkeep_store::{ConversationStore, Keep, KeptConversation, Ledger, MasterKey, Role, SqliteStore, Store, rekey};

const HANDLE: &str = "a handle that only its owner may know";

fn key(caller: &str, number: u64) -> ConversationKey {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    ConversationKey { caller: caller.into(), key: Fingerprint(bytes) }
}

fn kept(caller: &str, number: u64) -> KeptConversation {
    KeptConversation { key: key(caller, number), until_ms: NOW + number, content: HANDLE.into() }
}

fn entry(number: u64, conversation: Option<ConversationKey>) -> AttemptOpened {
    AttemptOpened { conversation, ..opened(turn_at(NOW, u128::from(number)), 1) }
}

on_every_store! {
    async fn conversations_are_read_back_replaced_and_forgotten(store) {
        for (caller, number) in [("ann", 9), ("ann", 2), ("bob", 2)] {
            store.keep_conversation(kept(caller, number));
        }
        let newer = KeptConversation { content: "newer".into(), ..kept("ann", 9) };
        store.keep_conversation(newer.clone());
        store.forget_conversations(vec![key("bob", 2), key("bob", 77)]);
        assert_eq!(store.kept_conversations().await.unwrap(), [kept("ann", 2), newer]);
    }

    async fn those_past_their_time_are_left_out_and_pruned(store) {
        store.keep_conversation(KeptConversation { until_ms: NOW, ..kept("ann", 1) });
        store.keep_conversation(kept("ann", 2));
        store.flush().await.unwrap();
        let keep = Keep { turns_ms: 1, evidence_ms: 1, ledger_ms: 1, now_ms: NOW };
        assert_eq!(store.prune(keep).await.unwrap().answers, 1);
        assert_eq!(store.kept_conversations().await.unwrap(), [kept("ann", 2)]);
    }

    async fn an_entry_takes_the_conversation_of_its_lease_and_no_other(store) {
        for number in 1..=3 {
            store.keep_conversation(kept("ann", number));
        }
        store.open(entry(1, Some(key("ann", 2)))).await.unwrap();
        store.open(entry(2, None)).await.unwrap();
        assert_eq!(store.kept_conversations().await.unwrap(), [kept("ann", 1), kept("ann", 3)]);
        // The lease came back.
        store.keep_conversation(kept("ann", 2));
        assert_eq!(store.kept_conversations().await.unwrap().len(), 3);
    }

    async fn what_was_kept_just_before_an_entry_is_taken_by_it(store) {
        for number in 1..=300 {
            store.keep_conversation(kept("ann", number));
            store.open(entry(number, Some(key("ann", number)))).await.unwrap();
        }
        assert_eq!(store.kept_conversations().await.unwrap(), []);
    }

    async fn an_entry_that_is_refused_takes_nothing_that_is_kept_again(store) {
        store.keep_conversation(kept("ann", 1));
        store.open(entry(1, None)).await.unwrap();
        store.open(entry(1, Some(key("ann", 1)))).await.unwrap_err();
        // Whoever had it gives it back.
        store.keep_conversation(kept("ann", 1));
        assert_eq!(store.kept_conversations().await.unwrap(), [kept("ann", 1)]);
    }
}

/// Every byte of every file of the database.
fn holds(folder: &Path, text: &str) -> bool {
    let mut files = fs::read_dir(folder).unwrap();
    files
        .any(|file| fs::read(file.unwrap().path()).unwrap().windows(text.len()).any(|window| window == text.as_bytes()))
}

#[tokio::test]
async fn with_a_master_key_they_are_on_the_disk_sealed_and_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let store = support::sqlite(folder.path());
    store.keep_conversation(kept("whose-it-is", 1));
    store.flush().await.unwrap();
    assert!(holds(folder.path(), "whose-it-is"), "the search finds what is there");
    assert!(!holds(folder.path(), HANDLE));
    store.shutdown().await.unwrap();
    assert!(!holds(folder.path(), HANDLE));
    let store = support::sqlite(folder.path());
    assert_eq!(store.kept_conversations().await.unwrap(), [kept("whose-it-is", 1)]);
}

#[tokio::test]
async fn without_a_master_key_nothing_of_them_reaches_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let store = try_open(folder.path(), Role::Gateway, None).unwrap();
    store.keep_conversation(kept("whose-it-is", 1));
    store.open(entry(1, Some(key("whose-it-is", 1)))).await.unwrap();
    store.flush().await.unwrap();
    assert_eq!((store.kept_conversations().await.unwrap(), store.answers_lost()), (vec![], 0));
    store.shutdown().await.unwrap();
    assert!(!holds(folder.path(), HANDLE) && !holds(folder.path(), "whose-it-is"));
}

#[tokio::test]
async fn rows_that_do_not_open_are_left_out_and_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let store = support::sqlite(folder.path());
    for number in 1..=3 {
        store.keep_conversation(kept("ann", number));
    }
    store.flush().await.unwrap();
    let outside = rusqlite::Connection::open(path(folder.path())).unwrap();
    let rows = |sql: &str| outside.execute(sql, []).unwrap();
    rows("UPDATE upstream_conversations SET caller = 'bob' WHERE key = x'01000000000000000000000000000000'");
    rows("UPDATE upstream_conversations SET content = x'00' WHERE key = x'02000000000000000000000000000000'");
    assert_eq!(store.kept_conversations().await.unwrap(), [kept("ann", 3)]);
    let left: i64 = outside.query_row("SELECT count(*) FROM upstream_conversations", [], |row| row.get(0)).unwrap();
    assert_eq!(left, 1);
}

#[tokio::test]
async fn another_master_key_takes_them_along() {
    let folder = tempfile::tempdir().unwrap();
    let store = support::sqlite(folder.path());
    store.keep_conversation(kept("ann", 1));
    store.shutdown().await.unwrap();
    drop(store);
    let new = MasterKey::parse(&literal(&"cd".repeat(32))).unwrap();
    let done = rekey(&path(folder.path()), &support::master(), &new, "cli", &support::FixedClock).unwrap();
    assert_eq!(done.answers, 1);
    let store = try_open(folder.path(), Role::Gateway, Some(new)).unwrap();
    assert_eq!(store.kept_conversations().await.unwrap(), [kept("ann", 1)]);
}

const FOLDER: &str = "STORE_TEST_CONVERSATIONS_FOLDER";
const ABORT_AT: &str = "STORE_TEST_CONVERSATIONS_ABORT_AT";
const TASKS: u64 = 32;

/// Not a test by itself: it does nothing unless a parent below has named a folder. Then it keeps conversations, takes every
/// one with an entry, gives some back, and prints each that it took and may have sent, until it is killed.
#[test]
fn victim() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let abort_at: Option<u64> = std::env::var(ABORT_AT).ok().map(|at| at.parse().unwrap());
    let taken = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        let store = support::sqlite(Path::new(&folder));
        let tasks: Vec<_> =
            (0..TASKS).map(|task| tokio::spawn(take_some(store.clone(), task, taken.clone(), abort_at))).collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
}

async fn take_some(
    store: Arc<SqliteStore>,
    task: u64,
    taken: Arc<std::sync::atomic::AtomicU64>,
    abort_at: Option<u64>,
) {
    for turn in 0.. {
        let number = turn * TASKS + task + 1;
        store.keep_conversation(KeptConversation { until_ms: NOW + 1_000_000_000, ..kept("ann", number) });
        let entry = entry(number, Some(key("ann", number)));
        store.open(entry.clone()).await.unwrap();
        // One write call a line, so that a kill leaves whole lines. From here on it is sent.
        std::io::stderr().write_all(format!("{number:08}\n").as_bytes()).unwrap();
        if Some(taken.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1) == abort_at {
            std::process::abort();
        }
        store.close(closed(entry.attempt, AttemptOutcome::Completed, 1)).await.unwrap();
        // It stands under another history now.
        let next = KeptConversation { until_ms: NOW + 1_000_000_000, ..kept("ann-advanced", number) };
        store.keep_conversation(next);
    }
}

#[tokio::test]
async fn killed_at_any_point_no_conversation_that_a_lease_had_sent_is_there() {
    for lines in [1, 100, 3_000] {
        check(lines, false).await;
    }
}

#[tokio::test]
async fn ended_in_the_instant_of_an_acknowledgement_no_conversation_that_a_lease_had_sent_is_there() {
    for lines in (1..=12).chain([65, 500]) {
        check(lines, true).await;
    }
}

/// Lets a victim take this many, ends it, and looks at what it left.
async fn check(lines: usize, by_itself: bool) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "victim", "--nocapture"]).env(FOLDER, folder.path());
    if by_itself {
        command.env(ABORT_AT, lines.to_string());
    }
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut sent = BTreeSet::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        sent.insert(line.parse::<u64>().unwrap_or_else(|_| panic!("the victim says: {line}")));
        if sent.len() == lines && !by_itself {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(sent.len() >= lines, "the victim ended too early");
    let store = support::sqlite(folder.path());
    let left = store.kept_conversations().await.unwrap();
    let wrong: Vec<_> = sent.iter().filter(|number| left.iter().any(|kept| kept.key == key("ann", **number))).collect();
    assert!(wrong.is_empty(), "ended after {lines}: sent, and there again: {wrong:?}");
    assert!(left.iter().all(|kept| kept.content == HANDLE.as_bytes()));
    store.shutdown().await.unwrap();
}
