//! A turn whose task is dropped in the middle, wherever that is, closes what it had opened, once.

use crate::world::{Act, Step, ask, world};
use futures_util::FutureExt;
use std::task::{Context, Waker};

/// A whole answer whose pieces come one by one.
fn with_pauses(stream: bool) -> Act {
    let Act::Answer(said) = Act::whole(stream, None) else { unreachable!("it answers") };
    Act::Answer(said.into_iter().flat_map(|step| [Step::Pause, step]).collect())
}

#[tokio::test]
async fn a_task_that_is_dropped_after_any_of_its_steps_closes_everything_once() {
    for stream in [true, false] {
        let (mut completed, mut dispatched) = (0, 0);
        for steps in 0..16 {
            let world = world();
            world.upstream.act(with_pauses);
            let (mut turn, mut asking) = world.by_hand(&ask(stream));
            let mut cx = Context::from_waker(Waker::noop());
            for _ in 0..steps {
                assert!(turn.poll_unpin(&mut cx).is_pending(), "without a receipt it does not end");
                // The client reads in between, and gives no receipt.
                let _ = asking.reader.poll_head(&mut cx);
                let _ = asking.reader.poll_chunk(&mut cx);
            }
            drop(turn);
            // The ends of entries are handed over by tasks of their own.
            tokio::task::yield_now().await;
            world.idle().await;
            world.assert_settled(1);
            let tally = &world.engine.tally;
            let turns: u64 = tally.turns().iter().map(|(_, count)| count).sum();
            assert_eq!(turns, 1, "after {steps} steps");
            assert_eq!(world.commits(), [0, 0, 0], "after {steps} steps");
            assert_eq!(tally.undelivered.get(), world.engine.kept.holds.get(), "after {steps} steps");
            world.assert_unblamed();
            completed += tally.undelivered.get();
            dispatched += world.upstream.calls();
        }
        assert!(completed > 0 && dispatched > completed, "it was dropped in each phase: {completed} {dispatched}");
    }
}
