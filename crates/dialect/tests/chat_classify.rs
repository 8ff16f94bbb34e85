//! What errors of OpenAI and of compatible servers mean, one by one.

use proptest::prelude::*;
use turnkeep_base::{Dialect, FaultKind};
use turnkeep_dialect::classify::reply;

#[track_caller]
fn means(status: u16, body: &str, kind: FaultKind) {
    assert_eq!(reply(Dialect::Chat, status, body.as_bytes()).kind, kind, "{status} {body}");
}

fn coded(code: &str) -> String {
    format!(r#"{{"error":{{"message":"m","type":"t","param":null,"code":"{code}"}}}}"#)
}

fn typed(kind: &str) -> String {
    format!(r#"{{"error":{{"message":"m","type":"{kind}","param":null,"code":null}}}}"#)
}

fn saying(message: &str) -> String {
    format!(r#"{{"error":{{"message":"{message}","type":"t"}}}}"#)
}

#[test]
fn a_code_that_names_one_cause_is_believed_over_the_status() {
    use FaultKind::*;
    for (codes, kind) in [
        (
            &[
                "insufficient_quota",
                "credit_balance_exhausted",
                "project_spend_limit_exceeded",
                "organization_spend_limit_exceeded",
                "organization_usage_limit_exceeded",
                "billing_hard_limit_reached",
                "billing_not_active",
                "insufficient_balance",
            ][..],
            QuotaExhausted,
        ),
        (&["account_deactivated", "account_suspended", "access_terminated", "CONSUMER_SUSPENDED"], AccountSuspended),
        (&["usage_limit_reached", "usage_not_included", "insufficient_user_quota"], QuotaExhausted),
        (&["invalid_api_key"], CredentialRejected),
        (&["server_is_overloaded", "engine_overloaded"], ModelOverloaded),
        (&["rate_limit_exceeded", "slow_down", "RESOURCE_EXHAUSTED"], RateLimited),
        (&["context_length_exceeded", "string_above_max_length"], RequestInvalid),
        (&["content_filter", "content_policy_violation", "invalid_prompt", "data_inspection_failed"], PolicyBlocked),
        (&["model_not_found", "DeploymentNotFound", "model_decommissioned"], ModelNotFound),
        (&["model_terms_required"], ModelNotEntitled),
        (&["unsupported_parameter", "invalid_value"], RequestInvalid),
    ] {
        for code in codes {
            for status in [400, 401, 429, 500] {
                means(status, &coded(code), kind);
            }
            means(429, &typed(code), kind);
        }
    }
}

#[test]
fn the_two_families_of_429_are_told_apart() {
    use FaultKind::{QuotaExhausted, RateLimited, RequestInvalid};
    means(429, &coded("slow_down"), RateLimited);
    means(429, &typed("rate_limit_error"), RateLimited);
    means(429, &typed("requests"), RateLimited);
    means(429, "", RateLimited);
    means(429, &typed("insufficient_quota"), QuotaExhausted);
    means(429, &saying("You exceeded your current quota, please check your plan and billing details."), QuotaExhausted);
    means(
        429,
        r#"[{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED"}}]"#,
        RateLimited,
    );
    // No window can hold it: not the account's fault.
    means(
        429,
        r#"{"error":{"message":"Request too large for gpt-4o on tokens per min (TPM)","type":"tokens","code":"rate_limit_exceeded"}}"#,
        RequestInvalid,
    );
    means(
        413,
        r#"{"error":{"message":"Request too large for model","type":"tokens","code":"rate_limit_exceeded"}}"#,
        RequestInvalid,
    );
}

#[test]
fn a_400_is_the_requests_fault_but_for_keys_money_policy_and_models() {
    use FaultKind::*;
    means(400, &typed("invalid_request_error"), RequestInvalid);
    means(
        400,
        r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_prompt_tokens":9,"n_ctx":4}}"#,
        RequestInvalid,
    );
    means(400, &saying("Your credit balance is too low"), QuotaExhausted);
    means(
        400,
        r#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}]"#,
        CredentialRejected,
    );
    means(400, &saying("Incorrect API key provided: xai-abc"), CredentialRejected);
    means(400, &saying("The response was filtered due to Azure's content management policy"), PolicyBlocked);
    means(
        400,
        r#"{"error":{"message":"m","code":"content_filter","innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#,
        PolicyBlocked,
    );
    means(400, &saying("foo/bar is not a valid model ID"), ModelNotFound);
    means(400, "not json", RequestInvalid);
}

#[test]
fn a_shell_of_401_or_403_around_an_overload_or_an_internal_error_is_not_the_credentials_fault() {
    use FaultKind::*;
    for status in [401, 403] {
        means(status, &saying("The model is overloaded, try later"), ModelOverloaded);
        means(status, &saying("Internal error encountered."), UpstreamInternal);
        means(
            status,
            r#"{"error":{"message":"internal server error","type":"authentication_error"}}"#,
            UpstreamInternal,
        );
    }
    means(401, &saying("no"), CredentialRejected);
    means(401, "", CredentialRejected);
    means(403, &saying("no"), Unclassified);
    for status in [401, 403] {
        means(status, "<html>blocked</html>", UpstreamUnavailable);
        means(status, "<?xml version='1.0'?><Error/>", UpstreamUnavailable);
    }
    means(403, &coded("unsupported_country_region_territory"), Unclassified);
}

#[test]
fn a_403_with_a_named_cause_is_that_cause() {
    use FaultKind::*;
    means(
        403,
        r#"{"error":{"message":"Project `p` does not have access to model `m`","type":"invalid_request_error","code":"model_not_found"}}"#,
        ModelNotEntitled,
    );
    means(403, &saying("You do not have access to model gpt-9"), ModelNotEntitled);
    means(403, &saying("Key limit exceeded"), QuotaExhausted);
    means(403, &saying("Your input was flagged by moderation"), PolicyBlocked);
    means(402, "", QuotaExhausted);
}

#[test]
fn a_404_is_the_models_where_it_names_one() {
    use FaultKind::*;
    means(404, &coded("model_not_found"), ModelNotFound);
    means(404, &saying("The model `x` does not exist or you do not have access to it."), ModelNotFound);
    means(
        404,
        r#"{"object":"error","message":"The model `x` does not exist.","type":"NotFoundError","code":404}"#,
        ModelNotFound,
    );
    means(404, r#"{"detail":"Not Found"}"#, RequestInvalid);
    means(404, "<html>no model here", RequestInvalid);
    for status in [405, 409, 413, 415] {
        means(status, "", RequestInvalid);
    }
    means(422, r#"{"detail":[{"loc":["body","messages"],"msg":"field required","type":"missing"}]}"#, RequestInvalid);
}

#[test]
fn five_hundreds_are_the_upstreams_and_a_web_page_is_a_proxys() {
    use FaultKind::*;
    means(500, &typed("server_error"), UpstreamInternal);
    means(500, "", UpstreamInternal);
    means(500, r#"{"error":"context deadline exceeded"}"#, DeadlineExceeded);
    means(502, "bad gateway", UpstreamUnavailable);
    means(503, &typed("service_unavailable_error"), UpstreamUnavailable);
    means(503, &coded("slow_down"), ModelOverloaded);
    means(503, &saying("The engine is currently overloaded"), ModelOverloaded);
    means(504, "", DeadlineExceeded);
    means(529, "", ModelOverloaded);
    means(520, "", UpstreamUnavailable);
    for status in [500, 502, 503, 504, 522] {
        means(status, "<!DOCTYPE html><html>overloaded</html>", UpstreamUnavailable);
        means(status, "\n <HTML>", UpstreamUnavailable);
    }
}

#[test]
fn what_nobody_thought_of_is_unclassified_and_keeps_its_code() {
    for status in [300, 408, 418, 451, 511, 599] {
        means(status, &coded("made_up"), FaultKind::Unclassified);
    }
    let classified = reply(Dialect::Chat, 418, coded("Made_Up").as_bytes());
    assert_eq!((classified.evidence.status, classified.evidence.code.as_deref()), (Some(418), Some("made_up")));
}

#[test]
fn message_field_and_evidence_are_kept_within_their_bounds_and_keys_are_not() {
    let long = "é".repeat(5000);
    let body =
        format!(r#"{{"error":{{"message":"bad key sk-proj-abcdefgh1234: {long}","param":"messages[0]","code":"c"}}}}"#);
    let classified = reply(Dialect::Chat, 422, body.as_bytes());
    assert_eq!(classified.param.as_deref(), Some("messages[0]"));
    assert!(classified.message.starts_with("bad key [key]: é"), "{}", &classified.message[..40]);
    assert!(classified.message.len() <= 4096 && classified.evidence.detail.len() <= 512);
    let text = reply(Dialect::Chat, 400, b" plain words sk-short \n");
    assert_eq!(text.message, "plain words sk-short");
}

#[test]
fn a_body_that_was_cut_still_tells_its_code() {
    means(429, r#"{"error":{"code":"insufficient_quota","message":"You exc"#, FaultKind::QuotaExhausted);
}

proptest! {
    #[test]
    fn no_body_makes_it_panic(status in 0u16..1000, body in prop::collection::vec(prop::sample::select(
        b"{}[]\":,0errormessagecodesk-<html>\\\xff".to_vec()), 0..60)) {
        reply(Dialect::Chat, status, &body);
    }
}
