//! A turn that is dropped asks nothing more, at whatever point it is dropped.

use super::asking::{FIRST, SESSIONS};
use super::scene;
use std::future::poll_fn;
use std::task::Poll;
use turnkeep_engine::ports::Native as _;
use turnkeep_lab::Recorded;

/// A rule that holds these calls at the gate.
fn held(method: &str, path: &str) -> String {
    format!("[[rule]]\nmethod = \"{method}\"\npath = \"{path}\"\ngate = \"held\"\n")
}

#[tokio::test]
async fn dropping_an_answer_drops_the_look_that_is_under_way_and_none_follows() {
    for below in ["", "/messages"] {
        let scene = scene(&held("GET", &format!("{SESSIONS}/{FIRST}{below}"))).await;
        let mut answer = scene.begin("Fix it").await.unwrap_or_else(|failed| panic!("{failed:?}"));
        let reading = async { while poll_fn(|cx| answer.poll_next(cx)).await.is_some() {} };
        tokio::select! {
            () = reading => panic!("it cannot end"),
            () = scene.lab.wait_at_gate("held", 1) => {}
        }
        drop(answer);
        scene.lab.wait_aborted(1).await;
        scene.lab.wait_idle().await;
        // Another turn is done from its beginning to its end; the first session is asked for nothing meanwhile.
        let asked = scene.lab.requests().len();
        assert!(scene.turn("Another").await.ended);
        let later = scene.lab.requests().split_off(asked);
        assert!(later.len() > 3 && later.iter().all(|request| !request.target.contains(FIRST)), "{below}");
        assert_eq!(scene.posts().len(), 2);
    }
}

#[tokio::test]
async fn dropping_a_send_drops_its_call() {
    let scene = scene(&held("POST", SESSIONS)).await;
    let mut sending = scene.devin.send(scene.ask("Fix it", None));
    tokio::select! {
        _ = &mut sending => panic!("it cannot end"),
        () = scene.lab.wait_at_gate("held", 1) => {}
    }
    drop(sending);
    scene.lab.wait_aborted(1).await;
    scene.lab.wait_no_connections().await;
    assert_eq!(scene.lab.requests().len(), 1);
}

#[tokio::test]
async fn a_turn_dropped_after_any_number_of_happenings_says_nothing_again() {
    for count in 0..8 {
        let scene = scene("").await;
        let mut answer = scene.begin("Fix it").await.unwrap_or_else(|failed| panic!("{failed:?}"));
        for _ in 0..count {
            poll_fn(|cx| answer.poll_next(cx)).await;
        }
        // Once more, which may begin a look and does not end it.
        let _ready = poll_fn(|cx| Poll::Ready(answer.poll_next(cx).is_ready())).await;
        let looks = || {
            let looks = |request: &&Recorded| request.method == http::Method::GET && request.target.contains(FIRST);
            scene.lab.requests().iter().filter(looks).count()
        };
        let before = looks();
        drop(answer);
        scene.lab.wait_idle().await;
        assert_eq!((scene.user_said(), scene.posts().len()), (vec!["Fix it".to_owned()], 1), "{count}");
        // While another turn is done from its beginning to its end, no more than the look that was under way arrives.
        assert!(scene.turn("Another").await.ended);
        assert!(looks() <= before + 1, "{count}: {before} looks, then {}", looks());
    }
}
