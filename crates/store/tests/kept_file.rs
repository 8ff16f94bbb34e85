//! Kept answers in a file: sealed or not there at all, and there again after a restart.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code outside of #[test] functions")]

mod support;

use std::fs;
use std::path::Path;
use support::{kept, kept_key, literal, path, try_open};
use turnkeep_engine::ports::KeptFor;
use turnkeep_store::{AnswerStore, MasterKey, Role, SqliteStore, Store};

const TEXT: &str = "what the model has answered, word by word";

/// Every byte of every file of the database.
fn bytes(folder: &Path) -> Vec<u8> {
    fs::read_dir(folder).unwrap().flat_map(|entry| fs::read(entry.unwrap().path()).unwrap()).collect()
}

fn holds(folder: &Path, text: &str) -> bool {
    bytes(folder).windows(text.len()).any(|window| window == text.as_bytes())
}

async fn keep_some(store: &SqliteStore) {
    store.keep(kept(KeptFor::Cache, "caller-of-the-answer", 1, TEXT));
    store.keep(kept(KeptFor::Held, "caller-of-the-answer", 2, &TEXT.repeat(1_000)));
    store.flush().await.unwrap();
}

#[tokio::test]
async fn with_a_master_key_answers_are_on_the_disk_sealed_and_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let store = support::sqlite(folder.path());
    let key = store.fingerprint_key();
    keep_some(&store).await;
    assert!(holds(folder.path(), "caller-of-the-answer"), "the search finds what is there");
    assert!(!holds(folder.path(), TEXT));
    store.shutdown().await.unwrap();
    assert!(!holds(folder.path(), TEXT));

    let store = support::sqlite(folder.path());
    let read = store.kept_answers().await.unwrap();
    assert_eq!(read.len(), 2);
    assert_eq!(read[1].content, TEXT.repeat(1_000).as_bytes());
    assert_eq!(store.fingerprint_key(), key);
}

#[tokio::test]
async fn without_a_master_key_nothing_of_an_answer_reaches_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let store = try_open(folder.path(), Role::Gateway, None).unwrap();
    keep_some(&store).await;
    store.forget(kept_key(KeptFor::Cache, "caller-of-the-answer", 1));
    store.flush().await.unwrap();
    let rows = || -> i64 {
        let outside = rusqlite::Connection::open(path(folder.path())).unwrap();
        outside.query_row("SELECT count(*) FROM kept", [], |row| row.get(0)).unwrap()
    };
    for check in ["while it runs", "after its end"] {
        assert!(!holds(folder.path(), TEXT) && !holds(folder.path(), "caller-of-the-answer"), "{check}");
        assert_eq!((rows(), store.answers_lost()), (0, 0), "{check}");
        store.shutdown().await.unwrap();
    }
}

#[tokio::test]
async fn answers_that_do_not_open_are_left_out_and_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let store = support::sqlite(folder.path());
    for number in 1..=4 {
        store.keep(kept(KeptFor::Held, "laptop", number, TEXT));
    }
    store.flush().await.unwrap();
    let outside = rusqlite::Connection::open(path(folder.path())).unwrap();
    outside
        .execute_batch(
            "UPDATE kept SET content = x'00' WHERE key = x'01010101010101010101010101010101';
             UPDATE kept SET caller = 'phone' WHERE key = x'02020202020202020202020202020202';
             UPDATE kept SET kind = 'cache' WHERE key = x'03030303030303030303030303030303';",
        )
        .unwrap();
    assert_eq!(store.kept_answers().await.unwrap(), [kept(KeptFor::Held, "laptop", 4, TEXT)]);
    let left: i64 = outside.query_row("SELECT count(*) FROM kept", [], |row| row.get(0)).unwrap();
    assert_eq!(left, 1);
    store.shutdown().await.unwrap();

    // A start without the master key cannot use them, nor can any later one know what they are.
    let without = try_open(folder.path(), Role::Gateway, None).unwrap();
    assert!(without.kept_answers().await.unwrap().is_empty());
    without.shutdown().await.unwrap();
    assert!(support::sqlite(folder.path()).kept_answers().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_row_whose_values_are_not_of_their_kind_is_left_out_and_costs_no_other_and_no_start() {
    let folder = tempfile::tempdir().unwrap();
    let store = support::sqlite(folder.path());
    for number in 1..=3 {
        store.keep(kept(KeptFor::Held, "laptop", number, TEXT));
    }
    store.flush().await.unwrap();
    let outside = rusqlite::Connection::open(path(folder.path())).unwrap();
    outside
        .execute_batch(
            "PRAGMA ignore_check_constraints = 1;
             UPDATE kept SET caller = CAST(x'ff' AS TEXT) WHERE key = x'01010101010101010101010101010101';
             UPDATE kept SET key = x'02' WHERE key = x'02020202020202020202020202020202';",
        )
        .unwrap();
    assert_eq!(store.kept_answers().await.unwrap(), [kept(KeptFor::Held, "laptop", 3, TEXT)]);
    let left: i64 = outside.query_row("SELECT count(*) FROM kept", [], |row| row.get(0)).unwrap();
    assert_eq!(left, 1);
}

#[tokio::test]
async fn many_large_answers_wait_in_bounds_and_what_finds_no_room_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let store = support::sqlite(folder.path());
    let large = "x".repeat(4 << 20);
    for number in 0..40 {
        store.keep(kept(KeptFor::Cache, "laptop", number, &large));
    }
    store.flush().await.unwrap();
    let there = store.kept_answers().await.unwrap().len() as u64;
    assert!(there >= 8, "{there}");
    assert_eq!(there + store.answers_lost(), 40);
}

#[tokio::test]
async fn another_master_key_is_refused_and_costs_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let store = support::sqlite(folder.path());
    keep_some(&store).await;
    store.shutdown().await.unwrap();
    let other = MasterKey::parse(&literal(&"cd".repeat(32))).unwrap();
    assert!(try_open(folder.path(), Role::Gateway, Some(other)).is_err());
    assert_eq!(support::sqlite(folder.path()).kept_answers().await.unwrap().len(), 2);
}
