//! The contract of a store, on every store: costs, what callers have spent, answers given again and kept answers.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code outside of #[test] functions")]

#[macro_use]
mod support;

use std::sync::Arc;
use support::{NOW, again, closed, kept, kept_key, opened, turn_at};
use turnkeep_base::{AttemptId, FaultKind, Usage};
use turnkeep_engine::ports::{Again, AttemptClosed, AttemptOpened, AttemptOutcome, KeptFor};
use turnkeep_store::{Keep, Recent, Spend, Store, UsageBy};

const DAY: u64 = 86_400_000;

async fn attempt(store: &Arc<dyn Store>, entry: AttemptOpened, cost: Option<u64>) {
    store.open(entry.clone()).await.unwrap();
    let end = AttemptClosed { cost, ..closed(entry.attempt, AttemptOutcome::Completed, 10) };
    store.close(end).await.unwrap();
}

on_every_store! {
    async fn an_entry_has_the_keys_labels_its_estimate_and_its_cost(store) {
        let entry = AttemptOpened {
            labels: r#"{"team":"infra"}"#.into(), estimated_cost: Some(9), ..opened(turn_at(1_000, 1), 1)
        };
        attempt(&store, entry, Some(7)).await;
        store.flush().await.unwrap();
        let read = store.ledger_entries(1).await.unwrap().remove(0);
        assert_eq!((read.labels.as_str(), read.estimated_cost), (r#"{"team":"infra"}"#, Some(9)));
        assert_eq!(read.closed.unwrap().cost, Some(7));
    }

    async fn what_an_attempt_cost_in_its_providers_own_units_is_kept_and_added_up(store) {
        for (number, milli_units) in [(1, Some(1_250)), (2, None), (3, Some(3)), (4, Some(u64::MAX))] {
            let entry = opened(turn_at(1_000, 1), number);
            store.open(entry.clone()).await.unwrap();
            let end = closed(entry.attempt, AttemptOutcome::Completed, 10);
            store.close(AttemptClosed { milli_units, ..end }).await.unwrap();
        }
        store.flush().await.unwrap();
        let read = store.attempts_of_turn(turn_at(1_000, 1)).await.unwrap();
        let units: Vec<_> = read.iter().map(|entry| entry.closed.as_ref().unwrap().milli_units).collect();
        assert_eq!(units[..3], [Some(1_250), None, Some(3)]);
        // A number made up by a provider does not spoil the sum.
        let row = store.usage(0, vec![]).await.unwrap().remove(0);
        assert_eq!(row.milli_units, (1 << 48) + 1_253);
    }

    async fn what_a_caller_spends_is_added_up_by_the_day_of_the_opening_once_an_attempt(store) {
        attempt(&store, opened(turn_at(DAY - 1, 1), 1), Some(5)).await;
        attempt(&store, opened(turn_at(DAY, 1), 1), Some(6)).await;
        attempt(&store, opened(turn_at(DAY, 1), 2), None).await;
        let other = AttemptOpened { caller: "phone".into(), ..opened(turn_at(DAY, 2), 1) };
        attempt(&store, other, Some(8)).await;
        // Closed twice, never closed, and never opened.
        store.close(closed(opened(turn_at(DAY, 1), 1).attempt, AttemptOutcome::Interrupted, 99)).await.unwrap();
        store.open(opened(turn_at(DAY, 3), 1)).await.unwrap();
        store.close(closed(opened(turn_at(DAY, 4), 1).attempt, AttemptOutcome::Completed, 99)).await.unwrap();
        store.flush().await.unwrap();
        let spend = |caller: &str, day, tokens, nano_usd| Spend { caller: caller.into(), day, tokens, nano_usd };
        let all = [spend("laptop", 0, 110, 5), spend("laptop", 1, 220, 6), spend("phone", 1, 110, 8)];
        assert_eq!(store.spent(0).await.unwrap(), all);
        assert_eq!(store.spent(1).await.unwrap(), all[1..]);
        assert!(store.spent(2).await.unwrap().is_empty());
    }

    async fn numbers_made_up_by_a_provider_stop_the_sums_and_not_the_closing(store) {
        let most = Usage { input: u64::MAX, cache_read: u64::MAX, cache_write: u64::MAX, output: u64::MAX, reasoning: 1 };
        for turn in 0..9 {
            let entry = opened(turn_at(1_000, turn), 1);
            store.open(entry.clone()).await.unwrap();
            let end = closed(entry.attempt, AttemptOutcome::Completed, 0);
            store.close(AttemptClosed { usage: most, cost: Some(u64::MAX), ..end }).await.unwrap();
        }
        store.flush().await.unwrap();
        assert_eq!((store.ledger_open_count().await.unwrap(), store.ledger_lost()), (0, 0));
        let spent = store.spent(0).await.unwrap().remove(0);
        assert!(spent.tokens >= 1 << 50 && spent.nano_usd >= 1 << 50, "{spent:?}");
        let row = store.usage(0, vec![]).await.unwrap().remove(0);
        assert_eq!((row.attempts, row.usage.input, row.cost), (9, 9 << 48, 9 << 48));
        assert_eq!(store.recent(0).await.unwrap()[0].requests, 9);
    }

    async fn a_turn_answered_again_has_a_closed_entry_and_is_no_attempt(store) {
        attempt(&store, opened(turn_at(1_000, 1), 1), Some(5)).await;
        for (turn, how) in [(2, Again::Hit), (3, Again::Hit), (4, Again::Held), (5, Again::Joined)] {
            store.again(again(turn_at(1_000, turn), how));
        }
        // Handed over twice it is written once.
        store.again(again(turn_at(1_000, 2), Again::Hit));
        store.flush().await.unwrap();
        let entries = store.attempts_of_turn(turn_at(1_000, 4)).await.unwrap();
        let (entry, end) = (&entries[0], entries[0].closed.clone().unwrap());
        assert_eq!((entries.len(), entry.attempt.number, entry.account.to_string().as_str()), (1, 0, "/"));
        assert_eq!((end.outcome.as_str(), end.exact, end.cost, end.usage), ("held", true, Some(0), Usage::default()));
        assert_eq!((entry.opened_ms, end.closed_ms, store.ledger_open_count().await.unwrap()), (1_000, 1_000, 0));
        let all = store.usage(0, vec![UsageBy::Caller]).await.unwrap().remove(0);
        assert_eq!((all.attempts, all.exact_attempts, all.unpriced_attempts, all.cost), (1, 1, 0, 5));
        assert_eq!((all.hits, all.held, all.joined), (2, 1, 1));
        assert_eq!(store.spent(0).await.unwrap()[0].tokens, 110);
        let recent = Recent { caller: "laptop".into(), requests: 5, tokens: 110 };
        assert_eq!(store.recent(1_000).await.unwrap(), [recent]);
    }

    async fn usage_is_grouped_by_several_things_and_by_any_label(store) {
        let labels = [r#"{"team":"infra","a\"b":"x"}"#, r#"{"team":"infra"}"#, "{}", "not JSON"];
        for (turn, labels) in (1..).zip(labels) {
            let entry = AttemptOpened { labels: labels.into(), ..opened(turn_at(1_000, turn), 1) };
            attempt(&store, entry, (turn != 3).then_some(10)).await;
        }
        store.flush().await.unwrap();
        let by = vec![UsageBy::Label("team".into()), UsageBy::Outcome];
        let rows = store.usage(0, by).await.unwrap();
        let told: Vec<_> = rows.iter().map(|row| (row.keys.join("+"), row.attempts, row.unpriced_attempts, row.cost)).collect();
        assert_eq!(told, [("+completed".into(), 2, 1, 10), ("infra+completed".into(), 2, 0, 20)]);
        let quoted = store.usage(0, vec![UsageBy::Label("a\"b".into())]).await.unwrap();
        assert_eq!(quoted.iter().map(|row| row.keys[0].as_str()).collect::<Vec<_>>(), ["", "x"]);
        assert_eq!(store.usage(0, vec![]).await.unwrap()[0].attempts, 4);
        assert!(store.usage(2_000, vec![]).await.unwrap().is_empty());
    }

    async fn what_was_asked_for_lately_counts_turns_and_the_estimate_of_what_runs(store) {
        attempt(&store, opened(turn_at(1_000, 1), 1), None).await;
        attempt(&store, opened(turn_at(5_000, 1), 1), None).await;
        store.open(opened(turn_at(5_000, 1), 2)).await.unwrap();
        store.open(AttemptOpened { caller: "phone".into(), ..opened(turn_at(6_000, 1), 1) }).await.unwrap();
        store.flush().await.unwrap();
        let recent = |caller: &str, requests, tokens| Recent { caller: caller.into(), requests, tokens };
        assert_eq!(store.recent(2_000).await.unwrap(), [recent("laptop", 1, 110 + 77 + 9), recent("phone", 1, 77 + 9)]);
    }

    async fn an_end_without_an_entry_is_counted_unless_nothing_was_sent(store) {
        let never = opened(turn_at(1, 1), 1).attempt;
        let unsent = AttemptClosed { usage: Usage::default(), ..closed(never, AttemptOutcome::Interrupted, 0) };
        store.close(unsent).await.unwrap();
        store.flush().await.unwrap();
        assert_eq!(store.ledger_lost(), 0);
        store.close(closed(never, AttemptOutcome::Failed(FaultKind::RateLimited), 5)).await.unwrap();
        store.flush().await.unwrap();
        assert_eq!((store.ledger_lost(), store.ledger_entries(9).await.unwrap().len()), (1, 0));
    }

    async fn kept_answers_are_read_back_replaced_and_forgotten(store) {
        for (kind, number, text) in [
            (KeptFor::Cache, 1, "one"), (KeptFor::Held, 1, "two"), (KeptFor::Idempotent, 1, "three"), (KeptFor::Held, 2, "four"),
        ] {
            store.keep(kept(kind, "laptop", number, text));
        }
        store.keep(kept(KeptFor::Held, "phone", 1, "five"));
        store.keep(kept(KeptFor::Held, "laptop", 1, "six"));
        store.forget(kept_key(KeptFor::Held, "laptop", 2));
        store.forget(kept_key(KeptFor::Held, "nobody", 9));
        store.flush().await.unwrap();
        let mut read = store.kept_answers().await.unwrap();
        read.sort_by_key(|answer| answer.content.clone());
        assert_eq!(read, [
            kept(KeptFor::Held, "phone", 1, "five"),
            kept(KeptFor::Cache, "laptop", 1, "one"),
            kept(KeptFor::Held, "laptop", 1, "six"),
            kept(KeptFor::Idempotent, "laptop", 1, "three"),
        ]);
        assert_eq!(store.answers_lost(), 0);
    }

    async fn kept_answers_past_their_time_are_left_out_and_pruned(store) {
        let mut over = kept(KeptFor::Cache, "laptop", 1, "over");
        over.until_ms = NOW;
        store.keep(over.clone());
        store.keep(kept(KeptFor::Cache, "laptop", 2, "here"));
        store.flush().await.unwrap();
        assert_eq!(store.kept_answers().await.unwrap(), [kept(KeptFor::Cache, "laptop", 2, "here")]);
        store.keep(over);
        store.flush().await.unwrap();
        let keep = Keep { turns_ms: DAY, evidence_ms: DAY, ledger_ms: DAY, now_ms: NOW };
        assert_eq!(store.prune(keep).await.unwrap().answers, 1);
        assert_eq!(store.kept_answers().await.unwrap().len(), 1);
    }

    async fn spending_is_kept_for_a_months_budget_though_the_ledger_is_not(store) {
        let now = 100 * DAY;
        for day in [40, 67, 68, 99] {
            attempt(&store, opened(turn_at(day * DAY, 1), 1), Some(1)).await;
        }
        store.flush().await.unwrap();
        let keep = Keep { turns_ms: DAY, evidence_ms: DAY, ledger_ms: 2 * DAY, now_ms: now };
        let pruned = store.prune(keep).await.unwrap();
        assert_eq!((pruned.ledger, pruned.spend), (3, 2));
        let days: Vec<u32> = store.spent(0).await.unwrap().iter().map(|spend| spend.day).collect();
        assert_eq!(days, [68, 99]);
    }

    async fn two_thousand_turns_at_once_are_all_there_and_nothing_waits(store) {
        let tasks: Vec<_> = (0..2_000).map(|task| {
            let store = store.clone();
            tokio::spawn(async move {
                attempt(&store, opened(turn_at(1_000, task), 1), Some(3)).await;
                store.again(again(turn_at(2_000, task), Again::Hit));
            })
        }).collect();
        for task in tasks {
            task.await.unwrap();
        }
        store.flush().await.unwrap();
        let row = store.usage(0, vec![]).await.unwrap().remove(0);
        assert_eq!((row.attempts, row.hits, row.cost), (2_000, 2_000, 6_000));
        let spent = store.spent(0).await.unwrap();
        assert_eq!((spent[0].tokens, spent[0].nano_usd), (2_000 * 110, 6_000));
        assert_eq!((store.ledger_open_count().await.unwrap(), store.ledger_lost()), (0, 0));
        assert_eq!(store.ledger_entries(9_999).await.unwrap().len(), 4_000);
    }

    async fn the_key_for_fingerprints_stays_the_same(store) {
        assert_eq!(store.fingerprint_key(), store.fingerprint_key());
        assert_ne!(store.fingerprint_key(), support::memory().fingerprint_key());
        assert_eq!(opened(turn_at(1, 1), 1).attempt, AttemptId { turn: turn_at(1, 1), number: 1 });
    }
}
