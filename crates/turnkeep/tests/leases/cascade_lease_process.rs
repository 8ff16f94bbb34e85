//! Conversations in Cascade servers that are processes of the gateway's own: they last as long as their process.

use crate::cascade_process::*;
use crate::cascade_server::PROCESS;
use crate::processes::{account, gone, kill, signal};
use crate::scene::*;
use crate::support::dialects::{assert_broke_off, assert_said, say};
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

#[tokio::test(flavor = "multi_thread")]
async fn other_accounts_of_an_upstream_leave_the_processes_and_the_leases_of_those_that_stay_as_they_are() {
    for pair in streamed_and_plain() {
        for removed in [false, true] {
            let world = place(&["a", "b"]).await;
            let (mut kept, mut other) = (Talk::begin(pair, "first"), Talk::begin(pair, "something else"));
            let (process, _) = heard(&mut kept, &world).await;
            let (others, _) = heard(&mut other, &world).await;
            let (stays, changes) = (account(process), account(others));
            assert_ne!(stays, changes);
            let mut client = kept.says("hold on").ask(&world).await;
            world.until("a turn under way", |counters| in_flight(counters, &stays) == 1).await;
            // More slots than there could be connections before.
            let own = format!("env = {{ {PROCESS} = \"yes\", MORE = \"words\" }}\nmax_in_flight = 2000");
            let mut accounts = vec![(stays.as_str(), ""), ("c", "")];
            if !removed {
                accounts.push((&changes, &own));
            }
            world.take_up(&plan(&[("up", upstream(By::Itself, &accounts, ""))])).await;
            // However long the turns of others last.
            gone(others).await;
            signal(process, "-USR1");
            assert_said(pair, &client.reply().await, "held for ever");
            say(pair, &mut kept.body, "assistant", "held for ever");
            at_rest(&world).await;
            kept.says("third");
            assert_eq!(heard(&mut kept, &world).await, (process, 1), "{pair:?}: it goes on where it ended");
            other.says("second");
            let (another, told) = heard(&mut other, &world).await;
            assert!(another != others && told == 3, "{pair:?}: {others}, then {another}, told {told}");
        }
    }
}

fn in_flight(counters: &serde_json::Value, name: &str) -> u64 {
    crate::support::world::account(counters, name)["in_flight"].as_u64().unwrap()
}
