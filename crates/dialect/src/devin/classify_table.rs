//! The errors of Devin's API as rows; the first that fits says what an error means.
//!
//! The public reference names no error codes and no bodies beyond a `detail`, a string or an object. So a status counts
//! where it has one meaning; a 403, which may be a missing permission as well as anything else, counts for what a code in
//! it names and is unclassified otherwise. The codes are the reasons that the reference gives for suspended sessions.

use crate::classify::sentences;
use crate::classify::table::{Row, code, page, sentence, status, words};
use turnkeep_base::FaultKind::{
    ConversationGone, CredentialRejected, DeadlineExceeded, ModelOverloaded, PolicyBlocked, QuotaExhausted,
    RateLimited, RequestInvalid, UpstreamInternal, UpstreamUnavailable,
};

/// Reasons that speak of the organisation's money or plan. `usage_limit_exceeded` and `total_session_limit_exceeded` are
/// not among them: they may be a session's own.
pub(super) const MONEY: &[&str] =
    &["out_of_credits", "out_of_quota", "no_quota_allocation", "payment_declined", "org_usage_limit_exceeded"];

/// How a reply names what it does not find: by the word, or by a session's id.
const SESSION: &[&str] = &["session", "devin-"];

/// The rows, first fit first.
pub(crate) const ROWS: &[Row] = &[
    code(MONEY, QuotaExhausted),
    code(&["payment_required"], QuotaExhausted),
    code(&["rate_limit_exceeded", "rate_limited"], RateLimited),
    Row { handle: true, ..code(&["session_not_found"], ConversationGone) },
    Row { handle: true, ..words(&[404, 410], SESSION, ConversationGone) },
    // A proxy's.
    page(&[404, 405, 413], RequestInvalid),
    page(&[429], RateLimited),
    page(&[], UpstreamUnavailable),
    // Transient faults come in the shell of an authentication error too.
    sentence(&[401, 403], sentences::OVERLOADED, ModelOverloaded),
    sentence(&[401, 403], sentences::INTERNAL, UpstreamInternal),
    status(&[401], CredentialRejected),
    status(&[402], QuotaExhausted),
    status(&[429], RateLimited),
    status(&[451], PolicyBlocked),
    status(&[400, 404, 405, 406, 409, 410, 411, 412, 413, 414, 415, 422, 431, 501], RequestInvalid),
    status(&[502, 503], UpstreamUnavailable),
    status(&[504], DeadlineExceeded),
    status(&[500], UpstreamInternal),
    status(&[529], ModelOverloaded),
];

#[cfg(test)]
mod tests {
    use super::super::classify::reply_at;
    use super::*;
    use turnkeep_base::FaultKind::{self, Unclassified};

    #[test]
    fn every_row_is_reached_by_what_it_asks_for() {
        crate::classify::table::tests::every_row_is_reached_by_what_it_asks_for(ROWS);
    }

    fn kind(status: u16, body: &str) -> FaultKind {
        reply_at(status, body.as_bytes(), 0, true).kind
    }

    #[test]
    fn a_detail_is_a_text_or_an_object() {
        assert_eq!(kind(404, r#"{"detail":"Session not found"}"#), ConversationGone);
        assert_eq!(kind(404, r#"{"detail":{"message":"No devin-1 here","code":"not_found"}}"#), ConversationGone);
        assert_eq!(kind(400, r#"{"detail":{"code":"out_of_credits","message":"x"}}"#), QuotaExhausted);
        assert_eq!(
            reply_at(422, br#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#, 0, false).kind,
            RequestInvalid
        );
        let said = reply_at(409, br#"{"detail":"Busy"}"#, 0, true);
        assert_eq!((said.kind, said.message.as_str()), (RequestInvalid, "Busy"));
    }

    #[test]
    fn a_missing_session_is_no_missing_session_where_none_was_named() {
        let body = br#"{"detail":"Session not found"}"#;
        assert_eq!(reply_at(404, body, 0, false).kind, RequestInvalid);
        assert_eq!(kind(404, r#"{"detail":"Not Found"}"#), RequestInvalid);
    }

    #[test]
    fn a_403_counts_for_what_it_names_and_for_nothing_else() {
        assert_eq!(kind(403, r#"{"detail":"Missing permission ManageOrgSessions"}"#), Unclassified);
        assert_eq!(kind(403, ""), Unclassified);
        assert_eq!(kind(403, r#"{"detail":{"code":"no_quota_allocation","message":"x"}}"#), QuotaExhausted);
        assert_eq!(kind(403, r#"{"detail":{"code":"usage_limit_exceeded","message":"x"}}"#), Unclassified);
    }

    #[test]
    fn what_nobody_thought_of_is_unclassified() {
        assert_eq!(kind(418, r#"{"detail":"session"}"#), Unclassified);
        assert_eq!(kind(507, r#"{"detail":"storage"}"#), Unclassified);
    }
}
