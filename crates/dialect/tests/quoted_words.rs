//! What a caller wrote and an upstream quotes back convicts no account, and no secret and no unbounded name stays in
//! what is kept of an answer or a request.

use bytes::Bytes;
use turnkeep_base::{
    Dialect,
    FaultKind::{self, *},
};
use turnkeep_dialect::classify::{self, Classified};
use turnkeep_dialect::reply::{Facts, note};
use turnkeep_dialect::{chat, event::Event, messages, request::Operation};

fn said(dialect: Dialect, status: u16, message: &str) -> Classified {
    let body = serde_json::json!({"error": {"type": "invalid_request_error", "message": message}}).to_string();
    classify::reply(dialect, status, body.as_bytes())
}

#[track_caller]
fn means(dialect: Dialect, status: u16, message: &str, kind: FaultKind) {
    assert_eq!(said(dialect, status, message).kind, kind, "{dialect:?} {status} {message}");
}

#[test]
fn a_refusal_that_quotes_the_caller_is_the_requests_fault() {
    for words in [
        "your account has been suspended",
        "This organization has been disabled",
        "Your credit balance is too low",
        "credit balance is too low",
        "spend limit",
        "billing",
        "invalid api key",
        "API key not valid",
        "insufficient credits",
        "You exceeded your current quota",
    ] {
        for dialect in [Dialect::Chat, Dialect::Messages] {
            for status in [400, 404, 405, 409, 413, 415, 422] {
                for message in [
                    format!("Unexpected value(s) `{words}` for the `anthropic-beta` header."),
                    format!("'{words}' is not one of ['user', 'assistant']"),
                    format!("“{words}” cannot be read"),
                    format!("\"{words}\". was found where a number belongs"),
                    format!("1 error: [type=int_type, input_value='{words}', input_type=str]"),
                    format!("metadata: extra field {words} is not permitted"),
                    // The caller may close the quotation itself.
                    format!("'a' {words}. 'b' is no role"),
                    format!("`a` {words}."),
                    // And an upstream may begin with the caller's words.
                    format!("{words} is no role"),
                    format!("{words}. is no role"),
                    format!("{words}: value is not a valid enumeration member"),
                    format!("{words}, {words}. was unexpected"),
                    format!("{words}! Please is not one of the permitted roles."),
                ] {
                    means(dialect, status, &message, RequestInvalid);
                }
            }
        }
    }
    means(Dialect::Chat, 400, "Your credit balance is too low. is not a valid model ID", ModelNotFound);
    for status in [401, 403] {
        let own = said(Dialect::Messages, status, "Your account has been suspended. is no permitted beta").kind;
        assert_ne!(own, AccountSuspended, "{status}");
        let quoted = said(Dialect::Messages, status, "Beta `your account has been suspended` is not for you").kind;
        assert_ne!(quoted, AccountSuspended, "{status}");
    }
    let detail =
        r#"{"error":{"code":400,"message":"m","details":[{"fieldViolations":[{"field":"API_KEY_INVALID"}]}]}}"#;
    assert_eq!(classify::reply(Dialect::Chat, 400, detail.as_bytes()).kind, RequestInvalid);
}

#[test]
fn the_providers_own_sentences_are_still_believed() {
    for (dialect, status, message, kind) in [
        (
            Dialect::Messages,
            400,
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.",
            QuotaExhausted,
        ),
        (Dialect::Messages, 400, "You have reached your specified API usage limits. You will regain", QuotaExhausted),
        (Dialect::Chat, 400, "Your credit balance is too low to access the Anthropic API.", QuotaExhausted),
        (Dialect::Chat, 400, "Your credit balance is too low", QuotaExhausted),
        (Dialect::Chat, 400, "You exceeded your current quota, please check your plan", QuotaExhausted),
        (Dialect::Chat, 400, "Insufficient credits", QuotaExhausted),
        (
            Dialect::Messages,
            400,
            "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.",
            QuotaExhausted,
        ),
        (
            Dialect::Chat,
            400,
            "Your credit balance is too low to access the Claude API. Please go to Plans & Billing to upgrade or purchase credits.",
            QuotaExhausted,
        ),
        (
            Dialect::Chat,
            400,
            "Your prepayment credits are depleted. Please go to AI Studio at https://ai.studio/projects to manage your project \
             and billing.",
            QuotaExhausted,
        ),
        (
            Dialect::Chat,
            400,
            "Insufficient credits. Add more using https://openrouter.ai/settings/credits",
            QuotaExhausted,
        ),
        (Dialect::Chat, 400, "Incorrect API key provided: xai-abc.", CredentialRejected),
        (
            Dialect::Chat,
            400,
            "Incorrect API key provided: xai-abc. You can obtain an API key from https://console.x.ai.",
            CredentialRejected,
        ),
        (
            Dialect::Messages,
            403,
            "This organization has been disabled. Please contact support at https://support.anthropic.com.",
            AccountSuspended,
        ),
        (Dialect::Chat, 400, "API key not valid. Please pass a valid API key.", CredentialRejected),
        (Dialect::Messages, 403, "This organization has been disabled.", AccountSuspended),
        (Dialect::Messages, 403, "Your account has been suspended", AccountSuspended),
        (Dialect::Messages, 401, "This organization has been disabled.", AccountSuspended),
        (Dialect::Messages, 400, "This organization has been disabled.", RequestInvalid),
    ] {
        means(dialect, status, message, kind);
    }
}

#[test]
fn no_key_leaves_in_a_message_a_code_a_param_or_the_evidence() {
    for dialect in [Dialect::Chat, Dialect::Messages] {
        for key in [
            "sk-ant-api03-abcdefgh1234",
            "AIzaSyA1234567890abcdef",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc",
            "Q7wErTyUiOpAsDfGhJkLzXcVbNm1234567890",
        ] {
            let body = serde_json::json!({"error":{"message":format!("no {key}!"),"code":key,"param":key}}).to_string();
            let found = classify::reply(dialect, 400, body.as_bytes());
            assert_eq!(found.message, "no [key]!", "{dialect:?}");
            assert_eq!(found.param.as_deref(), Some("[key]"), "{dialect:?}");
            assert_eq!(found.evidence.code, None, "{dialect:?} {key}");
            assert!(!format!("{found:?}").to_lowercase().contains(&key[4..].to_lowercase()), "{found:?}");
        }
        let bearer = said(dialect, 400, "header was Bearer abcdef123456 here").message;
        assert_eq!(bearer, "header was Bearer [key] here");
    }
}

#[test]
fn a_code_that_is_none_stays_in_the_detail_only() {
    for dialect in [Dialect::Chat, Dialect::Messages] {
        for code in ["no such thing".to_owned(), "c".repeat(65), "a\nb".to_owned(), "é".to_owned()] {
            let body = serde_json::json!({"error":{"message":"why","code":code}}).to_string();
            let found = classify::reply(dialect, 400, body.as_bytes());
            assert_eq!((found.evidence.code, found.message.as_str()), (None, "why"), "{code}");
            assert!(found.evidence.detail.contains(&code) && found.evidence.detail.contains("why"), "{code}");
        }
        let body = r#"{"error":{"message":"why","code":"a.b:c-d_1"}}"#;
        let found = classify::reply(dialect, 400, body.as_bytes());
        assert_eq!((found.evidence.code.as_deref(), found.evidence.detail.as_str()), (Some("a.b:c-d_1"), "why"));
    }
}

fn asked(model: &str) -> Bytes {
    let model = serde_json::Value::from(model);
    format!(r#"{{"model":{model},"max_tokens":1,"messages":[{{"role":"user","content":"x"}}]}}"#).into()
}

#[test]
fn a_models_name_is_bounded_and_without_control_characters() {
    let wanted = "expected a model's name of at most 256 bytes, without control characters";
    for (model, fits) in
        [("m".repeat(256), true), ("m".repeat(257), false), ("a\nb".into(), false), ("a\u{85}".into(), false)]
    {
        for read in [chat::request::read(asked(&model)), messages::request::read(Operation::Generate, asked(&model))] {
            match read {
                Ok(read) => assert!(fits && read.model == model, "{model:?}"),
                Err(error) => {
                    assert_eq!((fits, error.path.as_str(), error.message.as_str()), (false, "model", wanted));
                }
            }
        }
    }
}

#[test]
fn an_upstreams_names_are_kept_only_within_bounds() {
    for (name, kept) in [("m".repeat(256), true), ("m".repeat(257), false), ("a\nb".to_owned(), false)] {
        let kept = kept.then(|| name.clone());
        let quoted = serde_json::Value::from(name.as_str());
        let chat_body = format!(
            r#"{{"id":{quoted},"model":{quoted},"choices":[{{"index":0,"message":{{"content":"x"}},"finish_reason":"stop"}}]}}"#
        );
        let messages_body = format!(
            r#"{{"id":{quoted},"model":{quoted},"type":"message","role":"assistant","content":[],"stop_reason":"end_turn"}}"#
        );
        let mut all = [Facts::default(), Facts::default(), Facts::default()];
        assert_eq!(chat::tap::plain(chat_body.as_bytes(), &mut all[0]), Ok(()));
        assert_eq!(messages::tap::plain(messages_body.as_bytes(), &mut all[1]), Ok(()));
        note(&Event::Start { id: Some(name.clone()), model: Some(name), usage: None }, &mut all[2]);
        for facts in all {
            assert_eq!((&facts.id, &facts.model), (&kept, &kept));
        }
    }
}

#[test]
fn a_refusal_names_a_place_only_where_one_is_known() {
    let read = |body: &'static str| {
        [chat::request::read(body.into()), messages::request::read(Operation::Generate, body.into())]
    };
    for error in
        read(r#"{"max_tokens":1,"messages":[{"role":"user","content":"x"}]}"#).into_iter().filter_map(Result::err)
    {
        assert!(error.path == "model" && !error.to_string().contains("at byte"), "{error}");
    }
    for error in read(r#"{"model":"via"#).into_iter().chain(read(r#"{"model":"#)).filter_map(Result::err) {
        assert!(error.path.is_empty() && error.to_string().starts_with("not JSON"), "{error}");
        assert!(error.to_string().contains("at byte"), "{error}");
    }
}
