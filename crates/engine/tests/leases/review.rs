//! The review cases of leases. The upstream refuses the send itself in the cases that leave the conversation: the same fault
//! after the first event of the turn does not.

use crate::fake::{Act, Beat, Proof, gone, says};
use crate::table::until;
use crate::world::{Ask, With, World, begun, of, second, with, world};
use futures_util::FutureExt;
use std::task::{Context, Waker};
use std::time::Duration;
use turnkeep_base::FaultKind;
use turnkeep_engine::route::Rules;
use turnkeep_policy::conversations::Handling;

const BOTH: [bool; 2] = [true, false];

fn refuses(kind: FaultKind) -> Act {
    Act::Refuse(kind, Proof::ByReply)
}

fn after_its_first_event(kind: FaultKind) -> Act {
    Act::Answer(vec![Beat::Start, Beat::Pause, Beat::Fault(kind)])
}

/// Kept, and hits, restored, advanced, dropped.
fn pool(world: &World) -> (usize, [u64; 4]) {
    let [hits, _, restored, advanced, dropped] = world.counts();
    (world.size(), [hits, restored, advanced, dropped])
}

const RESTORED: (usize, [u64; 4]) = (1, [1, 1, 0, 0]);
const DROPPED: (usize, [u64; 4]) = (0, [1, 0, 0, 1]);

#[tokio::test]
async fn lease_review_a_client_that_leaves_after_the_upstream_turn_completed_leaves_one() {
    for stream in BOTH {
        let world = world();
        begun(&world, stream).await;
        let told = world.lost(&second(stream)).await;
        assert_eq!(told.status, 200);
        assert_eq!(pool(&world), (1, [1, 0, 1, 0]));
        assert_eq!(world.engine.tally.undelivered.get(), 1);
        world.assert_right();
    }
}

#[tokio::test]
async fn lease_review_leaving_that_interrupted_the_turn_leaves_none() {
    for stream in BOTH {
        let world = world();
        begun(&world, stream).await;
        world.fake.act([Act::Answer(vec![Beat::Start, Beat::Say("half an"), Beat::Hang])]);
        let asking = world.start(&second(stream));
        until(|| world.fake.sends() == 2).await;
        drop(asking);
        world.idle().await;
        assert_eq!(pool(&world), DROPPED);
        world.assert_right();
    }
}

#[tokio::test]
async fn lease_review_a_policy_block_leaves_one_and_none_after_the_first_event() {
    for stream in BOTH {
        for (act, left) in
            [(refuses(FaultKind::PolicyBlocked), RESTORED), (after_its_first_event(FaultKind::PolicyBlocked), DROPPED)]
        {
            let world = world();
            begun(&world, stream).await;
            world.fake.act([act]);
            let told = world.delivered(&second(stream)).await;
            assert_eq!((told.status.as_u16(), pool(&world)), (451, left), "{}", told.body);
            world.assert_right();
        }
    }
}

#[tokio::test]
async fn lease_review_an_egress_burst_leaves_one_and_none_after_the_first_event() {
    for stream in BOTH {
        for (first, left) in
            [(refuses(FaultKind::RateLimited), RESTORED), (after_its_first_event(FaultKind::RateLimited), DROPPED)]
        {
            let world = with(With { accounts: &["a", "b", "c", "d"], ..With::default() });
            begun(&world, stream).await;
            let limited = || refuses(FaultKind::RateLimited);
            world.fake.act([first, limited(), limited()]);
            let told = world.delivered(&second(stream)).await;
            assert_eq!(told.status, 429, "{}", told.body);
            assert!(told.body.contains("address"), "the burst's own message: {}", told.body);
            assert_eq!(pool(&world), left);
            world.assert_right();
        }
    }
}

#[tokio::test]
async fn lease_review_an_exhausted_pool_leaves_one_and_none_after_the_first_event() {
    for stream in BOTH {
        let world = world();
        begun(&world, stream).await;
        // Another conversation's turn uses the account up.
        world.fake.act([refuses(FaultKind::RateLimited)]);
        world.delivered(&crate::world::said(stream, &["something else"])).await;
        let sends = world.fake.sends();
        let told = world.delivered(&second(stream)).await;
        assert_eq!((told.status.as_u16(), world.fake.sends()), (429, sends));
        assert!(told.body.contains("账号队列耗尽"), "{}", told.body);
        assert_eq!(pool(&world), RESTORED, "the checkout is a hit");
        world.assert_right();

        let world = with(With::default());
        begun(&world, stream).await;
        world.fake.act([after_its_first_event(FaultKind::RateLimited)]);
        let told = world.delivered(&second(stream)).await;
        assert_eq!((told.status.as_u16(), pool(&world)), (429, DROPPED));
        world.assert_right();
    }
}

#[tokio::test(start_paused = true)]
async fn lease_review_leaving_in_a_retrys_backoff_leaves_one_and_none_after_the_first_event() {
    for stream in BOTH {
        let unavailable = FaultKind::UpstreamUnavailable;
        for (act, left) in
            [(Act::Refuse(unavailable, Proof::ByFailure), RESTORED), (after_its_first_event(unavailable), DROPPED)]
        {
            let rules = Rules {
                backoff: Duration::from_secs(600),
                longest_backoff: Duration::from_secs(600),
                ..Rules::default()
            };
            let world = with(With { accounts: &["a", "b"], rules, ..With::default() });
            begun(&world, stream).await;
            world.fake.act([act]);
            let asking = world.start(&second(stream));
            until(|| world.written.closed.lock().len() == 2).await;
            drop(asking);
            world.idle().await;
            assert_eq!((world.fake.sends(), pool(&world)), (2, left), "one upstream call beside the first turn's");
            world.assert_right();
        }
    }
}

#[tokio::test]
async fn lease_review_a_504_that_races_a_disconnect_leaves_none() {
    for stream in BOTH {
        for proof in [Proof::ByReply, Proof::Nothing] {
            let world = world();
            begun(&world, stream).await;
            world.fake.act([Act::Refuse(FaultKind::DeadlineExceeded, proof)]);
            // By hand: the client leaves as the reply is there and has not been looked at.
            let (mut turn, asking) = world.by_hand(&second(stream));
            let mut cx = Context::from_waker(Waker::noop());
            while world.fake.sends() < 2 {
                assert!(turn.poll_unpin(&mut cx).is_pending());
            }
            drop(asking);
            turn.await;
            assert_eq!(pool(&world), DROPPED);
            assert_eq!(world.engine.tally.client_gone_before_answer.get(), 1);
            world.assert_right();
        }
    }
}

#[tokio::test]
async fn lease_review_a_conversation_that_is_gone_as_its_client_leaves_is_not_kept_whatever_its_kind_is() {
    for handling in [Handling::Mutable, Handling::Immutable] {
        let world = of(handling);
        begun(&world, true).await;
        world.fake.act([gone()]);
        let (mut turn, asking) = world.by_hand(&second(true));
        let mut cx = Context::from_waker(Waker::noop());
        while world.fake.sends() < 2 {
            assert!(turn.poll_unpin(&mut cx).is_pending());
        }
        drop(asking);
        turn.await;
        assert_eq!(pool(&world), DROPPED);
        world.assert_right();
    }
}

#[tokio::test]
async fn lease_review_a_refused_send_that_races_a_disconnect_leaves_one() {
    for stream in BOTH {
        let world = world();
        begun(&world, stream).await;
        world.fake.act([refuses(FaultKind::RateLimited)]);
        let (mut turn, asking) = world.by_hand(&second(stream));
        let mut cx = Context::from_waker(Waker::noop());
        while world.fake.sends() < 2 {
            assert!(turn.poll_unpin(&mut cx).is_pending());
        }
        drop(asking);
        turn.await;
        assert_eq!(pool(&world), RESTORED);
        world.assert_right();
    }
}

#[tokio::test]
async fn lease_review_a_rate_limited_turn_whose_lease_is_dead_is_not_restored() {
    for stream in BOTH {
        let world = world();
        begun(&world, stream).await;
        world.fake.act([gone(), refuses(FaultKind::RateLimited)]);
        let told = world.delivered(&second(stream)).await;
        assert_eq!((told.status.as_u16(), pool(&world)), (429, DROPPED), "{}", told.body);
        world.assert_right();
    }
}

#[tokio::test]
async fn lease_a_conversation_that_is_gone_is_begun_anew_by_its_account_with_the_whole_history_once_and_unseen() {
    for handling in [Handling::Mutable, Handling::Immutable] {
        for stream in BOTH {
            let world = with(With { handling, accounts: &["a", "b"], ..With::default() });
            begun(&world, stream).await;
            let owner = world.fake.last().account;
            world.fake.act([gone(), says("two")]);
            let told = world.delivered(&second(stream)).await;
            assert_eq!(told.status, 200, "{}", told.body);
            assert!(told.body.contains("two"));
            let sent = world.fake.last();
            assert_eq!((sent.account, sent.resume), (owner, None));
            assert_eq!(sent.lines, ["user: hi", "assistant: one", "user: more"]);
            assert_eq!(pool(&world), (1, [1, 0, 0, 1]), "the new one is kept");
            world.assert_unblamed();
            let next = crate::world::said(stream, &["hi", "one", "more", "two", "and then"]);
            world.delivered(&next).await;
            assert_eq!(world.fake.last().lines, ["user: and then"]);
            world.assert_right();
        }
    }
}

#[tokio::test]
async fn lease_a_new_conversation_that_is_gone_as_well_ends_the_turn() {
    let world = world();
    begun(&world, true).await;
    world.fake.act([gone(), gone(), says("two")]);
    let told = world.delivered(&second(true)).await;
    assert_eq!((told.status.as_u16(), world.fake.sends()), (502, 3), "once: {}", told.body);
    world.assert_right();
}

#[tokio::test]
async fn lease_an_upstream_that_does_things_twice_is_sent_nothing_again_that_may_have_begun() {
    for (act, sends, status) in [
        (Act::Refuse(FaultKind::UpstreamUnavailable, Proof::Nothing), 2, 503),
        (Act::Answer(vec![Beat::Start, Beat::Fault(FaultKind::UpstreamUnavailable)]), 2, 503),
        (Act::Answer(vec![Beat::Start]), 2, 502),
        (refuses(FaultKind::RateLimited), 3, 200),
        (Act::Refuse(FaultKind::ConnectRefused, Proof::NeverLeft), 3, 200),
        (gone(), 3, 200),
    ] {
        let world = with(With { replay_safe: false, accounts: &["a", "b"], ..With::default() });
        begun(&world, true).await;
        world.fake.act([act.clone()]);
        let told = world.delivered(&Ask { bypass: true, ..second(true) }).await;
        assert_eq!((world.fake.sends(), told.status.as_u16()), (sends, status), "{act:?} {}", told.body);
        world.assert_right();
    }
}
