//! The error codes of Connect and gRPC, as rows; the first that fits says what an error means. Codes come before the HTTP
//! status, which counts where a proxy answered.

use crate::classify::sentences;
use crate::classify::table::{Row, code, code_sentences, code_words, page, sentence, status};
use turnkeep_base::FaultKind::{
    ConversationGone, CredentialRejected, DeadlineExceeded, ModelNotEntitled, ModelNotFound, ModelOverloaded,
    PolicyBlocked, QuotaExhausted, RateLimited, RequestInvalid, Unclassified, UpstreamInternal, UpstreamUnavailable,
};

/// The codes by their numbers in gRPC. `ok` is no error; Connect spells the first with one `l`.
pub(super) const NAMES: &[&str] = &[
    "ok",
    "canceled",
    "unknown",
    "invalid_argument",
    "deadline_exceeded",
    "not_found",
    "already_exists",
    "permission_denied",
    "resource_exhausted",
    "failed_precondition",
    "aborted",
    "out_of_range",
    "unimplemented",
    "internal",
    "unavailable",
    "data_loss",
    "unauthenticated",
];

const OVERLOAD: &[&str] = &["overloaded", "at capacity", "no capacity", "high demand"];
const SIZE: &[&str] = &[
    "larger than max",
    "message too large",
    "message size",
    "request too large",
    "exceeds the maximum",
    "too many bytes",
];
const HANDLES: &[&str] = &["conversation", "cascade", "session", "trajectory"];

/// The rows, first fit first.
pub(crate) const ROWS: &[Row] = &[
    // Transient faults come in the shell of an authentication error too.
    code_sentences(&["unauthenticated", "permission_denied"], sentences::OVERLOADED, ModelOverloaded),
    code_sentences(&["unauthenticated", "permission_denied"], sentences::INTERNAL, UpstreamInternal),
    code(&["unauthenticated"], CredentialRejected),
    code_sentences(&["permission_denied"], sentences::NO_ACCESS, ModelNotEntitled),
    code(&["permission_denied"], Unclassified),
    code_words(&["resource_exhausted"], SIZE, RequestInvalid),
    code(&["resource_exhausted"], RateLimited),
    code_words(&["unavailable"], OVERLOAD, ModelOverloaded),
    code(&["unavailable", "aborted", "canceled", "cancelled"], UpstreamUnavailable),
    code_words(&["internal", "unknown"], &["context deadline"], DeadlineExceeded),
    code(&["internal", "unknown", "data_loss"], UpstreamInternal),
    code(&["deadline_exceeded"], DeadlineExceeded),
    Row { handle: true, ..code_words(&["not_found"], HANDLES, ConversationGone) },
    code_words(&["not_found"], &["model"], ModelNotFound),
    code(
        &["invalid_argument", "failed_precondition", "out_of_range", "unimplemented", "already_exists", "not_found"],
        RequestInvalid,
    ),
    // A proxy's, or a server's that speaks another protocol.
    page(&[404, 405, 413], RequestInvalid),
    page(&[429], RateLimited),
    page(&[], UpstreamUnavailable),
    sentence(&[401, 403], sentences::OVERLOADED, ModelOverloaded),
    sentence(&[401, 403], sentences::INTERNAL, UpstreamInternal),
    status(&[401], CredentialRejected),
    status(&[402], QuotaExhausted),
    status(&[429], RateLimited),
    status(&[451], PolicyBlocked),
    status(&[400, 404, 405, 406, 409, 411, 412, 413, 414, 415, 422, 431, 501], RequestInvalid),
    status(&[502, 503], UpstreamUnavailable),
    status(&[504], DeadlineExceeded),
    status(&[500], UpstreamInternal),
    status(&[529], ModelOverloaded),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_reached_by_what_it_asks_for() {
        crate::classify::table::tests::every_row_is_reached_by_what_it_asks_for(ROWS);
    }
}
