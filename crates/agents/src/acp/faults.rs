//! What an agent's failure means: the one place where it becomes a fault. Codes come before words, and what nobody thought
//! of is unclassified.

use super::rpc::{self, RpcError};
use turnkeep_base::{Evidence, Fault, FaultKind, Phase};
use turnkeep_policy::conversations::RefusalProof;

/// How a turn, or a call, failed.
#[derive(Clone, Debug)]
pub(super) enum Failed {
    /// The agent says so.
    Error(RpcError),
    /// The agent's process, or what it says, is of no use any more.
    Broken(Broken),
    /// The client took the answer more slowly than the agent made it.
    TooSlow,
}

/// Why nothing more comes from a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// It has closed its output, or its input.
    Closed(String),
    /// It says what is not the protocol.
    Malformed(String),
}

impl Broken {
    pub(super) fn text(&self) -> &str {
        match self {
            Broken::Closed(text) | Broken::Malformed(text) => text,
        }
    }
}

/// What a call was about.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asked<'a> {
    /// Nothing that we had from the agent before.
    New,
    /// To take up a session that we had from it.
    TakenUp,
    /// A turn in this session, which we had from it.
    Turn(&'a str),
}

impl<'a> Asked<'a> {
    /// A turn in this session. `resumed`: it is not the session's first.
    pub(super) fn turn(session: &'a str, resumed: bool) -> Self {
        if resumed { Asked::Turn(session) } else { Asked::New }
    }
}

/// What an error means.
pub(super) fn kind_of(error: &RpcError, asked: Asked<'_>) -> FaultKind {
    let by_code = kind_of_code(error.code);
    let lost = || error.code == rpc::NOT_FOUND || names_a_lost_session(error);
    match asked {
        Asked::TakenUp if lost() => FaultKind::ConversationGone,
        Asked::Turn(session) if lost() && names(error, session) => FaultKind::ConversationGone,
        // The session may be lost, or something that the agent looked for in its work: that is no fault of the request's,
        // and no proof that nothing was done.
        Asked::Turn(_) if by_code == FaultKind::RequestInvalid && lost() => FaultKind::Unclassified,
        Asked::New | Asked::TakenUp | Asked::Turn(_) => by_code,
    }
}

fn kind_of_code(code: i64) -> FaultKind {
    match code {
        rpc::AUTH_REQUIRED | 401 => FaultKind::CredentialRejected,
        rpc::NOT_FOUND
        | rpc::INVALID_PARAMS
        | rpc::INVALID_REQUEST
        | rpc::METHOD_NOT_FOUND
        | rpc::PARSE_ERROR
        | 400
        | 404
        | 405
        | 409
        | 413
        | 415
        | 422 => FaultKind::RequestInvalid,
        rpc::CANCELLED | 502 | 503 => FaultKind::UpstreamUnavailable,
        402 => FaultKind::QuotaExhausted,
        429 => FaultKind::RateLimited,
        451 => FaultKind::PolicyBlocked,
        504 => FaultKind::DeadlineExceeded,
        529 => FaultKind::ModelOverloaded,
        500 | rpc::INTERNAL => FaultKind::UpstreamInternal,
        // 403 too: it names no cause.
        _ => FaultKind::Unclassified,
    }
}

/// The agent wants a login. Some use the code for all sorts of errors, a lost session among them.
pub(super) fn wants_login(error: &RpcError, asked: Asked<'_>) -> bool {
    error.code == rpc::AUTH_REQUIRED && kind_of(error, asked) == FaultKind::CredentialRejected
}

/// Agents without a code for it say it in words, in the message or in `data`.
fn names_a_lost_session(error: &RpcError) -> bool {
    texts(error).into_iter().any(|text| {
        let text = text.to_ascii_lowercase();
        ["session not found", "unknown session", "no such session", "session does not exist"]
            .into_iter()
            .any(|words| text.contains(words))
    })
}

/// The error's words name this session, and not one whose name only begins or ends with its.
fn names(error: &RpcError, session: &str) -> bool {
    let apart = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    texts(error).into_iter().any(|text| {
        text.match_indices(session).any(|(at, found)| {
            let (before, after) = (text.get(..at), text.get(at + found.len()..));
            apart(before.and_then(|text| text.chars().next_back())) && apart(after.and_then(|text| text.chars().next()))
        })
    })
}

fn texts(error: &RpcError) -> [&str; 2] {
    [error.message.as_str(), error.data.as_ref().map_or("", |data| data.get())]
}

/// The fault of an error reply.
fn of_error(error: &RpcError, asked: Asked<'_>, phase: Phase) -> Fault {
    let mut text = error.message.clone();
    if let Some(data) = &error.data {
        text.push_str(": ");
        text.push_str(data.get());
    }
    let evidence = Evidence::text(text).with_code(error.code.to_string());
    Fault::new(kind_of(error, asked), phase, evidence)
}

/// The fault of a failure. `phase` is how far the turn had come.
pub(super) fn of(failed: &Failed, asked: Asked<'_>, phase: Phase) -> Fault {
    match failed {
        Failed::Error(error) => of_error(error, asked, phase),
        Failed::Broken(Broken::Malformed(text)) => {
            Fault::new(FaultKind::MalformedResponse, phase, Evidence::text(text.clone()))
        }
        Failed::Broken(Broken::Closed(text)) => {
            let kind = match phase {
                Phase::Answered => FaultKind::StreamTruncated,
                Phase::Unsent | Phase::MaybeSent => FaultKind::UpstreamUnavailable,
            };
            Fault::new(kind, phase, Evidence::text(text.clone()))
        }
        Failed::TooSlow => {
            let text = "the client takes the answer more slowly than the agent makes it: more than 16 MiB of it wait";
            Fault::new(FaultKind::GatewayExhausted, phase, Evidence::text(text))
        }
    }
}

/// The proof that a prompt which was answered with this error, before anything else, was not begun with. An agent that
/// failed inside may have begun, and where its session stands cannot be read.
pub(super) fn refusal(kind: FaultKind) -> Option<RefusalProof> {
    match kind {
        FaultKind::CredentialRejected
        | FaultKind::QuotaExhausted
        | FaultKind::RateLimited
        | FaultKind::RequestInvalid
        | FaultKind::PolicyBlocked
        // There is no session that it could have begun in.
        | FaultKind::ConversationGone => Some(RefusalProof::by_reply()),
        FaultKind::AccountSuspended
        | FaultKind::ModelNotEntitled
        | FaultKind::ModelOverloaded
        | FaultKind::ModelNotFound
        | FaultKind::EgressThrottled
        | FaultKind::UpstreamInternal
        | FaultKind::UpstreamUnavailable
        | FaultKind::UpstreamStalled
        | FaultKind::DeadlineExceeded
        | FaultKind::StreamTruncated
        | FaultKind::MalformedResponse
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
        | FaultKind::Unclassified
        | FaultKind::Unauthenticated
        | FaultKind::ModelForbidden
        | FaultKind::CallerRateLimited
        | FaultKind::CallerBudgetExhausted
        | FaultKind::TooLarge
        | FaultKind::BodyTimeout => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: i64, message: &str) -> RpcError {
        RpcError { code, message: message.into(), data: None }
    }

    #[test]
    fn a_code_says_what_an_error_means_and_an_unknown_one_charges_nobody() {
        let kind = |code| kind_of(&error(code, "x"), Asked::New);
        assert_eq!(kind(-32000), FaultKind::CredentialRejected);
        assert_eq!(kind(-32602), FaultKind::RequestInvalid);
        assert_eq!(kind(-32603), FaultKind::UpstreamInternal);
        assert_eq!(kind(-32800), FaultKind::UpstreamUnavailable);
        assert_eq!(kind(429), FaultKind::RateLimited);
        for unknown in [403, -1, 0, 1, -32099] {
            assert_eq!(kind(unknown), FaultKind::Unclassified, "{unknown}");
        }
    }

    #[test]
    fn only_a_session_that_goes_on_can_be_gone() {
        let lost = error(-32603, "Session not found: abc");
        assert_eq!(kind_of(&lost, Asked::TakenUp), FaultKind::ConversationGone);
        assert_eq!(kind_of(&lost, Asked::Turn("abc")), FaultKind::ConversationGone);
        assert_eq!(kind_of(&lost, Asked::New), FaultKind::UpstreamInternal);
        assert_eq!(kind_of(&error(-32002, "resource"), Asked::TakenUp), FaultKind::ConversationGone);
        assert_eq!(kind_of(&error(-32002, "resource"), Asked::New), FaultKind::RequestInvalid);
    }

    #[test]
    fn a_turns_session_is_gone_only_by_an_error_that_names_it() {
        let kind = |code, message| kind_of(&error(code, message), Asked::Turn("s-1"));
        for named in ["Session not found: s-1", "no such session (s-1)", "Session not found: \"s-1\"."] {
            assert_eq!(kind(-32603, named), FaultKind::ConversationGone, "{named}");
        }
        assert_eq!(kind(-32002, "not there: s-1"), FaultKind::ConversationGone);
        for another in ["Session not found", "Session not found: s-12", "Session not found: as-1"] {
            assert_eq!(kind(-32603, another), FaultKind::UpstreamInternal, "{another}");
            assert_eq!(kind(429, another), FaultKind::RateLimited, "{another}");
            for code in [-32002, -32602, 404] {
                assert_eq!(kind(code, another), FaultKind::Unclassified, "{code} {another}");
            }
        }
        assert_eq!(kind(-32602, "s-1: no such parameter"), FaultKind::RequestInvalid);
        let data = serde_json::from_str(r#"{"sessionId":"s-1"}"#).expect("JSON");
        let in_data = RpcError { data: Some(data), ..error(-32002, "Resource not found") };
        assert_eq!(kind_of(&in_data, Asked::Turn("s-1")), FaultKind::ConversationGone);
    }

    #[test]
    fn a_failure_inside_the_agent_is_no_refusal() {
        assert!(refusal(FaultKind::RateLimited).is_some());
        assert!(refusal(FaultKind::ConversationGone).is_some());
        assert!(refusal(FaultKind::UpstreamInternal).is_none());
        assert!(refusal(FaultKind::Unclassified).is_none());
    }
}
