//! Backup while the store works, restore, and the rotation of the master key.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code outside of #[test] functions")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use support::{FixedClock, closed, kept, literal, master, opened, path, try_open, turn_at};
use turnkeep_engine::ports::{AttemptOutcome, KeptFor};
use turnkeep_store::{
    AnswerStore, BackupError, Ledger, MasterKey, NewAccount, OpenError, OpenedSecret, Progress, RekeyError,
    RestoreError, Role, SecretInput, SqliteStore, Store, StoreOptions, backup, rekey, restore,
};

fn quiet() -> Progress {
    Box::new(|_, _| {})
}

async fn turns(store: &SqliteStore, from: u128, count: u128) {
    for turn in from..from + count {
        let entry = opened(turn_at(1_000, turn), 1);
        store.open(entry.clone()).await.unwrap();
        store.close(closed(entry.attempt, AttemptOutcome::Completed, 1)).await.unwrap();
    }
    store.flush().await.unwrap();
}

fn at(file: &Path) -> SqliteStore {
    let options = StoreOptions { role: Role::Gateway, master_key: Some(master()), clock: Arc::new(FixedClock) };
    SqliteStore::open(file, options).unwrap()
}

#[tokio::test]
async fn a_backup_made_while_turns_run_is_consistent_and_its_owners_alone() {
    let folder = tempfile::tempdir().unwrap();
    let store = support::sqlite(folder.path());
    turns(&store, 0, 3_000).await;
    let stop = Arc::new(AtomicBool::new(false));
    let writing = tokio::spawn({
        let (store, stop) = (store.clone(), stop.clone());
        async move {
            for turn in 3_000.. {
                turns(&store, turn, 1).await;
                if stop.load(Ordering::Relaxed) {
                    return turn + 1;
                }
            }
            0
        }
    });
    let copy = folder.path().join("copy.db");
    let told = Arc::new(AtomicU64::new(0));
    let seen = told.clone();
    let bytes = store
        .backup(copy.clone(), Box::new(move |done, all| assert!(seen.swap(done, Ordering::Relaxed) <= all)))
        .await
        .unwrap();
    stop.store(true, Ordering::Relaxed);
    let all = writing.await.unwrap();

    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().contains("part")), "{names:?}");
    let metadata = copy.metadata().unwrap();
    assert_eq!((metadata.permissions().mode() & 0o777, metadata.len()), (0o600, bytes));
    assert_eq!(told.load(Ordering::Relaxed), bytes);
    let copied = at(&copy);
    let count = copied.ledger_entries(usize::MAX).await.unwrap().len() as u128;
    assert!((3_000..=all).contains(&count), "{count} of {all}");
    let sum: u64 = copied.spent(0).await.unwrap().iter().map(|spend| spend.tokens).sum();
    let used: u64 = copied.usage(0, vec![]).await.unwrap().iter().map(|row| row.usage.input + row.usage.output).sum();
    assert_eq!(sum, used);
    // Nothing of it was written to the database itself.
    assert_eq!(store.ledger_open_count().await.unwrap(), 0);
}

#[tokio::test]
async fn a_backup_replaces_no_file_unless_told_to_and_leaves_nothing_when_it_fails() {
    let folder = tempfile::tempdir().unwrap();
    let store = support::sqlite(folder.path());
    let copy = folder.path().join("copy.db");
    fs::write(&copy, "precious").unwrap();
    let refused = store.backup(copy.clone(), quiet()).await.unwrap_err();
    assert!(refused.to_string().contains("copy.db") && refused.to_string().contains("--force"), "{refused}");
    assert_eq!(fs::read(&copy).unwrap(), b"precious");
    backup(&path(folder.path()), &copy, true, quiet()).unwrap();
    assert!(fs::read(&copy).unwrap().starts_with(b"SQLite format 3\0"));

    let nowhere = folder.path().join("nowhere");
    assert!(matches!(backup(&nowhere.join("t.db"), &copy, true, quiet()), Err(BackupError::Missing(_))));
    assert!(!nowhere.exists());
    let refused = backup(&path(folder.path()), &nowhere.join("copy.db"), false, quiet()).unwrap_err();
    assert!(matches!(refused, BackupError::File { .. }), "{refused}");
}

#[tokio::test]
async fn a_restored_backup_is_the_database_and_the_old_one_is_kept_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = support::sqlite(folder.path());
    turns(&store, 0, 5).await;
    // An attempt runs while the copy is made; it is closed by the start after the restoring.
    store.open(opened(turn_at(2_000, 0), 1)).await.unwrap();
    let copy = folder.path().join("copy.db");
    store.backup(copy.clone(), quiet()).await.unwrap();
    turns(&store, 5, 5).await;

    let held = restore(&path(folder.path()), &copy, "2026-01-02T030405Z", quiet()).unwrap_err();
    assert!(matches!(held, RestoreError::Refused(OpenError::InUse(_))), "{held}");
    assert!(held.to_string().contains("in use by another running gateway"), "{held}");
    store.shutdown().await.unwrap();
    drop(store);
    let done = restore(&path(folder.path()), &copy, "2026-01-02T030405Z", quiet()).unwrap();
    let old = folder.path().join("turnkeep.db.2026-01-02T030405Z.old");
    assert_eq!(done.kept.as_deref(), Some(old.as_path()));

    let store = support::sqlite(folder.path());
    assert_eq!((store.recovered(), store.ledger_entries(99).await.unwrap().len()), (1, 6));
    store.shutdown().await.unwrap();
    assert_eq!(at(&old).ledger_entries(99).await.unwrap().len(), 11);
    assert_eq!(path(folder.path()).metadata().unwrap().permissions().mode() & 0o777, 0o600);
    // Again on the same second: the name of the first one is taken.
    let again = restore(&path(folder.path()), &copy, "2026-01-02T030405Z", quiet()).unwrap();
    assert!(again.kept.unwrap() != old && old.exists() && copy.exists());
}

#[tokio::test]
async fn what_a_killed_gateway_left_in_the_log_stays_with_the_old_database() {
    let folder = tempfile::tempdir().unwrap();
    let store = support::sqlite(folder.path());
    turns(&store, 0, 1).await;
    let copy = folder.path().join("copy.db");
    store.backup(copy.clone(), quiet()).await.unwrap();
    turns(&store, 1, 50).await;
    // As it lies there at this instant, log and all, and nobody holds it.
    let other = tempfile::tempdir().unwrap();
    for name in ["turnkeep.db", "turnkeep.db-wal"] {
        fs::copy(folder.path().join(name), other.path().join(name)).unwrap();
    }
    let done = restore(&path(other.path()), &copy, "s", quiet()).unwrap();
    assert_eq!(support::sqlite(other.path()).ledger_entries(99).await.unwrap().len(), 1);
    assert_eq!(at(&done.kept.unwrap()).ledger_entries(99).await.unwrap().len(), 51);
}

#[tokio::test]
async fn a_damaged_database_is_put_aside_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.db");
    let store = support::sqlite(folder.path());
    store.backup(copy.clone(), quiet()).await.unwrap();
    store.shutdown().await.unwrap();
    fs::write(path(folder.path()), "this was a database").unwrap();
    let done = restore(&path(folder.path()), &copy, "s", quiet()).unwrap();
    assert_eq!(fs::read(done.kept.unwrap()).unwrap(), b"this was a database");
    support::sqlite(folder.path()).health().await.unwrap();
}

#[tokio::test]
async fn only_a_whole_database_of_ours_and_of_a_known_schema_is_restored() {
    let folder = tempfile::tempdir().unwrap();
    let store = support::sqlite(folder.path());
    turns(&store, 0, 2_000).await;
    let good = folder.path().join("good.db");
    store.backup(good.clone(), quiet()).await.unwrap();
    store.shutdown().await.unwrap();
    let before = fs::read(path(folder.path())).unwrap();

    let file = |name: &str| folder.path().join(name);
    fs::write(file("text"), "hello").unwrap();
    rusqlite::Connection::open(file("theirs")).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    fs::copy(&good, file("later")).unwrap();
    rusqlite::Connection::open(file("later")).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let mut torn = fs::read(&good).unwrap();
    let half = torn.len() / 2;
    torn[half..half + 20_000].fill(0x5a);
    fs::write(file("torn"), torn).unwrap();
    for (name, word) in [
        ("missing", "missing"),
        ("text", "not a SQLite database"),
        ("theirs", "another program"),
        ("later", "schema 99"),
        ("torn", "damaged"),
    ] {
        let refused = restore(&path(folder.path()), &file(name), "s", quiet()).unwrap_err();
        assert!(refused.to_string().contains(word), "{name}: {refused}");
        assert_eq!(fs::read(path(folder.path())).unwrap(), before, "{name}");
    }
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(
        !left
            .iter()
            .any(|name| name.to_string_lossy().contains(".old") || name.to_string_lossy().contains("restoring")),
        "{left:?}"
    );
}

#[tokio::test]
async fn a_new_master_key_opens_everything_and_the_old_one_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = support::sqlite(folder.path());
    let secret = SecretInput::Literal(literal("sk-literal"));
    store.add_account(NewAccount { secret, ..support::by_reference("sealed") }).await.unwrap();
    store.add_account(support::by_reference("reference")).await.unwrap();
    store.keep(kept(KeptFor::Held, "laptop", 1, "an answer"));
    store.flush().await.unwrap();
    let new = MasterKey::parse(&literal("another passphrase of ours")).unwrap();
    let in_use = rekey(&path(folder.path()), &master(), &new, "test", &FixedClock).unwrap_err();
    assert!(matches!(in_use, RekeyError::Open(OpenError::InUse(_))), "{in_use}");
    store.shutdown().await.unwrap();

    let wrong = rekey(&path(folder.path()), &new, &master(), "test", &FixedClock).unwrap_err();
    assert!(matches!(wrong, RekeyError::Open(OpenError::WrongMasterKey(_))), "{wrong}");
    let done = rekey(&path(folder.path()), &master(), &new, "test", &FixedClock).unwrap();
    assert_eq!((done.secrets, done.answers), (1, 1));

    assert!(matches!(try_open(folder.path(), Role::Gateway, Some(master())), Err(OpenError::WrongMasterKey(_))));
    let store = try_open(folder.path(), Role::Gateway, Some(new)).unwrap();
    let secret = store.open_secret(support::account("openai", "sealed")).await.unwrap();
    assert!(matches!(secret, OpenedSecret::Literal(text) if text.expose() == "sk-literal"));
    assert_eq!(store.kept_answers().await.unwrap(), [kept(KeptFor::Held, "laptop", 1, "an answer")]);
    assert_eq!(store.audit_entries(1).await.unwrap()[0].action, "rekey");
}

#[tokio::test]
async fn a_secret_that_does_not_open_leaves_everything_under_the_old_key() {
    let folder = tempfile::tempdir().unwrap();
    let store = support::sqlite(folder.path());
    for name in ["a", "b"] {
        let secret = SecretInput::Literal(literal("sk-literal"));
        store.add_account(NewAccount { secret, ..support::by_reference(name) }).await.unwrap();
    }
    store.shutdown().await.unwrap();
    let outside = rusqlite::Connection::open(path(folder.path())).unwrap();
    outside.execute("UPDATE accounts SET secret_sealed = x'00' WHERE account = 'b'", []).unwrap();
    drop(outside);
    let new = MasterKey::parse(&literal("another passphrase of ours")).unwrap();
    let refused = rekey(&path(folder.path()), &master(), &new, "test", &FixedClock).unwrap_err();
    assert!(refused.to_string().contains("openai/b"), "{refused}");
    let store = support::sqlite(folder.path());
    assert!(store.open_secret(support::account("openai", "a")).await.is_ok());
}
