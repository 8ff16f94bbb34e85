//! A turn is dropped after each of its polls, whichever: what it says it says once, and nothing is asked for it any more.

use super::asking::{spec, whole};
use super::{Scene, scene};
use crate::cut::{cut, soon, taken_all_before};
use crate::polls::{EITHER, MANY, Polls};
use std::sync::Arc;
use std::time::Duration;
use turnkeep_engine::ports::Native as _;
use turnkeep_upstream::{Devin, DevinSpec};

/// Several looks at the turn that is dropped, with something in each.
const SCRIPT: &str = r#"
    [[devin]]
    contains = "two"
    steps = [
        { status = "running", detail = "working" },
        { say = "Half." },
        { say = "And half.", acus = 0.25 },
        { polls = 0, detail = "finished" },
    ]"#;

/// With looks in quick succession, as there are many turns.
async fn quick() -> Scene {
    let Scene { lab, .. } = scene(SCRIPT).await;
    let (poll_first, poll_longest) = (Duration::from_millis(1), Duration::from_millis(2));
    let devin = Devin::new(DevinSpec { poll_first, poll_longest, ..spec(&lab) }).unwrap();
    Scene { lab, devin: Arc::new(devin) }
}

/// How often something was said by users, in all sessions.
fn times(scene: &Scene, words: &str) -> usize {
    scene.user_said().iter().filter(|said| *said == words).count()
}

#[tokio::test]
async fn a_turn_that_is_dropped_after_any_of_its_polls_is_said_once_and_asked_for_no_more() {
    for goes_on in [false, true] {
        for dropped in EITHER {
            let mut said_and_dropped = 0;
            for polls in 0..MANY {
                let case = format!("goes on {goes_on}, {dropped:?} after {polls} polls");
                let scene = quick().await;
                let resume = if goes_on { scene.turn("one").await.conversation } else { None };
                assert_eq!(resume.is_some(), goes_on, "{case}");
                let cut = cut(scene.devin.send(scene.ask("two", resume)), Polls::of(polls, dropped), usize::MAX).await;

                // Of all that was sent, nothing is under way any more.
                scene.devin.endpoint().close_idle();
                taken_all_before(scene.lab.addr()).await;
                soon(&case, scene.lab.wait_no_connections()).await;
                assert_eq!(scene.lab.in_flight(), 0, "{case}");
                assert!(times(&scene, "two") <= 1, "{case}");
                assert_eq!(cut.conversation.is_some(), cut.whole, "{case}");

                // The next turn goes on with what was left by one that came to its end, else in a session of its own.
                let (asked, sessions) = (scene.lab.requests().len(), scene.lab.devin_sessions());
                let next = scene.devin.send(scene.ask("three", cut.conversation.clone())).await;
                let next = whole(next.unwrap_or_else(|failed| panic!("{case}: {failed:?}"))).await;
                assert!(next.ended && next.conversation.is_some(), "{case}: {next:?}");
                assert_eq!(next.text, "You said: \"three\". This is the lab's Devin answering.", "{case}");
                assert_eq!(times(&scene, "three"), 1, "{case}");
                assert!(times(&scene, "two") <= 1, "{case}");
                let later = scene.lab.requests().split_off(asked);
                assert!(later.len() > 3, "{case}: {later:?}");
                if cut.whole {
                    assert_eq!(cut.text, "Half.\n\nAnd half.", "{case}");
                    let said: &[&str] = if goes_on { &["one", "two", "three"] } else { &["two", "three"] };
                    assert_eq!(scene.user_said(), said, "{case}: in one session");
                    assert_eq!(scene.lab.devin_sessions().len(), 1, "{case}");
                    assert!(said_and_dropped > 5, "{case}: most are dropped after their message was sent");
                    break;
                }
                for session in sessions {
                    let asked_for = later.iter().any(|request| request.target.contains(&session.session_id));
                    assert!(!asked_for, "{case}: a turn that was dropped is asked for");
                }
                said_and_dropped += times(&scene, "two");
                assert!(polls + 1 < MANY, "{case}: the turn has an end");
            }
        }
    }
}
