//! What is written when a turn ends, and that nothing is written for a reply that did not arrive.

use crate::world::{Act, Ask, Differs, ask, different, world};
use std::sync::Arc;
use tokio::sync::Semaphore;
use turnkeep_base::{Dialect, Usage};
use turnkeep_engine::ports::{AttemptOutcome, Spent};
use turnkeep_engine::route::{OnClientGone, Rules};

#[tokio::test]
async fn a_delivered_turn_binds_commits_and_caches_once_each() {
    for client in [Dialect::Chat, Dialect::Messages] {
        for stream in [true, false] {
            let world = world();
            let told = world.delivered(&Ask { client, ..ask(stream) }).await;
            assert_eq!((told.status.as_u16(), told.header("x-turnkeep-cache")), (200, "miss"));
            assert_eq!(world.commits(), [1, 1, 1], "{client:?} {stream}");
            assert_eq!((world.engine.tally.delivered.get(), world.engine.tally.undelivered.get()), (1, 0));
            assert!(world.written.kept.lock().len() == 1);
            world.assert_unblamed();
            world.assert_settled(1);
        }
    }
}

#[tokio::test]
async fn an_undelivered_turn_writes_none_of_them_and_is_still_the_accounts_success_and_in_the_ledger() {
    for client in [Dialect::Chat, Dialect::Messages] {
        for stream in [true, false] {
            let world = world();
            world.lost(&Ask { client, ..ask(stream) }).await;
            assert_eq!(world.commits(), [0, 0, 0], "{client:?} {stream}");
            assert_eq!((world.engine.tally.delivered.get(), world.engine.tally.undelivered.get()), (0, 1));
            let closed = world.written.closed.lock()[0].clone();
            let usage = Usage { input: 7, output: 3, ..Usage::default() };
            assert_eq!((closed.outcome, closed.usage, closed.exact), (AttemptOutcome::Completed, usage, true));
            assert_eq!(closed.cost, Some(7 * 3 + 3 * 10));
            assert_eq!(world.written.settled.lock()[..], [Spent { tokens: 10, nano_usd: 51 }]);
            world.assert_unblamed();
            world.assert_settled(1);
        }
    }
}

#[tokio::test]
async fn a_client_that_leaves_before_the_end_is_written_leaves_nothing_behind() {
    for stream in [true, false] {
        let world = world();
        let gate = Arc::new(Semaphore::new(0));
        world.upstream.act({
            let gate = gate.clone();
            move |stream| Act::whole(stream, Some(&gate))
        });
        let mut asking = world.start(&ask(stream));
        if stream {
            asking.head().await;
            assert!(asking.more().await.is_some());
        } else {
            while world.upstream.calls() == 0 {
                tokio::task::yield_now().await;
            }
        }
        drop(asking);
        world.idle().await;
        assert_eq!(world.commits(), [0, 0, 0]);
        let tally = &world.engine.tally;
        let left = [tally.client_gone_before_answer.get(), tally.client_gone_mid_answer.get()];
        assert_eq!(left, if stream { [0, 1] } else { [1, 0] });
        assert_eq!((tally.delivered.get(), tally.undelivered.get()), (0, 0));
        assert!(!world.written.closed.lock()[0].exact);
        assert!(world.written.kept.lock().is_empty(), "an interrupted answer is not kept");
        world.assert_unblamed();
        world.assert_settled(1);
    }
}

#[tokio::test]
async fn a_caller_behind_a_shared_key_gets_nothing_kept() {
    let world = world();
    for idempotency in [None, Some("k")] {
        let shared = Ask { shared: true, idempotency, ..ask(true) };
        world.delivered(&shared).await;
        world.lost(&shared).await;
        world.lost(&shared).await;
    }
    assert_eq!((world.upstream.calls(), world.commits()), (6, [0, 0, 0]));
    assert!(world.written.kept.lock().is_empty());
}

#[tokio::test]
async fn the_next_turn_goes_where_the_history_is_and_its_own_history_is_the_receipt() {
    let world = different(Differs { more: &["b", "c", "d"], ..Differs::default() });
    let first = ask(true);
    // The reply is taken, and whether it arrived is not known.
    let told = world.start(&first).told().await;
    assert!(told.ticket.is_some());
    assert_eq!(world.commits(), [0, 0, 0]);
    let account = world.written.opened.lock()[0].account.clone();
    let history =
        r#"{"role":"user","content":"hi"},{"role":"assistant","content":"one"},{"role":"user","content":"more"}"#;
    let next = Ask { messages: history.into(), ..ask(true) };
    world.start(&next).told().await.arrives();
    assert_eq!(world.engine.bonds.echoes.get(), 1, "the second turn holds the first one's answer");
    drop(told);
    world.idle().await;
    assert_eq!((world.engine.tally.delivered.get(), world.engine.tally.undelivered.get()), (2, 0));
    assert_eq!(world.written.opened.lock()[1].account, account, "where the history is");
    assert!(world.engine.bonds.hits.get() >= 1);
    let another = Ask { caller: "another", ..next };
    world.delivered(&another).await;
    assert_eq!(world.engine.bonds.hits.get(), 1, "nobody else's history leads there");
    world.assert_settled(3);
}

#[tokio::test]
async fn without_an_entry_nothing_is_sent_unless_the_operator_serves_without() {
    for serve_unrecorded in [false, true] {
        let rules = Rules { serve_unrecorded, ..Rules::default() };
        let world = different(Differs { rules, ..Differs::default() });
        *world.written.refuse_entries.lock() = true;
        let told = world.start(&ask(false)).told().await;
        let status = told.status.as_u16();
        drop(told);
        world.idle().await;
        let expected = if serve_unrecorded { (200, 1, 1) } else { (503, 0, 0) };
        assert_eq!((status, world.upstream.calls(), world.engine.tally.unrecorded.get()), expected);
    }
}

#[tokio::test]
async fn what_goes_on_alone_beyond_its_tokens_is_cut() {
    let policy = OnClientGone::Finish { max_tokens: 0, max_time: crate::world::BOUND };
    let world = different(Differs { on_client_gone: policy, ..Differs::default() });
    let gate = Arc::new(Semaphore::new(0));
    world.upstream.act({
        let gate = gate.clone();
        move |_| {
            let steps = [crate::world::DELTA, crate::world::DELTA, crate::world::DELTA].map(crate::world::Step::Say);
            let mut steps = steps.to_vec();
            steps.insert(1, crate::world::Step::Gate(gate.clone()));
            steps.push(crate::world::Step::Gate(gate.clone()));
            Act::Answer(steps)
        }
    });
    let mut asking = world.start(&ask(true));
    asking.head().await;
    asking.more().await;
    drop(asking);
    gate.add_permits(1);
    world.idle().await;
    assert_eq!(world.engine.tally.client_gone_mid_answer.get(), 1);
    assert_eq!(world.written.closed.lock()[0].outcome, AttemptOutcome::Interrupted);
    world.assert_settled(1);
}
