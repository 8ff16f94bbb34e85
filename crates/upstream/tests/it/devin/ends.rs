//! What ends a turn, what an answer is made of, and what it costs.

use super::asking::{FIRST, QUIET, SESSIONS, spec};
use super::{Told, scene};
use std::sync::Arc;
use std::time::{Duration, Instant};
use turnkeep_base::FaultKind;
use turnkeep_lab::{DevinStep, DevinTurn, Script};
use turnkeep_upstream::{Devin, DevinSpec};

fn came_to(told: &Told) -> (&str, bool, bool) {
    (&told.text, told.ended, told.conversation.is_some())
}

#[tokio::test]
async fn a_new_session_is_asked_until_devin_waits_and_costs_what_it_says() {
    let scene = scene("").await;
    let told = scene.turn("Fix it").await;
    assert_eq!(came_to(&told), ("You said: \"Fix it\". This is the lab's Devin answering.", true, true));
    assert_eq!((told.units, told.fault), (Some(250), None));
    // The status changed and something was said, each a sign of life.
    assert!(told.alive >= 2, "{}", told.alive);
    let posts = scene.posts();
    assert_eq!((posts.len(), posts[0].target.as_str()), (1, SESSIONS));
    assert_eq!(
        (posts[0].header("authorization"), &posts[0].body[..]),
        (Some("Bearer cog_1"), &br#"{"prompt":"Fix it"}"#[..])
    );
    assert_eq!(scene.lab.devin_sessions()[0].organization, "org-1");
}

#[tokio::test]
async fn every_status_that_ends_a_turn_ends_it_and_tells_whether_the_session_goes_on() {
    let rows = [
        ("exit", "", true, false),
        ("suspended", "", true, true),
        ("suspended", "inactivity", true, true),
        ("suspended", "user_request", true, true),
        ("suspended", "usage_limit_exceeded", true, true),
        ("suspended", "a_reason_of_tomorrow", true, true),
        ("running", "waiting_for_user", true, true),
        ("running", "waiting_for_approval", true, true),
        ("running", "finished", true, true),
    ];
    for (status, detail, ended, goes_on) in rows {
        let detail = if detail.is_empty() { String::new() } else { format!(", detail = \"{detail}\"") };
        let script =
            format!("[[devin]]\nsteps = [{{ say = \"Done.\" }}, {{ polls = 0, status = \"{status}\"{detail} }}]");
        let scene = scene(&script).await;
        let told = scene.turn("Fix it").await;
        assert_eq!(came_to(&told), ("Done.", ended, goes_on), "{status}{detail}");
        assert_eq!(scene.lab.devin_sessions()[0].polls, 1, "{status}{detail}: nothing else was waited for");
    }
}

#[tokio::test]
async fn a_status_that_says_that_devin_failed_is_a_fault_and_no_end() {
    let rows = [
        ("error", "", FaultKind::UpstreamInternal),
        ("suspended", "error", FaultKind::UpstreamInternal),
        ("suspended", "out_of_credits", FaultKind::QuotaExhausted),
        ("suspended", "out_of_quota", FaultKind::QuotaExhausted),
        ("suspended", "no_quota_allocation", FaultKind::QuotaExhausted),
        ("suspended", "payment_declined", FaultKind::QuotaExhausted),
        ("suspended", "org_usage_limit_exceeded", FaultKind::QuotaExhausted),
    ];
    for (status, detail, kind) in rows {
        let step = if detail.is_empty() { String::new() } else { format!(", detail = \"{detail}\"") };
        let script = format!("[[devin]]\nsteps = [{{ say = \"I\" }}, {{ status = \"{status}\"{step}, acus = 2.0 }}]");
        let scene = scene(&script).await;
        let told = scene.turn("Fix it").await;
        assert_eq!(came_to(&told), ("I", false, false), "{status} {detail}");
        let fault = told.fault.unwrap();
        assert_eq!((fault.kind, told.units), (kind, Some(2000)), "{status} {detail}");
        assert!(fault.evidence.detail.contains(status) && fault.evidence.detail.contains(detail), "{fault}");
    }
}

#[tokio::test]
async fn a_status_that_nobody_knows_keeps_waiting() {
    let script = r#"
        [[devin]]
        steps = [
          { status = "dreaming", detail = "waiting_for_user" },
          { status = "running", detail = "deeply" },
          { polls = 40, say = "Awake." },
          { polls = 0, detail = "finished" },
        ]"#;
    let scene = scene(script).await;
    let told = scene.turn("Fix it").await;
    assert_eq!(came_to(&told), ("Awake.", true, true));
    assert!(scene.lab.devin_sessions()[0].polls >= 42);
}

#[tokio::test]
async fn a_message_followed_by_quiet_ends_a_turn_and_not_before() {
    let scene =
        scene("[[devin]]\nsteps = [{ status = \"running\", detail = \"working\" }, { polls = 3, say = \"Done.\" }]")
            .await;
    let began = Instant::now();
    let told = scene.turn("Fix it").await;
    assert_eq!(came_to(&told), ("Done.", true, true));
    assert!(began.elapsed() >= QUIET, "{:?}", began.elapsed());
}

#[tokio::test]
async fn silence_before_the_first_message_is_no_quiet_and_each_message_begins_it_anew() {
    let script = r#"
        [[devin]]
        steps = [
          { status = "running" },
          { delay_ms = 1700, say = "One." },
          { delay_ms = 600, say = "Two." },
          { delay_ms = 600, status = "running", detail = "working" },
          { delay_ms = 600, say = "Three." },
        ]"#;
    let mut scene = scene(script).await;
    // Shorter than the first silence and than the others together, and much longer than each of these: machines are slow.
    let spec = DevinSpec { quiet: Duration::from_millis(1500), ..spec(&scene.lab) };
    scene.devin = Arc::new(Devin::new(spec).unwrap());
    let told = scene.turn("Fix it").await;
    assert_eq!(came_to(&told), ("One.\n\nTwo.\n\nThree.", true, true));
}

#[tokio::test]
async fn a_turn_in_which_nothing_is_said_is_a_valid_empty_answer() {
    let scene = scene("[[devin]]\nsteps = [{ status = \"suspended\", detail = \"user_request\" }]").await;
    let told = scene.turn("Fix it").await;
    assert_eq!((came_to(&told), told.units), (("", true, true), Some(0)));
}

#[tokio::test]
async fn messages_over_many_pages_come_once_each_and_in_order() {
    let says: Vec<String> = (0..9).map(|number| format!("{{ polls = 0, say = \"m{number}\" }}")).collect();
    let script = format!(
        "devin_page = 2\n[[devin]]\nsteps = [{{ status = \"running\" }}, {}, {{ say = \"late\" }}, {{ polls = 3, status = \"suspended\" }}]",
        says.join(", ")
    );
    let scene = scene(&script).await;
    let told = scene.turn("Fix it").await;
    let all: Vec<String> = (0..9).map(|number| format!("m{number}")).chain(["late".to_owned()]).collect();
    assert_eq!(told.text, all.join("\n\n"));
    assert_eq!(told.conversation.as_ref().and_then(|left| left.position), Some(11));
    // The later looks ask for the pages that are new only.
    let first_pages =
        scene.lab.requests().iter().filter(|request| request.target.ends_with("messages?first=200")).count();
    assert!(first_pages <= 2, "{first_pages}");
    let next = scene.next("More", &told).await;
    assert_eq!(next.text, all.join("\n\n"));
}

/// Devin says all of these and is done, each on a page of its own.
fn says_at_once(texts: &[String]) -> Script {
    let says = texts.iter().map(|text| DevinStep { polls: 0, say: Some(text.clone()), ..DevinStep::default() });
    let (status, detail) = (Some("running".to_owned()), Some("finished".to_owned()));
    let steps = [DevinStep { status, detail, ..DevinStep::default() }].into_iter().chain(says).collect();
    Script { devin: vec![DevinTurn { steps, ..DevinTurn::default() }], devin_page: Some(1), ..Script::default() }
}

#[tokio::test]
async fn no_turn_ends_while_messages_are_unread_of_many_pages_or_of_many_bytes() {
    let many: Vec<String> = (0..60).map(|number| format!("m{number}")).collect();
    let long: Vec<String> = ["a", "b"].map(|text| text.repeat(9 << 20)).to_vec();
    for (texts, looks) in [(many, 2), (long, 2)] {
        let scene = scene("").await;
        scene.lab.set_script(says_at_once(&texts));
        let told = scene.turn("Fix it").await;
        assert!(told.text == texts.join("\n\n"), "{} bytes: {:?}", told.text.len(), told.fault);
        assert_eq!((told.ended, scene.lab.devin_sessions()[0].polls), (true, looks));
    }
}

#[tokio::test]
async fn each_account_asks_in_its_own_organisation() {
    let scene = scene("").await;
    let mut ask = scene.ask("Fix it", None);
    ask.account.account = "two".into();
    super::asking::whole(
        turnkeep_engine::ports::Native::send(&*scene.devin, ask).await.unwrap_or_else(|failed| panic!("{failed:?}")),
    )
    .await;
    let session = scene.lab.devin_sessions().remove(0);
    assert_eq!((session.session_id.as_str(), session.organization.as_str()), (FIRST, "org-2"));

    let mut ask = scene.ask("Fix it", None);
    ask.account.account = "three".into();
    let asked = scene.lab.requests().len();
    let failed = scene.refused(ask).await;
    assert_eq!(failed.fault.kind, FaultKind::NoCredential);
    assert!(failed.refused.is_some() && failed.fault.evidence.detail.contains("organization"), "{failed:?}");
    assert_eq!(scene.lab.requests().len(), asked);
}
