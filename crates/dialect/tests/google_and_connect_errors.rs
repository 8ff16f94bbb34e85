//! What errors of Gemini and of Connect and gRPC services mean, one by one; and which replies mean that a conversation is
//! gone.

use turnkeep_base::FaultKind::{self, *};
use turnkeep_dialect::{chat, connect, gemini};

#[track_caller]
fn google(status: u16, body: &str, kind: FaultKind) {
    assert_eq!(gemini::classify::reply_at(status, body.as_bytes(), 0).kind, kind, "{status} {body}");
    // Some endpoints wrap the error in a list of one.
    if body.starts_with('{') {
        let list = format!("[{body}]");
        assert_eq!(gemini::classify::reply_at(status, list.as_bytes(), 0).kind, kind, "{status} {list}");
    }
}

fn rpc(code: u16, status: &str, message: &str) -> String {
    format!(r#"{{"error":{{"code":{code},"message":"{message}","status":"{status}"}}}}"#)
}

#[test]
fn a_google_status_has_its_meaning() {
    for (code, status, message, kind) in [
        (400, "INVALID_ARGUMENT", "bad", RequestInvalid),
        (400, "FAILED_PRECONDITION", "User location is not supported for the API use.", RequestInvalid),
        (400, "OUT_OF_RANGE", "m", RequestInvalid),
        (401, "UNAUTHENTICATED", "Request had invalid authentication credentials.", CredentialRejected),
        (401, "UNAUTHENTICATED", "Internal error encountered.", UpstreamInternal),
        (403, "PERMISSION_DENIED", "The caller does not have permission", Unclassified),
        (403, "PERMISSION_DENIED", "The model is overloaded.", ModelOverloaded),
        (403, "PERMISSION_DENIED", "You have no access to model x", ModelNotEntitled),
        (404, "NOT_FOUND", "models/x is not found for API version v1beta", ModelNotFound),
        (404, "NOT_FOUND", "Requested entity was not found.", RequestInvalid),
        (429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).", RateLimited),
        (
            429,
            "RESOURCE_EXHAUSTED",
            "You exceeded your current quota, please check your plan and billing details.",
            RateLimited,
        ),
        (429, "RESOURCE_EXHAUSTED", "Your prepayment credits are depleted.", QuotaExhausted),
        (429, "RESOURCE_EXHAUSTED", "Received message larger than max (5 vs. 4)", RequestInvalid),
        (402, "", "billing", QuotaExhausted),
        (499, "CANCELLED", "The operation was cancelled.", UpstreamUnavailable),
        (500, "INTERNAL", "An internal error has occurred.", UpstreamInternal),
        (500, "UNKNOWN", "m", UpstreamInternal),
        (501, "UNIMPLEMENTED", "m", RequestInvalid),
        (503, "UNAVAILABLE", "The model is overloaded. Please try again later.", ModelOverloaded),
        (503, "UNAVAILABLE", "The service is currently unavailable.", UpstreamUnavailable),
        (504, "DEADLINE_EXCEEDED", "m", DeadlineExceeded),
        (418, "SOMETHING_NEW", "m", Unclassified),
    ] {
        google(code, &rpc(code, status, message), kind);
    }
}

#[test]
fn a_google_reason_comes_before_the_status() {
    let reason = |reason: &str| {
        format!(
            r#"{{"error":{{"code":400,"message":"m","status":"INVALID_ARGUMENT","details":[{{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"{reason}"}}]}}}}"#
        )
    };
    google(400, &reason("API_KEY_INVALID"), CredentialRejected);
    google(403, &reason("CONSUMER_SUSPENDED"), AccountSuspended);
    google(403, &reason("BILLING_DISABLED"), QuotaExhausted);
    google(503, &reason("MODEL_CAPACITY_EXHAUSTED"), ModelOverloaded);
    google(429, &reason("RATE_LIMIT_EXCEEDED"), RateLimited);
    google(400, &reason("SOMETHING_ELSE"), RequestInvalid);
    google(400, &rpc(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."), CredentialRejected);
    google(400, &rpc(400, "INVALID_ARGUMENT", "API key not valid. is no role"), RequestInvalid);
    let quoted = r#"{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT","details":[{"fieldViolations":[{"reason":"API_KEY_INVALID"}]}]}}"#;
    google(400, quoted, RequestInvalid);
}

#[test]
fn what_is_no_google_status_goes_by_http() {
    for (status, body, kind) in [
        (401, "", CredentialRejected),
        (403, "no", Unclassified),
        (404, "nothing", RequestInvalid),
        (413, "", RequestInvalid),
        (429, "", RateLimited),
        (500, "", UpstreamInternal),
        (502, "<!DOCTYPE html>", UpstreamUnavailable),
        (401, "<html>", UpstreamUnavailable),
        (404, "<html>no model here", RequestInvalid),
        (429, "<html>sorry", RateLimited),
        (503, "", UpstreamUnavailable),
        (504, "", DeadlineExceeded),
        (529, "", ModelOverloaded),
    ] {
        google(status, body, kind);
    }
    let in_stream = |error: &str| gemini::classify::in_stream(error.as_bytes()).kind;
    assert_eq!(in_stream(&rpc(503, "UNAVAILABLE", "The model is overloaded.")), ModelOverloaded);
    assert_eq!(in_stream(r#"{"code":429,"status":"RESOURCE_EXHAUSTED","message":"m"}"#), RateLimited);
    assert_eq!(in_stream("not JSON"), Unclassified);
}

/// What each code means, by its number and its name.
const CODES: &[(u32, &str, FaultKind)] = &[
    (1, "canceled", UpstreamUnavailable),
    (2, "unknown", UpstreamInternal),
    (3, "invalid_argument", RequestInvalid),
    (4, "deadline_exceeded", DeadlineExceeded),
    (5, "not_found", RequestInvalid),
    (6, "already_exists", RequestInvalid),
    (7, "permission_denied", Unclassified),
    (8, "resource_exhausted", RateLimited),
    (9, "failed_precondition", RequestInvalid),
    (10, "aborted", UpstreamUnavailable),
    (11, "out_of_range", RequestInvalid),
    (12, "unimplemented", RequestInvalid),
    (13, "internal", UpstreamInternal),
    (14, "unavailable", UpstreamUnavailable),
    (15, "data_loss", UpstreamInternal),
    (16, "unauthenticated", CredentialRejected),
];

#[test]
fn every_grpc_code_has_one_meaning_by_number_and_by_name() {
    for &(number, name, kind) in CODES {
        let found = connect::classify::grpc(number, "m");
        assert_eq!((found.kind, found.evidence.code.as_deref()), (kind, Some(name)));
        for name in [name.to_owned(), name.to_uppercase()] {
            let body = format!(r#"{{"code":"{name}","message":"m"}}"#);
            for status in [400, 429, 500, 503] {
                assert_eq!(connect::classify::reply_at(status, body.as_bytes(), 0).kind, kind, "{status} {name}");
            }
            assert_eq!(connect::classify::in_stream(body.as_bytes()).kind, kind, "{name}");
            let end = format!(r#"{{"error":{body},"metadata":{{}}}}"#);
            assert_eq!(connect::classify::in_stream(end.as_bytes()).kind, kind, "{name}");
        }
    }
    assert_eq!(connect::classify::grpc(1, "m").kind, connect::classify::in_stream(br#"{"code":"cancelled"}"#).kind);
    for number in [0, 17, u32::MAX] {
        assert_eq!(connect::classify::grpc(number, "m").kind, Unclassified, "{number}");
    }
    assert_eq!(connect::classify::grpc(99, "m").evidence.code.as_deref(), Some("grpc_99"));
    assert_eq!(connect::classify::in_stream(br#"{"code":"made_up","message":"m"}"#).kind, Unclassified);
}

#[test]
fn wording_tells_the_causes_of_one_code_apart() {
    for (number, message, kind) in [
        (8, "grpc: received message larger than max (5 vs. 4)", RequestInvalid),
        (8, "too many requests", RateLimited),
        (16, "internal error", UpstreamInternal),
        (16, "the model is overloaded", ModelOverloaded),
        (7, "internal server error", UpstreamInternal),
        (7, "the team has no access to model x", ModelNotEntitled),
        (14, "the model is at capacity", ModelOverloaded),
        (13, "context deadline exceeded", DeadlineExceeded),
        (5, "model x not found", ModelNotFound),
    ] {
        assert_eq!(connect::classify::grpc(number, message).kind, kind, "{number} {message}");
    }
}

#[test]
fn what_is_no_connect_error_goes_by_http() {
    for (status, body, kind) in [
        (401, "", CredentialRejected),
        (401, "<html>", UpstreamUnavailable),
        (404, "<html>no model here", RequestInvalid),
        (429, "<html>sorry", RateLimited),
        (403, "no", Unclassified),
        (404, "", RequestInvalid),
        (415, "", RequestInvalid),
        (429, "", RateLimited),
        (500, "oops", UpstreamInternal),
        (502, "", UpstreamUnavailable),
        (503, "<html>", UpstreamUnavailable),
        (504, "", DeadlineExceeded),
    ] {
        assert_eq!(connect::classify::reply_at(status, body.as_bytes(), 0).kind, kind, "{status} {body}");
    }
}

#[test]
fn a_conversation_is_gone_only_where_one_was_continued() {
    let named = br#"{"error":{"message":"Previous response with id 'resp_1' not found.","type":"invalid_request_error","param":"previous_response_id","code":"previous_response_not_found"}}"#;
    let by_field = br#"{"error":{"message":"Response with id 'resp_1' not found.","type":"invalid_request_error","param":"previous_response_id","code":null}}"#;
    for body in [&named[..], by_field] {
        for status in [400, 404] {
            assert_eq!(chat::classify::continued_at(status, body, 0).kind, ConversationGone);
            assert_eq!(chat::classify::reply_at(status, body, 0).kind, RequestInvalid);
        }
    }
    let other = br#"{"error":{"message":"file not found","param":"input","code":null}}"#;
    assert_eq!(chat::classify::continued_at(404, other, 0).kind, RequestInvalid);
    let cascade = br#"{"code":"not_found","message":"cascade 1 does not exist"}"#;
    assert_eq!(connect::classify::continued_at(404, cascade, 0).kind, ConversationGone);
    assert_eq!(connect::classify::reply_at(404, cascade, 0).kind, RequestInvalid);
    let model = br#"{"code":"not_found","message":"model x does not exist"}"#;
    assert_eq!(connect::classify::continued_at(404, model, 0).kind, ModelNotFound);
}
