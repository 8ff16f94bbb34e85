//! The errors of Anthropic and of servers that speak its dialect, as rows; the first that fits says what an error means.
//! The order is the rule: a page that no API wrote, the code of a detail, wording that shows a transient fault behind an
//! authentication status, the named type, the status.

use crate::classify::sentences;
use crate::classify::table::{Row, code, code_at, code_sentences, code_words, page, sentence, status, words};

/// Wording of a spent account, in lower case; in the beginning of a 429 only.
const MONEY: &[&str] = &["credit balance is too low", "specified api usage limits", "spend limit", "spending limit"];
/// Wording of a refusal of the request for its content.
const POLICY: &[&str] = &["content filtering policy", "usage policy", "violates our policies"];
/// A rate, whatever else the message advises.
const RATE: &[&str] = &["rate limit", "too many requests"];
/// Wording of a lack of capacity.
const OVERLOAD: &[&str] = &["overloaded", "at capacity", "no capacity"];
/// Wording of a fault inside the upstream.
const INTERNAL: &[&str] = &["internal server error", "internal error"];
/// Wording of the provider's own clock.
const DEADLINE: &[&str] = &["context deadline", "deadline exceeded"];
/// Types that are the shell of anything, with 401 and 403.
const SHELLS: &[&str] = &["authentication_error", "permission_error"];
/// Statuses that speak of the request alone.
const REQUEST: &[u16] = &[400, 405, 406, 409, 410, 411, 412, 413, 414, 415, 416, 422, 431];

use turnkeep_base::FaultKind::{
    AccountSuspended, CredentialRejected, DeadlineExceeded, ModelNotEntitled, ModelNotFound, ModelOverloaded,
    PolicyBlocked, QuotaExhausted, RateLimited, RequestInvalid, Unclassified, UpstreamInternal, UpstreamUnavailable,
};

/// The rows, first fit first.
pub(crate) const ROWS: &[Row] = &[
    page(&[404, 405, 413], RequestInvalid),
    page(&[429], RateLimited),
    page(&[], UpstreamUnavailable),
    // The code of a detail, or of a server that names codes.
    code(&["enforced_spend_limit_reached", "credit_balance_exhausted", "insufficient_quota"], QuotaExhausted),
    code(&["account_suspended", "organization_disabled"], AccountSuspended),
    // Transient faults in the shell of an authentication error.
    sentence(&[401, 403], sentences::OVERLOADED, ModelOverloaded),
    code_sentences(SHELLS, sentences::OVERLOADED, ModelOverloaded),
    sentence(&[401, 403], sentences::INTERNAL, UpstreamInternal),
    code_sentences(SHELLS, sentences::INTERNAL, UpstreamInternal),
    sentence(&[401, 403], sentences::SUSPENDED, AccountSuspended),
    // Types that say it all, whatever the status.
    code(&["overloaded_error"], ModelOverloaded),
    code(&["billing_error"], QuotaExhausted),
    code_words(&["rate_limit_error"], RATE, RateLimited),
    code_words(&["rate_limit_error"], MONEY, QuotaExhausted),
    code(&["rate_limit_error"], RateLimited),
    code(&["authentication_error"], CredentialRejected),
    Row { words: OVERLOAD, ..code_at(&[503, 529], &["api_error"], ModelOverloaded) },
    Row { in_band: true, ..code_words(&["api_error"], OVERLOAD, ModelOverloaded) },
    code_words(&["api_error"], DEADLINE, DeadlineExceeded),
    // The type of every 5xx: where the status says more, it decides.
    code_at(&[502, 503, 520, 521, 522, 523, 524, 525, 526, 527], &["api_error", "server_error"], UpstreamUnavailable),
    code(&["api_error", "server_error"], UpstreamInternal),
    code(&["timeout_error"], DeadlineExceeded),
    code(&["unavailable_error"], UpstreamUnavailable),
    // The last two are llama.cpp's own.
    code(&["request_too_large", "conflict_error", "exceed_context_size_error", "not_supported_error"], RequestInvalid),
    code_words(&["not_found_error"], &["model"], ModelNotFound),
    code(&["not_found_error"], RequestInvalid),
    code_sentences(&["permission_error"], sentences::MONEY, QuotaExhausted),
    code_sentences(&["permission_error"], sentences::NO_ACCESS, ModelNotEntitled),
    code_words(&["permission_error"], sentences::MODERATED, PolicyBlocked),
    code(&["permission_error"], Unclassified),
    // The type of every 4xx: it decides only where the status does not name the account.
    Row { in_band: true, sentences: sentences::MONEY, ..code(&["invalid_request_error"], QuotaExhausted) },
    Row { in_band: true, ..code_words(&["invalid_request_error"], POLICY, PolicyBlocked) },
    Row { in_band: true, ..code(&["invalid_request_error"], RequestInvalid) },
    // The status.
    status(&[401], CredentialRejected),
    status(&[402], QuotaExhausted),
    sentence(&[403], sentences::MONEY, QuotaExhausted),
    sentence(&[403], sentences::NO_ACCESS, ModelNotEntitled),
    words(&[403], sentences::MODERATED, PolicyBlocked),
    words(&[404], &["model"], ModelNotFound),
    status(&[404], RequestInvalid),
    words(&[429], RATE, RateLimited),
    words(&[429], MONEY, QuotaExhausted),
    status(&[429], RateLimited),
    status(&[451], PolicyBlocked),
    // Anthropic gives every 400 this type; a text without it is not Anthropic's.
    Row { sentences: sentences::MONEY, ..code_at(REQUEST, &["invalid_request_error"], QuotaExhausted) },
    words(REQUEST, POLICY, PolicyBlocked),
    status(REQUEST, RequestInvalid),
    status(&[501], RequestInvalid),
    status(&[529], ModelOverloaded),
    words(&[503], OVERLOAD, ModelOverloaded),
    status(&[504], DeadlineExceeded),
    words(&[500, 502, 503, 520, 521, 522, 523, 524, 525, 526, 527], DEADLINE, DeadlineExceeded),
    status(&[500], UpstreamInternal),
    status(&[502, 503, 520, 521, 522, 523, 524, 525, 526, 527], UpstreamUnavailable),
    // No status and no type.
    Row { in_band: true, ..words(&[], OVERLOAD, ModelOverloaded) },
    Row { in_band: true, ..words(&[], INTERNAL, UpstreamInternal) },
];

#[cfg(test)]
mod tests {
    #[test]
    fn every_row_is_reached_by_what_it_asks_for() {
        crate::classify::table::tests::every_row_is_reached_by_what_it_asks_for(super::ROWS);
    }
}
