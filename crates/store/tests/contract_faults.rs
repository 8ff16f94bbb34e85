//! The contract of a store, on every store: the proofs of faults, and how long things are kept.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code outside of #[test] functions")]

#[macro_use]
mod support;

use std::sync::Arc;
use support::{account, closed, fault, opened, turn_at};
use turnkeep_engine::ports::AttemptOutcome;
use turnkeep_store::{FaultRecord, Keep, Pruned, Store};

const DAY: u64 = 24 * 60 * 60 * 1000;

/// Long after everything in these tests, unless it is told otherwise.
fn keep() -> Keep {
    Keep { turns_ms: 7 * DAY, evidence_ms: 30 * DAY, ledger_ms: 400 * DAY, now_ms: 1_000 * DAY }
}

fn times(faults: &[FaultRecord]) -> Vec<u64> {
    faults.iter().map(|fault| fault.at_ms).collect()
}

on_every_store! {
    async fn a_noted_fault_reads_back_whole_by_its_account_and_by_its_turn(store) {
        let (id, turn) = (account("openai", "a"), turn_at(u64::MAX, u128::MAX));
        let full = fault(5, turn, Some(id.clone()));
        let bare = FaultRecord {
            attempt: None, account: None, status: None, code: None, offset: None, clock: None, wait_ms: None,
            until_ms: None, detail: String::new(), effect: String::new(), ..fault(6, turn, None)
        };
        store.note(bare.clone());
        store.note(full.clone());
        store.flush().await.unwrap();
        assert_eq!(store.faults_of_turn(turn).await.unwrap(), [full.clone(), bare]);
        assert_eq!(store.faults_of_account(&id, 9).await.unwrap(), [full]);
        assert_eq!(store.faults_lost(), 0);
    }

    async fn an_accounts_faults_are_its_own_newest_first_up_to_the_limit(store) {
        let a = account("openai", "a");
        for (at_ms, owner) in [
            (3, Some(a.clone())), (1, Some(a.clone())), (4, Some(account("openai", "b"))),
            (5, Some(account("other", "a"))), (6, None), (2, Some(a.clone())),
        ] {
            store.note(fault(at_ms, turn_at(at_ms, 0), owner));
        }
        store.flush().await.unwrap();
        assert_eq!(times(&store.faults_of_account(&a, 9).await.unwrap()), [3, 2, 1]);
        assert_eq!(times(&store.faults_of_account(&a, 2).await.unwrap()), [3, 2]);
        assert!(store.faults_of_account(&account("openai", "c"), 9).await.unwrap().is_empty());
    }

    async fn faults_of_one_instant_keep_the_order_in_which_they_were_noted(store) {
        let (id, turn) = (account("openai", "a"), turn_at(7, 7));
        let named = |name: &str| FaultRecord { fault: name.into(), ..fault(7, turn, Some(account("openai", "a"))) };
        for name in ["first", "second", "third"] {
            store.note(named(name));
        }
        store.flush().await.unwrap();
        let names = |faults: Vec<FaultRecord>| faults.into_iter().map(|fault| fault.fault).collect::<Vec<_>>();
        assert_eq!(names(store.faults_of_turn(turn).await.unwrap()), ["first", "second", "third"]);
        assert_eq!(names(store.faults_of_account(&id, 2).await.unwrap()), ["third", "second"]);
    }

    async fn a_proof_that_is_too_long_is_cut_and_kept(store) {
        let turn = turn_at(1, 1);
        let long = FaultRecord { detail: "\u{e9}".repeat(5 << 20), ..fault(1, turn, None) };
        store.note(long);
        store.flush().await.unwrap();
        assert_eq!(store.faults_of_turn(turn).await.unwrap()[0].detail, "\u{e9}".repeat(256));
    }

    async fn many_tasks_note_at_once_and_every_fault_is_there(store) {
        let tasks: Vec<_> = (0..32u64).map(|task| {
            let store = store.clone();
            tokio::spawn(async move {
                for step in 0..50 {
                    store.note(fault(step, turn_at(task, 0), Some(account("openai", "a"))));
                    tokio::task::yield_now().await;
                }
            })
        }).collect();
        for task in tasks {
            task.await.unwrap();
        }
        store.flush().await.unwrap();
        assert_eq!(store.faults_of_account(&account("openai", "a"), 9_999).await.unwrap().len(), 32 * 50);
        let of_one = times(&store.faults_of_turn(turn_at(3, 0)).await.unwrap());
        assert_eq!(of_one, (0..50).collect::<Vec<_>>());
    }

    async fn a_fault_noted_after_the_shutdown_is_counted_as_lost(store) {
        store.shutdown().await.unwrap();
        store.note(fault(1, turn_at(1, 1), None));
        assert_eq!(store.faults_lost(), 1);
    }

    async fn pruning_takes_what_is_older_than_it_is_kept_and_tells_how_much(store) {
        let (id, now) = (account("openai", "a"), 1_000 * DAY);
        let (evidence, ledger) = (now - 30 * DAY, now - 400 * DAY);
        // More than several batches, with one left on the edge.
        for number in 0..1_000 {
            store.note(fault(evidence - 1 - number, turn_at(1, 0), Some(id.clone())));
        }
        store.note(fault(evidence, turn_at(1, 0), Some(id.clone())));
        for random in 0..600 {
            let entry = opened(turn_at(ledger - 1, random), 1);
            store.open(entry.clone()).await.unwrap();
            store.close(closed(entry.attempt, AttemptOutcome::Completed, 1)).await.unwrap();
        }
        let edge = opened(turn_at(ledger, 0), 1);
        store.open(edge.clone()).await.unwrap();
        store.close(closed(edge.attempt, AttemptOutcome::Completed, 1)).await.unwrap();
        store.flush().await.unwrap();
        let pruned = store.prune(keep()).await.unwrap();
        assert_eq!((pruned.faults, pruned.ledger), (1_000, 600));
        assert_eq!(times(&store.faults_of_account(&id, 9).await.unwrap()), [evidence]);
        let left = store.ledger_entries(9).await.unwrap();
        assert_eq!(left.iter().map(|entry| entry.attempt).collect::<Vec<_>>(), [edge.attempt]);
        assert_eq!(store.prune(keep()).await.unwrap(), Pruned::default());
    }

    async fn an_entry_that_is_open_is_never_pruned(store) {
        let old = opened(turn_at(1, 1), 1);
        store.open(old.clone()).await.unwrap();
        assert_eq!(store.prune(keep()).await.unwrap(), Pruned::default());
        store.close(closed(old.attempt, AttemptOutcome::Completed, 1)).await.unwrap();
        store.flush().await.unwrap();
        assert_eq!(store.prune(keep()).await.unwrap().ledger, 1);
    }

    async fn what_is_kept_for_longer_than_there_is_time_is_never_pruned(store) {
        let for_ever = Keep { turns_ms: u64::MAX, evidence_ms: u64::MAX, ledger_ms: u64::MAX, now_ms: 1_000 * DAY };
        let entry = opened(turn_at(0, 1), 1);
        store.open(entry.clone()).await.unwrap();
        store.close(closed(entry.attempt, AttemptOutcome::Completed, 1)).await.unwrap();
        store.note(fault(0, turn_at(0, 0), None));
        store.flush().await.unwrap();
        assert_eq!(store.prune(for_ever).await.unwrap(), Pruned::default());
    }
}
