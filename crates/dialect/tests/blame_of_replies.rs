//! Whatever an upstream replies, an account is blamed only by what the blame table names; and nothing that a reply can be
//! makes classifying it panic or run long.

use proptest::prelude::*;
use serde_json::{Value, json};
use turnkeep_base::verdict::row;
use turnkeep_base::{Dialect, FaultKind, Origin};
use turnkeep_dialect::{chat, classify, connect, gemini};

fn every(status: u16, body: &[u8]) -> Vec<classify::Classified> {
    vec![
        classify::reply_at(Dialect::Chat, status, body, 1),
        classify::reply_at(Dialect::Messages, status, body, 1),
        chat::classify::continued_at(status, body, 1),
        gemini::classify::reply_at(status, body, 1),
        connect::classify::reply_at(status, body, 1),
    ]
}

/// Codes that are words of nobody's table.
fn a_code() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        "[a-z]{1,4}_zz[a-z_]{0,12}".prop_map(Value::from),
        (0..1000u16).prop_map(Value::from),
        prop::sample::select(vec![
            "invalid_request_error",
            "server_error",
            "invalid_value",
            "BadRequestError",
            "error"
        ])
        .prop_map(Value::from),
    ]
}

/// Messages as a validator writes them around what the caller wrote.
fn a_message() -> impl Strategy<Value = String> {
    let callers = prop::sample::select(vec![
        "Your credit balance is too low",
        "Your credit balance is too low. Please go to Plans & Billing",
        "You exceeded your current quota, please check your plan",
        "Incorrect API key provided: abc",
        "API key not valid. Please pass a valid API key.",
        "This organization has been disabled",
        "insufficient_quota",
        "rate limit exceeded, 429",
        "spend limit",
        "invalid_api_key",
    ]);
    (callers, "\\PC{0,30}", 0..6u8).prop_map(|(callers, any, form)| match form {
        0 => format!("'{callers}' is not one of ['user', 'assistant'] {any}"),
        1 => format!("{callers} is no role"),
        2 => format!("{callers}. is not a valid value for role"),
        3 => format!("{callers}: extra inputs are not permitted"),
        4 => format!("{any} {callers} was unexpected"),
        _ => any,
    })
}

proptest! {
    #[test]
    fn a_status_that_speaks_of_the_request_or_the_upstream_blames_no_account_without_a_named_code(
        status in prop_oneof![
            prop::sample::select(vec![400u16, 404, 405, 406, 408, 409, 410, 412, 413, 415, 418, 422, 431, 451, 500, 501, 502, 503, 504, 520, 529]),
            (200u16..600).prop_filter("speaks of the account", |status| !matches!(status, 401 | 402 | 403 | 429)),
        ],
        message in a_message(), kind in a_code(), code in a_code(), param in "\\PC{0,10}",
    ) {
        // A number in `code` is only that, and a reply that says 200 has no status but it.
        let code = if status < 300 { Value::Null } else { code };
        for body in [
            json!({"error":{"message":message,"type":kind,"code":code,"param":param}}),
            json!({"type":"error","error":{"type":kind,"message":message}}),
            json!([{"error":{"code":status,"message":message,"status":kind}}]),
            json!({"detail":[{"loc":["body"],"msg":message,"type":kind,"input":message}]}),
            json!({"error": message}),
            json!(message),
        ] {
            let body = body.to_string();
            for found in every(status, body.as_bytes()) {
                // Whom it blames when nobody named the account.
                prop_assert_ne!(row(found.kind).origin, Origin::Account, "{} {} {:?}", status, &body, found);
            }
        }
    }

    #[test]
    fn no_bytes_blame_an_account_by_a_status_that_does_not(
        status in (200u16..600).prop_filter("speaks of the account", |status| !matches!(status, 401 | 402 | 403 | 429)),
        body in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        for found in every(status, &body) {
            prop_assert_ne!(row(found.kind).origin, Origin::Account);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(status in 0u16..1000, body in prop::collection::vec(prop::sample::select(
        b"{}[]\":,.0159errormessagecodetypestatusdetailsreasonretryDelayheaders<html>\\u\xff\xc3\x00 ".to_vec()), 0..120)) {
        every(status, &body);
        gemini::classify::in_stream(&body);
        connect::classify::in_stream(&body);
        gemini::classify::blocked(&body);
    }

    #[test]
    fn a_body_that_is_cut_anywhere_is_still_read(cut in 0usize..200) {
        let body = r#"{"error":{"code":"insufficient_quota","type":"é","message":"You exceeded your current quota, é","details":[{"retryDelay":"3s"}]}}"#;
        for found in every(418, &body.as_bytes()[..cut.min(body.len())]) {
            prop_assert!(matches!(found.kind, FaultKind::Unclassified | FaultKind::QuotaExhausted));
        }
        let after_code = &body.as_bytes()[..cut.clamp(38, body.len())];
        prop_assert_eq!(classify::reply(Dialect::Chat, 418, after_code).kind, FaultKind::QuotaExhausted);
    }
}

#[test]
fn a_large_body_in_any_form_is_classified_by_its_beginning() {
    let mega = 10 << 20;
    for (status, body, kind) in [
        (500, "x".repeat(mega), FaultKind::UpstreamInternal),
        (
            400,
            format!(r#"{{"error":{{"code":"insufficient_quota","message":"{}"}}}}"#, "é".repeat(mega / 2)),
            FaultKind::QuotaExhausted,
        ),
        (
            400,
            format!(r#"{{"error":{{"message":"{}","code":"insufficient_quota"}}}}"#, "é".repeat(mega / 2)),
            FaultKind::RequestInvalid,
        ),
        (400, "[".repeat(mega), FaultKind::RequestInvalid),
        (502, r#"{"error":"#.repeat(mega / 9), FaultKind::UpstreamUnavailable),
        (404, format!("<html>{}", "model ".repeat(mega / 6)), FaultKind::RequestInvalid),
        (413, "\u{0}".repeat(mega), FaultKind::RequestInvalid),
        (500, "try again in 9s ".repeat(mega / 16), FaultKind::UpstreamInternal),
        (500, format!(r#"{{"error":{{"message":"{}"}}}}"#, "`".repeat(60_000)), FaultKind::UpstreamInternal),
    ] {
        for dialect in [Dialect::Chat, Dialect::Messages] {
            let started = std::time::Instant::now();
            let found = classify::reply(dialect, status, body.as_bytes());
            assert!(started.elapsed() < std::time::Duration::from_secs(1));
            assert_eq!(found.kind, kind, "{dialect:?} {:.60}", body);
            assert!(found.message.len() <= 4096 && found.evidence.detail.len() <= 512);
        }
    }
}

#[test]
fn a_body_in_another_encoding_goes_by_its_status() {
    let utf16: Vec<u8> =
        "{\"error\":{\"code\":\"insufficient_quota\"}}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let marked: Vec<u8> = [&b"\xff\xfe"[..], &utf16].concat();
    let latin = b"{\"error\":{\"message\":\"cl\xe9 invalide\",\"code\":\"invalid_api_key\"}}";
    for body in [&utf16[..], &marked, latin, b"\x1f\x8b\x08\x00\x00\x00\x00\x00"] {
        for found in every(422, body) {
            assert_eq!(found.kind, FaultKind::RequestInvalid);
        }
        for found in every(500, body) {
            assert_eq!(found.kind, FaultKind::UpstreamInternal);
        }
    }
    let bom = b"\xef\xbb\xbf{\"error\":{\"code\":\"insufficient_quota\"}}";
    assert_eq!(classify::reply(Dialect::Chat, 429, bom).kind, FaultKind::QuotaExhausted);
}

#[test]
fn a_code_comes_before_the_status_and_a_status_before_the_wording() {
    use FaultKind::{CredentialRejected, ModelOverloaded, QuotaExhausted, RateLimited};
    for (status, body, kind) in [
        (500, r#"{"error":{"code":"insufficient_quota","message":"overloaded"}}"#, QuotaExhausted),
        (429, r#"{"error":{"code":"server_is_overloaded","message":"spend limit"}}"#, ModelOverloaded),
        (429, r#"{"error":{"code":"made_up","message":"overloaded"}}"#, RateLimited),
        (401, r#"{"error":{"code":"made_up","message":"rate limit"}}"#, CredentialRejected),
        (401, r#"{"error":{"code":"made_up","message":"the model is overloaded"}}"#, ModelOverloaded),
    ] {
        assert_eq!(classify::reply(Dialect::Chat, status, body.as_bytes()).kind, kind, "{body}");
    }
}
