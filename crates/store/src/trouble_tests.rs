//! Trouble with the disk, as the contract's users see it: every write is answered, in time and in words, nothing panics,
//! and when the trouble is over the store writes again by itself.

use crate::writer::Command;
use crate::{AnswerStore, Ledger, MasterKey, OpenError, Role, SqliteStore, Store, StoreOptions, SystemClock};
use rusqlite::Connection;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use turnkeep_base::{AccountId, AttemptId, Dialect, Fingerprint, Secret, TurnId, Usage};
use turnkeep_engine::ports::{AttemptClosed, AttemptOpened, AttemptOutcome, KeptAnswer, KeptFor, KeptKey};

/// What the engine waits for an entry.
const TURN_WAITS: Duration = Duration::from_secs(1);

fn open_at(folder: &Path) -> Result<SqliteStore, OpenError> {
    let master_key = Some(MasterKey::parse(&Secret::new("ab".repeat(32))).unwrap());
    let options = StoreOptions { role: Role::Gateway, master_key, clock: Arc::new(SystemClock) };
    SqliteStore::open(&folder.join("t.db"), options)
}

fn outside(folder: &Path) -> Connection {
    Connection::open(folder.join("t.db")).unwrap()
}

/// Does this on the writer's connection, outside of any transaction.
async fn bare(store: &SqliteStore, work: impl FnOnce(&Connection) + Send + 'static) {
    let (done, when) = tokio::sync::oneshot::channel();
    let work = move |conn: &Connection| {
        work(conn);
        done.send(()).unwrap();
    };
    store.send(Command::Bare(Box::new(work))).await.unwrap();
    when.await.unwrap();
}

fn opened(turn: u64) -> AttemptOpened {
    AttemptOpened {
        attempt: AttemptId { turn: TurnId::new(turn, 0), number: 1 },
        caller: "laptop".into(),
        account: AccountId { upstream: "up".into(), account: "a".into() },
        model: "m".into(),
        upstream_model: "m".into(),
        dialect: Dialect::Chat,
        opened_ms: turn,
        estimated_input: 1,
        estimated_output: 0,
        estimated_cost: Some(1),
        labels: "{}".into(),
        conversation: None,
    }
}

fn closed(turn: u64) -> AttemptClosed {
    let usage = Usage { input: 3, ..Usage::default() };
    let attempt = opened(turn).attempt;
    AttemptClosed {
        attempt,
        outcome: AttemptOutcome::Completed,
        usage,
        exact: true,
        cost: Some(6),
        closed_ms: turn + 9,
    }
}

fn answer(number: u8, bytes: usize) -> KeptAnswer {
    let key = KeptKey { kept: KeptFor::Held, caller: "laptop".into(), key: Fingerprint([number; 16]) };
    KeptAnswer { key, until_ms: u64::MAX / 4, content: vec![7; bytes].into() }
}

/// A write of a turn that fails: in time, with these words in its answer; readiness then says the same.
async fn fails(store: &SqliteStore, turn: u64, words: &str) {
    let begin = Instant::now();
    let error = store.open(opened(turn)).await.unwrap_err();
    assert!(begin.elapsed() < TURN_WAITS, "{:?}", begin.elapsed());
    assert!(error.to_string().contains(words), "{error}");
    let error = store.health().await.unwrap_err();
    assert!(error.to_string().contains(words), "{error}");
}

/// A gateway that serves on closes the attempts whose entries it could not open. When the store writes again, each has
/// exactly one entry, and its spending is counted.
async fn served_on(store: &SqliteStore, turns: &[u64]) {
    store.flush().await.unwrap();
    for &turn in turns {
        let entries = store.attempts_of_turn(opened(turn).attempt.turn).await.unwrap();
        assert_eq!(entries.len(), 1, "turn {turn}");
        let end = entries[0].closed.as_ref().unwrap();
        assert_eq!((end.outcome.as_str(), end.usage.input, end.cost), ("completed", 3, Some(6)), "turn {turn}");
        assert_eq!((entries[0].caller.as_str(), entries[0].estimated_cost), ("laptop", Some(1)));
    }
    assert_eq!(store.ledger_lost(), 0);
    let spent: u64 = store.spent(0).await.unwrap().iter().map(|spend| spend.nano_usd).sum();
    let cost: u64 = store.usage(0, vec![]).await.unwrap().iter().map(|row| row.cost).sum();
    assert_eq!(spent, cost);
}

#[tokio::test]
async fn a_full_disk_refuses_in_words_and_what_was_served_on_is_written_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_at(folder.path()).unwrap();
    let limit = |pages: i64| {
        bare(&store, move |conn| conn.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).unwrap())
    };
    limit(1).await;
    // Until the free places of the pages that are there are taken.
    let mut turn = 1;
    while store.open(AttemptOpened { caller: "x".repeat(3_000).into(), ..opened(turn) }).await.is_ok() {
        turn += 1;
        assert!(turn < 100);
    }
    let big = AttemptOpened { caller: "y".repeat(3_000).into(), ..opened(turn + 1) };
    assert!(store.open(big).await.unwrap_err().to_string().contains("disk is full"));
    store.keep(answer(1, 100_000));
    store.close(AttemptClosed { cost: None, ..closed(1) }).await.unwrap();
    limit(1 << 30).await;
    store.flush().await.unwrap();
    store.health().await.unwrap();
    store.open(opened(500)).await.unwrap();
    assert_eq!(store.kept_answers().await.unwrap(), [answer(1, 100_000)]);
}

#[tokio::test]
async fn a_lock_held_by_another_process_is_answered_within_the_turns_second_and_is_over_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_at(folder.path()).unwrap();
    let other = outside(folder.path());
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    fails(&store, 1, "another process holds the database locked").await;
    // Many at once, some of which come while the writer waits already.
    let begin = Instant::now();
    let opens = (10..200).map(|turn| store.open(opened(turn)));
    let answers = futures_util::future::join_all(opens).await;
    assert!(answers.iter().all(Result::is_err) && begin.elapsed() < TURN_WAITS, "{:?}", begin.elapsed());
    for turn in 10..20 {
        store.close(closed(turn)).await.unwrap();
    }
    store.keep(answer(1, 10));
    assert!(store.ledger_entries(9).await.unwrap().is_empty(), "reading goes on");
    other.execute_batch("ROLLBACK").unwrap();
    store.open(opened(2)).await.unwrap();
    store.health().await.unwrap();
    served_on(&store, &(10..20).collect::<Vec<_>>()).await;
    assert_eq!(store.kept_answers().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_store_that_became_read_only_refuses_in_words_and_writes_again_when_it_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_at(folder.path()).unwrap();
    let read_only = |yes: bool| bare(&store, move |conn| conn.pragma_update(None, "query_only", yes).unwrap());
    read_only(true).await;
    fails(&store, 1, "read-only").await;
    store.close(closed(1)).await.unwrap();
    store.flush().await.unwrap_err();
    read_only(false).await;
    store.health().await.unwrap();
    served_on(&store, &[1]).await;
}

#[tokio::test]
async fn damage_found_while_running_refuses_turns_and_readiness_and_nothing_panics() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_at(folder.path()).unwrap();
    for turn in 0..300 {
        store.open(opened(turn)).await.unwrap();
        store.close(closed(turn)).await.unwrap();
    }
    store.flush().await.unwrap();
    let file = folder.path().join("t.db");
    // Everything is moved into the file, which is then overwritten but for its first page; nothing is remembered.
    let other = outside(folder.path());
    let checkpoint = || other.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
    // The store's own may be under way; of two, one is told so at once.
    let begin = Instant::now();
    while checkpoint().unwrap() != 0 {
        assert!(begin.elapsed() < Duration::from_secs(30), "it stays busy");
        std::thread::yield_now();
    }
    let mut bytes = fs::read(&file).unwrap();
    let page = usize::from(u16::from_be_bytes([bytes[16], bytes[17]]));
    bytes[page..].fill(0x5a);
    fs::write(&file, bytes).unwrap();
    bare(&store, |conn| conn.execute_batch("PRAGMA shrink_memory").unwrap()).await;
    let error = store.open(opened(1_000)).await.unwrap_err().to_string();
    assert!(error.contains("damaged") && error.contains("turnkeep restore"), "{error}");
    store.health().await.unwrap_err();
    store.close(closed(2)).await.unwrap();
    store.keep(answer(1, 10));
    store.flush().await.unwrap_err();
    store.shutdown().await.unwrap_err();
    drop(other);
    drop(store);

    let refused = open_at(folder.path()).map(drop).unwrap_err();
    assert!(matches!(refused, OpenError::Damaged { .. }), "{refused}");
    assert!(refused.to_string().contains("t.db") && refused.to_string().contains("turnkeep restore FILE"), "{refused}");
}

#[tokio::test]
async fn a_file_with_a_torn_page_is_refused_at_the_start_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_at(folder.path()).unwrap();
    for turn in 0..2_000 {
        store.open(opened(turn)).await.unwrap();
    }
    store.shutdown().await.unwrap();
    drop(store);
    let file = folder.path().join("t.db");
    let mut bytes = fs::read(&file).unwrap();
    let half = (bytes.len() / 2) & !4095;
    bytes[half..half + 4096].fill(0x5a);
    fs::write(&file, &bytes).unwrap();
    let refused = open_at(folder.path()).map(drop).unwrap_err();
    assert!(matches!(refused, OpenError::Damaged { .. }), "{refused}");
    assert_eq!(fs::read(&file).unwrap(), bytes);
}

#[tokio::test]
async fn an_end_that_the_database_will_never_take_is_counted_and_stops_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_at(folder.path()).unwrap();
    for turn in [1, 2] {
        store.open(opened(turn)).await.unwrap();
    }
    outside(folder.path())
        .execute_batch(
            "CREATE TRIGGER no BEFORE UPDATE ON ledger WHEN NEW.opened_ms = 1 BEGIN SELECT RAISE(ABORT, 'no'); END",
        )
        .unwrap();
    for turn in [1, 2] {
        store.close(closed(turn)).await.unwrap();
    }
    store.flush().await.unwrap();
    assert_eq!((store.ledger_open_count().await.unwrap(), store.ledger_lost()), (1, 1));
    store.open(opened(3)).await.unwrap();
}
