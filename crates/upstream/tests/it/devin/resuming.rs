//! Going on with a session: only what is new is sent, and a session that may have moved is left alone.

use super::asking::{FIRST, SESSIONS, whole};
use super::scene;
use turnkeep_base::FaultKind;
use turnkeep_engine::ports::Native as _;
use turnkeep_lab::Script;

fn answer(text: &str) -> String {
    format!("You said: \"{text}\". This is the lab's Devin answering.")
}

#[tokio::test]
async fn a_session_goes_on_with_what_is_new_and_each_turn_costs_its_own() {
    let scene = scene("").await;
    let first = scene.turn("one").await;
    let second = scene.next("two", &first).await;
    let third = scene.next("three", &second).await;
    let told: Vec<_> = [&first, &second, &third].map(|told| (told.text.clone(), told.units)).to_vec();
    assert_eq!(told, ["one", "two", "three"].map(|text| (answer(text), Some(250))));
    assert_eq!(scene.user_said(), ["one", "two", "three"]);
    let sessions = scene.lab.devin_sessions();
    assert_eq!((sessions.len(), sessions[0].acus), (1, 0.75));
    let posts = scene.posts();
    assert_eq!(posts[2].target, format!("{SESSIONS}/{FIRST}/messages"));
    assert_eq!(&posts[2].body[..], br#"{"message":"three"}"#);
}

#[tokio::test]
async fn a_session_that_still_looks_as_if_it_waited_has_not_answered_yet() {
    let script = r#"
        [[devin]]
        contains = "two"
        steps = [{ polls = 3, status = "running", detail = "working" }, { say = "Second." }, { polls = 0, detail = "finished" }]
        [[devin]]
        contains = "three"
        steps = [{ polls = 3, say = "Third." }]"#;
    let scene = scene(script).await;
    let first = scene.turn("one").await;
    let second = scene.next("two", &first).await;
    assert_eq!(second.text, "Second.");
    // Not even its status need change: it finished, and has finished again.
    let third = scene.next("three", &second).await;
    assert_eq!((third.text.as_str(), third.ended), ("Third.", true));
}

#[tokio::test]
async fn a_session_that_goes_on_waiting_without_a_word_ends_the_turn_at_last() {
    let scene = scene("[[devin]]\ncontains = \"two\"\nsteps = []").await;
    let first = scene.turn("one").await;
    let second = scene.next("two", &first).await;
    assert_eq!((second.text.as_str(), second.ended, second.units), ("", true, Some(0)));
}

#[tokio::test]
async fn a_suspended_session_resumes_by_the_message() {
    let scene =
        scene("[[devin]]\ntimes = 1\nsteps = [{ say = \"One.\" }, { polls = 0, status = \"suspended\" }]").await;
    let first = scene.turn("one").await;
    let second = scene.next("two", &first).await;
    assert_eq!((first.text, second.text), ("One.".to_owned(), answer("two")));
    assert_eq!(scene.lab.devin_sessions().len(), 1);
}

#[tokio::test]
async fn what_devin_says_after_the_quiet_is_in_the_next_answer_and_said_once() {
    let script = r#"
        [[devin]]
        times = 1
        steps = [{ status = "running" }, { say = "Half." }, { gate = "later", say = "And half." }]"#;
    let scene = scene(script).await;
    let first = scene.turn("one").await;
    assert_eq!((first.text.as_str(), first.ended), ("Half.", true));
    scene.lab.release("later");
    let second = scene.next("two", &first).await;
    assert_eq!(second.text, format!("And half.\n\n{}", answer("two")));
    let third = scene.next("three", &second).await;
    assert_eq!(third.text, answer("three"));
}

#[tokio::test]
async fn a_session_with_more_unread_messages_than_are_read_at_once_is_gone_before_anything_is_said() {
    let many: Vec<String> = (0..60).map(|number| format!("{{ polls = 0, say = \"m{number}\" }}")).collect();
    let script = format!(
        "devin_page = 1\n[[devin]]\ntimes = 1\nsteps = [{{ status = \"running\" }}, {{ say = \"Half.\" }}, {{ gate = \"later\" }}, {}]",
        many.join(", ")
    );
    let scene = scene(&script).await;
    let first = scene.turn("one").await;
    assert_eq!((first.text.as_str(), first.ended), ("Half.", true));
    scene.lab.release("later");
    let failed = scene.refused(scene.ask("two", first.conversation)).await;
    assert_eq!(failed.fault.kind, FaultKind::ConversationGone, "{}", failed.fault);
    assert!(failed.refused.is_some());
    assert_eq!(scene.user_said(), ["one"]);
}

#[tokio::test]
async fn a_session_that_has_ended_is_gone_before_anything_is_said() {
    for status in ["exit", "error"] {
        let scene = scene("").await;
        let first = scene.turn("one").await;
        let script = format!("[[devin]]\nsteps = [{{ polls = 0, status = \"{status}\" }}]");
        scene.lab.set_script(Script::parse(&script).unwrap());
        // Somebody else ends it, by a message of their own.
        let other = scene.ask("by another", first.conversation.clone());
        whole(scene.devin.send(other).await.unwrap_or_else(|failed| panic!("{failed:?}"))).await;
        let failed = scene.refused(scene.ask("two", first.conversation)).await;
        assert_eq!(failed.fault.kind, FaultKind::ConversationGone, "{}", failed.fault);
        assert!(failed.refused.is_some());
        assert_eq!(scene.user_said(), ["one", "by another"]);
    }
}

#[tokio::test]
async fn after_a_failed_send_a_session_that_has_not_moved_goes_on_and_one_that_has_is_gone() {
    for done in [false, true] {
        let rule = format!(
            "[[rule]]\nmethod = \"POST\"\npath = \"{SESSIONS}/{FIRST}/messages\"\ntimes = 1\ndone = {done}\nerror = {{ status = 500 }}"
        );
        let scene = scene(&rule).await;
        let first = scene.turn("one").await;
        let failed = scene.refused(scene.ask("two", first.conversation.clone())).await;
        assert_eq!(failed.fault.kind, FaultKind::UpstreamInternal);

        let mut again = scene.ask("two", first.conversation.clone());
        again.reread = true;
        if done {
            let failed = scene.refused(again).await;
            assert_eq!(failed.fault.kind, FaultKind::ConversationGone, "{}", failed.fault);
            assert!(failed.refused.is_some());
        } else {
            let told = whole(scene.devin.send(again).await.unwrap_or_else(|failed| panic!("{failed:?}"))).await;
            assert_eq!(told.text, answer("two"));
        }
        assert_eq!(scene.user_said(), ["one", "two"], "said once, whoever has seen to it");
    }
}

#[tokio::test]
async fn a_position_that_is_not_known_is_not_taken_for_unmoved() {
    let scene = scene("").await;
    let mut left = scene.turn("one").await.conversation.unwrap();
    left.position = None;
    let mut ask = scene.ask("two", Some(left));
    ask.reread = true;
    assert_eq!(scene.refused(ask).await.fault.kind, FaultKind::ConversationGone);
    assert_eq!(scene.user_said(), ["one"]);
}
