//! What goes wrong with each call, whose fault it is, and that nothing is said twice.

use super::asking::{FIRST, SESSIONS, spec, whole};
use super::{Scene, scene};
use crate::peer;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use turnkeep_base::limit::MAX_ERROR_BODY;
use turnkeep_base::{FaultKind, Phase};
use turnkeep_engine::ports::SendFault;
use turnkeep_upstream::{Devin, DevinSpec};

/// A rule that takes these calls and says so.
fn rule(method: &str, path: &str, says: &str) -> String {
    format!("[[rule]]\nmethod = \"{method}\"\npath = \"{path}\"\n{says}\n")
}

/// What the proof of a refusal says of reading the position again; `None`: there is no proof.
fn rereads(failed: &SendFault) -> Option<bool> {
    failed.refused.as_ref().map(|proof| format!("{proof:?}").contains("true"))
}

/// What an answer proves of what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proves {
    /// That nothing was begun.
    Refusal,
    /// The same, if the session's messages say so too.
    Failure,
    Nothing,
}

/// What a call may be answered with: the rule, the fault, and what the answer proves.
fn answers() -> Vec<(&'static str, FaultKind, Proves)> {
    use FaultKind as F;
    use Proves::{Failure, Nothing, Refusal};
    vec![
        ("error = { status = 401, message = \"Unauthorized\" }", F::CredentialRejected, Refusal),
        ("error = { status = 402, message = \"Pay\" }", F::QuotaExhausted, Refusal),
        ("error = { status = 403, message = \"Missing permission: ManageOrgSessions\" }", F::Unclassified, Refusal),
        ("error = { status = 403, code = \"out_of_credits\", message = \"No.\" }", F::QuotaExhausted, Refusal),
        ("error = { status = 403, message = \"Internal server error\" }", F::UpstreamInternal, Refusal),
        ("error = { status = 404, message = \"Not Found\" }", F::RequestInvalid, Refusal),
        ("error = { status = 408, message = \"Too slow\" }", F::Unclassified, Nothing),
        ("error = { status = 409, message = \"Busy\" }", F::RequestInvalid, Refusal),
        ("error = { status = 410, message = \"Gone\" }", F::RequestInvalid, Refusal),
        ("error = { status = 413, message = \"Too large\" }", F::RequestInvalid, Refusal),
        ("error = { status = 418, message = \"Teapot\" }", F::Unclassified, Refusal),
        ("error = { status = 422, message = \"prompt\" }", F::RequestInvalid, Refusal),
        ("error = { status = 429, message = \"Too many\", retry_after = 7 }", F::RateLimited, Refusal),
        ("status = 302\nraw = \"moved\"", F::Unclassified, Nothing),
        ("error = { status = 500, message = \"Oh\" }", F::UpstreamInternal, Failure),
        ("error = { status = 502 }", F::UpstreamUnavailable, Failure),
        ("error = { status = 503 }", F::UpstreamUnavailable, Failure),
        ("error = { status = 504 }", F::DeadlineExceeded, Failure),
        ("error = { status = 529 }", F::ModelOverloaded, Failure),
        ("fault = \"html\"", F::UpstreamUnavailable, Failure),
    ]
}

/// Ends of the connection: nothing is known then.
fn breaks() -> [(&'static str, FaultKind); 3] {
    [
        ("fault = \"reset_before_reply\"", FaultKind::ConnectionReset),
        ("fault = \"close_before_reply\"", FaultKind::ConnectionReset),
        ("fault = \"bad_header\"", FaultKind::HttpProtocolError),
    ]
}

#[tokio::test]
async fn each_answer_to_the_call_that_begins_a_session_is_its_own_fault_and_the_call_is_made_once() {
    for (says, kind, proves) in answers() {
        let scene = scene(&rule("POST", SESSIONS, says)).await;
        let failed = scene.refused(scene.ask("Fix it", None)).await;
        assert_eq!((failed.fault.kind, failed.fault.phase), (kind, Phase::Answered), "{says}: {}", failed.fault);
        // A failure of the server may have made a session, and there is no place to look for it.
        assert_eq!(rereads(&failed), (proves == Proves::Refusal).then_some(false), "{says}");
        assert_eq!(scene.posts().len(), 1, "{says}");
        let wait = failed.fault.declared.wait;
        assert_eq!(wait, (kind == FaultKind::RateLimited).then_some(Duration::from_secs(7)), "{says}");
    }
    for (says, kind) in breaks() {
        let scene = scene(&rule("POST", SESSIONS, says)).await;
        let failed = scene.refused(scene.ask("Fix it", None)).await;
        assert_eq!((failed.fault.kind, rereads(&failed)), (kind, None), "{says}: {}", failed.fault);
        assert_ne!(failed.fault.phase, Phase::Unsent, "{says}");
        assert_eq!(scene.posts().len(), 1, "{says}");
    }
}

#[tokio::test]
async fn an_error_reply_that_does_not_come_whole_proves_nothing_and_its_words_are_told() {
    let said = r#"{"detail":"Too many"}"#;
    let long = format!(r#"{{"detail":"Too many","more":"{}"}}"#, "x".repeat(MAX_ERROR_BODY));
    // What is promised, what is sent of it, and whether that is a refusal.
    let rows = [(said.len(), said, true), (said.len() + 1, said, false), (long.len(), long.as_str(), false)];
    for (promised, sent, whole) in rows {
        let (listener, authority) = peer::listen().await;
        let mut scene = scene("").await;
        let spec = DevinSpec { base_url: format!("http://{authority}"), ..spec(&scene.lab) };
        scene.devin = Arc::new(Devin::new(spec).unwrap());
        let answering = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            peer::request(&mut stream).await;
            let head = format!("HTTP/1.1 429 X\r\nretry-after: 7\r\ncontent-length: {promised}\r\n\r\n");
            // The client may have closed by then.
            let _ = stream.write_all(&[head.as_bytes(), sent.as_bytes()].concat()).await;
        };
        let (failed, ()) = tokio::join!(scene.refused(scene.ask("Fix it", None)), answering);
        assert_eq!((failed.fault.kind, failed.fault.phase), (FaultKind::RateLimited, Phase::Answered));
        assert_eq!(rereads(&failed), whole.then_some(false), "{promised} bytes promised, {} sent", sent.len());
        assert!(failed.fault.evidence.detail.contains("Too many"), "{}", failed.fault);
    }
}

#[tokio::test]
async fn a_call_that_says_something_and_is_not_answered_in_its_time_may_have_been_sent() {
    for goes_on in [false, true] {
        let path = if goes_on { format!("{SESSIONS}/{FIRST}/messages") } else { SESSIONS.to_owned() };
        let mut scene = scene(&rule("POST", &path, "gate = \"never\"")).await;
        let left = if goes_on { scene.turn("Fix it").await.conversation } else { None };
        let spec = DevinSpec { call_timeout: Duration::from_secs(1), ..spec(&scene.lab) };
        scene.devin = Arc::new(Devin::new(spec).unwrap());
        let failed = scene.refused(scene.ask("More", left)).await;
        assert_eq!(failed.fault.kind, FaultKind::UpstreamUnavailable, "{}", failed.fault);
        assert_eq!((failed.fault.phase, rereads(&failed)), (Phase::MaybeSent, None), "{}", failed.fault);
        assert_eq!(scene.posts().len(), 1 + usize::from(goes_on));
        scene.lab.wait_aborted(1).await;
    }
}

/// A turn is done in the first session; the rule meets the message of the next.
async fn goes_on(says: &str) -> (Scene, SendFault) {
    let scene = scene(&rule("POST", &format!("{SESSIONS}/{FIRST}/messages"), says)).await;
    let told = scene.turn("Fix it").await;
    let failed = scene.refused(scene.ask("More", told.conversation)).await;
    (scene, failed)
}

#[tokio::test]
async fn each_answer_to_a_message_is_its_own_fault_and_the_message_is_sent_once() {
    for (says, kind, proves) in answers() {
        let (scene, failed) = goes_on(says).await;
        assert_eq!((failed.fault.kind, failed.fault.phase), (kind, Phase::Answered), "{says}: {}", failed.fault);
        // After a failure of the server the session's messages tell what has become of it.
        let meant = match proves {
            Proves::Refusal => Some(false),
            Proves::Failure => Some(true),
            Proves::Nothing => None,
        };
        assert_eq!(rereads(&failed), meant, "{says}");
        assert_eq!(scene.posts().len(), 2, "{says}");
    }
    for (says, kind) in breaks() {
        let (scene, failed) = goes_on(says).await;
        assert_eq!((failed.fault.kind, rereads(&failed)), (kind, None), "{says}: {}", failed.fault);
        assert_eq!(scene.posts().len(), 2, "{says}");
    }
}

#[tokio::test]
async fn a_404_that_names_the_session_says_that_the_conversation_is_gone() {
    let (_, failed) = goes_on("error = { status = 404, message = \"Session devin-lab000001 not found\" }").await;
    assert_eq!(failed.fault.kind, FaultKind::ConversationGone);
    assert!(failed.refused.is_some(), "the turn may go on in a new session");
}

#[tokio::test]
async fn nothing_is_said_where_the_session_or_its_messages_cannot_be_looked_at_first() {
    let session = format!("{SESSIONS}/{FIRST}");
    for (says, kind, _) in answers() {
        let kind = if says.contains("= 404") || says.contains("= 410") {
            // Whatever the reply says: the call named nothing else that could be missing.
            FaultKind::ConversationGone
        } else if kind == FaultKind::DeadlineExceeded {
            // The look's deadline is not the turn's.
            FaultKind::UpstreamUnavailable
        } else {
            kind
        };
        for path in [session.clone(), format!("{session}/messages")] {
            let made = scene("").await;
            let told = made.turn("Fix it").await;
            made.lab.set_script(turnkeep_lab::Script::parse(&rule("GET", &path, says)).unwrap());
            let failed = made.refused(made.ask("More", told.conversation)).await;
            assert_eq!((failed.fault.kind, rereads(&failed)), (kind, Some(false)), "{path} {says}: {}", failed.fault);
            assert_eq!((made.posts().len(), made.user_said()), (1, vec!["Fix it".to_owned()]), "{path} {says}");
        }
    }
}

#[tokio::test]
async fn a_success_that_is_not_what_the_api_documents_is_malformed() {
    for raw in ["{}", "[]", "ok", "", "{\\\"session_id\\\":\\\"\\\",\\\"status\\\":\\\"new\\\"}"] {
        let scene = scene(&rule("POST", SESSIONS, &format!("raw = \"{raw}\""))).await;
        let failed = scene.refused(scene.ask("Fix it", None)).await;
        assert_eq!((failed.fault.kind, rereads(&failed)), (FaultKind::MalformedResponse, None), "{raw}");
        assert_eq!(scene.posts().len(), 1);
    }
    // Another session, messages that are none, pages without end.
    let path = format!("{SESSIONS}/{FIRST}");
    let rows = [
        (path.clone(), r#"raw = '{"session_id":"devin-other","status":"running"}'"#),
        (format!("{path}/messages"), r#"raw = '{"messages":[]}'"#),
        (format!("{path}/messages"), r#"raw = '{"items":[],"has_next_page":true}'"#),
    ];
    for (path, says) in rows {
        let scene = scene(&rule("GET", &path, says)).await;
        let told = scene.turn("Fix it").await;
        let fault = told.fault.unwrap();
        assert_eq!((fault.kind, fault.phase), (FaultKind::MalformedResponse, Phase::Answered), "{says}: {fault}");
        assert_eq!(scene.posts().len(), 1);
    }
}

#[tokio::test]
async fn looks_that_fail_for_a_while_do_not_end_a_turn() {
    let path = format!("{SESSIONS}/{FIRST}");
    for says in [
        "error = { status = 500 }",
        "error = { status = 503 }",
        "error = { status = 529 }",
        "error = { status = 403, message = \"who knows\" }",
        "fault = \"reset_before_reply\"",
        "fault = \"close_before_reply\"",
        "fault = \"html\"",
        "raw = \"{}\"",
    ] {
        for path in [path.clone(), format!("{path}/messages")] {
            let scene = scene(&rule("GET", &path, &format!("{says}\ntimes = 3"))).await;
            let told = scene.turn("Fix it").await;
            assert_eq!(
                (told.text.as_str(), told.ended),
                ("You said: \"Fix it\". This is the lab's Devin answering.", true),
                "{says}"
            );
            assert_eq!((told.fault, scene.posts().len()), (None, 1), "{says}");
        }
    }
}

#[tokio::test]
async fn a_look_that_is_limited_waits_as_long_as_it_is_told() {
    let path = format!("{SESSIONS}/{FIRST}");
    let scene = scene(&rule("GET", &path, "times = 1\nerror = { status = 429, retry_after = 1 }")).await;
    let began = Instant::now();
    assert!(scene.turn("Fix it").await.ended);
    assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
}

#[tokio::test]
async fn looks_that_fail_again_and_again_end_the_turn_with_their_fault() {
    let path = format!("{SESSIONS}/{FIRST}");
    for (says, kind, looks) in [
        ("error = { status = 500 }", FaultKind::UpstreamInternal, 6),
        ("error = { status = 403, message = \"who knows\" }", FaultKind::Unclassified, 6),
        ("error = { status = 401, message = \"Unauthorized\" }", FaultKind::CredentialRejected, 1),
        ("error = { status = 404, message = \"Session not found\" }", FaultKind::ConversationGone, 1),
        ("error = { status = 422, message = \"no\" }", FaultKind::RequestInvalid, 1),
    ] {
        let scene = scene(&rule("GET", &path, says)).await;
        let told = scene.turn("Fix it").await;
        let fault = told.fault.unwrap();
        assert_eq!((fault.kind, fault.phase, told.ended), (kind, Phase::Answered, false), "{says}");
        let asked = scene.lab.requests().iter().filter(|request| request.method == http::Method::GET).count();
        assert_eq!((asked, scene.posts().len()), (looks, 1), "{says}");
    }
}

#[tokio::test]
async fn an_upstream_that_is_gone_in_the_middle_of_a_turn_is_never_unsent() {
    let scene = scene("[[devin]]\nsteps = [{ gate = \"never\" }]").await;
    let answer = scene.begin("Fix it").await.unwrap_or_else(|failed| panic!("{failed:?}"));
    let ending = async {
        scene.lab.wait_at_gate("never", 1).await;
        scene.lab.stop().await;
    };
    let (told, ()) = tokio::join!(whole(answer), ending);
    let fault = told.fault.unwrap();
    assert_eq!(fault.phase, Phase::Answered, "what was said was said: {fault}");
}

#[tokio::test]
async fn what_says_something_goes_over_a_connection_of_its_own() {
    let scene = scene("").await;
    let told = scene.turn("Fix it").await;
    scene.next("More", &told).await;
    let requests = scene.lab.requests();
    for post in scene.posts() {
        let earlier = requests.iter().take_while(|request| request.sequence < post.sequence);
        assert!(earlier.clone().all(|request| request.connection != post.connection), "{}", post.target);
    }
    assert_eq!(scene.posts().len(), 2);
}
