//! The turn is dropped after each of its polls, whichever: the link that it was lent comes to exactly one end and is there
//! for the next turn, and no chain has a thing twice.

use crate::polls::{Dropped, EITHER, MANY, Polls};
use crate::talk::{Reply, Talk, read};
use futures_util::FutureExt;
use std::time::Duration;
use turnkeep_base::Dialect;

/// How the upstream stands before the turn that is dropped.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Keeps {
    /// It has its answers.
    All,
    /// It has lost them, so that the turn is asked a second time, with its whole history.
    Nothing,
}

/// The second turn of a conversation, dropped after so many polls; then what comes after it. Tells whether the turn came to
/// its end before.
async fn dropped_after(client: Dialect, stream: bool, keeps: Keeps, polls: usize, dropped: Dropped) -> bool {
    let case = format!("{client:?}, stream {stream}, upstream keeps {keeps:?}, {dropped:?} after {polls} polls");
    let mut talk = Talk::new(client, stream).await;
    talk.history.push(("user", "first".into()));
    talk.answered(&case).await;
    let first = talk.lab.kept_answers().remove(0).id;
    if keeps == Keeps::Nothing {
        talk.lab.forget_kept_answers();
    }

    talk.history.push(("user", "second".into()));
    let (mut task, reader) = talk.by_hand();
    let reading = tokio::spawn(async move {
        let Reply { ticket, body, .. } = read(reader).await;
        // It arrives nowhere.
        drop(ticket);
        body
    });
    let ended = Polls::of(polls, dropped).ready(|cx| task.poll_unpin(cx)).await.is_some();
    drop(task);
    let told = talk.text(&reading.await.unwrap()).is_some();
    talk.world.idle().await;
    let left = tokio::time::timeout(Duration::from_secs(10), talk.lab.wait_idle()).await;
    assert!(left.is_ok(), "{case}: the upstream still answers");

    talk.assert_ended_once(&case);
    let [hits, misses, _, advanced, spoilt] = talk.counts();
    assert!(hits <= 1 && misses == 0, "{case}: {:?}", talk.counts());
    match keeps {
        Keeps::All => {
            assert_eq!(spoilt, 0, "{case}: an answer that is kept does not spoil");
            assert_eq!(talk.pool(), 1 + advanced, "{case}: the old link stays, and the new one joins it");
        }
        Keeps::Nothing => {
            assert_eq!(advanced, 0, "{case}: there is nothing to go on from");
            // Once it is known to be gone it is not there for the next; what the turn began, if it came to its end, is.
            let begun = talk.pool() + spoilt - 1;
            assert!(begun <= spoilt, "{case}: {} are kept", talk.pool());
            assert!(begun == 1 || !told, "{case}: what was told to its end is kept");
        }
    }
    assert!(told || !ended, "{case}: an end without an answer");
    talk.world.assert_unblamed();

    // The same history again, and more of it.
    let asked = talk.went_on_from().len();
    talk.answered(&case).await;
    talk.assert_ended_once(&case);
    if keeps == Keeps::All {
        let again = talk.went_on_from().split_off(asked);
        assert!(again.iter().all(|from| from.as_ref() == Some(&first)), "{case}: {again:?}");
        assert!(again.len() == 1 || advanced == 1 && again.is_empty(), "{case}: asked again, or held");
    }
    talk.history.push(("user", "third".into()));
    let asked = talk.went_on_from().len();
    talk.answered(&case).await;
    talk.assert_ended_once(&case);
    let more = talk.went_on_from().split_off(asked);
    assert!(more.len() == 1 && more[0].is_some(), "{case}: the conversation goes on: {more:?}");
    talk.assert_told_once(&case);
    ended
}

#[tokio::test]
async fn a_turn_that_is_dropped_after_any_of_its_polls_ends_the_lease_of_its_link_exactly_once() {
    for (client, stream) in
        [(Dialect::Responses, true), (Dialect::Responses, false), (Dialect::Chat, true), (Dialect::Chat, false)]
    {
        for keeps in [Keeps::All, Keeps::Nothing] {
            for dropped in EITHER {
                let mut polls = 0;
                while !dropped_after(client, stream, keeps, polls, dropped).await {
                    polls += 1;
                    assert!(polls < MANY, "{client:?}, stream {stream}: the turn has an end");
                }
                assert!(polls > 3, "{client:?}, stream {stream}: the turn is polled more than once");
            }
        }
    }
}
