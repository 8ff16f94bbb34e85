//! The writer when the disk does not take it: failures in words, nothing half done, and life after.

use crate::{
    FaultLog, FaultRecord, Ledger, NewKey, RecordError, Role, SqliteStore, StandingRecord, StandingStatus, Store,
    StoreOptions, SystemClock,
};
use futures_util::FutureExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::task::{Context, Waker};
use turnkeep_base::{AccountId, AttemptId, Dialect, TurnId, Usage};
use turnkeep_engine::ports::{AttemptClosed, AttemptOpened, AttemptOutcome};

fn store(folder: &Path) -> SqliteStore {
    let options = StoreOptions { role: Role::Gateway, master_key: None, clock: Arc::new(SystemClock) };
    SqliteStore::open(&folder.join("t.db"), options).unwrap()
}

fn account(name: &str) -> AccountId {
    AccountId { upstream: "up".into(), account: name.into() }
}

fn opened(turn: u64) -> AttemptOpened {
    AttemptOpened {
        attempt: AttemptId { turn: TurnId::new(turn, 0), number: 1 },
        caller: "x".repeat(4_000).into(),
        account: account("a"),
        model: "m".into(),
        upstream_model: "m".into(),
        dialect: Dialect::Chat,
        opened_ms: turn,
        estimated_input: 1,
        estimated_output: 0,
        estimated_cost: None,
        labels: "{}".into(),
        conversation: None,
    }
}

fn closed(attempt: AttemptId) -> AttemptClosed {
    let usage = Usage { input: 3, ..Usage::default() };
    AttemptClosed { attempt, outcome: AttemptOutcome::Completed, usage, exact: true, cost: None, closed_ms: 9 }
}

/// Lets the file grow by this many pages and no more; `None` lifts it. SQLite then says what it says for a full disk.
async fn room(store: &SqliteStore, pages: Option<i64>) {
    let limit = move |conn: &rusqlite::Connection| {
        let now: i64 = conn.pragma_query_value(None, "page_count", |row| row.get(0))?;
        let limit = pages.map_or(1 << 30, |pages| now + pages);
        Ok(conn.pragma_update_and_check(None, "max_page_count", limit, |_| Ok(()))?)
    };
    store.write(limit).await.unwrap();
}

#[tokio::test]
async fn a_full_disk_is_said_in_plain_words_and_writing_goes_on_when_there_is_room_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    room(&store, Some(3)).await;
    let mut written = 0;
    let error = loop {
        match store.open(opened(written)).await {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 100, "the limit holds");
    };
    assert!(error.to_string().contains("the disk is full"), "{error}");
    assert!(store.open(opened(500)).await.is_err());
    let count = |store: SqliteStore| async move { (store.ledger_open_count().await, store) };
    let (open, store) = count(store).await;
    assert_eq!(open, Ok(written), "what was acknowledged before is there, and nothing else");
    room(&store, None).await;
    store.open(opened(501)).await.unwrap();
    store.health().await.unwrap();
}

#[tokio::test]
async fn health_is_bad_while_nothing_can_be_written_and_good_again_after() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    store.health().await.unwrap();
    let outside = rusqlite::Connection::open(folder.path().join("t.db")).unwrap();
    outside.execute_batch("ALTER TABLE meta RENAME TO hidden").unwrap();
    store.health().await.unwrap_err();
    outside.execute_batch("ALTER TABLE hidden RENAME TO meta").unwrap();
    store.health().await.unwrap();
}

#[tokio::test]
async fn the_end_of_an_attempt_that_could_not_be_written_is_written_when_the_store_can_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let entry = opened(1);
    store.open(entry.clone()).await.unwrap();
    let outside = rusqlite::Connection::open(folder.path().join("t.db")).unwrap();
    outside.execute_batch("ALTER TABLE ledger RENAME TO hidden").unwrap();
    store.close(closed(entry.attempt)).await.unwrap();
    store.flush().await.unwrap_err();
    store.open(opened(2)).await.unwrap_err();
    outside.execute_batch("ALTER TABLE hidden RENAME TO ledger").unwrap();
    store.flush().await.unwrap();
    let read = store.ledger_entries(9).await.unwrap();
    assert_eq!((read.len(), read[0].closed.as_ref().unwrap().usage.input), (1, 3));
    assert_eq!(store.lost_closes(), 0);
}

#[tokio::test]
async fn a_write_of_several_statements_that_fails_leaves_nothing_of_itself_and_spares_its_neighbours() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let standing = |name: &str| StandingRecord {
        account: account(name),
        status: StandingStatus::Active,
        episode: 0,
        since_ms: None,
        retry_at_ms: None,
        reason: None,
        budget_json: "[]".into(),
        updated_ms: 1,
        cooldowns: vec![],
    };
    let outside = rusqlite::Connection::open(folder.path().join("t.db")).unwrap();
    outside
        .execute_batch(
            "CREATE TRIGGER no BEFORE INSERT ON standing WHEN NEW.account = 'bad' BEGIN SELECT RAISE(ABORT, 'no'); END",
        )
        .unwrap();
    let (before, failing, after) = futures_util::future::join3(
        store.create_key(NewKey::named("before")),
        store.save_standing(vec![standing("good"), standing("bad")]),
        store.create_key(NewKey::named("after")),
    )
    .await;
    before.unwrap();
    failing.unwrap_err();
    after.unwrap();
    assert!(store.load_standing().await.unwrap().is_empty());
    assert_eq!(store.list_keys().await.unwrap().len(), 2);
    let again = store.create_key(NewKey::named("after")).await.map(drop);
    assert!(matches!(again, Err(RecordError::Exists(_))));
}

/// Queues a write that says when it runs and then holds the writer until told.
fn hold(store: &SqliteStore) -> (Receiver<()>, SyncSender<()>) {
    let (runs, running) = sync_channel(1);
    let (release, released) = sync_channel::<()>(1);
    let held = store.write(move |_| {
        runs.send(()).unwrap();
        released.recv().unwrap();
        Ok(())
    });
    assert!(held.now_or_never().is_none(), "it waits");
    (running, release)
}

#[tokio::test]
async fn an_open_given_up_while_its_transaction_runs_is_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let (running, release) = hold(&store);
    running.recv().unwrap();
    // Both wait now, so the writer takes them into one transaction: the entry is written, and then it is held.
    let mut open = store.open(opened(1));
    assert!(open.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    let (running_again, release_again) = hold(&store);
    release.send(()).unwrap();
    running_again.recv().unwrap();
    drop(open);
    release_again.send(()).unwrap();
    store.flush().await.unwrap();
    assert_eq!(store.ledger_open_count().await, Ok(0));
}

#[tokio::test]
async fn an_open_given_up_after_its_answer_was_sent_and_before_it_was_read_is_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let (running, release) = hold(&store);
    running.recv().unwrap();
    let mut open = store.open(opened(1));
    assert!(open.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    release.send(()).unwrap();
    store.flush().await.unwrap();
    assert_eq!(store.ledger_open_count().await, Ok(1));
    drop(open);
    store.flush().await.unwrap();
    assert_eq!(store.ledger_open_count().await, Ok(0));
}

fn noted(at_ms: u64) -> FaultRecord {
    FaultRecord { account: Some(account("a")), ..crate::fault::tests::record(at_ms) }
}

async fn times(store: &SqliteStore) -> Vec<u64> {
    let faults = store.faults_of_account(&account("a"), usize::MAX).await.unwrap();
    faults.iter().rev().map(|fault| fault.at_ms).collect()
}

#[tokio::test]
async fn faults_noted_while_the_writer_is_busy_travel_with_its_next_transaction_and_those_without_room_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let (running, release) = hold(&store);
    running.recv().unwrap();
    let room = crate::side_queue::WAITING as u64;
    for at_ms in 0..room + 5 {
        store.note(noted(at_ms));
    }
    assert_eq!(store.faults_lost(), 5);
    release.send(()).unwrap();
    store.flush().await.unwrap();
    assert_eq!(times(&store).await, (0..room).collect::<Vec<_>>());
    assert_eq!(store.faults_lost(), 5);
}

#[tokio::test]
async fn a_fault_is_noted_though_the_writers_queue_is_full() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let (running, release) = hold(&store);
    running.recv().unwrap();
    let mut waiting = Vec::new();
    for turn in 0..crate::writer::QUEUE as u64 + 10 {
        let mut open = store.open(opened(turn));
        assert!(open.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        waiting.push(open);
    }
    store.note(noted(1));
    release.send(()).unwrap();
    for open in waiting {
        open.await.unwrap();
    }
    store.flush().await.unwrap();
    assert_eq!((times(&store).await, store.faults_lost()), (vec![1], 0));
}

#[tokio::test]
async fn a_fault_that_cannot_be_written_costs_no_turn_its_entry_and_is_written_later_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let outside = rusqlite::Connection::open(folder.path().join("t.db")).unwrap();
    outside.execute_batch("ALTER TABLE faults RENAME TO hidden").unwrap();
    store.note(noted(1));
    store.note(noted(2));
    store.open(opened(1)).await.unwrap();
    assert_eq!(store.ledger_open_count().await, Ok(1));
    outside.execute_batch("ALTER TABLE hidden RENAME TO faults").unwrap();
    store.note(noted(3));
    // Nothing else is asked of the writer: reading goes another way.
    let begin = std::time::Instant::now();
    while times(&store).await.len() < 3 {
        assert!(begin.elapsed() < std::time::Duration::from_secs(30), "it is not tried again");
    }
    assert_eq!((times(&store).await, store.faults_lost()), (vec![1, 2, 3], 0));
}

#[tokio::test]
async fn a_lone_fault_is_written_though_nothing_else_is() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let begin = std::time::Instant::now();
    for at_ms in 1..=2 {
        store.note(noted(at_ms));
        while times(&store).await.len() < usize::try_from(at_ms).unwrap() {
            assert!(begin.elapsed() < std::time::Duration::from_secs(30), "nobody told the writer");
        }
    }
}

#[tokio::test]
async fn faults_of_a_transaction_that_is_lost_are_written_once_by_a_later_one() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let outside = rusqlite::Connection::open(folder.path().join("t.db")).unwrap();
    // The commit itself fails: a promise that the end of the transaction finds broken.
    outside
        .execute_batch(
            "CREATE TABLE parent (id INTEGER PRIMARY KEY) STRICT;
             CREATE TABLE child (id INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED) STRICT;
             CREATE TRIGGER no AFTER INSERT ON faults BEGIN INSERT INTO child VALUES (1); END",
        )
        .unwrap();
    store.note(noted(1));
    store.flush().await.unwrap_err();
    assert!(times(&store).await.is_empty());
    outside.execute_batch("DROP TRIGGER no").unwrap();
    store.note(noted(2));
    store.flush().await.unwrap();
    assert_eq!((times(&store).await, store.faults_lost()), (vec![1, 2], 0));
}

#[tokio::test]
async fn the_shutdown_writes_the_faults_that_wait() {
    let folder = tempfile::tempdir().unwrap();
    let first = store(folder.path());
    first.note(noted(1));
    first.shutdown().await.unwrap();
    first.note(noted(2));
    assert_eq!((first.faults_lost(), times(&store(folder.path())).await), (1, vec![1]));
}

#[tokio::test]
async fn turns_are_written_between_the_batches_of_a_long_pruning() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(store(folder.path()));
    for round in 0..5 {
        for at_ms in 0..1_000 {
            store.note(noted(round * 1_000 + at_ms));
        }
        store.flush().await.unwrap();
    }
    let keep = crate::Keep { turns_ms: 0, evidence_ms: 0, ledger_ms: 0, now_ms: 5_000 };
    let mut pruning = store.prune(keep);
    let mut left = Vec::new();
    // The writer is held while the pruning asks for its next batch, so that a poll is one batch.
    for turn in 0..3 {
        let (running, release) = hold(&store);
        running.recv().unwrap();
        assert!(pruning.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let open = store.open(opened(turn));
        release.send(()).unwrap();
        open.await.unwrap();
        left.push(times(&store).await.len());
    }
    assert_eq!(left, [5_000 - 256, 5_000 - 512, 5_000 - 768]);
    assert_eq!(pruning.await.unwrap().faults, 5_000);
}

#[tokio::test]
async fn a_lone_commit_does_not_stay_in_the_log_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    store.create_key(NewKey::named("the-lone-commit")).await.unwrap();
    // Nothing else is asked of the writer.
    let begin = std::time::Instant::now();
    let there = || {
        let bytes = std::fs::read(folder.path().join("t.db")).unwrap();
        bytes.windows(15).any(|window| window == b"the-lone-commit")
    };
    while !there() {
        assert!(begin.elapsed() < std::time::Duration::from_secs(30), "it is in the log alone");
        std::thread::yield_now();
    }
}
