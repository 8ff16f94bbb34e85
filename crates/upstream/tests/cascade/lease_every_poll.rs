//! The turn is dropped after each of its polls, whichever: its conversation comes to exactly one end, and the server has
//! nothing twice.

use crate::talk::{PROTOCOLS, Setting, Talk};
use crate::world::Asking;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::future::poll_fn;
use std::task::Poll;

/// More polls than any of these turns takes.
const MANY: usize = 500;

/// Polls the task so often and drops it when it would be polled once more. True if it came to its end before.
async fn polled(mut task: BoxFuture<'static, ()>, polls: usize) -> bool {
    let mut done = 0;
    poll_fn(|cx| {
        if done == polls {
            return Poll::Ready(false);
        }
        done += 1;
        task.poll_unpin(cx).map(|()| true)
    })
    .await
}

/// Takes what there is of the reply, which arrives nowhere.
async fn read(mut asking: Asking) {
    let _head = poll_fn(|cx| asking.reader.poll_head(cx)).await;
    while poll_fn(|cx| asking.reader.poll_chunk(cx)).await.is_some() {}
    drop(asking.reader.ticket());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_is_dropped_after_any_of_its_polls_ends_its_lease_exactly_once() {
    for protocol in PROTOCOLS {
        for stream in [true, false] {
            for polls in 0..MANY {
                let mut talk = Talk::new(Setting { protocol, stream, ..Setting::default() }, []).await;
                talk.say("first").await;
                talk.history.push(("user", "second".into()));
                let (task, asking) = talk.world.by_hand(&talk.request());
                let reading = tokio::spawn(read(asking));
                let ended = polled(task, polls).await;
                reading.await.unwrap();
                talk.world.idle().await;
                let case = format!("{protocol:?}, stream {stream}, after {polls} polls");
                let [hits, _, restored, advanced, dropped] = talk.counts();
                assert_eq!(hits, restored + advanced + dropped, "{case}: {:?}", talk.counts());
                assert!(hits <= 1, "{case}");
                let kept = u64::try_from(talk.pool()).unwrap();
                assert_eq!(kept, 1 - dropped, "{case}: {:?}", talk.counts());
                let shown = talk.lab.transcripts()[0].turns.get(1).is_some_and(|turn| turn.shown);
                if dropped == 1 && !shown {
                    talk.lab.wait_cascade(|counts| counts.closed == 1).await;
                }
                // Whatever has become of it, the turn can be asked for again, and nobody is told a thing twice.
                let told = talk.again().await;
                assert_eq!(told.status, 200, "{case}: {}", told.body);
                talk.assert_told_once();
                assert_eq!(talk.pool(), 1, "{case}: {:?}", talk.lab.transcripts());
                if ended {
                    assert!(polls > 3, "the turn is polled more than once");
                    break;
                }
                assert!(polls + 1 < MANY, "the turn has an end");
            }
        }
    }
}
