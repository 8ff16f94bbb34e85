//! The errors of Gemini, as rows; the first that fits says what an error means. The order is the rule: a detail's reason,
//! then Google's own status word (told apart by wording where it has several causes), then the HTTP status of what is no
//! `google.rpc.Status`.

use crate::classify::sentences;
use crate::classify::table::{Row, code, code_at, code_sentences, code_words, page, sentence, status, words};
use turnkeep_base::FaultKind::{
    AccountSuspended, CredentialRejected, DeadlineExceeded, ModelNotEntitled, ModelNotFound, ModelOverloaded,
    PolicyBlocked, QuotaExhausted, RateLimited, RequestInvalid, Unclassified, UpstreamInternal, UpstreamUnavailable,
};

const OVERLOAD: &[&str] = &["overloaded", "at capacity", "no capacity", "high demand"];
const INTERNAL: &[&str] = &["internal error", "internal server error"];
const SIZE: &[&str] = &["message larger than max", "payload size exceeds", "request is too large", "message too large"];
const MONEY: &[&str] = &["prepayment credits are depleted", "spending cap", "billing account is"];

/// The rows, first fit first.
pub(crate) const ROWS: &[Row] = &[
    // Reasons of an ErrorInfo, whatever the status.
    code(
        &["api_key_invalid", "access_token_expired", "credentials_missing", "access_token_type_unsupported"],
        CredentialRejected,
    ),
    code(&["consumer_suspended", "account_suspended"], AccountSuspended),
    code(&["billing_disabled"], QuotaExhausted),
    code(&["model_capacity_exhausted"], ModelOverloaded),
    // `quota_exhausted` is a model's share of a plan, and says when it comes back.
    code(&["rate_limit_exceeded", "ratelimitexceeded", "quota_exhausted"], RateLimited),
    // Money, in the whole sentences that say nothing else, where the status speaks of the request or of rights.
    sentence(&[400, 403], sentences::MONEY, QuotaExhausted),
    // No status of Google's: what stands before it says so, whatever word comes with it.
    status(&[402], QuotaExhausted),
    status(&[529], ModelOverloaded),
    // Google's status words. Transient faults come in the shell of an authentication error too.
    code_sentences(&["unauthenticated", "permission_denied"], sentences::OVERLOADED, ModelOverloaded),
    code_sentences(&["unauthenticated", "permission_denied"], sentences::INTERNAL, UpstreamInternal),
    code(&["unauthenticated"], CredentialRejected),
    code_sentences(&["permission_denied"], sentences::NO_ACCESS, ModelNotEntitled),
    code(&["permission_denied"], Unclassified),
    code_words(&["resource_exhausted"], SIZE, RequestInvalid),
    code_words(&["resource_exhausted"], MONEY, QuotaExhausted),
    code(&["resource_exhausted"], RateLimited),
    code_words(&["unavailable"], OVERLOAD, ModelOverloaded),
    code(&["unavailable", "aborted", "cancelled"], UpstreamUnavailable),
    code(&["deadline_exceeded"], DeadlineExceeded),
    code(&["internal", "unknown", "data_loss"], UpstreamInternal),
    code_words(&["not_found"], &["model"], ModelNotFound),
    Row {
        sentences: &["api key not valid", "api key expired"],
        ..code_at(&[400], &["invalid_argument"], CredentialRejected)
    },
    code(
        &["invalid_argument", "failed_precondition", "out_of_range", "unimplemented", "already_exists", "not_found"],
        RequestInvalid,
    ),
    // What is no status of Google's.
    page(&[404, 405, 413], RequestInvalid),
    page(&[429], RateLimited),
    page(&[], UpstreamUnavailable),
    sentence(&[401, 403], sentences::OVERLOADED, ModelOverloaded),
    sentence(&[401, 403], sentences::INTERNAL, UpstreamInternal),
    status(&[401], CredentialRejected),
    sentence(&[403], sentences::NO_ACCESS, ModelNotEntitled),
    words(&[404], &["model"], ModelNotFound),
    words(&[429], MONEY, QuotaExhausted),
    status(&[429], RateLimited),
    status(&[400, 404, 405, 406, 409, 410, 411, 412, 413, 414, 415, 422, 431, 501], RequestInvalid),
    status(&[451], PolicyBlocked),
    words(&[503], OVERLOAD, ModelOverloaded),
    status(&[499, 502, 503], UpstreamUnavailable),
    status(&[504], DeadlineExceeded),
    status(&[500], UpstreamInternal),
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
