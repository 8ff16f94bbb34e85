//! What a refusal means: the fault that it is, and whether it proves that the turn has not begun.
//!
//! The schema's promise is that nothing has begun and nothing has moved. A server that says so of a failure of its own is
//! believed only as far as it can be checked: the position is read again before the next send.

use std::time::Duration;
use turnkeep_base::verdict::verdict;
use turnkeep_base::{Declared, Evidence, Fault, FaultKind, Lease, Phase};
use turnkeep_dialect::classify::redact;
use turnkeep_policy::conversations::RefusalProof;
use turnkeep_proto::cascade::v1::{Reason, Refusal};

/// The longest wait that is believed.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// What a reason means. `continued`: the call went on with a conversation that was begun in an earlier turn, which only
/// then can be gone; one that was begun a moment ago is the server's own to know.
fn kind(reason: Reason, continued: bool) -> FaultKind {
    match reason {
        Reason::Unspecified => FaultKind::Unclassified,
        Reason::Policy => FaultKind::PolicyBlocked,
        Reason::Rate => FaultKind::RateLimited,
        Reason::Quota => FaultKind::QuotaExhausted,
        Reason::Credential => FaultKind::CredentialRejected,
        Reason::Suspended => FaultKind::AccountSuspended,
        Reason::NotEntitled => FaultKind::ModelNotEntitled,
        Reason::Model => FaultKind::ModelNotFound,
        Reason::Overloaded => FaultKind::ModelOverloaded,
        Reason::Invalid | Reason::ContextTooLong => FaultKind::RequestInvalid,
        // Whoever else is in it, or has moved it: it is no longer what was said here.
        Reason::Conversation | Reason::Position | Reason::Busy if continued => FaultKind::ConversationGone,
        Reason::Conversation | Reason::Position | Reason::Busy => FaultKind::UpstreamInternal,
        Reason::Cancelled | Reason::Unavailable => FaultKind::UpstreamUnavailable,
        Reason::Internal => FaultKind::UpstreamInternal,
    }
}

/// The fault that a refusal is.
pub(super) fn fault(refusal: &Refusal, continued: bool) -> Fault {
    // A reason that came later than this schema blames nobody.
    let reason = Reason::try_from(refusal.reason).unwrap_or(Reason::Unspecified);
    let kind = kind(reason, continued);
    let name = match Reason::try_from(refusal.reason) {
        Ok(reason) => reason.as_str_name().trim_start_matches("REASON_").to_ascii_lowercase(),
        Err(_) => format!("reason_{}", refusal.reason),
    };
    let evidence = Evidence::text(redact(&refusal.message)).with_code(name);
    let wait = Some(Duration::from_millis(refusal.retry_after_ms)).filter(|wait| !wait.is_zero());
    let declared = Declared {
        wait: wait.map(|wait| wait.min(LONGEST_WAIT)),
        names_model: refusal.of_model,
        ..Declared::default()
    };
    let mut fault = Fault::new(kind, Phase::Answered, evidence).declaring(declared);
    fault.context_too_long = reason == Reason::ContextTooLong;
    fault
}

/// The proof in a complete error reply to the send. `failure`: the server has failed, and may have begun before it did.
/// A fault that spoils the handle proves nothing of use.
pub(super) fn proof(fault: &Fault, failure: bool) -> Option<RefusalProof> {
    match verdict(fault).row.lease {
        Lease::Dead => None,
        Lease::Kept | Lease::WithAccount | Lease::None if failure => Some(RefusalProof::by_failure()),
        Lease::Kept | Lease::WithAccount | Lease::None => Some(RefusalProof::by_reply()),
    }
}

/// The fault is of a kind that a server's failure (a 5xx) is.
pub(super) fn is_failure(fault: &Fault) -> bool {
    if let Some(status) = fault.evidence.status {
        return status >= 500;
    }
    match fault.kind {
        FaultKind::UpstreamInternal
        | FaultKind::UpstreamUnavailable
        | FaultKind::UpstreamStalled
        | FaultKind::DeadlineExceeded
        | FaultKind::MalformedResponse
        | FaultKind::Unclassified => true,
        // Of its own accord and in its own words: the limits, the credential, the content.
        FaultKind::CredentialRejected
        | FaultKind::AccountSuspended
        | FaultKind::QuotaExhausted
        | FaultKind::RateLimited
        | FaultKind::ModelNotEntitled
        | FaultKind::ModelOverloaded
        | FaultKind::ModelNotFound
        | FaultKind::RequestInvalid
        | FaultKind::PolicyBlocked
        | FaultKind::EgressThrottled
        | FaultKind::ConversationGone => false,
        // No replies at all.
        FaultKind::StreamTruncated
        | FaultKind::DnsFailure
        | FaultKind::ConnectRefused
        | FaultKind::ConnectTimeout
        | FaultKind::Unreachable
        | FaultKind::TlsFailure
        | FaultKind::ConnectionReset
        | FaultKind::HttpProtocolError
        | FaultKind::NoCredential
        | FaultKind::GatewayExhausted
        | FaultKind::GatewayBug
        | FaultKind::ClientGone
        | FaultKind::Unauthenticated
        | FaultKind::ModelForbidden
        | FaultKind::CallerRateLimited
        | FaultKind::CallerBudgetExhausted
        | FaultKind::TooLarge
        | FaultKind::BodyTimeout => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(reason: Reason) -> Refusal {
        Refusal { reason: reason.into(), message: "no".into(), ..Refusal::default() }
    }

    const ALL: std::ops::RangeInclusive<i32> = 0..=16;

    #[test]
    fn every_reason_is_a_fault_with_its_own_name_as_the_code() {
        let mut codes = std::collections::BTreeSet::new();
        for number in ALL {
            let refused = fault(&refusal(Reason::try_from(number).unwrap()), true);
            codes.insert(refused.evidence.code.unwrap());
        }
        assert_eq!(codes.len(), 17);
        assert!(Reason::try_from(17).is_err(), "a new reason belongs into this test");
        let unknown = fault(&Refusal { reason: 99, ..Refusal::default() }, true);
        assert_eq!((unknown.kind, unknown.evidence.code.as_deref()), (FaultKind::Unclassified, Some("reason_99")));
    }

    #[test]
    fn only_a_credential_that_is_refused_by_name_is_charged() {
        for number in ALL {
            let reason = Reason::try_from(number).unwrap();
            let charged = verdict(&fault(&refusal(reason), true)).row.effect == turnkeep_base::Effect::Budget;
            assert_eq!(charged, reason == Reason::Credential, "{reason:?}");
        }
    }

    #[test]
    fn a_conversation_can_be_gone_only_where_one_was_gone_on_with() {
        for reason in [Reason::Conversation, Reason::Position, Reason::Busy] {
            assert_eq!(fault(&refusal(reason), true).kind, FaultKind::ConversationGone);
            assert_eq!(fault(&refusal(reason), false).kind, FaultKind::UpstreamInternal);
        }
    }

    #[test]
    fn a_refusal_proves_that_the_lease_is_clean_but_for_faults_that_spoil_it() {
        for number in ALL {
            let refused = fault(&refusal(Reason::try_from(number).unwrap()), true);
            let spoilt = refused.kind == FaultKind::ConversationGone;
            assert_eq!(proof(&refused, is_failure(&refused)).is_none(), spoilt, "{refused}");
        }
        let late = Fault::new(FaultKind::DeadlineExceeded, Phase::Answered, Evidence::text("too late"));
        assert!(proof(&late, true).is_none());
    }

    #[test]
    fn what_a_refusal_declares_of_a_limit_is_kept_within_a_day() {
        let limited = Refusal { retry_after_ms: u64::MAX, of_model: true, ..refusal(Reason::Rate) };
        let declared = fault(&limited, true).declared;
        assert_eq!((declared.wait, declared.names_model), (Some(LONGEST_WAIT), true));
        assert_eq!(fault(&refusal(Reason::Rate), true).declared, Declared::default());
        assert!(fault(&refusal(Reason::ContextTooLong), true).context_too_long);
    }
}
