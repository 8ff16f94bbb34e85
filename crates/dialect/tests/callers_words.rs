//! A caller's own text inside a refusal, a rate limit or an invalid request convicts no account, whatever it says and
//! whichever quotation marks it holds; the providers' own sentences and codes still do.

use proptest::prelude::*;
use serde_json::{Value, json};
use std::time::Duration;
use turnkeep_base::Dialect::{self, Chat, Messages};
use turnkeep_base::FaultKind::{self, *};
use turnkeep_dialect::{classify, connect, gemini};

fn kind(dialect: Dialect, status: u16, body: &Value) -> FaultKind {
    classify::reply(dialect, status, body.to_string().as_bytes()).kind
}

fn refusal(kind: &str, message: &str) -> Value {
    json!({"type":"error","error":{"type":kind,"message":message,"code":null,"param":null}})
}

/// What a caller may write so that it reads as a provider's word.
const CALLERS: &[&str] = &[
    "out of credits",
    "say \"out of credits\" please",
    "write \"my model train\" now",
    "a\" internal error \"b",
    "a\" overloaded \"b",
    "' your credit balance is too low '",
    "` you do not have access to model x ` or 'y",
    "“you exceeded” your current quota «spend limit»",
    "x\". Your account has been suspended. \"y",
    "insufficient balance, spend limit",
    "not have access to model x",
    "the model is overloaded",
    "internal server error",
    "Invalid API key",
];

#[test]
fn what_a_guardrail_quotes_convicts_nobody() {
    for callers in CALLERS {
        for message in [
            format!("Request blocked by guardrail: \"{callers}\""),
            format!("Request blocked by guardrail: {callers}"),
            format!("Refused '{callers}' here"),
            format!("Refused `{callers}`"),
            format!("Refused (“{callers}”)."),
            format!("Refused: {callers}"),
            format!("{callers} is not allowed here"),
        ] {
            let blocked = message.starts_with("Request blocked");
            for dialect in [Chat, Messages] {
                for name in ["permission_error", "invalid_request_error", "whatever"] {
                    let found = kind(dialect, 403, &refusal(name, &message));
                    let wanted = if blocked { PolicyBlocked } else { Unclassified };
                    assert_eq!(found, wanted, "{dialect:?} {name} {message}");
                    // Anthropic's type says more than the status.
                    let typed = dialect == Messages && name == "permission_error";
                    let wanted = if typed { wanted } else { CredentialRejected };
                    let found = kind(dialect, 401, &refusal(name, &message));
                    assert_eq!(found, wanted, "{dialect:?} {name} {message}");
                }
            }
            let body = json!({"error":{"code":403,"status":"PERMISSION_DENIED","message":message}}).to_string();
            assert_eq!(gemini::classify::reply_at(403, body.as_bytes(), 0).kind, Unclassified, "{message}");
            assert_eq!(connect::classify::grpc(7, &message).kind, Unclassified, "{message}");
            assert_eq!(connect::classify::grpc(16, &message).kind, CredentialRejected, "{message}");
        }
    }
}

#[test]
fn a_moderation_model_is_no_model_that_the_key_may_not_use() {
    for message in [
        "Your request was flagged by our moderation model and was blocked.",
        "Your input was flagged for \"violence\". No credits were charged.",
        "anthropic/claude requires moderation on OpenRouter.",
    ] {
        for dialect in [Chat, Messages] {
            assert_eq!(kind(dialect, 403, &refusal("permission_error", message)), PolicyBlocked, "{message}");
        }
    }
    let flagged = refusal("permission_error", "Your IP is on a list of models of abuse.");
    assert_eq!(kind(Messages, 403, &flagged), Unclassified);
}

#[test]
fn a_refusal_in_the_providers_own_sentence_still_has_its_meaning() {
    for (message, wanted) in [
        ("You do not have access to model gpt-9", ModelNotEntitled),
        ("Project `proj_1` does not have access to model `gpt-9`.", ModelNotEntitled),
        ("Project does not have access to model `gpt-9`.", ModelNotEntitled),
        ("Your account does not have access to model: claude-x", ModelNotEntitled),
        ("Your plan does not include access to this model. Please upgrade your plan.", ModelNotEntitled),
        ("Your plan does not include the model `claude-x`.", ModelNotEntitled),
        ("Your plan does not include batches.", Unclassified),
        ("You don't have access to the model with the specified model ID.", ModelNotEntitled),
        ("You are not allowed to access model gpt-9", ModelNotEntitled),
        ("Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.", QuotaExhausted),
        ("Out of credits", QuotaExhausted),
        (
            "Your team abc-1 has either used all available credits or reached its monthly spending limit. To continue making \
             API requests, please purchase more credits or raise your spending limit.",
            QuotaExhausted,
        ),
        ("Key limit exceeded (total limit). Manage it using https://openrouter.ai/settings/keys", QuotaExhausted),
    ] {
        for dialect in [Chat, Messages] {
            assert_eq!(kind(dialect, 403, &refusal("permission_error", message)), wanted, "{dialect:?} {message}");
        }
    }
    for code in ["model_not_found", "key_model_access_denied", "team_model_access_denied"] {
        let body = json!({"error":{"message":"Project `p` has no such access","type":"x","param":null,"code":code}});
        assert_eq!(kind(Chat, 403, &body), ModelNotEntitled, "{code}");
    }
}

#[test]
fn a_shell_of_a_transient_fault_is_still_one() {
    for status in [401, 403] {
        for dialect in [Chat, Messages] {
            for (message, wanted) in [
                ("Internal server error", UpstreamInternal),
                ("Internal error (error ID: 0b9d1f0e)", UpstreamInternal),
                ("An internal error occurred, request 17.", UpstreamInternal),
                ("An error occurred while processing your request. Please retry.", UpstreamInternal),
                ("Overloaded", ModelOverloaded),
                ("The model is overloaded. Please try again later.", ModelOverloaded),
                ("That model is currently overloaded with other requests.", ModelOverloaded),
                (
                    "This model is currently experiencing high demand. Please try again in a few minutes.",
                    ModelOverloaded,
                ),
            ] {
                assert_eq!(kind(dialect, status, &json!({"error":{"message":message}})), wanted, "{status} {message}");
            }
            for (code, wanted) in [
                ("overloaded_error", ModelOverloaded),
                ("api_error", UpstreamInternal),
                ("server_error", UpstreamInternal),
            ] {
                assert_eq!(kind(dialect, status, &refusal(code, "m")), wanted, "{dialect:?} {status} {code}");
            }
        }
    }
}

#[test]
fn a_rate_limit_that_advises_on_billing_is_a_rate_limit() {
    let openai = "Rate limit reached for default-gpt-3.5-turbo in organization org-x on requests per min. Limit: 3 / min. \
                  Please try again in 20s. Contact us through our help center at help.openai.com if you continue to have \
                  issues. Please add a payment method to your account to increase your rate limit. Visit \
                  https://platform.openai.com/account/billing to add a payment method.";
    let found = classify::reply(
        Chat,
        429,
        json!({"error":{"message":openai,"type":"requests","param":null,"code":null}}).to_string().as_bytes(),
    );
    assert_eq!((found.kind, found.declared.wait), (RateLimited, Some(Duration::from_secs(20))));
    for message in [
        "Too many requests for billing",
        "Rate limit exceeded. Purchase more credits to raise it.",
        "Too many requests: raise your spend limit",
        "Slow down: out of credits",
        "Slow down \"out of credits\"",
        "The billing page and the credit balance are slow",
    ] {
        for dialect in [Chat, Messages] {
            for name in ["rate_limit_error", "requests", "x"] {
                assert_eq!(kind(dialect, 429, &refusal(name, message)), RateLimited, "{dialect:?} {name} {message}");
            }
        }
    }
    let page = b"<!DOCTYPE html><html><title>Access denied | billing.example used Cloudflare</title>spend limit</html>";
    for dialect in [Chat, Messages] {
        assert_eq!(classify::reply(dialect, 429, page).kind, RateLimited);
    }
    let quota = refusal("x", "You exceeded your current quota, please check your plan and billing details.");
    assert_eq!(kind(Chat, 429, &quota), QuotaExhausted);
}

#[test]
fn an_invalid_request_convicts_only_in_the_providers_own_form() {
    for sentence in
        ["Your credit balance is too low", "Invalid API key", "API key not valid. Please pass a valid API key."]
    {
        for body in [
            sentence.to_owned(),
            json!(sentence).to_string(),
            json!({"detail":sentence}).to_string(),
            json!({"message":sentence}).to_string(),
            json!({"error":sentence}).to_string(),
            json!({"error":{"message":sentence}}).to_string(),
            json!({"type":"error","error":{"message":sentence}}).to_string(),
            json!({"detail":[{"msg":sentence,"type":"value_error"}]}).to_string(),
            // The error is about a field.
            json!({"error":{"message":sentence,"type":"invalid_request_error","param":"messages[0].role"}}).to_string(),
        ] {
            for status in [400, 422] {
                for dialect in [Chat, Messages] {
                    assert_eq!(classify::reply(dialect, status, body.as_bytes()).kind, RequestInvalid, "{body}");
                }
                assert_eq!(gemini::classify::reply_at(status, body.as_bytes(), 0).kind, RequestInvalid, "{body}");
            }
        }
    }
    let other = json!({"type":"error","error":{"type":"value_error","message":"Your credit balance is too low"}});
    assert_eq!(kind(Messages, 400, &other), RequestInvalid);
    for (dialect, body, wanted) in [
        (Messages, refusal("invalid_request_error", "Your credit balance is too low."), QuotaExhausted),
        (Chat, refusal("invalid_request_error", "Your credit balance is too low."), QuotaExhausted),
        (
            Chat,
            json!({"code":"Client specified an invalid argument","error":
                "Incorrect API key provided: xa***Qw. You can obtain an API key from https://console.x.ai."}),
            CredentialRejected,
        ),
        (Chat, json!({"error":{"message":"Insufficient credits","code":402}}), QuotaExhausted),
    ] {
        assert_eq!(kind(dialect, 400, &body), wanted, "{body}");
    }
}

#[test]
fn a_code_beside_a_field_or_in_a_validators_list_is_a_callers() {
    for code in ["invalid_api_key", "insufficient_quota", "account_suspended", "model_access_denied"] {
        for status in [400, 404, 422] {
            for body in [
                json!({"error":{"message":"m","type":"invalid_request_error","param":"tools[0].name","code":code}}),
                json!({"detail":[{"loc":["body","x"],"msg":"m","type":code}]}),
                json!({"detail":[{"loc":["body","x"],"msg":"m","type":"t","code":code,"reason":code}]}),
                json!({"error":{"code":400,"message":"m","details":[
                    {"@type":"type.googleapis.com/google.rpc.BadRequest","reason":code}]}}),
            ] {
                for dialect in [Chat, Messages] {
                    assert_eq!(kind(dialect, status, &body), RequestInvalid, "{dialect:?} {status} {body}");
                }
            }
        }
        assert_ne!(
            kind(Chat, 400, &json!({"error":{"message":"m","param":null,"code":code}})),
            RequestInvalid,
            "{code}"
        );
    }
    let invalid = json!({"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT","details":[
        {"reason":"API_KEY_INVALID","@type":"type.googleapis.com/google.rpc.ErrorInfo"},
        {"@type":"type.googleapis.com/google.rpc.LocalizedMessage","reason":"x"}]}});
    assert_eq!(kind(Chat, 400, &invalid), CredentialRejected);
}

#[test]
fn a_wait_is_believed_in_a_providers_sentence_and_up_to_ten_minutes() {
    for (message, wait) in [
        ("Rate limited: try again in 5 hours", None),
        ("Rate limited. Please try again in 5 hours.", None),
        ("Rate limited for the text try again in 5 minutes", None),
        ("Rate limited for \"a\" try again in 5 minutes. \"b\"", None),
        ("Rate limited. Try again in 5 minutes is what you said", None),
        ("Rate limited. Please try again in 10m0s.", Some(600)),
        ("Rate limited. Please try again in 10m1s.", None),
        ("Rate limited. Please try again in 20s. Prompt was: x. Try again in 9 minutes.", Some(20)),
        ("Quota exceeded for requests, model: gemini\nPlease retry in 45s.", Some(45)),
        ("Rate limited. Please wait 30 seconds before retrying.", Some(30)),
    ] {
        let body = json!({"error":{"message":message,"type":"t","code":"rate_limit_exceeded"}}).to_string();
        let found = classify::reply(Chat, 429, body.as_bytes()).declared.wait;
        assert_eq!(found, wait.map(Duration::from_secs), "{message}");
    }
    let field = json!({"error":{"message":"m","code":"rate_limit_exceeded","retry_after":18_000}}).to_string();
    assert_eq!(classify::reply(Chat, 429, field.as_bytes()).declared.wait, Some(Duration::from_secs(18_000)));
}

#[test]
fn what_has_the_form_of_a_key_is_redacted_for_others_too() {
    assert_eq!(classify::redact("no sk-ant-api03-abcdefgh1234!"), "no [key]!");
}

proptest! {
    #[test]
    fn whatever_a_guardrail_quotes_a_403_blames_no_account(
        words in prop::sample::select(CALLERS), before in "\\PC{0,12}", after in "\\PC{0,12}",
        marks in prop::sample::select(vec![("\"", "\""), ("'", "'"), ("`", "`"), ("“", "”"), ("«", "»"), (": ", "")]),
        dialect in prop::sample::select(vec![Chat, Messages]),
    ) {
        let message = format!("Refused {}{before}{words}{after}{}", marks.0, marks.1);
        for name in ["permission_error", "invalid_request_error", "x"] {
            let found = kind(dialect, 403, &refusal(name, &message));
            prop_assert!(matches!(found, Unclassified | PolicyBlocked), "{:?} {}", found, message);
            let found = kind(dialect, 429, &refusal(name, &message));
            prop_assert!(matches!(found, RateLimited | Unclassified), "{:?} {}", found, message);
        }
    }
}
