//! Conversations in Cascade servers that are processes of the gateway's own: they last as long as their process.

use crate::cascade_process::*;
use crate::processes::kill;
use crate::scene::*;
use crate::support::dialects::assert_broke_off;
use futures_util::future::join_all;

#[tokio::test(flavor = "multi_thread")]
async fn each_turn_goes_on_in_its_process_and_one_is_started_for_all_who_come_at_once() {
    let world = place(&["a"]).await;
    let firsts = streamed_and_plain().map(|pair| {
        let world = &world;
        async move {
            // Two that say the same would have one conversation.
            let mut talk = Talk::begin(pair, &format!("first, streamed {}", pair.stream));
            let first = heard(&mut talk, world).await;
            (talk, first)
        }
    });
    let begun = join_all(firsts).await;
    assert_eq!(begun[0].1, begun[1].1, "one process");
    for (mut talk, (process, one)) in begun {
        talk.says("second");
        assert_eq!((one, heard(&mut talk, &world).await), (1, (process, 1)), "only what is new");
    }
    let counters = at_rest(&world).await;
    assert_eq!(count(&counters, "dropped"), 0, "{counters:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_dies_between_turns_is_started_anew_and_told_the_whole_history() {
    for pair in streamed_and_plain() {
        let world = place(&["a"]).await;
        let mut talk = Talk::begin(pair, "first");
        let (process, _) = heard(&mut talk, &world).await;
        kill(process).await;
        talk.says("second");
        let (another, count_then) = heard(&mut talk, &world).await;
        assert_ne!(another, process, "{pair:?}");
        assert_eq!(count_then, 3, "{pair:?}: no handle of the process that died is gone on with");
        talk.says("third");
        assert_eq!(heard(&mut talk, &world).await, (another, 1), "{pair:?}");
        assert_eq!(count(&at_rest(&world).await, "size"), 1, "{pair:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_dies_within_a_turn_ends_it_and_its_conversation() {
    let pair = streamed_and_plain()[0];
    let world = place(&["a"]).await;
    let mut talk = Talk::begin(pair, "first");
    let (process, _) = heard(&mut talk, &world).await;
    let before = talk.clone();
    let mut client = talk.says("hold on").ask(&world).await;
    client.until("held").await;
    kill(process).await;
    assert_broke_off(pair, &client.reply().await, "held");
    let counters = at_rest(&world).await;
    assert_eq!((count(&counters, "size"), count(&counters, "dropped")), (0, 1), "{counters:#}");
    let mut again = before.clone();
    again.says("second");
    let (another, count_then) = heard(&mut again, &world).await;
    assert!(another != process && count_then == 3, "{another} {count_then}");
}
