//! Our own errors in Gemini's form.

#![allow(clippy::unwrap_used, reason = "a helper of a test may fail the test")]

use serde_json::{Value, json};
use std::time::Duration;
use turnkeep_base::{ClientError, Dialect, FaultKind};
use turnkeep_dialect::gemini::error::{body, event, is_body};
use turnkeep_dialect::gemini::{classify, order};
use turnkeep_dialect::request::StreamForm;

fn value(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn a_body_is_a_status_with_its_details() {
    let mut error = ClientError::invalid("contents[0].role", "no \"role\"");
    error.retry_after = Some(Duration::from_millis(2_500));
    let (status, bytes) = body(&error, "turn_1");
    assert_eq!(status, 400);
    let kind = |name: &str| format!("type.googleapis.com/google.rpc.{name}");
    assert_eq!(
        value(&bytes),
        json!({"error": {
            "code": 400,
            "message": "no \"role\"",
            "status": "INVALID_ARGUMENT",
            "details": [
                {"@type": kind("ErrorInfo"), "reason": "INVALID_REQUEST", "domain": "turnkeep"},
                {"@type": kind("RetryInfo"), "retryDelay": "3s"},
                {"@type": kind("BadRequest"),
                    "fieldViolations": [{"field": "contents[0].role", "description": "no \"role\""}]},
                {"@type": kind("RequestInfo"), "requestId": "turn_1"},
            ],
        }})
    );
    assert!(is_body(&bytes));
}

#[test]
fn every_429_says_how_long_to_wait() {
    for wait in [None, Some(Duration::from_secs(1))] {
        let mut error = ClientError::new(429, "rate_limited", "slow down");
        error.retry_after = wait;
        let (_, bytes) = body(&error, "");
        let details = value(&bytes)["error"]["details"].clone();
        assert_eq!(details[1]["retryDelay"], "1s", "{details}");
        let classified = classify::reply_at(429, &bytes, 0);
        assert_eq!((classified.kind, classified.declared.wait), (FaultKind::RateLimited, Some(Duration::from_secs(1))));
    }
    let (_, bytes) = body(&ClientError::new(500, "gateway_bug", "x"), "");
    assert_eq!(value(&bytes)["error"]["details"].as_array().unwrap().len(), 1);
}

#[test]
fn every_status_has_googles_word() {
    for (status, word) in [
        (400, "INVALID_ARGUMENT"),
        (401, "UNAUTHENTICATED"),
        (402, "FAILED_PRECONDITION"),
        (403, "PERMISSION_DENIED"),
        (404, "NOT_FOUND"),
        (408, "DEADLINE_EXCEEDED"),
        (409, "ABORTED"),
        (413, "INVALID_ARGUMENT"),
        (422, "INVALID_ARGUMENT"),
        (429, "RESOURCE_EXHAUSTED"),
        (451, "FAILED_PRECONDITION"),
        (499, "CANCELLED"),
        (500, "INTERNAL"),
        (501, "UNIMPLEMENTED"),
        (502, "UNAVAILABLE"),
        (503, "UNAVAILABLE"),
        (504, "DEADLINE_EXCEEDED"),
    ] {
        let (sent, bytes) = body(&ClientError::new(status, "x", "m"), "");
        let error = value(&bytes)["error"].clone();
        assert_eq!((sent, &error["code"], &error["status"]), (status, &json!(status), &json!(word)));
    }
    let (sent, bytes) = body(&ClientError::new(529, "model_overloaded", "m"), "");
    assert_eq!((sent, &value(&bytes)["error"]["code"]), (503, &json!(503)));
}

#[test]
fn the_end_of_a_stream_is_one_event_or_closes_the_array_whether_it_had_begun_or_not() {
    let error = ClientError::new(503, "model_overloaded", "full");
    for begun in [true, false] {
        let bytes = event(StreamForm::Events, begun, &error, "t");
        let data = bytes.strip_prefix(b"data: ").unwrap().strip_suffix(b"\n\n").unwrap();
        assert_eq!(data, body(&error, "t").1);
    }
    let chunk =
        r#"{"candidates":[{"content":{"parts":[{"text":"a"}],"role":"model"}}],"modelVersion":"m","responseId":"r"}"#;
    // Signs of life are white space.
    for (before, begun) in [("\n\n", false), (&*format!("\n[{chunk}\n"), true)] {
        let whole = [before.as_bytes(), &event(StreamForm::Array, begun, &error, "t")].concat();
        assert_eq!(order::array(&whole), Ok(()), "{}", String::from_utf8_lossy(&whole));
        assert_eq!(value(&whole).as_array().unwrap().last(), Some(&value(&body(&error, "t").1)));
    }
}

#[test]
fn a_sign_of_life_is_nothing_to_googles_clients() {
    for form in [StreamForm::Events, StreamForm::Array] {
        for begun in [true, false] {
            assert_eq!(turnkeep_dialect::reply::heartbeat(Dialect::Gemini, form, begun), "\n");
        }
    }
}

#[test]
fn only_a_status_with_every_field_in_its_own_type_is_a_body() {
    for (body, is) in [
        (r#"{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT"},"more":1}"#, true),
        (r#"{"error":{"code":400,"message":"m","status":"S","details":[{"@type":"t"}]}}"#, true),
        (r#"[{"error":{"code":400,"message":"m","status":"S"}}]"#, true),
        (
            r#"[{"error":{"code":400,"message":"m","status":"S"}},{"error":{"code":400,"message":"m","status":"S"}}]"#,
            false,
        ),
        (r#"{"error":{"code":"400","message":"m","status":"S"}}"#, false),
        (r#"{"error":{"code":400,"message":"m"}}"#, false),
        (r#"{"error":{"code":400,"message":"m","status":7}}"#, false),
        (r#"{"error":{"code":400,"message":"m","status":"S","details":{}}}"#, false),
        (r#"{"error":{"message":"m","type":"t","param":null,"code":null}}"#, false),
        (r#"{"error":"text"}"#, false),
        ("[]", false),
        ("{", false),
        ("", false),
    ] {
        assert_eq!(is_body(body.as_bytes()), is, "{body}");
    }
}
