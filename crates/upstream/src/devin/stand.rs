//! How a session stands, by the two words that the API gives for it. What the table does not know keeps the turn waiting.

use turnkeep_base::FaultKind;
use turnkeep_dialect::devin::classify::is_out_of_money;

/// What a session's status means for the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stand {
    /// The turn goes on.
    Working,
    /// Devin waits for the next message: the turn is over, and the session can be gone on with. A suspended one resumes by
    /// itself.
    Waits,
    /// The session is over, and so is the turn.
    Exited,
    /// The turn has failed.
    Failed(FaultKind),
}

/// Details that say, beside `running`, that Devin waits.
const WAITING: &[&str] = &["waiting_for_user", "waiting_for_approval", "finished"];

/// The documented words; others, and their absence, keep waiting.
pub(super) fn stand(status: &str, detail: Option<&str>) -> Stand {
    match (status, detail) {
        ("running", Some(detail)) if WAITING.contains(&detail) => Stand::Waits,
        ("suspended", Some(detail)) if is_out_of_money(detail) => Stand::Failed(FaultKind::QuotaExhausted),
        ("suspended", Some("error")) | ("error", _) => Stand::Failed(FaultKind::UpstreamInternal),
        ("suspended", _) => Stand::Waits,
        ("exit", _) => Stand::Exited,
        (_, _) => Stand::Working,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_documented_word_has_its_meaning_and_others_keep_waiting() {
        let internal = Stand::Failed(FaultKind::UpstreamInternal);
        let quota = Stand::Failed(FaultKind::QuotaExhausted);
        let rows = [
            ("new", None, Stand::Working),
            ("claimed", None, Stand::Working),
            ("resuming", Some("waiting_for_user"), Stand::Working),
            ("running", None, Stand::Working),
            ("running", Some("working"), Stand::Working),
            ("running", Some("waiting_for_user"), Stand::Waits),
            ("running", Some("waiting_for_approval"), Stand::Waits),
            ("running", Some("finished"), Stand::Waits),
            ("running", Some("out_of_credits"), Stand::Working),
            ("suspended", None, Stand::Waits),
            ("suspended", Some("inactivity"), Stand::Waits),
            ("suspended", Some("user_request"), Stand::Waits),
            ("suspended", Some("usage_limit_exceeded"), Stand::Waits),
            ("suspended", Some("total_session_limit_exceeded"), Stand::Waits),
            ("suspended", Some("a_reason_of_tomorrow"), Stand::Waits),
            ("suspended", Some("out_of_credits"), quota),
            ("suspended", Some("out_of_quota"), quota),
            ("suspended", Some("no_quota_allocation"), quota),
            ("suspended", Some("payment_declined"), quota),
            ("suspended", Some("org_usage_limit_exceeded"), quota),
            ("suspended", Some("error"), internal),
            ("exit", None, Stand::Exited),
            ("exit", Some("finished"), Stand::Exited),
            ("error", None, internal),
            ("dreaming", None, Stand::Working),
            ("dreaming", Some("waiting_for_user"), Stand::Working),
            ("", None, Stand::Working),
        ];
        for (status, detail, meant) in rows {
            assert_eq!(stand(status, detail), meant, "{status} {detail:?}");
        }
    }
}
