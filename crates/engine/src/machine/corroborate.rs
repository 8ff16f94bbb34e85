//! Corroboration: a second account that answers one turn with the same refusal convicts the request.
//!
//! It covers only refusals that name nobody: a named credential, quota, rate, model or overload is what it says, however
//! many accounts say it, and a 5xx is the upstream's own trouble.

use turnkeep_base::{Fault, FaultKind};
use turnkeep_policy::accounts::AccountKey;

/// Accounts whose refusals one turn remembers; a turn has no more dispatches than this by default.
const REMEMBERED: usize = 16;

/// What makes two refusals the same: the status, and the provider's code, else the words without anything that looks like
/// an id or a count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Likeness {
    status: u16,
    says: String,
}

impl Likeness {
    /// The likeness of a refusal that corroboration covers.
    pub fn of(fault: &Fault) -> Option<Likeness> {
        let status = fault.evidence.status?;
        let covered = match fault.kind {
            FaultKind::RequestInvalid
            | FaultKind::PolicyBlocked
            | FaultKind::UpstreamInternal
            | FaultKind::UpstreamUnavailable
            | FaultKind::DeadlineExceeded
            | FaultKind::MalformedResponse
            | FaultKind::Unclassified => true,
            FaultKind::CredentialRejected
            | FaultKind::AccountSuspended
            | FaultKind::QuotaExhausted
            | FaultKind::RateLimited
            | FaultKind::ModelNotEntitled
            | FaultKind::ModelOverloaded
            | FaultKind::ModelNotFound
            | FaultKind::EgressThrottled
            | FaultKind::UpstreamStalled
            | FaultKind::StreamTruncated
            | FaultKind::DnsFailure
            | FaultKind::ConnectRefused
            | FaultKind::ConnectTimeout
            | FaultKind::Unreachable
            | FaultKind::TlsFailure
            | FaultKind::ConnectionReset
            | FaultKind::HttpProtocolError
            | FaultKind::ConversationGone
            | FaultKind::NoCredential
            | FaultKind::GatewayExhausted
            | FaultKind::GatewayBug
            | FaultKind::ClientGone
            | FaultKind::Unauthenticated
            | FaultKind::ModelForbidden
            | FaultKind::CallerRateLimited
            | FaultKind::CallerBudgetExhausted
            | FaultKind::TooLarge
            | FaultKind::BodyTimeout => false,
        };
        if !covered || !matches!(status, 400 | 403 | 404 | 409 | 413 | 422) {
            return None;
        }
        let says = match &fault.evidence.code {
            // A general type says no more than the status; the words do.
            Some(code) if code.ends_with("_error") => format!("{code} {}", normal(&fault.evidence.detail)),
            Some(code) => code.to_lowercase(),
            None => normal(&fault.evidence.detail),
        };
        Some(Likeness { status, says })
    }
}

impl Likeness {
    /// The status that both refusals had.
    pub fn status(&self) -> u16 {
        self.status
    }
}

impl std::fmt::Display for Likeness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.status, self.says)
    }
}

/// Lower case, single blanks, and no word with a digit in it: ids, times and counts differ between two answers that say
/// the same.
pub(crate) fn normal(words: &str) -> String {
    let words = words.split(|char: char| char.is_whitespace() || matches!(char, ',' | ';' | ':' | '"' | '(' | ')'));
    let kept = words.filter(|word| !word.is_empty() && !word.contains(|char: char| char.is_ascii_digit()));
    kept.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

/// The refusals of one turn so far.
#[derive(Debug, Default)]
pub struct Corroboration(Vec<(AccountKey, Likeness)>);

impl Corroboration {
    /// Notes an account's fault. The likeness comes back if another account has said the same: the request is convicted.
    pub fn note(&mut self, account: AccountKey, fault: &Fault) -> Option<Likeness> {
        let likeness = Likeness::of(fault)?;
        if self.0.iter().any(|(other, said)| *other != account && *said == likeness) {
            return Some(likeness);
        }
        if self.0.len() < REMEMBERED {
            self.0.push((account, likeness));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnkeep_base::{Evidence, Phase};

    fn refusal(kind: FaultKind, status: u16, words: &str) -> Fault {
        Fault::new(kind, Phase::Answered, Evidence::text(words).with_status(status))
    }

    #[test]
    fn the_same_unnamed_refusal_from_a_second_account_convicts_the_request_and_from_the_same_one_does_not() {
        let mut turn = Corroboration::default();
        let first = refusal(FaultKind::Unclassified, 403, "Forbidden (request id req_01ab)");
        let second = refusal(FaultKind::Unclassified, 403, "forbidden (request id req_99zz)");
        assert_eq!(turn.note(AccountKey(0), &first), None);
        assert_eq!(turn.note(AccountKey(0), &second), None);
        assert!(turn.note(AccountKey(1), &second).is_some());
    }

    #[test]
    fn two_codes_that_differ_in_a_digit_are_two_refusals() {
        let coded = |code: &str| {
            Fault::new(FaultKind::Unclassified, Phase::Answered, Evidence::text("no").with_status(403).with_code(code))
        };
        let mut turn = Corroboration::default();
        turn.note(AccountKey(0), &coded("20015"));
        assert_eq!(turn.note(AccountKey(1), &coded("30001")), None);
        assert!(turn.note(AccountKey(2), &coded("20015")).is_some());
    }

    #[test]
    fn another_status_or_other_words_convict_nobody() {
        let mut turn = Corroboration::default();
        turn.note(AccountKey(0), &refusal(FaultKind::Unclassified, 403, "forbidden"));
        assert_eq!(turn.note(AccountKey(1), &refusal(FaultKind::Unclassified, 409, "forbidden")), None);
        assert_eq!(turn.note(AccountKey(2), &refusal(FaultKind::Unclassified, 403, "not from this country")), None);
    }

    #[test]
    fn a_named_account_or_model_fault_and_a_server_error_are_never_the_requests_however_many_say_so() {
        for kind in FaultKind::ALL.iter().copied() {
            let covered = matches!(
                kind,
                FaultKind::RequestInvalid
                    | FaultKind::PolicyBlocked
                    | FaultKind::UpstreamInternal
                    | FaultKind::UpstreamUnavailable
                    | FaultKind::DeadlineExceeded
                    | FaultKind::MalformedResponse
                    | FaultKind::Unclassified
            );
            let mut turn = Corroboration::default();
            turn.note(AccountKey(0), &refusal(kind, 403, "no"));
            assert_eq!(turn.note(AccountKey(1), &refusal(kind, 403, "no")).is_some(), covered, "{kind}");
            let mut turn = Corroboration::default();
            turn.note(AccountKey(0), &refusal(kind, 500, "no"));
            assert_eq!(turn.note(AccountKey(1), &refusal(kind, 500, "no")), None, "{kind}");
        }
    }
}
