//! Proofs in a Gemini body that passes as it is: another provider's never reach Gemini, and elsewhere none does.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test's functions, too, end by panicking"
)]

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use turnkeep_dialect::identity::{Foreign, strip_edits};
use turnkeep_dialect::request::{ClientRequest, InPath, Operation, StreamForm, read_in_path};
use turnkeep_dialect::turn::{Body, Turn};

fn request(model: &str, body: &str) -> ClientRequest {
    let path = InPath { model: model.into(), stream: true, form: StreamForm::Events };
    read_in_path(Operation::Generate, path, body.to_owned().into()).unwrap_or_else(|error| panic!("{error}: {body}"))
}

fn body(parts: &str) -> String {
    format!(
        r#"{{ "contents":[{{"parts":[{{"text":"thoughtSignature"}}]}},{{"role":"model","parts" : [{parts}] }},{{"parts":[{{"text":"go on"}}]}}]}}"#
    )
}

fn foreign() -> String {
    STANDARD.encode("turnkeep.messages.EqQB")
}

const OWN: &str = r#"{"functionCall":{"name":"f"},"thoughtSignature":"c2ln"}"#;
const SENTINEL: &str = "skip_thought_signature_validator";

#[test]
fn another_providers_proof_never_passes_and_all_else_stays_byte_for_byte() {
    let url_safe = URL_SAFE_NO_PAD.encode("turnkeep.responses.gAAA>?");
    for signature in [foreign(), url_safe] {
        let call = |signature: &str| format!(r#"{{"thoughtSignature": "{signature}" ,"functionCall":{{"name":"f"}}}}"#);
        let text = |signature: &str| format!(r#"{{"text":"said","thought_signature":"{signature}"}}"#);
        let thought = format!(r#"{{"thought":true,"text":"hm","thoughtSignature":"{signature}"}}"#);
        let empty = format!(r#"{{"text":"","thoughtSignature":"{signature}"}}"#);
        for (sent, kept) in [
            (format!("{OWN},{}", call(&signature)), format!("{OWN},{}", call(SENTINEL))),
            (format!(" {} , {OWN}", text(&signature)), format!(" {} , {OWN}", text(""))),
            (format!("{thought},\n{OWN}"), OWN.to_owned()),
            (format!("{OWN} ,{empty}"), OWN.to_owned()),
            (format!("{thought},{},{empty}", call(&signature)), call(SENTINEL)),
            (format!("{thought}, {empty}"), r#"{"text":"..."}"#.to_owned()),
        ] {
            let sent = body(&sent);
            assert_eq!(request("gemini-3-pro", &sent).pass_through("gemini-3-pro"), body(&kept), "{sent}");
            assert_eq!(request("gemini-3-pro", &sent).dropped_in_passing(), ["thinking"]);
            // A name that does not tell the generation may stand for any.
            assert_eq!(request("fast", &sent).pass_through("up"), body(&kept), "{sent}");
        }
        let sent = body(&call(&signature));
        assert_eq!(request("gemini-2.5-pro", &sent).pass_through("gemini-2.5-pro"), body(&call("")));
        let single = format!(r#"{{"contents":[{{"role":"model","parts":{thought}}}]}}"#);
        let kept = r#"{"contents":[{"role":"model","parts":{"text":"..."}}]}"#;
        assert_eq!(request("m", &single).pass_through("m"), kept);
    }
    for own in [
        OWN,
        r#"{"text":"dHVybmtlZXAu thoughtSignature"}"#,
        r#"{"functionCall":{"name":"f"},"thoughtSignature":"skip_thought_signature_validator"}"#,
        r#"{"functionCall":{"name":"f","args":{"thoughtSignature":"dHVybmtlZXAu"}}}"#,
        r#"{"text":"","thoughtSignature":""}"#,
    ] {
        let sent = body(own);
        assert_eq!(request("m", &sent).pass_through("m"), sent);
    }
}

#[test]
fn elsewhere_no_proof_goes_along() {
    let foreign = foreign();
    let parts = format!(
        r#"{OWN},{{"text":"hm","thought":true,"thoughtSignature":"c2ln"}},{{"text":"a","thoughtSignature":"{foreign}"}},{{"text":"b"}},{{"text":"c","thought":true}}"#
    );
    let kept = format!(
        r#"{},{{"text":"a","thoughtSignature":""}},{{"text":"b"}},{{"text":"c","thought":true}}"#,
        OWN.replace("c2ln", SENTINEL)
    );
    let sent = request("gemini-3-pro", &body(&parts));
    let (bytes, any) = sent.pass_through_elsewhere("up");
    assert_eq!((String::from_utf8_lossy(&bytes).into_owned(), any), (body(&kept), true));
    let edits = strip_edits(&sent, Foreign::All);
    assert!(edits.is_sorted_by_key(|edit| edit.span.start) && edits.len() == 3, "{edits:?}");
    let plain = request("gemini-3-pro", &body(&OWN.replace("c2ln", SENTINEL)));
    assert_eq!(plain.pass_through_elsewhere("up"), (plain.body.clone(), false));
    // Counting takes the whole request one level down.
    let counted = format!(r#"{{"generateContentRequest":{}}}"#, body(OWN));
    let path = InPath { model: "gemini-2.5-pro".into(), stream: false, form: StreamForm::Events };
    let counted = read_in_path(Operation::CountTokens, path, counted.into()).unwrap();
    assert_eq!(strip_edits(&counted, Foreign::All).len(), 1);
}

fn proofs<'t>(turn: &'t Turn<'_>) -> Vec<(&'t str, Option<&'t str>)> {
    let parts = turn.messages.iter().flat_map(|message| &message.parts);
    parts
        .filter_map(|part| match &part.body {
            Body::Thinking { text, signature } => Some((&**text, signature.as_deref())),
            Body::RedactedThinking(data) => Some(("redacted", Some(&**data))),
            _ => None,
        })
        .collect()
}

#[test]
fn a_proof_is_read_into_the_thinking_before_what_it_is_on() {
    let redacted = STANDARD.encode("turnkeep.redacted.turnkeep.messages.EqQB");
    for (part, proof) in [
        (OWN.to_owned(), vec![("", Some("turnkeep.gemini.c2ln"))]),
        (format!(r#"{{"text":"hm","thought":true}},{OWN}"#), vec![("hm", Some("turnkeep.gemini.c2ln"))]),
        (
            format!(r#"{{"text":"hm","thought":true,"thoughtSignature":"Mg=="}},{OWN}"#),
            vec![("hm", Some("turnkeep.gemini.Mg==")), ("", Some("turnkeep.gemini.c2ln"))],
        ),
        (r#"{"text":"","thoughtSignature":"c2ln"}"#.to_owned(), vec![("", Some("turnkeep.gemini.c2ln"))]),
        (format!(r#"{{"text":"hm","thought":true,"thoughtSignature":"{}"}}"#, foreign()), vec![("hm", Some("EqQB"))]),
        (
            format!(r#"{{"text":"","thoughtSignature":"{}"}}"#, STANDARD.encode("turnkeep.responses.x")),
            vec![("", Some("turnkeep.responses.x"))],
        ),
        (format!(r#"{{"text":"","thoughtSignature":"{redacted}"}}"#), vec![("redacted", Some("EqQB"))]),
        (OWN.replace("c2ln", SENTINEL), vec![]),
        (OWN.replace("c2ln", "context_engineering_is_the_way_to_go"), vec![]),
        (OWN.replace("c2ln", ""), vec![]),
    ] {
        let request = request("m", &body(&part));
        assert_eq!(proofs(&request.turn().unwrap()), proof, "{part}");
    }
    // Only what the model said is signed.
    let user = request("m", r#"{"contents":[{"parts":[{"text":"hi","thoughtSignature":"c2ln"}]}]}"#);
    assert!(proofs(&user.turn().unwrap()).is_empty());
}
