//! The errors of OpenAI and of compatible servers, as rows; the first that fits says what an error means. The order is the
//! rule: codes that name one cause, then what a status means (told apart by wording where providers use one status for
//! several causes), then, where there is no status, general types and wording.

use crate::classify::sentences;
use crate::classify::table::{Row, code, code_at, code_sentences, code_words, page, sentence, status, words};

const SIZE: &[&str] = &["request too large", "reduce the length", "too many tokens in the request"];
const OVERLOAD: &[&str] = &["overloaded", "at capacity", "over capacity", "no capacity"];
const INTERNAL: &[&str] = &["internal error", "internal server error", "server had an error"];
/// Of a 429, in its beginning only.
const MONEY: &[&str] = &[
    "exceeded your current quota",
    "credit balance is too low",
    "credit too low",
    "insufficient credit",
    "insufficient balance",
    "insufficient funds",
    "out of credits",
    "more credits",
    "spend limit",
    "spending limit",
];
/// A rate, whatever else the message advises.
const RATE: &[&str] = &["rate limit", "too many requests", "requests per min", "tokens per min"];
const POLICY: &[&str] =
    &["content management policy", "content policy", "usage policy", "usage policies", "safety system"];

use turnkeep_base::FaultKind::{
    AccountSuspended, ConversationGone, CredentialRejected, DeadlineExceeded, ModelNotEntitled, ModelNotFound,
    ModelOverloaded, PolicyBlocked, QuotaExhausted, RateLimited, RequestInvalid, UpstreamInternal, UpstreamUnavailable,
};

/// The rows, first fit first.
pub(crate) const ROWS: &[Row] = &[
    // Codes that name one cause, whatever the status.
    // A request that no window can hold is the request's fault, though it comes as a rate limit (OpenAI, Groq).
    code_words(&["rate_limit_exceeded", "tokens", "resource_exhausted"], SIZE, RequestInvalid),
    // Only where a conversation was continued; else it is the caller's own word that names it.
    Row { handle: true, ..code(&["previous_response_not_found"], ConversationGone) },
    Row {
        handle: true,
        params: &["previous_response_id"],
        ..words(&[400, 404], &["not found", "expired"], ConversationGone)
    },
    code(
        &[
            "insufficient_quota",
            "credit_balance_exhausted",
            "project_spend_limit_exceeded",
            "organization_spend_limit_exceeded",
            "organization_usage_limit_exceeded",
            "billing_hard_limit_reached",
            "billing_not_active",
            "exceeded_current_quota_error",
            "insufficient_balance",
            "insufficient_credits",
            "payment_required",
            // Codex: the plan's window is used up, or the plan has none.
            "usage_limit_reached",
            "usage_not_included",
            "insufficient_user_quota",
            "billing_disabled",
        ],
        QuotaExhausted,
    ),
    code(
        &[
            "account_deactivated",
            "account_suspended",
            "access_terminated",
            "organization_deactivated",
            "consumer_suspended",
        ],
        AccountSuspended,
    ),
    code(&["invalid_api_key", "api_key_invalid", "incorrect_api_key", "expired_api_key"], CredentialRejected),
    code(
        &[
            "server_is_overloaded",
            "overloaded_error",
            "overloaded",
            "engine_overloaded_error",
            "engine_overloaded",
            "model_overloaded",
            "model_capacity_exhausted",
        ],
        ModelOverloaded,
    ),
    code_at(&[503], &["slow_down"], ModelOverloaded),
    code(
        &[
            "slow_down",
            "rate_limit_exceeded",
            "ratelimitexceeded",
            "rate_limit_error",
            "ratelimiterror",
            "quota_exhausted",
        ],
        RateLimited,
    ),
    // Google's own money, then its rate.
    code_words(&["resource_exhausted"], &["prepayment credits are depleted"], QuotaExhausted),
    code(&["resource_exhausted"], RateLimited),
    code(
        &[
            "context_length_exceeded",
            "exceed_context_size_error",
            "context_window_exceeded",
            "contextwindowexceedederror",
            "string_above_max_length",
        ],
        RequestInvalid,
    ),
    code(
        &[
            "content_filter",
            "content_policy_violation",
            "responsibleaipolicyviolation",
            "data_inspection_failed",
            "invalid_prompt",
            "moderation_blocked",
        ],
        PolicyBlocked,
    ),
    code_at(&[403], &["model_not_found"], ModelNotEntitled),
    code(
        &[
            "model_access_denied",
            // LiteLLM's.
            "key_model_access_denied",
            "team_model_access_denied",
            "user_model_access_denied",
            "org_model_access_denied",
            "model_terms_required",
            "model_permission_blocked_org",
            "model_permission_blocked_project",
        ],
        ModelNotEntitled,
    ),
    code(&["model_not_found", "deploymentnotfound", "model_decommissioned", "unknown_model"], ModelNotFound),
    code(&["deadline_exceeded"], DeadlineExceeded),
    // Google's statuses, through its compatible endpoint. `permission_denied` names no cause.
    code_sentences(&["unauthenticated"], sentences::OVERLOADED, ModelOverloaded),
    code_sentences(&["unauthenticated"], sentences::INTERNAL, UpstreamInternal),
    code(&["unauthenticated"], CredentialRejected),
    code_words(&["unavailable"], OVERLOAD, ModelOverloaded),
    code(&["unavailable", "aborted", "cancelled"], UpstreamUnavailable),
    code(&["internal", "data_loss"], UpstreamInternal),
    code(&["failed_precondition", "out_of_range", "unimplemented", "already_exists"], RequestInvalid),
    code(
        &[
            "invalid_value",
            "invalid_type",
            "unsupported_parameter",
            "unsupported_value",
            "unknown_parameter",
            "missing_required_parameter",
        ],
        RequestInvalid,
    ),
    // 400: mostly the request, but not all.
    // The model's first: such a message may begin with the name that the caller gave.
    words(&[400], &["not a valid model", "unknown model", "no such model", "model does not exist"], ModelNotFound),
    words(&[400], POLICY, PolicyBlocked),
    sentence(&[400], sentences::BAD_KEY, CredentialRejected),
    sentence(&[400], sentences::MONEY, QuotaExhausted),
    // A page is a proxy's, whatever its status.
    page(&[401, 403], UpstreamUnavailable),
    page(&[404, 405, 413], RequestInvalid),
    page(&[429], RateLimited),
    // 401 and 403 are shells that proxies put around anything.
    sentence(&[401, 403], sentences::OVERLOADED, ModelOverloaded),
    sentence(&[401, 403], sentences::INTERNAL, UpstreamInternal),
    code_at(
        &[401, 403],
        &["server_error", "internal_error", "internal_server_error", "internalservererror", "api_error"],
        UpstreamInternal,
    ),
    status(&[401], CredentialRejected),
    status(&[402], QuotaExhausted),
    sentence(&[403], sentences::NO_ACCESS, ModelNotEntitled),
    words(&[403], sentences::MODERATED, PolicyBlocked),
    words(&[403], POLICY, PolicyBlocked),
    sentence(&[403], sentences::BAD_KEY, CredentialRejected),
    sentence(&[403], sentences::MONEY, QuotaExhausted),
    sentence(&[404], sentences::NO_ACCESS, ModelNotEntitled),
    words(&[404], &["model", "deployment"], ModelNotFound),
    words(&[429], SIZE, RequestInvalid),
    // Advice on how to pay for a higher rate is no lack of money.
    code_at(&[429], &["requests", "tokens"], RateLimited),
    words(&[429], RATE, RateLimited),
    words(&[429], MONEY, QuotaExhausted),
    status(&[429], RateLimited),
    status(&[400, 404, 405, 406, 409, 410, 411, 412, 413, 414, 415, 422, 431], RequestInvalid),
    status(&[529], ModelOverloaded),
    page(&[500, 501, 502, 503, 504, 520, 521, 522, 523, 524, 525, 526, 527, 530], UpstreamUnavailable),
    words(&[503], OVERLOAD, ModelOverloaded),
    words(&[500, 503], &["context deadline", "deadline exceeded"], DeadlineExceeded),
    status(&[500], UpstreamInternal),
    status(&[502, 503, 520, 521, 522, 523, 525, 526, 527, 530], UpstreamUnavailable),
    status(&[504, 524], DeadlineExceeded),
    // No status: general types, then wording.
    Row { in_band: true, words: OVERLOAD, ..code(&["server_error", "service_unavailable_error"], ModelOverloaded) },
    Row {
        in_band: true,
        ..code(&["service_unavailable_error", "service_unavailable", "serviceunavailableerror"], UpstreamUnavailable)
    },
    Row {
        in_band: true,
        ..code(
            &["server_error", "internal_error", "internal_server_error", "internalservererror", "api_error"],
            UpstreamInternal,
        )
    },
    Row { in_band: true, ..code(&["invalid_request_error", "badrequesterror", "not_found_error"], RequestInvalid) },
    Row { in_band: true, ..code(&["authentication_error"], CredentialRejected) },
    Row { in_band: true, ..code(&["timeout", "timeout_error", "request_timeout"], DeadlineExceeded) },
    Row { in_band: true, ..words(&[], OVERLOAD, ModelOverloaded) },
    Row { in_band: true, ..words(&[], &["context deadline", "deadline exceeded"], DeadlineExceeded) },
    Row { in_band: true, ..words(&[], INTERNAL, UpstreamInternal) },
];

#[cfg(test)]
mod tests {
    #[test]
    fn every_row_is_reached_by_what_it_asks_for() {
        crate::classify::table::tests::every_row_is_reached_by_what_it_asks_for(super::ROWS);
    }
}
