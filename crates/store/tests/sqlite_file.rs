//! What only the store in a file can promise: its files, its schema, who may open it and what it gives away.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code outside of #[test] functions")]

mod support;

use futures_util::FutureExt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use support::{closed, literal, opened, options, path, try_open, turn_at};
use turnkeep_engine::ports::AttemptOutcome;
use turnkeep_store::{
    Ledger, MasterKey, NewAccount, NewKey, OpenError, OpenedSecret, RecordError, Role, SecretInput, SqliteStore, Store,
};

fn passphrase(text: &str) -> Option<MasterKey> {
    Some(MasterKey::parse(&literal(text)).unwrap())
}

fn with_literal(name: &str, secret: &str) -> NewAccount {
    NewAccount { secret: SecretInput::Literal(literal(secret)), ..support::by_reference(name) }
}

fn refusal(folder: &Path) -> OpenError {
    match try_open(folder, Role::Gateway, None) {
        Ok(_) => panic!("it opened"),
        Err(error) => error,
    }
}

fn files(folder: &Path) -> Vec<(String, u32, Vec<u8>)> {
    let entry = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        (entry.file_name().into_string().unwrap(), mode, fs::read(entry.path()).unwrap())
    };
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(entry).collect();
    files.sort();
    files
}

#[tokio::test]
async fn every_file_of_the_database_is_its_owners_alone() {
    let folder = tempfile::tempdir().unwrap();
    let store = support::sqlite(folder.path());
    store.health().await.unwrap();
    let found = files(folder.path());
    let names: Vec<_> = found.iter().map(|(name, _, _)| name.as_str()).collect();
    assert_eq!(names, ["turnkeep.db", "turnkeep.db-lock", "turnkeep.db-shm", "turnkeep.db-wal"]);
    for (name, mode, _) in found {
        assert_eq!(mode, 0o600, "{name}");
    }
    store.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_file_that_others_could_read_is_narrowed() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(path(folder.path()), b"").unwrap();
    fs::set_permissions(path(folder.path()), fs::Permissions::from_mode(0o644)).unwrap();
    let store = support::sqlite(folder.path());
    store.health().await.unwrap();
    assert!(files(folder.path()).iter().all(|(_, mode, _)| *mode == 0o600));
}

#[tokio::test]
async fn the_log_is_gone_after_a_shutdown_and_everything_is_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = support::sqlite(folder.path());
    let entry = opened(turn_at(1, 1), 1);
    store.open(entry.clone()).await.unwrap();
    store.close(closed(entry.attempt, AttemptOutcome::Completed, 1)).await.unwrap();
    store.shutdown().await.unwrap();
    let names: Vec<_> = files(folder.path()).into_iter().map(|(name, _, _)| name).collect();
    assert_eq!(names, ["turnkeep.db", "turnkeep.db-lock"]);
    let store = support::sqlite(folder.path());
    assert_eq!(store.recovered(), 0);
    assert_eq!(store.ledger_entries(9).await.unwrap()[0].closed.as_ref().unwrap().outcome, "completed");
}

#[tokio::test]
async fn neither_keys_nor_secrets_nor_the_passphrase_are_in_any_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = try_open(folder.path(), Role::Gateway, passphrase("a passphrase of many words")).unwrap();
    let (_, key) = store.create_key(NewKey::named("laptop")).await.unwrap();
    let (_, next) = store.rotate_key("laptop".into(), std::time::Duration::from_secs(9)).await.unwrap();
    store.add_account(with_literal("a", "sk-literal-secret")).await.unwrap();
    let secrets = [key.expose(), next.expose(), &key.expose()[3..], "sk-literal-secret", "a passphrase of many words"];
    let check = |found: Vec<(String, u32, Vec<u8>)>| {
        let all: Vec<u8> = found.into_iter().flat_map(|(_, _, bytes)| bytes).collect();
        assert!(all.windows(6).any(|window| window == b"laptop"), "the search finds what is there");
        for secret in secrets {
            assert!(!all.windows(secret.len()).any(|window| window == secret.as_bytes()), "{secret} is in a file");
        }
    };
    check(files(folder.path()));
    store.shutdown().await.unwrap();
    check(files(folder.path()));
}

#[tokio::test]
async fn a_sealed_secret_survives_a_restart_and_needs_its_own_master_key() {
    let folder = tempfile::tempdir().unwrap();
    let store = support::sqlite(folder.path());
    store.add_account(with_literal("a", "sk-1")).await.unwrap();
    store.shutdown().await.unwrap();

    let other = MasterKey::parse(&literal(&"cd".repeat(32))).unwrap();
    let refused = try_open(folder.path(), Role::Gateway, Some(other)).map(drop).unwrap_err();
    assert!(matches!(refused, OpenError::WrongMasterKey(_)), "{refused}");
    assert!(refused.to_string().contains("master key"), "{refused}");

    let id = support::account("openai", "a");
    let without = try_open(folder.path(), Role::Gateway, None).unwrap();
    assert_eq!(without.open_secret(id.clone()).await.map(drop), Err(RecordError::NoMasterKey));
    without.shutdown().await.unwrap();

    let store = support::sqlite(folder.path());
    assert!(matches!(store.open_secret(id).await.unwrap(), OpenedSecret::Literal(text) if text.expose() == "sk-1"));
}

#[tokio::test]
async fn without_a_master_key_a_literal_secret_is_refused_and_a_reference_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let store = try_open(folder.path(), Role::Gateway, None).unwrap();
    let refused = store.add_account(with_literal("a", "sk-1")).await.unwrap_err();
    assert!(refused == RecordError::NoMasterKey && refused.to_string().contains("reference"), "{refused}");
    assert!(store.list_accounts().await.unwrap().is_empty());
    store.add_account(support::by_reference("a")).await.unwrap();
}

#[tokio::test]
async fn a_sealed_secret_moved_to_another_account_does_not_open() {
    let folder = tempfile::tempdir().unwrap();
    let store = support::sqlite(folder.path());
    store.add_account(with_literal("a", "sk-1")).await.unwrap();
    let outside = rusqlite::Connection::open(path(folder.path())).unwrap();
    outside.execute("UPDATE accounts SET account = 'b'", []).unwrap();
    let refused = store.open_secret(support::account("openai", "b")).await.map(drop);
    assert_eq!(refused, Err(RecordError::Damaged("openai/b".into())));
}

#[test]
fn a_file_that_is_not_sqlite_is_refused_and_left_untouched() {
    for content in ["hello", "a text that is longer than SQLite's own sixteen bytes"] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(path(folder.path()), content).unwrap();
        let refused = refusal(folder.path());
        assert!(matches!(refused, OpenError::NotADatabase(_)), "{refused}");
        assert!(refused.to_string().contains("not a SQLite database"), "{refused}");
        assert_eq!(fs::read(path(folder.path())).unwrap(), content.as_bytes());
    }
}

#[test]
fn another_programs_database_is_refused_and_left_untouched() {
    let folder = tempfile::tempdir().unwrap();
    rusqlite::Connection::open(path(folder.path())).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
    let before = fs::read(path(folder.path())).unwrap();
    let refused = refusal(folder.path());
    assert!(matches!(refused, OpenError::Foreign(_)), "{refused}");
    assert_eq!(fs::read(path(folder.path())).unwrap(), before);
}

#[tokio::test]
async fn a_database_of_a_later_version_is_refused_with_both_numbers() {
    let folder = tempfile::tempdir().unwrap();
    support::sqlite(folder.path()).shutdown().await.unwrap();
    let outside = rusqlite::Connection::open(path(folder.path())).unwrap();
    outside.pragma_update(None, "user_version", 99).unwrap();
    drop(outside);
    let refused = refusal(folder.path());
    let told = matches!(refused, OpenError::Newer { found: 99, known, .. } if known == support::schema());
    assert!(told, "{refused}");
    assert!(refused.to_string().contains("schema 99"), "{refused}");
}

#[tokio::test]
async fn an_empty_database_of_version_zero_is_brought_to_the_schema_and_keeps_its_data_when_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    rusqlite::Connection::open(path(folder.path())).unwrap().execute_batch("VACUUM").unwrap();
    let store = support::sqlite(folder.path());
    store.create_key(NewKey::named("a")).await.unwrap();
    store.shutdown().await.unwrap();
    let version: i64 = rusqlite::Connection::open(path(folder.path()))
        .unwrap()
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap();
    assert_eq!(version, support::schema());
    assert_eq!(support::sqlite(folder.path()).list_keys().await.unwrap().len(), 1);
}

#[test]
fn a_file_in_a_folder_that_is_not_there_is_refused_with_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let refused = refusal(&folder.path().join("nowhere"));
    assert!(refused.to_string().contains("nowhere/turnkeep.db"), "{refused}");
}

#[tokio::test]
async fn a_second_gateway_is_refused_until_the_first_is_shut_down_and_a_tool_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let first = support::sqlite(folder.path());
    first.open(opened(turn_at(1, 1), 1)).await.unwrap();
    assert!(matches!(refusal(folder.path()), OpenError::InUse(_)));

    let tool = try_open(folder.path(), Role::Tool, None).unwrap();
    let before = first.revision().await.unwrap();
    tool.create_key(NewKey::named("made-beside")).await.unwrap();
    tool.shutdown().await.unwrap();
    assert!(first.revision().await.unwrap() > before);
    assert_eq!(first.keys_snapshot().await.unwrap().keys.len(), 1);
    assert_eq!(first.ledger_open_count().await.unwrap(), 1, "a tool leaves open entries alone");

    first.shutdown().await.unwrap();
    assert_eq!(try_open(folder.path(), Role::Gateway, None).unwrap().recovered(), 1);
}

#[tokio::test]
async fn entries_left_open_are_closed_as_interrupted_with_their_estimate_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let store = support::sqlite(folder.path());
    store.open(opened(turn_at(1, 1), 1)).await.unwrap();
    store.open(opened(turn_at(1, 1), 2)).await.unwrap();
    store.close(closed(opened(turn_at(1, 1), 1).attempt, AttemptOutcome::Completed, 5)).await.unwrap();
    store.shutdown().await.unwrap();

    let store = support::sqlite(folder.path());
    assert_eq!((store.recovered(), store.ledger_open_count().await.unwrap()), (1, 0));
    let read = store.ledger_entries(1).await.unwrap();
    let end = read[0].closed.as_ref().unwrap();
    assert_eq!((end.outcome.as_str(), end.exact, end.closed_ms), ("interrupted", false, support::NOW));
    assert_eq!((end.usage.input, end.usage.output), (77, 9));
    store.shutdown().await.unwrap();
    assert_eq!(support::sqlite(folder.path()).recovered(), 0);
}

#[tokio::test]
async fn an_entry_whose_open_nobody_waited_for_is_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let store = support::sqlite(folder.path());
    let mut acknowledged = 0;
    for turn in 0..300 {
        // One poll, then dropped; now and then the writer is quick enough to have answered.
        if let Some(result) = store.open(opened(turn_at(1, turn), 1)).now_or_never() {
            result.unwrap();
            acknowledged += 1;
        }
    }
    store.flush().await.unwrap();
    assert_eq!(store.ledger_open_count().await.unwrap(), acknowledged);
}

#[tokio::test]
async fn standing_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let row = turnkeep_store::StandingRecord {
        account: support::account("openai", "a"),
        status: turnkeep_store::StandingStatus::Suspended,
        episode: 0,
        since_ms: None,
        retry_at_ms: None,
        reason: None,
        budget_json: "[]".into(),
        updated_ms: 1,
        cooldowns: vec![],
    };
    let store = support::sqlite(folder.path());
    store.save_standing(vec![row.clone()]).await.unwrap();
    // Not shut down: it is there without that.
    let beside = SqliteStore::open(&path(folder.path()), options(Role::Tool, None)).unwrap();
    assert_eq!(beside.load_standing().await.unwrap(), [row]);
}
