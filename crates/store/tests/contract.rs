//! The contract of a store, on every store: the ledger, keys and the store itself. Faults and accounts have files of
//! their own.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code outside of #[test] functions")]

#[macro_use]
mod support;

use std::sync::Arc;
use std::time::Duration;
use support::{account, closed, opened, turn_at};
use turnkeep_base::{AttemptId, FaultKind};
use turnkeep_engine::ports::AttemptOutcome;
use turnkeep_store::{AuditEntry, NewAccount, NewKey, RecordError, Store, UsageBy, hash_key};

on_every_store! {
    async fn an_opened_entry_is_there_when_open_answers(store) {
        let entry = opened(turn_at(1_000, 1), 1);
        store.open(entry.clone()).await.unwrap();
        let read = store.ledger_entries(10).await.unwrap();
        assert_eq!(read.len(), 1);
        assert_eq!(read[0].attempt, entry.attempt);
        assert_eq!((read[0].caller.as_str(), &read[0].account), ("laptop", &account("openai", "a")));
        assert_eq!((read[0].model.as_str(), read[0].upstream_model.as_str()), ("gpt", "gpt-1"));
        assert_eq!((read[0].dialect.as_str(), read[0].opened_ms, read[0].estimated_input), ("chat", 1_000, 77));
        assert_eq!(read[0].closed, None);
        assert_eq!(store.ledger_open_count().await.unwrap(), 1);
    }

    async fn closing_writes_the_end_and_closing_twice_changes_nothing(store) {
        let entry = opened(turn_at(1_000, 1), 1);
        store.open(entry.clone()).await.unwrap();
        store.close(closed(entry.attempt, AttemptOutcome::Completed, 5)).await.unwrap();
        store.close(closed(entry.attempt, AttemptOutcome::Failed(FaultKind::RateLimited), 9)).await.unwrap();
        store.flush().await.unwrap();
        let read = store.ledger_entries(10).await.unwrap();
        let end = read[0].closed.as_ref().unwrap();
        assert_eq!((end.outcome.as_str(), end.exact, end.closed_ms), ("completed", true, 2_000));
        assert_eq!((end.usage.input, end.usage.output, end.usage.reasoning), (5, 50, 1));
        assert_eq!((read.len(), store.ledger_open_count().await.unwrap()), (1, 0));
    }

    async fn closing_what_was_never_opened_changes_nothing(store) {
        store.close(closed(opened(turn_at(1, 1), 1).attempt, AttemptOutcome::Completed, 5)).await.unwrap();
        store.flush().await.unwrap();
        assert!(store.ledger_entries(10).await.unwrap().is_empty());
    }

    async fn an_attempt_is_opened_once(store) {
        let entry = opened(turn_at(1_000, 1), 1);
        store.open(entry.clone()).await.unwrap();
        store.open(entry).await.unwrap_err();
        store.open(opened(turn_at(1_000, 1), 2)).await.unwrap();
        assert_eq!(store.ledger_entries(10).await.unwrap().len(), 2);
    }

    async fn an_open_that_was_never_polled_writes_nothing(store) {
        drop(store.open(opened(turn_at(1_000, 1), 1)));
        store.flush().await.unwrap();
        assert_eq!(store.ledger_open_count().await.unwrap(), 0);
    }

    async fn entries_are_read_newest_first_up_to_the_limit(store) {
        for time in [3, 1, 2] {
            store.open(opened(turn_at(time, 0), 1)).await.unwrap();
        }
        let read = store.ledger_entries(2).await.unwrap();
        assert_eq!(read.iter().map(|entry| entry.opened_ms).collect::<Vec<_>>(), [3, 2]);
    }

    async fn the_attempts_of_a_turn_are_its_own_in_their_order(store) {
        for (turn, number) in [(turn_at(5, 1), 2), (turn_at(5, 1), 1), (turn_at(5, 0), 255), (turn_at(5, 2), 0)] {
            store.open(opened(turn, number)).await.unwrap();
        }
        store.close(closed(opened(turn_at(5, 1), 1).attempt, AttemptOutcome::Completed, 7)).await.unwrap();
        store.flush().await.unwrap();
        let read = store.attempts_of_turn(turn_at(5, 1)).await.unwrap();
        assert_eq!(read.iter().map(|entry| entry.attempt.number).collect::<Vec<_>>(), [1, 2]);
        assert_eq!((read[0].closed.as_ref().unwrap().usage.input, &read[1].closed), (7, &None));
        assert!(store.attempts_of_turn(turn_at(6, 0)).await.unwrap().is_empty());
    }

    async fn usage_is_added_up_over_closed_attempts_since_a_time(store) {
        for (time, number, input) in [(1_000, 1, 1), (2_000, 1, 10), (2_000, 2, 100)] {
            let entry = opened(turn_at(time, 0), number);
            store.open(entry.clone()).await.unwrap();
            store.close(closed(entry.attempt, AttemptOutcome::Completed, input)).await.unwrap();
        }
        store.open(opened(turn_at(3_000, 0), 1)).await.unwrap();
        store.flush().await.unwrap();
        let all = store.usage(0, vec![UsageBy::Caller]).await.unwrap();
        assert_eq!((all.len(), all[0].keys[0].as_str(), all[0].attempts, all[0].usage.input), (1, "laptop", 3, 111));
        for (by, key) in [
            (UsageBy::Caller, "laptop"),
            (UsageBy::Model, "gpt"),
            (UsageBy::UpstreamModel, "gpt-1"),
            (UsageBy::Upstream, "openai"),
            (UsageBy::Account, "openai/a"),
            (UsageBy::Outcome, "completed"),
        ] {
            let late = store.usage(2_000, vec![by.clone()]).await.unwrap();
            assert_eq!((late.len(), late[0].keys[0].as_str()), (1, key));
            assert_eq!((late[0].attempts, late[0].exact_attempts, late[0].usage.input), (2, 2, 110), "{by:?}");
        }
    }

    async fn a_count_beyond_sixty_three_bits_does_not_wrap(store) {
        let entry = opened(turn_at(1_000, 1), 1);
        store.open(entry.clone()).await.unwrap();
        store.close(closed(entry.attempt, AttemptOutcome::Completed, u64::MAX / 10)).await.unwrap();
        store.flush().await.unwrap();
        let end = store.ledger_entries(1).await.unwrap().remove(0).closed.unwrap();
        assert!(end.usage.output >= u64::MAX / 2 - 10 && end.usage.input == u64::MAX / 10);
    }

    async fn many_tasks_open_and_close_at_once_and_each_entry_ends_once(store) {
        let tasks: Vec<_> = (0..64u128).map(|task| {
            let store = store.clone();
            tokio::spawn(async move {
                for number in 1..=20 {
                    let entry = opened(turn_at(1_000, task), number);
                    store.open(entry.clone()).await.unwrap();
                    store.close(closed(entry.attempt, AttemptOutcome::Completed, 1)).await.unwrap();
                }
            })
        }).collect();
        for task in tasks {
            task.await.unwrap();
        }
        store.flush().await.unwrap();
        assert_eq!(store.ledger_open_count().await.unwrap(), 0);
        let rows = store.usage(0, vec![UsageBy::Caller]).await.unwrap();
        assert_eq!((rows[0].attempts, rows[0].usage.input), (64 * 20, 64 * 20));
    }

    async fn a_key_is_made_listed_and_checked(store) {
        let mut new = NewKey::named("laptop");
        new.limits.max_in_flight = Some(3);
        new.labels.insert("team".into(), "infra".into());
        new.shared = true;
        let (record, secret) = store.create_key(new.clone()).await.unwrap();
        assert!(secret.expose().starts_with("tk_") && secret.expose().len() == 46);
        assert_eq!(store.list_keys().await.unwrap(), [record]);
        let snapshot = store.keys_snapshot().await.unwrap();
        let [key] = &snapshot.keys[..] else { panic!("one key") };
        assert!(key.accepts(&hash_key(&snapshot.pepper, secret.expose()), 0));
        assert!(!key.accepts(&hash_key(&snapshot.pepper, "tk_other"), 0));
        assert_eq!((key.limits.max_in_flight, key.labels["team"].as_str(), key.shared), (Some(3), "infra", true));
        assert!(matches!(store.create_key(new).await, Err(RecordError::Exists(_))));
    }

    async fn a_revoked_key_leaves_the_snapshot_and_stays_in_the_list(store) {
        store.create_key(NewKey::named("a")).await.unwrap();
        let revoked = store.revoke_key("a".into()).await.unwrap();
        assert_eq!(store.revoke_key("a".into()).await.unwrap(), revoked);
        assert!(store.keys_snapshot().await.unwrap().keys.is_empty());
        assert_eq!(store.list_keys().await.unwrap(), [revoked]);
        let rotated = store.rotate_key("a".into(), Duration::ZERO).await;
        assert_eq!(rotated.map(drop), Err(RecordError::Revoked("a".into())));
        assert!(matches!(store.revoke_key("b".into()).await, Err(RecordError::Unknown(_))));
    }

    async fn a_rotated_key_keeps_its_old_secret_for_the_overlap(store) {
        let (_, old) = store.create_key(NewKey::named("a")).await.unwrap();
        let (record, new) = store.rotate_key("a".into(), Duration::from_secs(60)).await.unwrap();
        let snapshot = store.keys_snapshot().await.unwrap();
        let [key] = &snapshot.keys[..] else { panic!("one key") };
        assert_eq!(key, &record);
        let hash = |secret: &turnkeep_base::Secret| hash_key(&snapshot.pepper, secret.expose());
        assert!(key.accepts(&hash(&new), support::NOW) && key.accepts(&hash(&old), support::NOW + 59_999));
        assert!(!key.accepts(&hash(&old), support::NOW + 60_000));
    }

    async fn a_name_that_cannot_be_shown_or_told_apart_is_refused(store) {
        for name in ["", "a/b", "a\nb", &"x".repeat(129)] {
            assert!(matches!(store.create_key(NewKey::named(name)).await, Err(RecordError::Invalid(_))), "{name:?}");
            let new = NewAccount { id: account("up", name), ..support::by_reference("x") };
            assert!(matches!(store.add_account(new).await, Err(RecordError::Invalid(_))), "{name:?}");
        }
    }

    async fn the_audit_log_is_read_newest_first(store) {
        let entry = |at_ms| AuditEntry {
            at_ms, actor: "cli".into(), action: "create".into(), subject: "key a".into(), detail: String::new(),
        };
        for at_ms in 1..=3 {
            store.audit(entry(at_ms)).await.unwrap();
        }
        assert_eq!(store.audit_entries(2).await.unwrap(), [entry(3), entry(2)]);
    }

    async fn a_named_value_is_kept_and_the_stores_own_names_are_refused(store) {
        assert_eq!(store.get_meta("console.theme".into()).await.unwrap(), None);
        store.put_meta("console.theme".into(), b"dark".to_vec()).await.unwrap();
        store.put_meta("console.theme".into(), b"light".to_vec()).await.unwrap();
        assert_eq!(store.get_meta("console.theme".into()).await.unwrap().as_deref(), Some(&b"light"[..]));
        assert!(matches!(store.put_meta("store.pepper".into(), vec![]).await, Err(RecordError::Invalid(_))));
    }

    async fn after_the_shutdown_every_write_is_refused_in_words(store) {
        let entry = opened(turn_at(1_000, 1), 1);
        store.open(entry.clone()).await.unwrap();
        store.health().await.unwrap();
        store.shutdown().await.unwrap();
        store.shutdown().await.unwrap();
        let late = AttemptId { number: 2, ..entry.attempt };
        let error = store.open(turnkeep_engine::ports::AttemptOpened { attempt: late, ..entry }).await.unwrap_err();
        assert!(error.to_string().contains("shut down"), "{error}");
        store.close(closed(late, AttemptOutcome::Interrupted, 0)).await.unwrap_err();
        store.health().await.unwrap_err();
        store.ledger_open_count().await.unwrap_err();
        assert!(matches!(store.create_key(NewKey::named("a")).await, Err(RecordError::Store(_))));
    }
}
