//! Errors both ways, models and token counts: what a Messages client is told, and what an Anthropic-style error means.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

use serde_json::{Value, json};
use std::time::Duration;
use turnkeep_base::FaultKind::{self, *};
use turnkeep_base::{ClientError, Dialect};
use turnkeep_dialect::count;
use turnkeep_dialect::messages::{classify, error, models, request};

fn body_of(error: &ClientError) -> (u16, Value) {
    let (status, body) = error::body(error, "turn_1");
    (status, serde_json::from_slice(&body).unwrap())
}

#[test]
fn every_status_has_its_type() {
    for (status, code, sent, kind) in [
        (400, "invalid_request", 400, "invalid_request_error"),
        (401, "unauthenticated", 401, "authentication_error"),
        (403, "model_forbidden", 403, "permission_error"),
        (404, "model_not_found", 404, "not_found_error"),
        (405, "method", 405, "invalid_request_error"),
        (408, "body_timeout", 408, "timeout_error"),
        (409, "conflict", 409, "conflict_error"),
        (413, "too_large", 413, "request_too_large"),
        (415, "media_type", 415, "invalid_request_error"),
        (429, "rate_limited", 429, "rate_limit_error"),
        (429, "quota_exhausted", 402, "billing_error"),
        (429, "caller_budget_exhausted", 402, "billing_error"),
        (451, "policy_blocked", 451, "invalid_request_error"),
        (500, "gateway_bug", 500, "api_error"),
        (502, "upstream_internal", 502, "api_error"),
        (503, "model_overloaded", 529, "overloaded_error"),
        (503, "pool_exhausted", 503, "overloaded_error"),
        (504, "upstream_stalled", 504, "timeout_error"),
    ] {
        let wanted = json!({"type":"error","error":{"type":kind,"message":"why"},"request_id":"turn_1"});
        assert_eq!(body_of(&ClientError::new(status, code, "why")), (sent, wanted), "{status} {code}");
    }
}

#[test]
fn a_stream_s_error_tells_the_wait_that_no_header_can() {
    let mut failed = ClientError::new(503, "model_overloaded", "line\nbreak");
    failed.retry_after = Some(Duration::from_millis(2500));
    let event = error::event(&failed, "turn_1");
    assert_eq!(
        std::str::from_utf8(&event).unwrap(),
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"line\\nbreak\",\
         \"retry_after\":3},\"request_id\":\"turn_1\"}\n\n"
    );
}

#[test]
fn only_a_body_with_both_types_and_a_message_is_an_error_of_messages() {
    for (body, is) in [
        (r#"{"type":"error","error":{"type":"invalid_request_error","message":"m","more":1},"request_id":"r"}"#, true),
        (r#"{"error":{"message":"m","type":"invalid_request_error"},"type":"error"}"#, true),
        (r#"{"error":{"code":400,"message":"m","type":"exceed_context_size_error"}}"#, false),
        (r#"{"type":"error","error":{"message":"m"}}"#, false),
        (r#"{"type":"error","error":{"type":"t","message":5}}"#, false),
        (r#"{"type":"error","error":"m"}"#, false),
        ("<html>", false),
    ] {
        assert_eq!(error::is_body(body.as_bytes()), is, "{body}");
    }
}

fn named(kind: &str, message: &str) -> String {
    json!({"type":"error","error":{"type":kind,"message":message},"request_id":"r"}).to_string()
}

fn kind(status: u16, body: &str) -> FaultKind {
    classify::reply(status, body.as_bytes()).kind
}

#[test]
fn named_types_come_before_the_status() {
    for status in [200, 400, 401, 403, 500, 529] {
        for (name, wanted) in [
            ("overloaded_error", ModelOverloaded),
            ("billing_error", QuotaExhausted),
            ("rate_limit_error", RateLimited),
            ("authentication_error", CredentialRejected),
            ("api_error", UpstreamInternal),
            ("timeout_error", DeadlineExceeded),
            ("request_too_large", RequestInvalid),
            ("conflict_error", RequestInvalid),
            ("exceed_context_size_error", RequestInvalid),
            ("not_supported_error", RequestInvalid),
            ("unavailable_error", UpstreamUnavailable),
            ("server_error", UpstreamInternal),
        ] {
            assert_eq!(kind(status, &named(name, "words")), wanted, "{status} {name}");
        }
    }
}

#[test]
fn a_detail_code_comes_before_everything() {
    for (code, wanted) in [
        ("enforced_spend_limit_reached", QuotaExhausted),
        ("credit_balance_exhausted", QuotaExhausted),
        ("account_suspended", AccountSuspended),
        ("organization_disabled", AccountSuspended),
    ] {
        let body = json!({"error":{"type":"rate_limit_error","message":"m","details":{"error_code":code}}}).to_string();
        let found = classify::reply(429, body.as_bytes());
        assert_eq!((found.kind, found.evidence.code.as_deref()), (wanted, Some(code)));
    }
}

#[test]
fn money_wording_is_the_account_s_quota() {
    for (status, name, message) in [
        (400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
        (400, "invalid_request_error", "You have reached your specified API usage limits."),
        (429, "rate_limit_error", "This workspace reached its spend limit."),
        (403, "permission_error", "Your organization's spending limit is reached."),
    ] {
        assert_eq!(kind(status, &named(name, message)), QuotaExhausted, "{message}");
    }
    assert_eq!(kind(402, "{}"), QuotaExhausted);
    assert_eq!(kind(429, "spend limit"), QuotaExhausted);
}

#[test]
fn transient_wording_beats_an_authentication_status() {
    for status in [401, 403] {
        for name in ["authentication_error", "permission_error", "whatever"] {
            assert_eq!(kind(status, &named(name, "Internal server error")), UpstreamInternal);
            assert_eq!(kind(status, &named(name, "Overloaded")), ModelOverloaded);
        }
    }
}

#[test]
fn a_refusal_of_permission_names_the_model_or_nobody() {
    assert_eq!(kind(403, &named("permission_error", "Your API key may not use model claude-x")), ModelNotEntitled);
    assert_eq!(kind(403, &named("permission_error", "Forbidden")), Unclassified);
    assert_eq!(kind(403, "no"), Unclassified);
    assert_eq!(kind(403, &named("permission_error", "This organization has been disabled.")), AccountSuspended);
}

#[test]
fn what_is_not_found_is_the_model_or_the_request_s_own_fault() {
    assert_eq!(kind(404, &named("not_found_error", "model: claude-zzz")), ModelNotFound);
    assert_eq!(kind(404, &named("not_found_error", "Not Found")), RequestInvalid);
    assert_eq!(
        kind(404, r#"{"error":{"code":404,"message":"File Not Found","type":"not_found_error"}}"#),
        RequestInvalid
    );
}

#[test]
fn invalid_requests_are_the_request_s_own_fault() {
    assert_eq!(kind(400, &named("invalid_request_error", "prompt is too long: 300000 tokens")), RequestInvalid);
    assert_eq!(kind(400, &named("invalid_request_error", "Output blocked by content filtering policy")), PolicyBlocked);
    // Wording suspends nobody where the message may be the caller's own.
    assert_eq!(kind(400, &named("invalid_request_error", "This organization has been disabled.")), RequestInvalid);
    for status in [400, 405, 409, 412, 413, 415, 422, 431] {
        assert_eq!(kind(status, "what?"), RequestInvalid, "{status}");
    }
    // The catch-all type does not hide a status that names the account.
    assert_eq!(kind(401, &named("invalid_request_error", "bad key")), CredentialRejected);
    assert_eq!(kind(429, &named("invalid_request_error", "slow down")), RateLimited);
}

#[test]
fn a_status_alone_has_its_meaning() {
    for (status, wanted) in [
        (401, CredentialRejected),
        (404, RequestInvalid),
        (408, Unclassified),
        (418, Unclassified),
        (429, RateLimited),
        (451, PolicyBlocked),
        (500, UpstreamInternal),
        (501, RequestInvalid),
        (502, UpstreamUnavailable),
        (503, UpstreamUnavailable),
        (504, DeadlineExceeded),
        (524, UpstreamUnavailable),
        (529, ModelOverloaded),
        (599, Unclassified),
    ] {
        for body in ["", "{}", "nothing known", r#"{"error":{"type":"brand_new"}}"#] {
            assert_eq!(kind(status, body), wanted, "{status} {body}");
        }
    }
    assert_eq!(kind(503, "The service is overloaded"), ModelOverloaded);
    assert_eq!(kind(500, "context deadline exceeded"), DeadlineExceeded);
    assert_eq!(kind(500, &named("api_error", "context deadline exceeded")), DeadlineExceeded);
    assert_eq!(kind(529, &named("api_error", "Overloaded")), ModelOverloaded);
    for status in [502, 503, 522] {
        assert_eq!(kind(status, &named("api_error", "words")), UpstreamUnavailable, "{status}");
    }
}

#[test]
fn a_page_from_a_proxy_says_nothing_of_the_account() {
    for status in [400, 401, 403, 500, 502, 503, 504] {
        assert_eq!(kind(status, "\n<!DOCTYPE html><html>"), UpstreamUnavailable, "{status}");
    }
    assert_eq!(kind(413, "<html>413"), RequestInvalid);
    assert_eq!(kind(404, "<html>no such model page"), RequestInvalid);
    assert_eq!(kind(429, "<html>slow"), RateLimited);
}

#[test]
fn the_proof_keeps_status_code_and_words_within_bounds() {
    let long = "é".repeat(5000);
    let body =
        json!({"error":{"code":400,"type":"exceed_context_size_error","message":long,"param":"messages"}}).to_string();
    let found = turnkeep_dialect::classify::reply(Dialect::Messages, 400, body.as_bytes());
    assert_eq!((found.evidence.status, found.evidence.code.as_deref()), (Some(400), Some("exceed_context_size_error")));
    assert_eq!((found.message.len(), found.param.as_deref()), (4096, Some("messages")));
    assert!(found.evidence.detail.len() <= 512);
    // A body that was cut still says what it had said.
    let cut = classify::reply(500, br#"{"type":"error","error":{"type":"overloaded_error","message":"Over"#);
    assert_eq!(cut.kind, ModelOverloaded);
}

#[test]
fn models_are_listed_as_anthropic_lists_them() {
    let list: Value = serde_json::from_slice(&models::list(&["a", "b"], 1_709_210_096)).unwrap();
    let model = |id: &str| json!({"type":"model","id":id,"display_name":id,"created_at":"2024-02-29T12:34:56Z"});
    assert_eq!(list, json!({"data":[model("a"),model("b")],"has_more":false,"first_id":"a","last_id":"b"}));
    assert_eq!(serde_json::from_slice::<Value>(&models::one("a", 1_709_210_096)).unwrap(), model("a"));
    let empty: Value = serde_json::from_slice(&models::list(&[], 0)).unwrap();
    assert_eq!(empty, json!({"data":[],"has_more":false,"first_id":null,"last_id":null}));
    for (seconds, day) in
        [(0, "1970-01-01T00:00:00Z"), (951_782_400, "2000-02-29T00:00:00Z"), (4_102_444_799, "2099-12-31T23:59:59Z")]
    {
        let model: Value = serde_json::from_slice(&models::one("a", seconds)).unwrap();
        assert_eq!(model["created_at"], day);
    }
}

#[test]
fn token_counts_are_read_written_and_guessed() {
    assert_eq!(count::count_reply(Dialect::Messages, br#"{"input_tokens": 17}"#), Some(17));
    assert_eq!(count::count_reply(Dialect::Messages, &count::count_body(Dialect::Messages, 9)), Some(9));
    for body in ["", "{}", r#"{"input_tokens":"x"}"#] {
        assert_eq!(count::count_reply(Dialect::Messages, body.as_bytes()), None);
    }
    let body = br#"{"system":"Hello world","tools":[{"name":"hello","description":"Hello world","input_schema":{}}],"messages":[{"role":"user","content":[
        {"type":"text","text":"Hello"},{"type":"image","source":{"type":"url","url":"x"}}]}]}"#;
    // system 4 + 2, tool 4 + 1 + 2 + 1, message 4 + 1 + 1600
    assert_eq!(count::estimate(&request::decode(body).unwrap()), 6 + 8 + 1605);
}
