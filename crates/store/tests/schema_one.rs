//! A database of the first schema, made by its migration alone, opens and keeps everything.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code outside of #[test] functions")]

mod support;

use std::path::Path;
use support::{account, fault, path, turn_at};
use turnkeep_store::{FaultLog, Keep, NewAccount, OpenedSecret, SecretRef, StandingStatus, Store};

/// What the first version left: a key's hash, two accounts, a standing with a wait, an open attempt and a closed one.
fn first_schema(folder: &Path) {
    let conn = rusqlite::Connection::open(path(folder)).unwrap();
    conn.execute_batch(include_str!("../../../migrations/0001_store.sql")).unwrap();
    conn.pragma_update(None, "application_id", 0x544b_5031).unwrap();
    conn.pragma_update(None, "user_version", 1).unwrap();
    conn.execute_batch(
        "INSERT INTO meta VALUES ('store.pepper', zeroblob(32)), ('store.salt', zeroblob(32)),
           ('store.revision', x'0000000000000007'), ('console.theme', x'aa');
         INSERT INTO keys VALUES ('laptop', zeroblob(32), NULL, NULL, '[\"chat\"]', '[\"*\"]', '{}', '{}', 0, 5, NULL, NULL);
         INSERT INTO accounts VALUES ('openai', 'a', 'env:A_KEY', NULL, '[\"gpt-*\"]', 4, 0, 5, 3),
           ('openai', 'b', 'file:/b', NULL, '[]', NULL, 1, 6, 1);
         INSERT INTO standing VALUES ('openai', 'a', 'errored', 2, 10, 20, 'why', '[1]', 30);
         INSERT INTO cooldowns VALUES ('openai', 'a', 'rate', '', 'rate_limited', 40, 15);
         INSERT INTO audit VALUES (1, 1, 'cli', 'add', 'account openai/a', '');
         INSERT INTO ledger VALUES (x'0000000000010000000000000000000001', 'laptop', 'openai', 'a', 'gpt', 'gpt-1',
           'chat', 1, 77, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
           (x'0000000000020000000000000000000001', 'laptop', 'openai', 'a', 'gpt', 'gpt-1',
           'chat', 2, 77, 'completed', 1, 3, 0, 0, 4, 0, 9);",
    )
    .unwrap();
}

#[tokio::test]
async fn a_database_of_the_first_schema_opens_keeps_what_it_had_and_takes_what_is_new() {
    let folder = tempfile::tempdir().unwrap();
    first_schema(folder.path());
    let store = support::sqlite(folder.path());

    assert_eq!(store.recovered(), 1);
    let entries = store.ledger_entries(9).await.unwrap();
    assert_eq!((entries.len(), entries[0].closed.as_ref().unwrap().usage.output), (2, 4));
    assert_eq!(store.attempts_of_turn(turn_at(1, 0)).await.unwrap()[0].closed.as_ref().unwrap().outcome, "interrupted");
    assert_eq!(store.list_keys().await.unwrap()[0].name, "laptop");
    assert_eq!(store.revision().await.unwrap(), 7);
    assert_eq!(store.get_meta("console.theme".into()).await.unwrap(), Some(vec![0xaa]));
    assert_eq!(store.audit_entries(9).await.unwrap().len(), 1);
    let [standing] = &store.load_standing().await.unwrap()[..] else { panic!("one standing") };
    assert_eq!((standing.status, standing.budget_json.as_str()), (StandingStatus::Errored, "[1]"));
    assert_eq!((standing.since_ms, standing.retry_at_ms, standing.cooldowns.len()), (Some(10), Some(20), 1));

    let [a, b] = &store.list_accounts().await.unwrap()[..] else { panic!("two accounts") };
    assert_eq!((a.enabled, a.generation, a.max_in_flight, a.models[0].as_str()), (false, 3, Some(4), "gpt-*"));
    for old in [a, b] {
        assert_eq!((&old.limit_group, old.requests_per_minute, old.tokens_per_minute), (&None, None, None));
    }
    let secret = store.open_secret(a.id.clone()).await.unwrap();
    assert!(matches!(secret, OpenedSecret::Reference(SecretRef::Env(name)) if name == "A_KEY"));

    let new = NewAccount { requests_per_minute: Some(60), ..support::by_reference("c") };
    assert_eq!(store.add_account(new).await.unwrap().requests_per_minute, Some(60));
    store.note(fault(1, turn_at(1, 0), Some(account("openai", "a"))));
    store.flush().await.unwrap();
    assert_eq!(store.faults_of_account(&account("openai", "a"), 9).await.unwrap().len(), 1);
    assert_eq!(store.open_switches().await.unwrap(), []);
    store.switch_account(account("openai", "a"), true, "cli".into()).await.unwrap();
    assert_eq!(store.open_switches().await.unwrap().len(), 1);
    let keep = Keep { turns_ms: 0, evidence_ms: 0, ledger_ms: 0, now_ms: 3 };
    assert_eq!(store.prune(keep).await.unwrap().ledger, 2);
    store.shutdown().await.unwrap();

    let outside = rusqlite::Connection::open(path(folder.path())).unwrap();
    let version: i64 = outside.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    let verdict: String = outside.pragma_query_value(None, "integrity_check", |row| row.get(0)).unwrap();
    assert_eq!((version, verdict.as_str()), (support::schema(), "ok"));
}
