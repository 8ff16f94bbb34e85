//! Signed and redacted thinking stays with its owner: taken out, and only it, where the turn goes elsewhere.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

use bytes::Bytes;
use serde_json::{Value, json};
use turnkeep_base::Dialect;
use turnkeep_dialect::identity::{has_opaque_state, strip_opaque_state};
use turnkeep_dialect::request::{ClientRequest, Operation, encode, read};

fn request(dialect: Dialect, body: &str) -> ClientRequest {
    read(dialect, Operation::Generate, Bytes::copy_from_slice(body.as_bytes()))
        .unwrap_or_else(|e| panic!("{e}: {body}"))
}

const OURS: &str = r#"{"signature":"turnkeep.chat.djE","type":"thinking","thinking":"a"}"#;
const UNSIGNED: &str = r#"{"type":"thinking","thinking":"b","signature":"turnkeep.unsigned"}"#;
const NATIVE: &str = r#"{"type":"thinking","thinking":"c","signature":"EqQB"}"#;
const REDACTED: &str = r#"{"type":"redacted_thinking","data":"EqQB"}"#;
const TEXT: &str = r#"{"type":"text","text":"turnkeep.chat says \"thinking\""}"#;
const CALL: &str = r#"{"type":"tool_use","id":"t","name":"f","input":{"thinking":"turnkeep.x"}}"#;

fn body(content: &str) -> String {
    format!(
        r#"{{ "model":"m","max_tokens":5,"messages":[{{"role":"user","content":"hi"}},{{"role":"assistant","content":[{content}]}},{{"role":"user","content":"go on"}}],"stream":true }}"#
    )
}

#[test]
fn our_envelope_never_passes_to_a_messages_upstream_and_all_else_stays_byte_for_byte() {
    let nothing = r#"{"type":"text","text":"..."}"#;
    for (sent, kept) in [
        (format!("{OURS},{TEXT} , {CALL}"), format!("{TEXT} , {CALL}")),
        (format!("{TEXT}, {UNSIGNED}\n,{CALL}"), format!("{TEXT}, {CALL}")),
        (format!("{TEXT} ,{OURS} , {UNSIGNED}"), TEXT.to_owned()),
        (format!("{OURS},{TEXT},{UNSIGNED},{OURS}"), TEXT.to_owned()),
        (format!("{OURS},{NATIVE},{OURS},{REDACTED}"), format!("{NATIVE},{REDACTED}")),
        (format!(" {OURS},{UNSIGNED} "), format!(" {nothing} ")),
    ] {
        let request = request(Dialect::Messages, &body(&sent));
        assert_eq!(request.pass_through("m"), body(&kept));
        assert_eq!(request.pass_through("up"), body(&kept).replacen("\"m\"", "\"up\"", 1));
        assert_eq!(request.dropped_in_passing(), ["thinking"]);
    }
    let own = request(Dialect::Messages, &body(&format!("{NATIVE},{REDACTED},{TEXT},{CALL}")));
    assert_eq!((own.pass_through("m"), own.dropped_in_passing().len()), (own.body.clone(), 0));
}

#[test]
fn elsewhere_nothing_of_another_owner_goes_along() {
    let sent = request(Dialect::Messages, &body(&format!("{NATIVE},{OURS},{REDACTED},{TEXT},{CALL}")));
    let (bytes, any) = sent.pass_through_elsewhere("up");
    assert_eq!((bytes, any), (body(&format!("{TEXT},{CALL}")).replacen("\"m\"", "\"up\"", 1).into(), true));
    let plain = request(Dialect::Messages, &body(TEXT));
    assert_eq!(plain.pass_through_elsewhere("m"), (plain.body.clone(), false));
    let chat = r#"{"stream":true,"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","thinking_blocks":[{"type":"thinking","thinking":"","signature":"EqQB"}],"content":"a"},{"role":"user","content":"b"}]}"#;
    let (bytes, any) = request(Dialect::Chat, chat).pass_through_elsewhere("m");
    let body: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!((&body["messages"][1]["thinking_blocks"], any), (&json!([]), true));
    assert_eq!(body["stream_options"]["include_usage"], true);
}

#[test]
fn a_turn_is_stripped_of_a_providers_state_before_it_is_translated() {
    let chat = r#"{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","thinking_blocks":[{"type":"thinking","thinking":"t","signature":"EqQB"}],"content":"a"},{"role":"user","content":"b"}]}"#;
    let request = request(Dialect::Chat, chat);
    let mut turn = request.turn().unwrap();
    assert!(String::from_utf8_lossy(&encode(Dialect::Messages, &turn, "up").unwrap().body).contains("EqQB"));
    assert!(has_opaque_state(&turn) && strip_opaque_state(&mut turn) && !has_opaque_state(&turn));
    assert!(!strip_opaque_state(&mut turn));
    let encoded = encode(Dialect::Messages, &turn, "up").unwrap();
    assert!(!String::from_utf8_lossy(&encoded.body).contains("EqQB"));
}

#[test]
fn a_mismatched_envelope_is_stripped_in_translation_and_named() {
    let turn = |request: &ClientRequest, target| encode(target, &request.turn().unwrap(), "up").unwrap();
    let native = request(Dialect::Messages, &body(&format!("{NATIVE},{TEXT}")));
    let encoded = turn(&native, Dialect::Chat);
    assert!(
        encoded.dropped.contains(&"thinking".to_owned()) && !String::from_utf8_lossy(&encoded.body).contains("EqQB")
    );
    let ours = request(Dialect::Messages, &body(&format!("{OURS},{TEXT}")));
    let encoded = turn(&ours, Dialect::Messages);
    assert!(
        encoded.dropped.contains(&"thinking".to_owned())
            && !String::from_utf8_lossy(&encoded.body).contains("turnkeep.chat.djE")
    );
    // Back to where it came from it goes along.
    assert!(String::from_utf8_lossy(&turn(&ours, Dialect::Chat).body).contains("\"reasoning_content\":\"a\""));
}

#[test]
fn state_is_bound_to_its_account_whichever_dialect_it_came_from_but_for_chat_that_signs_nothing() {
    for (signature, bound) in [
        ("EqQB", true),
        ("turnkeep.responses.gAAA", true),
        ("turnkeep.gemini.CiQB", true),
        ("turnkeep.chat.djE", false),
        ("turnkeep.unsigned", false),
        ("turnkeep.other.x", false),
    ] {
        let chat = format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":"hi"}},{{"role":"assistant","thinking_blocks":[{{"type":"thinking","thinking":"t","signature":"{signature}"}}],"content":"a"}},{{"role":"user","content":"b"}}]}}"#
        );
        let request = request(Dialect::Chat, &chat);
        let mut turn = request.turn().unwrap();
        assert_eq!((has_opaque_state(&turn), strip_opaque_state(&mut turn)), (bound, bound), "{signature}");
    }
}

#[test]
fn a_body_that_went_through_another_upstream_passes_without_that_state() {
    let responses = r#"{"model":"m","input":[{"role":"user","content":"hi"},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"turnkeep.gemini.CiQB"},{"role":"user","content":"b"}]}"#;
    let read = request(Dialect::Responses, responses);
    assert!(!String::from_utf8_lossy(&read.pass_through("m")).contains("turnkeep."));
    assert_eq!(read.dropped_in_passing(), ["thinking"]);
    let own = responses.replace("turnkeep.gemini.CiQB", "gAAA");
    let read = request(Dialect::Responses, &own);
    assert_eq!((read.pass_through("m"), read.dropped_in_passing().len()), (read.body.clone(), 0));
    let (elsewhere, any) = read.pass_through_elsewhere("m");
    assert!(any && !String::from_utf8_lossy(&elsewhere).contains("gAAA"));
}
