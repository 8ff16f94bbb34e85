//! What a refusal means: the fault that it is, and whether it proves that the turn has not begun.
//!
//! The schema's promise is that nothing has begun and nothing has moved. A server that says so of a failure of its own is
//! believed only as far as it can be checked: the position is read again before the next send.

use std::time::Duration;
use turnkeep_base::verdict::verdict;
use turnkeep_base::{Declared, Evidence, Fault, FaultKind, Lease, Phase};
use turnkeep_dialect::classify::redact;
use turnkeep_dialect::windows::worth;
use turnkeep_policy::conversations::RefusalProof;
use turnkeep_proto::cascade::v1::{Reason, Refusal};

/// A reason that came later than this schema blames nobody.
fn reason(refusal: &Refusal) -> Reason {
    Reason::try_from(refusal.reason).unwrap_or(Reason::Unspecified)
}

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
    let reason = reason(refusal);
    let kind = kind(reason, continued);
    let name = match Reason::try_from(refusal.reason) {
        Ok(reason) => reason.as_str_name().trim_start_matches("REASON_").to_ascii_lowercase(),
        Err(_) => format!("reason_{}", refusal.reason),
    };
    let evidence = Evidence::text(redact(&refusal.message)).with_code(name);
    let wait = worth(Duration::from_millis(refusal.retry_after_ms));
    let declared = Declared { wait, names_model: refusal.of_model, ..Declared::default() };
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

/// The refusal tells of a failure of the server's (a 5xx), which may have begun before it failed. `continued` as in
/// [`kind`]: where no earlier turn began the conversation, the server has lost what it has just made.
pub(super) fn is_failure(refusal: &Refusal, continued: bool) -> bool {
    match reason(refusal) {
        Reason::Unspecified | Reason::Cancelled | Reason::Internal | Reason::Unavailable => true,
        Reason::Conversation | Reason::Position | Reason::Busy => !continued,
        // Of its own accord and in its own words: the limits, the credential, the content.
        Reason::Policy
        | Reason::Rate
        | Reason::Quota
        | Reason::Credential
        | Reason::Suspended
        | Reason::NotEntitled
        | Reason::Model
        | Reason::Overloaded
        | Reason::Invalid
        | Reason::ContextTooLong => false,
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
    fn only_a_credential_refused_or_an_account_suspended_by_name_is_charged() {
        for number in ALL {
            let reason = Reason::try_from(number).unwrap();
            let charged = verdict(&fault(&refusal(reason), true)).charge.is_some();
            assert_eq!(charged, matches!(reason, Reason::Credential | Reason::Suspended), "{reason:?}");
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
            let refusal = refusal(Reason::try_from(number).unwrap());
            let refused = fault(&refusal, true);
            let spoilt = refused.kind == FaultKind::ConversationGone;
            assert_eq!(proof(&refused, is_failure(&refusal, true)).is_none(), spoilt, "{refused}");
        }
        let late = Fault::new(FaultKind::DeadlineExceeded, Phase::Answered, Evidence::text("too late"));
        assert!(proof(&late, true).is_none());
    }

    #[test]
    fn a_failure_of_the_server_is_told_from_its_own_word_by_the_reason() {
        for number in ALL {
            let reason = Reason::try_from(number).unwrap();
            let failures = [Reason::Unspecified, Reason::Cancelled, Reason::Internal, Reason::Unavailable];
            let of_it = [Reason::Conversation, Reason::Position, Reason::Busy];
            for continued in [false, true] {
                let meant = failures.contains(&reason) || (of_it.contains(&reason) && !continued);
                assert_eq!(is_failure(&refusal(reason), continued), meant, "{reason:?}, continued {continued}");
            }
        }
        assert!(is_failure(&Refusal { reason: 99, ..Refusal::default() }, true), "of one from later nothing is known");
    }

    #[test]
    fn a_wait_that_a_refusal_declares_is_believed_unless_it_is_nothing_or_ages() {
        let limited = |retry_after_ms| Refusal { retry_after_ms, of_model: true, ..refusal(Reason::Rate) };
        for (ms, wait) in [(1500, Some(Duration::from_millis(1500))), (0, None), (u64::MAX, None)] {
            let declared = fault(&limited(ms), true).declared;
            assert_eq!((declared.wait, declared.names_model), (wait, true), "{ms} ms");
        }
        assert_eq!(fault(&refusal(Reason::Rate), true).declared, Declared::default());
        assert!(fault(&refusal(Reason::ContextTooLong), true).context_too_long);
    }
}
