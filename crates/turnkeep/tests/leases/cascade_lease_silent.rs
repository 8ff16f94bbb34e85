//! Conversations in Cascade servers that are processes of the gateway's own and take no calls any more, though the process
//! that it has started lives: nobody waits for them, and they are not lent again.

use crate::cascade_process::*;
use crate::processes::*;
use crate::scene::*;
use crate::support::dialects::{assert_refused, assert_said};
use crate::support::world::assert_unblamed;
use crate::support::*;

/// Clocks that end a turn that nobody answers.
const SHORT: &str = "timeouts = { first_content = \"2s\", total = \"2s\" }";

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_died_under_its_launcher_is_started_anew_within_the_turn_that_finds_it_so() {
    for pair in streamed_and_plain() {
        let world = World::of(&over(By::Launcher, &["a"], "")).await;
        let mut talk = Talk::begin(pair, "first");
        let (process, _) = heard(&mut talk, &world).await;
        let launcher = parent(process);
        kill(process).await;
        talk.says("second");
        let (another, told) = heard(&mut talk, &world).await;
        assert!(another != process && told == 3, "{pair:?}: {process}, then {another}, told {told}");
        talk.says("third");
        assert_eq!(heard(&mut talk, &world).await, (another, 1), "{pair:?}");
        gone(launcher).await;
        let counters = at_rest(&world).await;
        assert_eq!(count(&counters, "size"), 1, "{counters:#}");
        assert_unblamed(&counters, "a");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_in_the_moment_of_a_kill_is_served_by_a_fresh_process() {
    let world = place(&["a"]).await;
    for pair in streamed_and_plain() {
        let mut talk = Talk::begin(pair, &format!("first, streamed {}", pair.stream));
        let (process, _) = heard(&mut talk, &world).await;
        signal(process, "-9");
        talk.says("second");
        let (another, told) = heard(&mut talk, &world).await;
        assert!(another != process && told == 3, "{pair:?}: {process}, then {another}, told {told}");
    }
    assert_unblamed(&at_rest(&world).await, "a");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_is_not_lent_again_and_is_ended() {
    let pair = streamed_and_plain()[0];
    let world = World::of(&over(By::Itself, &["a"], SHORT)).await;
    let mut talk = Talk::begin(pair, "first");
    let (process, _) = heard(&mut talk, &world).await;
    signal(process, "-STOP");
    stopped(process).await;
    talk.says("second");
    assert_refused(pair, &talk.turn(&world).await, 504);
    // Its health is asked now, for 10 s.
    world.take_up(&over(By::Itself, &["a"], "")).await;
    let (another, told) = heard(&mut talk, &world).await;
    assert!(another != process && told == 3, "{process}, then {another}, told {told}");
    gone(process).await;
    assert_unblamed(&at_rest(&world).await, "a");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_under_way_in_a_server_that_takes_no_more_calls_is_not_cut() {
    let pair = streamed_and_plain()[0];
    let world = World::of(&over(By::Itself, &["a"], "")).await;
    let mut talk = Talk::begin(pair, "first");
    let (process, _) = heard(&mut talk, &world).await;
    let mut held = talk.says("hold on, and take no more calls").ask(&world).await;
    held.until("held").await;
    world.take_up(&over(By::Itself, &["a"], SHORT)).await;
    let mut other = Talk::begin(pair, "something else");
    assert_refused(pair, &other.turn(&world).await, 504);
    world.take_up(&over(By::Itself, &["a"], "")).await;
    let (another, _) = answered(&mut other, &world).await;
    assert_ne!(another, process);
    signal(process, "-USR1");
    assert_said(pair, &held.reply().await, "held for ever");
    gone(process).await;
    assert_unblamed(&at_rest(&world).await, "a");
}
