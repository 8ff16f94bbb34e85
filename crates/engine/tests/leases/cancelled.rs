//! A turn whose task is dropped after any of its steps: its lease ends once, no conversation is in two turns, and the next
//! turn goes on without anything said twice.

use crate::fake::{Act, Beat, Proof, gone, says};
use crate::world::{Ask, With, said, second, with};
use futures_util::FutureExt;
use std::task::{Context, Waker};
use turnkeep_base::FaultKind;
use turnkeep_engine::route::OnClientGone;
use turnkeep_policy::conversations::Handling;

/// An answer whose pieces come one by one.
fn slowly(text: &'static str) -> Act {
    let pause = || Beat::Pause;
    Act::Answer(vec![pause(), Beat::Start, pause(), Beat::Say(text), pause(), Beat::End])
}

/// What the upstream does with the turn that is dropped.
fn scripts() -> Vec<Vec<Act>> {
    vec![
        vec![slowly("two")],
        vec![gone(), slowly("two")],
        vec![Act::Refuse(FaultKind::RateLimited, Proof::ByReply), slowly("two")],
        vec![Act::Refuse(FaultKind::CredentialRejected, Proof::ByReply), gone(), slowly("two")],
        vec![Act::Refuse(FaultKind::ConnectionReset, Proof::Nothing), slowly("two")],
    ]
}

/// How the turn is abandoned.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Leaves {
    /// Its task is dropped.
    Task,
    /// Its client leaves.
    Client,
}

async fn abandon(handling: Handling, replay_safe: bool, stream: bool, script: &[Act], leaves: Leaves) {
    let mut restored = 0;
    for steps in 0.. {
        let what = format!("{handling:?} {replay_safe} stream {stream} {script:?} {leaves:?} after {steps}");
        let world = with(With { handling, replay_safe, accounts: &["a", "b"], ..With::default() });
        world.delivered(&said(stream, &["hi"])).await;
        world.fake.act(script.to_vec());
        let (mut turn, mut asking) = world.by_hand(&second(stream));
        let mut cx = Context::from_waker(Waker::noop());
        let mut read_whole = false;
        for _ in 0..steps {
            if turn.poll_unpin(&mut cx).is_ready() {
                break;
            }
            let _ = asking.reader.poll_head(&mut cx);
            if let std::task::Poll::Ready(None) = asking.reader.poll_chunk(&mut cx) {
                read_whole = true;
            }
            tokio::task::yield_now().await;
        }
        match leaves {
            Leaves::Task => drop(turn),
            Leaves::Client => {
                drop(asking);
                turn.await;
            }
        }
        tokio::task::yield_now().await;
        world.idle().await;
        world.assert_right();
        let [hits, misses, back, ..] = world.counts();
        restored += back;
        assert!(hits <= 1 && misses == 0, "{what}: {:?}", world.counts());
        let elsewhere = matches!(script[0], Act::Refuse(FaultKind::RateLimited | FaultKind::CredentialRejected, _));
        if handling == Handling::Mutable && !elsewhere {
            assert!(world.size() <= 1, "{what}: the conversation or the one after it, never both");
        }
        assert!(world.size() <= 2, "{what}");
        // The next turn, from what the client has, with and without the answer.
        world.fake.act([]);
        let words: &[&str] =
            if read_whole { &["hi", "one", "more", "two", "and then"] } else { &["hi", "one", "more"] };
        let told = world.delivered(&Ask { bypass: true, ..said(stream, words) }).await;
        assert_eq!(told.status, 200, "{what}: {}", told.body);
        world.fake.assert_right();
        let expected: Vec<String> = words
            .iter()
            .enumerate()
            .map(|(at, text)| format!("{}: {text}", if at % 2 == 0 { "user" } else { "assistant" }))
            .chain(["assistant: one".to_owned()])
            .collect();
        let kept = world.fake.kept.lock();
        let ends_in = kept.transcripts.values().filter(|lines| **lines == expected).count();
        assert_eq!(ends_in, 1, "{what}: {:?}", kept.transcripts);
        if read_whole {
            assert!(steps > 3, "{what}");
            assert!(restored > 0 || handling == Handling::Immutable || leaves == Leaves::Client, "{what}");
            return;
        }
        assert!(steps < 200, "{what}: it comes to its end");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_of_a_task_that_is_dropped_after_any_step_ends_once_and_nothing_is_said_twice() {
    for script in scripts() {
        for (handling, stream) in [
            (Handling::Mutable, true),
            (Handling::Mutable, false),
            (Handling::Immutable, true),
            (Handling::Immutable, false),
        ] {
            abandon(handling, true, stream, &script, Leaves::Task).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_of_a_client_that_leaves_after_any_step_ends_once_and_nothing_is_said_twice() {
    for script in scripts() {
        for (handling, stream) in [
            (Handling::Mutable, true),
            (Handling::Mutable, false),
            (Handling::Immutable, true),
            (Handling::Immutable, false),
        ] {
            abandon(handling, true, stream, &script, Leaves::Client).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_of_an_upstream_that_does_things_twice_ends_once_after_any_step() {
    for script in scripts().into_iter().take(3) {
        for stream in [true, false] {
            abandon(Handling::Mutable, false, stream, &script, Leaves::Task).await;
        }
    }
}

#[tokio::test]
async fn a_lease_whose_turn_finishes_without_its_client_is_advanced_and_its_answer_held() {
    let max_time = std::time::Duration::from_secs(30);
    let on_client_gone = OnClientGone::Finish { max_tokens: 1_000, max_time };
    let world = with(With { on_client_gone, ..With::default() });
    world.delivered(&said(true, &["hi"])).await;
    world.fake.act([Act::Answer(vec![Beat::Start, Beat::Pause, Beat::Pause, Beat::Say("two"), Beat::End])]);
    let asking = world.start(&second(true));
    crate::table::until(|| world.fake.sends() == 2).await;
    drop(asking);
    world.idle().await;
    assert_eq!((world.size(), world.counts()), (1, [1, 0, 0, 1, 0]));
    assert_eq!(world.engine.kept.holds.get(), 1);
    world.fake.act([says("three")]);
    world.delivered(&said(true, &["hi", "one", "more", "two", "and then"])).await;
    assert_eq!(world.fake.last().lines, ["user: and then"]);
    world.assert_right();
}
