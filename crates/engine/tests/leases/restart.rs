//! What of the conversations is there after the gateway has died, at any step of a turn.

use crate::fake::{Act, Beat, Proof, says};
use crate::table::until;
use crate::world::{Ask, With, World, begun, of, said, second, with, world};
use futures_util::FutureExt;
use std::sync::atomic::Ordering;
use std::task::{Context, Waker};
use std::time::Duration;
use turnkeep_base::FaultKind;
use turnkeep_policy::conversations::{AGE, Handling, IDLE};

const SOON: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_conversation_that_no_lease_holds_is_gone_on_with_after_a_restart_and_its_position_read_before() {
    for handling in [Handling::Mutable, Handling::Immutable] {
        let world = of(handling);
        begun(&world, true).await;
        let world = world.restarted(SOON);
        assert_eq!(world.size(), 1);
        world.delivered(&second(true)).await;
        let sent = world.fake.last();
        assert_eq!((sent.lines, sent.reread), (vec!["user: more".to_owned()], handling == Handling::Mutable));
        let world = world.restarted(SOON);
        world.delivered(&said(true, &["hi", "one", "more", "one", "go on"])).await;
        assert_eq!(world.fake.last().lines, ["user: go on"]);
        world.assert_right();
    }
}

/// The gateway dies after so many steps of the second turn. How many turns were sent by then, and what is left.
async fn killed_after(steps: usize, handling: Handling) -> (World, usize) {
    let world = of(handling);
    begun(&world, true).await;
    let pause = || Beat::Pause;
    world.fake.act([Act::Answer(vec![pause(), Beat::Start, pause(), Beat::Say("two"), pause(), Beat::End])]);
    let (mut turn, asking) = world.by_hand(&second(true));
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..steps {
        if turn.poll_unpin(&mut cx).is_ready() {
            break;
        }
        tokio::task::yield_now().await;
    }
    let kept = world.written.conversations.lock().clone();
    let sends = world.fake.sends();
    // What a process that dies would have done next is undone.
    drop((turn, asking));
    world.idle().await;
    *world.written.conversations.lock() = kept;
    (world.restarted(SOON), sends)
}

#[tokio::test]
async fn a_mutable_conversation_whose_lease_was_sent_when_the_gateway_died_is_not_gone_on_with() {
    let (mut whole, mut lost, mut advanced) = (0, 0, 0);
    for steps in 0..24 {
        let (world, sends) = killed_after(steps, Handling::Mutable).await;
        let left = world.size();
        world.fake.act([]);
        world.delivered(&Ask { bypass: true, ..second(true) }).await;
        let resumed = world.fake.last().resume.is_some();
        if sends == 1 {
            // Not a byte was sent. It may be marked as taken already, which costs it.
            whole += usize::from(resumed);
        } else {
            assert!(!resumed, "after {steps} steps it was sent: nobody goes on with it");
            lost += usize::from(left == 0);
            advanced += left;
        }
        world.assert_right();
    }
    assert!(whole > 0 && lost > 0 && advanced > 0, "it died in each phase: {whole} {lost} {advanced}");
}

#[tokio::test]
async fn an_immutable_conversation_is_gone_on_with_after_a_restart_whatever_its_lease_was_used_for() {
    for steps in 0..24 {
        let (world, _) = killed_after(steps, Handling::Immutable).await;
        assert!(world.size() >= 1);
        world.fake.act([]);
        world.delivered(&Ask { bypass: true, ..second(true) }).await;
        assert!(world.fake.last().resume.is_some(), "after {steps} steps");
        world.assert_right();
    }
}

#[tokio::test]
async fn a_refused_lease_is_written_down_again_and_found_after_a_restart() {
    let world = world();
    begun(&world, true).await;
    world.fake.act([Act::Refuse(FaultKind::RequestInvalid, Proof::ByReply)]);
    world.delivered(&second(true)).await;
    let world = world.restarted(SOON);
    world.delivered(&second(true)).await;
    assert_eq!(world.fake.last().lines, ["user: more"]);
    world.assert_right();
}

#[tokio::test]
async fn no_lease_of_another_place_is_taken_up_after_a_restart() {
    for handling in [Handling::Mutable, Handling::Immutable] {
        let world = of(handling);
        begun(&world, true).await;
        let world = world.restarted_at(1, SOON);
        assert_eq!((world.size(), world.written.conversations.lock().len()), (0, 0), "its row goes, too");
        world.delivered(&second(true)).await;
        assert_eq!(world.fake.last().resume, None);
        // The new one is of the new place.
        let world = world.restarted(SOON);
        assert_eq!(world.size(), 1);
        world.assert_right();
    }
}

#[tokio::test]
async fn what_a_lease_has_lost_is_not_there_after_a_restart() {
    let world = world();
    begun(&world, true).await;
    world.fake.act([Act::Answer(vec![Beat::Start, Beat::Say("half an")])]);
    world.start(&second(true)).told().await;
    world.idle().await;
    let world = world.restarted(SOON);
    assert_eq!((world.size(), world.written.conversations.lock().len()), (0, 0));
}

#[tokio::test]
async fn a_conversation_of_a_process_that_ended_with_the_gateway_leaves_no_lease() {
    let world = with(With { instance: Some(1), ..With::default() });
    begun(&world, true).await;
    *world.fake.instance.lock() = Some(2);
    let world = world.restarted(SOON);
    assert_eq!((world.size(), world.written.conversations.lock().len()), (0, 0), "its row goes, too");
    let world = with(With { instance: Some(1), ..With::default() });
    begun(&world, true).await;
    let world = world.restarted(SOON);
    assert_eq!(world.size(), 1, "a process of somebody else's that still runs");
}

#[tokio::test(start_paused = true)]
async fn idle_and_age_of_a_lease_go_on_while_the_gateway_is_down() {
    let world = world();
    begun(&world, true).await;
    let world = world.restarted(IDLE - SOON);
    assert_eq!(world.size(), 1);
    tokio::time::advance(SOON).await;
    assert_eq!(world.size(), 0, "five seconds were left of it");

    let world = crate::world::world();
    begun(&world, true).await;
    let world = world.restarted(IDLE);
    assert_eq!(world.size(), 0);

    // Used every twenty minutes, over restarts: of age after a day all the same.
    let mut world = crate::world::world();
    begun(&world, true).await;
    let step = Duration::from_secs(20 * 60);
    let mut passed = Duration::ZERO;
    while passed + step < AGE {
        world = world.restarted(step);
        passed += step;
        world.fake.act([Act::Refuse(FaultKind::RequestInvalid, Proof::ByReply)]);
        world.delivered(&second(true)).await;
        assert_eq!(world.size(), 1, "after {passed:?}");
    }
    let world = world.restarted(step);
    assert_eq!(world.size(), 0, "a day is over");
    assert!(world.wall.0.load(Ordering::Relaxed) > 1_700_000_000_000);
}

#[tokio::test]
async fn a_lease_of_an_account_that_is_gone_or_suspended_at_the_start_is_not_taken_up() {
    let world = world();
    begun(&world, true).await;
    let kept: Vec<_> = world.written.conversations.lock().values().cloned().collect();
    let other = with(With { accounts: &["b"], ..With::default() });
    other.engine.take_up_conversations(kept.clone());
    assert_eq!(other.size(), 0);
    let suspended = crate::world::world();
    for _ in 0..2 {
        suspended.fake.act([Act::Refuse(FaultKind::AccountSuspended, Proof::ByReply)]);
        suspended.delivered(&said(true, &["x"])).await;
    }
    suspended.engine.take_up_conversations(kept);
    assert_eq!(suspended.size(), 0);
}

#[tokio::test]
async fn what_is_no_conversation_of_ours_is_passed_over_at_the_start() {
    let world = world();
    begun(&world, true).await;
    let kept: Vec<_> = world.written.conversations.lock().values().cloned().collect();
    let whole = kept[0].content.clone();
    for cut in 0..whole.len() {
        let other = crate::world::world();
        let mut broken = kept.clone();
        broken[0].content = whole.slice(..cut);
        other.engine.take_up_conversations(broken);
        assert_eq!(other.size(), 0, "cut at {cut}");
    }
}

#[tokio::test]
async fn the_row_of_a_lease_is_taken_with_the_entry_before_anything_is_sent() {
    let world = world();
    begun(&world, true).await;
    assert_eq!(world.written.conversations.lock().len(), 1);
    world.fake.act([Act::Hang, says("two")]);
    let asking = world.start(&second(true));
    until(|| world.fake.sends() == 2).await;
    assert_eq!(world.written.conversations.lock().len(), 0);
    let entry = world.written.opened.lock().last().cloned().expect("an entry");
    assert!(entry.conversation.is_some());
    drop(asking);
    world.idle().await;
    world.assert_right();
}
