//! The one-pass check of a Messages request: what passes, what does not, and how an error names its place.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

use bytes::Bytes;
use turnkeep_dialect::json::Invalid;
use turnkeep_dialect::messages::request;
use turnkeep_dialect::request::{ClientRequest, Operation};

fn read(body: &str) -> Result<ClientRequest, Invalid> {
    request::read(Operation::Generate, Bytes::copy_from_slice(body.as_bytes()))
}

fn with(message: &str) -> String {
    format!(r#"{{"model":"m","max_tokens":5,"messages":[{message}]}}"#)
}

#[test]
fn a_request_tells_its_model_its_mode_and_its_size() {
    let body = r#"{"max_tokens":100, "stream":true,"model": "claude-x" ,"messages":[{"role":"user","content":"hi"}]}"#;
    let request = read(body).unwrap();
    assert_eq!((request.model.as_str(), request.stream, request.max_output), ("claude-x", true, Some(100)));
    assert_eq!(&body[request.spans.model.clone()], "\"claude-x\"");
    assert_eq!(request.pass_through("claude-x"), body.as_bytes());
    assert_eq!(request.pass_through("b\"c"), body.replace("\"claude-x\"", r#""b\"c""#).as_bytes());
}

#[test]
fn a_missing_field_is_named() {
    for (body, path) in [
        (r#"{"max_tokens":1,"messages":[{"role":"user","content":""}]}"#, "model"),
        (r#"{"model":"m","max_tokens":1}"#, "messages"),
        (r#"{"model":"m","messages":[{"role":"user","content":""}]}"#, "max_tokens"),
        (&with(r#"{"content":"x"}"#), "messages[0].role"),
        (&with(r#"{"role":"user","content":"a"},{"role":"user"}"#), "messages[1].content"),
        (&with(r#"{"role":"user","content":[{"text":"x"}]}"#), "messages[0].content[0].type"),
        (&with(r#"{"role":"user","content":[{"type":"text"}]}"#), "messages[0].content[0].text"),
        (
            &with(r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"b"}]}"#),
            "messages[0].content[0].input",
        ),
        (&with(r#"{"role":"user","content":[{"type":"tool_result"}]}"#), "messages[0].content[0].tool_use_id"),
        (&with(r#"{"role":"user","content":[{"type":"image"}]}"#), "messages[0].content[0].source"),
        (&with(r#"{"role":"assistant","content":[{"type":"thinking"}]}"#), "messages[0].content[0].thinking"),
        (
            r#"{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}],"tools":[{"description":"x"}]}"#,
            "tools[0].name",
        ),
    ] {
        let error = read(body).unwrap_err();
        assert_eq!((error.path.as_str(), error.message.as_str()), (path, "this field is required"), "{body}");
    }
}

#[test]
fn a_value_of_the_wrong_kind_is_named() {
    for (body, path) in [
        (r#"{"model":7}"#.to_owned(), "model"),
        (r#"{"model":""}"#.to_owned(), "model"),
        (r#"{"messages":"x"}"#.to_owned(), "messages"),
        (r#"{"messages":[]}"#.to_owned(), "messages"),
        (r#"{"messages":["x"]}"#.to_owned(), "messages[0]"),
        (r#"{"max_tokens":1.5}"#.to_owned(), "max_tokens"),
        (r#"{"max_tokens":"1"}"#.to_owned(), "max_tokens"),
        (r#"{"stream":"true"}"#.to_owned(), "stream"),
        (r#"{"system":7}"#.to_owned(), "system"),
        (r#"{"system":["x"]}"#.to_owned(), "system[0]"),
        (r#"{"tools":{}}"#.to_owned(), "tools"),
        (r#"{"tools":[1]}"#.to_owned(), "tools[0]"),
        (r#"{"temperature":"hot"}"#.to_owned(), "temperature"),
        (r#"{"stop_sequences":"x"}"#.to_owned(), "stop_sequences"),
        (r#"{"stop_sequences":[1]}"#.to_owned(), "stop_sequences[0]"),
        (r#"{"thinking":true}"#.to_owned(), "thinking"),
        (r#"{"thinking":{}}"#.to_owned(), "thinking.type"),
        (r#"{"thinking":{"type":true}}"#.to_owned(), "thinking.type"),
        (r#"{"tool_choice":"auto"}"#.to_owned(), "tool_choice"),
        (r#"{"tool_choice":{"name":"f"}}"#.to_owned(), "tool_choice.type"),
        (r#"{"tools":[{"name":"f","description":5}]}"#.to_owned(), "tools[0].description"),
        (
            with(
                r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":5}]}]}"#,
            ),
            "messages[0].content[0].content[0]",
        ),
        (with(r#"{"role":"tool","content":"x"}"#), "messages[0].role"),
        (with(r#"{"role":"user","content":null}"#), "messages[0].content"),
        (with(r#"{"role":"user","content":[{"type":"text","text":7}]}"#), "messages[0].content[0].text"),
        (
            with(r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":7}]}"#),
            "messages[0].content[0].content",
        ),
        (
            with(
                r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"text":"a","type":"text"},"x"]}]}"#,
            ),
            "messages[0].content[0].content[1]",
        ),
    ] {
        assert_eq!(read(&body).unwrap_err().path, path, "{body}");
    }
}

#[test]
fn a_field_that_the_gateway_reads_may_be_given_only_once() {
    let body = r#"{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"x"}],"stream":null"#;
    for again in
        [r#""model":"n""#, r#""messages":[{"role":"user","content":"x"}]"#, r#""max_tokens":5"#, r#""stream":false"#]
    {
        let error = read(&format!("{body},{again}}}")).unwrap_err();
        assert!(error.message.starts_with("duplicate `"), "{error}");
    }
    assert!(read(&format!(r#"{body},"metadata":{{}},"metadata":null,"x":1,"x":2}}"#)).is_ok());
}

#[test]
fn unknown_fields_and_block_types_pass() {
    let body = r#"{"model":"m","max_tokens":5,"safeguards":[1],"context_management":{"edits":[]},"tools":[{"name":"t","defer_loading":true},{"type":"bash_20250124"}],
        "messages":[{"role":"system","content":"x","output_config":{"effort":"low"}},{"role":"user","content":[{"type":"new","text":7}]},{"role":"assistant","content":""}]}"#;
    assert!(read(body).is_ok());
}

#[test]
fn counting_tokens_needs_no_limit_of_output() {
    let body = Bytes::from_static(br#"{"model":"m","messages":[{"role":"user","content":"x"}]}"#);
    assert_eq!(request::read(Operation::CountTokens, body).unwrap().max_output, None);
}

#[test]
fn text_after_the_body_is_refused() {
    let body = format!("{} x", with(r#"{"role":"user","content":"x"}"#));
    assert!(read(&body).unwrap_err().message.contains("after the end"));
}

#[test]
fn every_recorded_request_of_a_real_client_is_read_and_decoded() {
    let captures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/captures");
    let mut seen = 0;
    for folder in std::fs::read_dir(captures).unwrap() {
        for file in std::fs::read_dir(folder.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let capture: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            let target = capture["target"].as_str().unwrap_or_default();
            if !target.starts_with("/v1/messages") || !capture["body"].is_object() {
                continue;
            }
            let counts = target.contains("count_tokens");
            let operation = if counts { Operation::CountTokens } else { Operation::Generate };
            let body = Bytes::from(serde_json::to_vec(&capture["body"]).unwrap());
            let request = request::read(operation, body).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let turn = request.turn().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert_eq!(turn.model, request.model);
            assert!(!turn.messages.is_empty());
            seen += 1;
        }
    }
    assert!(seen >= 90, "{seen} captures");
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_the_check_or_the_decoder_panic(body: Vec<u8>) {
        let _ = request::read(Operation::Generate, body.clone().into());
        let _ = request::decode(&body);
    }

    #[test]
    fn no_damage_to_a_request_makes_the_check_or_the_decoder_panic(at in 0usize..1000, byte: u8) {
        let mut body = with(r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"image","source":{"type":"url","url":"x"}}]},{"type":"thinking","thinking":"","signature":null}]}"#).into_bytes();
        let at = at % body.len();
        body[at] = byte;
        let _ = request::read(Operation::Generate, body.clone().into());
        let _ = request::decode(&body);
    }
}
