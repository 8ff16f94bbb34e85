//! Turns that are let go of.

use crate::processes::until;
use crate::world::{World, next};
use std::time::Duration;

#[tokio::test]
async fn a_dropped_answer_is_cancelled_at_the_agent_and_what_it_asks_then_is_cancelled_too() {
    let world = World::new(&["--closes"]);
    let answer = world.send("say a\nhang", None).await.expect("begun");
    drop(answer);
    until("the agent was cancelled", || world.file("cancelled") == "cancelled").await;
    let session = world.heard("session/prompt")[0]["sessionId"].clone();
    until("the session is closed", || world.heard("session/close").iter().any(|it| it["sessionId"] == session)).await;
    assert_eq!(world.heard("session/cancel")[0]["sessionId"], session);
    until("its directory is gone", || std::fs::read_dir(world.directories()).is_ok_and(|entries| entries.count() == 0))
        .await;
    // The same process goes on.
    assert_eq!(world.turn("say b", None).await.text, "b");
    assert_eq!(world.heard("initialize").len(), 1);
}

#[tokio::test]
async fn a_send_that_is_dropped_before_it_is_answered_is_cancelled_too() {
    let world = World::new(&[]);
    world.turn("say a", None).await;
    {
        let send = world.send("hang", None);
        tokio::pin!(send);
        tokio::select! {
            _ = &mut send => panic!("nothing was said"),
            () = until("the prompt is there", || world.heard("session/prompt").len() == 2) => {}
        }
    }
    until("the agent was cancelled", || !world.heard("session/cancel").is_empty()).await;
}

#[tokio::test]
async fn a_turn_dropped_after_each_of_its_polls_is_cancelled_or_over_and_leaves_nothing() {
    let steps = "think x\nsay a\ntool look\nsay b\npermission read\nsay c";
    let world = World::new(&[]);
    let whole = world.turn(steps, None).await.events.len();
    let mut ended = 0;
    for polls in 0..whole + 6 {
        let mut answer = world.send(steps, None).await.expect("begun");
        for _ in 0..polls {
            if next(&mut answer).await.is_none() {
                break;
            }
        }
        ended += usize::from(answer.conversation().is_some());
        drop(answer);
    }
    let prompts = world.heard("session/prompt").len() - 1;
    until("every prompt is cancelled or over", || world.heard("session/cancel").len() + ended == prompts).await;
    // One process has served them all, and serves on.
    assert_eq!(world.turn("say still here", None).await.text, "still here");
    assert_eq!(world.heard("initialize").len(), 1);
}

#[tokio::test]
async fn a_new_turn_waits_until_a_cancelled_one_is_confirmed_or_given_up() {
    let world = World::with(&[], |spec| spec.cancel_within = Duration::from_millis(300));
    let answer = world.send("say a\ndeaf", None).await.expect("begun");
    drop(answer);
    let before = std::time::Instant::now();
    assert_eq!(world.turn("say b", None).await.text, "b");
    assert!(before.elapsed() >= Duration::from_millis(290), "{:?}", before.elapsed());
    // And an agent that does not confirm gets no new turns.
    assert_eq!(world.heard("initialize").len(), 2);
}
