//! Token counts: what the vendors' endpoints are asked and answer, and the estimate where there is none.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

use bytes::Bytes;
use serde_json::{Value, json};
use turnkeep_base::Dialect;
use turnkeep_dialect::count::{count_body, count_reply, counting, estimate, tokens};
use turnkeep_dialect::request::{ApiVersion, ClientRequest, Encoded, Operation, read, write_for};
use turnkeep_dialect::tool_names::ToolNames;

fn chat(body: &str) -> ClientRequest {
    read(Dialect::Chat, Operation::Generate, Bytes::copy_from_slice(body.as_bytes())).unwrap()
}

fn said(text: &str) -> u64 {
    let body = json!({"model":"m","messages":[{"role":"user","content":text}]}).to_string();
    estimate(&chat(&body).turn().unwrap())
}

#[test]
fn each_dialects_own_count_is_read_and_written() {
    for (dialect, body) in [
        (Dialect::Messages, r#"{"input_tokens":17}"#),
        (Dialect::Responses, r#"{"object":"response.input_tokens","input_tokens":17}"#),
        (Dialect::Gemini, r#"{"totalTokens":17,"promptTokensDetails":[{"modality":"TEXT","tokenCount":17}]}"#),
    ] {
        assert_eq!(count_reply(dialect, body.as_bytes()), Some(17), "{body}");
        assert_eq!(count_reply(dialect, &count_body(dialect, 9)), Some(9), "{dialect}");
        for wrong in
            ["", "{}", "[]", r#"{"input_tokens":"x","totalTokens":[]}"#, r#"{"input_tokens":1,"totalTokens":1}x"#]
        {
            assert_eq!(count_reply(dialect, wrong.as_bytes()), None, "{dialect} {wrong}");
        }
    }
    assert_eq!(count_reply(Dialect::Gemini, br#"{"input_tokens":17}"#), None);
    assert_eq!(count_body(Dialect::Gemini, 5), r#"{"totalTokens":5}"#);
}

#[test]
fn a_count_at_anthropic_is_asked_without_limits_and_sampling() {
    let body = r#"{"model":"m","stream":true,"max_tokens":5,"temperature":0.5,"stop":["x"],"user":"u","messages":[{"role":"system","content":"s"},{"role":"user","content":"hi"}],
        "tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}],"tool_choice":"auto"}"#;
    let request = ClientRequest { operation: Operation::CountTokens, ..chat(body) };
    let sent: Value =
        serde_json::from_slice(&write_for(&request, Dialect::Messages, "up", false).unwrap().body).unwrap();
    let mut names: Vec<&str> = sent.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["messages", "model", "system", "tool_choice", "tools"]);
    assert_eq!((&sent["model"], &sent["tools"][0]["name"]), (&json!("up"), &json!("f")));
    let error = write_for(&request, Dialect::Chat, "up", false).unwrap_err();
    assert_eq!(error.to_string(), "model: no upstream of this model counts tokens");
}

#[test]
fn the_other_vendors_endpoints_get_their_own_form() {
    let encoded = |body: &str| Encoded {
        body: Bytes::copy_from_slice(body.as_bytes()),
        dropped: vec!["x".into()],
        version: ApiVersion::default(),
        names: ToolNames::default(),
    };
    let gemini =
        encoded(r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"generationConfig":{"temperature":1.0}}"#);
    let sent = counting(Dialect::Gemini, gemini, "gemini-3").unwrap();
    assert_eq!(
        sent.body,
        r#"{"generateContentRequest":{"model":"models/gemini-3","contents":[{"role":"user","parts":[{"text":"hi"}]}],"generationConfig":{"temperature":1.0}}}"#
    );
    assert_eq!(sent.dropped, ["x"]);
    let responses = encoded(
        r#"{"model":"m","input":"hi","store":false,"stream":true,"max_output_tokens":5,"include":[],"instructions":"i","reasoning":{"effort":"low"}}"#,
    );
    let sent = counting(Dialect::Responses, responses, "m").unwrap();
    assert_eq!(sent.body, r#"{"model":"m","input":"hi","instructions":"i","reasoning":{"effort":"low"}}"#);
}

#[test]
fn the_tokeniser_is_the_real_one() {
    for (text, count) in [("", 0), ("Hello world", 2), ("tiktoken is great!", 6), ("hello\nworld", 3), ("中文字符", 2)]
    {
        assert_eq!(tokens(text), count, "{text}");
    }
}

#[test]
fn a_turn_counts_its_texts_and_what_stands_around_them() {
    let frame = 4;
    assert_eq!(said("Hello world"), frame + 2);
    let body = json!({"model":"m","messages":[
        {"role":"user","content":[{"type":"text","text":"Hello world"},{"type":"image_url","image_url":{"url":"https://x"}}]},
        {"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"hello","arguments":"{}"}}]},
        {"role":"tool","tool_call_id":"c","content":"Hello world"}],
        "tools":[{"type":"function","function":{"name":"hello","description":"Hello world","parameters":{}}}]});
    let turn = chat(&body.to_string());
    // Messages 3, call, result and tool 1 each; an image; the texts, `hello` and `{}` of one token each.
    assert_eq!(estimate(&turn.turn().unwrap()), 6 * frame + 1600 + 2 + (1 + 1) + 2 + (1 + 2 + 1));
}

#[test]
fn beyond_what_is_counted_the_rate_stays() {
    let small = said(&"The quick brown fox. ".repeat(20_000));
    let large = said(&"The quick brown fox. ".repeat(200_000));
    let ratio = large as f64 / small as f64;
    assert!((9.9..10.1).contains(&ratio), "{small} {large}");
}

#[test]
fn no_text_costs_more_than_its_share() {
    let letters = |unit: &str, bytes: usize| unit.repeat(bytes / unit.len());
    let timed = |text: &str| {
        let began = std::time::Instant::now();
        assert!(tokens(text) > 0);
        began.elapsed()
    };
    timed("warm");
    for unit in ["a", " ", "\n", "=", "ab", "é", "e\u{301}", "aA", " \n", "中", "9", "\u{1F600}"] {
        let (short, long) = (timed(&letters(unit, 100_000)), timed(&letters(unit, 1_000_000)));
        // Five times as much is counted; twenty times as long would be another law than a line.
        assert!(long < short * 20 + std::time::Duration::from_millis(500), "{unit:?}: {short:?} {long:?}");
    }
}
