//! The writer when the disk does not take it: failures in words, nothing half done, and life after.

use crate::{
    Ledger, NewKey, RecordError, Role, SqliteStore, StandingRecord, StandingStatus, Store, StoreOptions, SystemClock,
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
    }
}

fn closed(attempt: AttemptId) -> AttemptClosed {
    let usage = Usage { input: 3, ..Usage::default() };
    AttemptClosed { attempt, outcome: AttemptOutcome::Completed, usage, exact: true, closed_ms: 9 }
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
