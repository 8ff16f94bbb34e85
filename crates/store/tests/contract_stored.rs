//! Stored responses and conversations, on every store; and in a file: sealed or not there at all.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code outside of #[test] functions")]

#[macro_use]
mod support;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use support::{NOW, literal, path, try_open};
use turnkeep_base::Fingerprint;
use turnkeep_engine::ports::{StoredKey, StoredKind, StoredThing};
use turnkeep_store::{ContentStore, Keep, MasterKey, Role, Store, rekey};

const TEXT: &str = "what was asked and answered, word by word";
const DAY: u64 = 86_400_000;

fn key(kind: StoredKind, caller: &str, number: u8) -> StoredKey {
    StoredKey { kind, caller: caller.into(), key: Fingerprint([number; 16]) }
}

fn thing(kind: StoredKind, caller: &str, number: u8, text: &str) -> StoredThing {
    let content = text.as_bytes().to_vec().into();
    StoredThing { key: key(kind, caller, number), made_ms: NOW - 5, until_ms: NOW + DAY, content }
}

fn response(caller: &str, number: u8) -> StoredThing {
    thing(StoredKind::Response, caller, number, TEXT)
}

async fn get(store: &dyn Store, key: StoredKey) -> Option<StoredThing> {
    store.get_stored(key).await.unwrap()
}

on_every_store! {
    async fn what_was_put_is_there_when_put_answers_and_for_its_owner_alone(store) {
        let all = vec![response("ann", 1), thing(StoredKind::Item, "ann", 1, "resp_1"), response("bob", 2)];
        store.put_stored(all.clone()).await.unwrap();
        for thing in all {
            assert_eq!(get(store.as_ref(), thing.key.clone()).await, Some(thing));
        }
        for missing in [
            key(StoredKind::Response, "bob", 1),
            key(StoredKind::Conversation, "ann", 1),
            key(StoredKind::Response, "ann", 2),
        ] {
            assert_eq!(get(store.as_ref(), missing).await, None);
        }
    }

    async fn another_under_the_same_key_takes_the_place(store) {
        store.put_stored(vec![response("ann", 1)]).await.unwrap();
        let second = thing(StoredKind::Response, "ann", 1, "second");
        store.put_stored(vec![second.clone()]).await.unwrap();
        assert_eq!(get(store.as_ref(), second.key.clone()).await, Some(second));
    }

    async fn what_is_removed_is_gone_and_was_there_once(store) {
        store.put_stored(vec![response("ann", 1)]).await.unwrap();
        let key = response("ann", 1).key;
        assert!(!store.remove_stored(response("bob", 1).key).await.unwrap());
        assert!(store.remove_stored(key.clone()).await.unwrap());
        assert!(!store.remove_stored(key.clone()).await.unwrap());
        assert_eq!(get(store.as_ref(), key).await, None);
    }

    async fn what_is_over_is_not_given_and_use_moves_the_end(store) {
        let over = StoredThing { until_ms: NOW, ..response("ann", 1) };
        let soon = StoredThing { until_ms: NOW + 1, ..response("ann", 2) };
        store.put_stored(vec![over.clone(), soon.clone()]).await.unwrap();
        assert_eq!(get(store.as_ref(), over.key).await, None);
        store.touch_stored(soon.key.clone(), NOW + 9 * DAY).await.unwrap();
        let later = get(store.as_ref(), soon.key.clone()).await.unwrap();
        assert_eq!((later.until_ms, later.made_ms, later.content), (NOW + 9 * DAY, soon.made_ms, soon.content));
        store.touch_stored(key(StoredKind::Response, "ann", 7), NOW + DAY).await.unwrap();
        assert_eq!(get(store.as_ref(), key(StoredKind::Response, "ann", 7)).await, None);
    }

    async fn pruning_takes_what_is_over_and_nothing_else_whatever_its_age(store) {
        let soon = StoredThing { until_ms: NOW + 10, ..response("ann", 1) };
        let old = StoredThing { made_ms: 1, ..response("ann", 2) };
        store.put_stored(vec![soon, old.clone()]).await.unwrap();
        let keep = Keep { turns_ms: 1, evidence_ms: 1, ledger_ms: 1, now_ms: NOW + 10 };
        assert_eq!(store.prune(keep).await.unwrap().answers, 1);
        assert_eq!(get(store.as_ref(), old.key.clone()).await, Some(old));
    }

    async fn after_the_shutdown_nothing_is_stored(store) {
        store.shutdown().await.unwrap();
        store.put_stored(vec![response("ann", 1)]).await.unwrap_err();
        store.get_stored(response("ann", 1).key).await.unwrap_err();
    }
}

fn holds(folder: &Path, text: &str) -> bool {
    let files = fs::read_dir(folder).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap());
    files.into_iter().any(|bytes| bytes.windows(text.len()).any(|window| window == text.as_bytes()))
}

#[tokio::test]
async fn with_a_master_key_they_are_on_the_disk_sealed_and_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let store = support::sqlite(folder.path());
    store.put_stored(vec![response("whose-it-is", 1)]).await.unwrap();
    assert!(holds(folder.path(), "whose-it-is"), "the search finds what is there");
    assert!(!holds(folder.path(), TEXT));
    store.shutdown().await.unwrap();
    assert!(!holds(folder.path(), TEXT));
    let store = support::sqlite(folder.path());
    assert_eq!(get(store.as_ref(), response("whose-it-is", 1).key).await, Some(response("whose-it-is", 1)));
}

#[tokio::test]
async fn without_a_master_key_they_live_in_memory_and_nothing_of_them_reaches_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let store = try_open(folder.path(), Role::Gateway, None).unwrap();
    store.put_stored(vec![response("whose-it-is", 1), response("whose-it-is", 2)]).await.unwrap();
    assert!(store.remove_stored(response("whose-it-is", 2).key).await.unwrap());
    assert_eq!(get(store.as_ref(), response("whose-it-is", 1).key).await, Some(response("whose-it-is", 1)));
    store.shutdown().await.unwrap();
    assert!(!holds(folder.path(), TEXT) && !holds(folder.path(), "whose-it-is"));
    let store = try_open(folder.path(), Role::Gateway, None).unwrap();
    assert_eq!(get(store.as_ref(), response("whose-it-is", 1).key).await, None);
}

#[tokio::test]
async fn a_row_that_was_moved_to_another_caller_does_not_open() {
    let folder = tempfile::tempdir().unwrap();
    let store = support::sqlite(folder.path());
    store.put_stored(vec![response("ann", 1)]).await.unwrap();
    let outside = rusqlite::Connection::open(path(folder.path())).unwrap();
    outside.execute("UPDATE stored SET caller = 'bob'", []).unwrap();
    assert_eq!(get(store.as_ref(), response("bob", 1).key).await, None);
}

#[tokio::test]
async fn another_master_key_takes_them_along() {
    let folder = tempfile::tempdir().unwrap();
    let store = support::sqlite(folder.path());
    store.put_stored(vec![response("ann", 1)]).await.unwrap();
    store.shutdown().await.unwrap();
    drop(store);
    let new = MasterKey::parse(&literal(&"cd".repeat(32))).unwrap();
    let done = rekey(&path(folder.path()), &support::master(), &new, "cli", &support::FixedClock).unwrap();
    assert_eq!(done.answers, 1);
    let store = try_open(folder.path(), Role::Gateway, Some(new)).unwrap();
    assert_eq!(get(store.as_ref(), response("ann", 1).key).await, Some(response("ann", 1)));
}
