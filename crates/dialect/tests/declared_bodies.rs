//! What error bodies declare of their provider's limits, and which of them say that the request is too long.

#![allow(clippy::unwrap_used, reason = "a helper of a test may fail the test")]

use proptest::prelude::*;
use serde_json::{Value, json};
use std::time::Duration;
use turnkeep_base::{Declared, Dialect, FaultKind, LimitScope, Window, limit};
use turnkeep_dialect::{classify, gemini};

/// Mon, 30 Nov 2026 21:23:20 GMT
const NOW: u64 = 1_796_073_800_000;

fn chat(status: u16, body: &Value) -> classify::Classified {
    classify::reply_at(Dialect::Chat, status, body.to_string().as_bytes(), NOW)
}

fn millis(wait: Option<Duration>) -> Option<u64> {
    wait.map(|wait| u64::try_from(wait.as_millis()).unwrap())
}

fn said(message: &str) -> Declared {
    chat(429, &json!({"error":{"message":message,"type":"tokens","code":"rate_limit_exceeded"}})).declared
}

#[test]
fn a_message_says_how_long_to_wait() {
    for (message, wait) in [
        ("Please try again in 6m0s. Visit https://x", Some(360_000)),
        ("Limit 30000, Used 29937, Requested 385. Please try again in 644ms.", Some(644)),
        ("Please try again in 7.66s", Some(7_660)),
        ("Please try again in 1h2m", None),
        ("Please try again in 1m0.363142857s. Visit", Some(60_363)),
        ("Please retry in 45.578569677s.", Some(45_578)),
        ("Rate limit is exceeded. Try again in 12 seconds.", Some(12_000)),
        ("retry after 30 seconds", Some(30_000)),
        ("Please retry after 1 minute and 30 seconds.", Some(90_000)),
        ("Individual quota reached. Resets in 9h22m20s.", None),
        ("Please wait 5 minutes", Some(300_000)),
        ("Please try again later", None),
        ("try again in a moment, or try again in 9s", None),
        ("role 'try again in 10 days' is not known", None),
        ("try again in -5s", None),
        ("try again in 0s", None),
        ("try again in NaNs", None),
        ("try again in 1e9s", None),
        ("try again in 99999999999 days", None),
    ] {
        assert_eq!(millis(said(message).wait), wait, "{message}");
        assert_eq!(said(message).windows, []);
    }
    assert_eq!(said(&format!("try again in {}s", "9".repeat(10_000))).wait, None);
}

#[test]
fn a_field_of_the_error_says_how_long_to_wait() {
    for (fields, wait) in [
        (json!({"retry_after": 13}), Some(13_000)),
        (json!({"retry_after": "13"}), Some(13_000)),
        (json!({"retryAfter": 0.5}), Some(500)),
        (json!({"retry_after_ms": 250}), Some(250)),
        (json!({"metadata": {"retry_after_seconds": 30}}), Some(30_000)),
        (json!({"details": [{"retryDelay": "13s"}]}), Some(13_000)),
        (json!({"details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.5s"}]}), Some(500)),
        (json!({"details": [{"retryDelay": {"seconds": "3", "nanos": 500_000_000}}]}), Some(3_500)),
        (json!({"details": [{"retryDelay": {"seconds": 3}}]}), Some(3_000)),
        (json!({"details": [{"debug": {"retryDelay": "2s"}}]}), Some(2_000)),
        (json!({"retry_after": 5, "details": [{"retryDelay": "13s"}]}), Some(13_000)),
        (json!({"details": [{"retryDelay": {"seconds": -3}}]}), None),
        (json!({"details": [{"retryDelay": {"nanos": 1_000_000_000}}]}), None),
        (json!({"details": [{"retryDelay": [1]}]}), None),
        (json!({"retry_after": -1}), None),
        (json!({"retry_after": 1e300}), None),
        (json!({"retry_after": true}), None),
        (json!({"retry_after": null}), None),
        (json!({"retry_after": "9".repeat(10_000)}), None),
        (json!({"elsewhere": {"retry_after": 3}}), None),
    ] {
        let mut error = json!({"message": "slow", "code": "slow_down"});
        error.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        assert_eq!(millis(chat(429, &json!({"error": error})).declared.wait), wait, "{fields}");
    }
}

#[test]
fn a_used_up_plan_is_a_quota_window_until_it_resets() {
    let plan = |fields: Value| {
        let mut error =
            json!({"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"plus"});
        error.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        chat(429, &json!({"error": error}))
    };
    let both = plan(json!({"resets_in_seconds": 13_872, "resets_at": 1_796_087_672}));
    let window = Window { scope: LimitScope::Quota, wait: Duration::from_secs(13_872) };
    assert_eq!((both.kind, both.declared.windows.as_slice()), (FaultKind::QuotaExhausted, &[window][..]));
    assert_eq!(millis(both.declared.longest()), Some(13_872_000));
    assert_eq!(plan(json!({"resets_at": 1_796_087_672})).declared.windows, [window]);
    assert_eq!(plan(json!({"resets_at": "2026-12-01T01:14:32Z"})).declared.windows, [window]);
    for hostile in
        [json!({"resets_at": 5}), json!({"resets_at": 1_700_000_000}), json!({"resets_in_seconds": -5}), json!({})]
    {
        assert_eq!(plan(hostile.clone()).declared, Declared::default(), "{hostile}");
    }
    // When the reply was made is not known: a moment says nothing.
    let body = r#"{"error":{"type":"usage_limit_reached","resets_at":1796087672}}"#;
    assert_eq!(classify::reply(Dialect::Chat, 429, body.as_bytes()).declared, Declared::default());
}

#[test]
fn headers_that_a_body_repeats_are_read_as_headers() {
    let router = json!({"error":{"message":"Rate limit exceeded: free-models-per-day","code":429,"metadata":{"headers":{
        "X-RateLimit-Limit":"50","X-RateLimit-Remaining":"0","X-RateLimit-Reset":"1796083200000"}}}});
    let window = Window { scope: LimitScope::Requests, wait: Duration::from_secs(9_400) };
    assert_eq!(chat(429, &router).declared.windows, [window]);
    let socket = json!({"type":"error","error":{"type":"usage_limit_reached","message":"m"},"status_code":429,"headers":{
        "X-Codex-Primary-Used-Percent":"100","X-Codex-Primary-Reset-After-Seconds":"13873","X-Codex-Secondary-Used-Percent":"80"}});
    let found = chat(429, &socket);
    let window = Window { scope: LimitScope::Quota, wait: Duration::from_secs(13_873) };
    assert_eq!((found.kind, found.declared.windows.as_slice()), (FaultKind::QuotaExhausted, &[window][..]));
}

#[test]
fn a_limit_that_names_its_model_is_the_models() {
    for message in [
        "Rate limit reached for gpt-4o in organization org-abc on tokens per min (TPM): Limit 30000. Please try again in 644ms.",
        "Rate limit reached for model `llama-3.3-70b` in organization `org_1` service tier `on_demand` on tokens per day (TPD)",
        "This request would exceed your organization’s rate limit of 30,000 input tokens per minute (org: o, model: claude-x).",
        "* Quota exceeded for metric: generate_content_free_tier_requests, limit: 20, model: gemini-2.5-flash",
        "Quota exceeded for aiplatform.googleapis.com/requests_per_minute with base model: gemini-pro.",
    ] {
        assert!(said(message).names_model, "{message}");
    }
    for message in [
        "Rate limit reached for requests",
        "Rate limit reached for requests in organization org-abc on requests per min",
        "You say: Rate limit reached for gpt-4o in organization org-abc",
        "Too many requests, model: gpt-4o",
        "Slow down",
    ] {
        assert!(!said(message).names_model, "{message}");
    }
}

#[test]
fn a_violated_quota_of_google_names_its_model_and_its_wait() {
    let quota = |dimensions: Value| {
        json!([{"error":{"code":429,"message":"You exceeded your current quota, please check your plan","status":"RESOURCE_EXHAUSTED",
            "details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{
                "quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier","quotaDimensions":dimensions,"quotaValue":"20"}]},
                {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"58.8s"}]}}])
    };
    let wait = Duration::from_millis(58_800);
    for (dimensions, scope) in [
        (json!({"location":"global","model":"gemini-2.5-flash"}), LimitScope::Model),
        (json!({"location":"global"}), LimitScope::Account),
    ] {
        let body = quota(dimensions).to_string();
        for found in [
            classify::reply(Dialect::Chat, 429, body.as_bytes()),
            gemini::classify::reply_at(429, body.as_bytes(), NOW),
        ] {
            assert_eq!(found.kind, FaultKind::RateLimited);
            let names_model = scope == LimitScope::Model;
            assert_eq!(
                found.declared,
                Declared { wait: Some(wait), windows: vec![Window { scope, wait }], names_model }
            );
        }
    }
    let share = json!({"error":{"code":429,"message":"Individual quota reached. Resets in 9h22m20s.","status":"RESOURCE_EXHAUSTED","details":[
        {"reason":"QUOTA_EXHAUSTED","domain":"cloudcode-pa.googleapis.com","metadata":{
            "quotaResetTimeStamp":"2026-12-01T21:03:14Z","quotaResetDelay":"33740.910400305s","model":"gemini-3.5-flash"}}]}});
    let found = gemini::classify::reply_at(429, share.to_string().as_bytes(), NOW);
    assert_eq!((found.kind, found.declared.names_model), (FaultKind::RateLimited, true));
    assert!(found.declared.windows.iter().all(|window| window.scope == LimitScope::Model) && found.declared.explains());
}

#[test]
fn only_errors_that_speak_of_limits_declare_anything() {
    let body = |code: &str| json!({"error":{"message":"try again in 9s","code":code,"retry_after":9}});
    for (status, code) in [
        (400, "invalid_value"),
        (401, "invalid_api_key"),
        (404, "model_not_found"),
        (403, "content_filter"),
        (418, "x"),
    ] {
        assert_eq!(chat(status, &body(code)).declared, Declared::default(), "{code}");
    }
    for (status, code) in [(429, "slow_down"), (503, "slow_down"), (402, "x"), (500, "x"), (502, "x")] {
        assert_eq!(millis(chat(status, &body(code)).declared.wait), Some(9_000), "{code}");
    }
}

#[test]
fn a_request_that_is_too_long_is_told_from_other_invalid_ones() {
    for (dialect, status, body, long) in [
        (
            Dialect::Chat,
            400,
            r#"{"error":{"message":"m","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
            true,
        ),
        (
            Dialect::Chat,
            400,
            r#"{"error":{"code":400,"message":"m","type":"exceed_context_size_error","n_ctx":4}}"#,
            true,
        ),
        (
            Dialect::Chat,
            400,
            r#"{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","code":400}"#,
            true,
        ),
        (
            Dialect::Messages,
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}"#,
            true,
        ),
        (
            Dialect::Messages,
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 1 + 2 > 2"}}"#,
            true,
        ),
        (
            Dialect::Chat,
            429,
            r#"{"error":{"message":"Request too large: exceeds the maximum number of tokens. Please reduce the length","code":"rate_limit_exceeded"}}"#,
            true,
        ),
        (
            Dialect::Chat,
            400,
            r#"{"error":{"message":"'maximum context length' is no role","code":"invalid_value"}}"#,
            false,
        ),
        (Dialect::Chat, 400, r#"{"error":{"message":"m","code":"string_above_max_length"}}"#, false),
        (Dialect::Chat, 429, r#"{"error":{"message":"maximum context length","code":"slow_down"}}"#, false),
        (Dialect::Chat, 500, r#"{"error":{"message":"maximum context length"}}"#, false),
        (
            Dialect::Messages,
            413,
            r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
            false,
        ),
    ] {
        let found = classify::reply(dialect, status, body.as_bytes());
        assert_eq!(found.context_too_long, long, "{body}");
        assert!(!long || found.kind == FaultKind::RequestInvalid, "{body}");
    }
}

proptest! {
    #[test]
    fn no_body_makes_it_panic_and_everything_is_bounded(
        text in "\\PC{0,60}",
        number in prop_oneof![Just("1e999".to_owned()), Just("-0".to_owned()), "-?[0-9]{1,30}(\\.[0-9]{1,30})?"],
        key in prop::sample::select(vec!["retry_after", "retry_after_ms", "resets_in_seconds", "resets_at", "retryDelay", "quotaResetDelay"]),
        made in prop_oneof![Just(0), Just(NOW), any::<u64>()],
    ) {
        let bodies = [
            format!(r#"{{"error":{{"code":"slow_down","message":{},"{key}":{number}}}}}"#, json!(format!("try again in {text}"))),
            format!(r#"{{"error":{{"code":"slow_down","{key}":{}}}}}"#, json!(text)),
            format!(r#"{{"error":{{"code":"slow_down","{key}":{{"seconds":{number},"nanos":{number}}}}}}}"#),
            format!(r#"{{"error":{{"code":"slow_down","headers":{{"retry-after":{},"x-ratelimit-remaining":"0","x-ratelimit-reset":{number}}}}}}}"#, json!(text)),
        ];
        for body in bodies {
            let declared = classify::reply_at(Dialect::Chat, 429, body.as_bytes(), made).declared;
            prop_assert!(declared.windows.len() <= limit::WINDOWS);
            if let Some(wait) = declared.longest() {
                prop_assert!(!wait.is_zero() && wait <= Duration::from_secs(366 * 86_400));
            }
        }
    }
}
