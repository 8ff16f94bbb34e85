//! What went wrong, from a closed set. Raw errors become a [`Fault`] once, at the edge that saw them; what follows from
//! it is in [`crate::verdict`] and nowhere else.

use std::fmt;
use std::time::Duration;

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// The kind of a fault. Every kind has exactly one row in the blame table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum FaultKind { $($(#[$doc])* $variant,)* }

        impl FaultKind {
            /// Every kind, in the order of the blame table.
            pub const ALL: &'static [FaultKind] = &[$(FaultKind::$variant),*];

            /// The name in metrics, logs, the ledger and error codes.
            pub fn name(self) -> &'static str {
                match self { $(FaultKind::$variant => $name,)* }
            }
        }
    };
}

kinds! {
    /// The provider does not accept the credential.
    CredentialRejected = "credential_rejected",
    /// The provider has named the account as suspended.
    AccountSuspended = "account_suspended",
    /// The account's money or plan is used up.
    QuotaExhausted = "quota_exhausted",
    /// The account sends too much in too short a time.
    RateLimited = "rate_limited",
    /// This credential may not use this model.
    ModelNotEntitled = "model_not_entitled",
    /// The provider has no capacity for this model now.
    ModelOverloaded = "model_overloaded",
    /// The upstream does not know the model.
    ModelNotFound = "model_not_found",
    /// The request itself is at fault.
    RequestInvalid = "request_invalid",
    /// The provider refuses the request for its content.
    PolicyBlocked = "policy_blocked",
    /// Several accounts behind one address were limited at once.
    EgressThrottled = "egress_throttled",
    /// The upstream failed inside.
    UpstreamInternal = "upstream_internal",
    /// The upstream, or a proxy in front of it, is not there.
    UpstreamUnavailable = "upstream_unavailable",
    /// The upstream went silent past a clock.
    UpstreamStalled = "upstream_stalled",
    /// The turn's whole time is used up.
    DeadlineExceeded = "deadline_exceeded",
    /// The answer ended without the protocol's terminal event.
    StreamTruncated = "stream_truncated",
    /// Bytes that are not the protocol.
    MalformedResponse = "malformed_response",
    /// The upstream's name does not resolve.
    DnsFailure = "dns_failure",
    /// The upstream's address refuses connections.
    ConnectRefused = "connect_refused",
    /// Name, TCP and TLS handshake together took too long.
    ConnectTimeout = "connect_timeout",
    /// No route to the upstream.
    Unreachable = "unreachable",
    /// TLS failed: version, alert or certificate.
    TlsFailure = "tls_failure",
    /// The connection broke after sending began.
    ConnectionReset = "connection_reset",
    /// The bytes on the connection are not HTTP.
    HttpProtocolError = "http_protocol_error",
    /// The upstream no longer holds the conversation.
    ConversationGone = "conversation_gone",
    /// The account has no usable secret.
    NoCredential = "no_credential",
    /// The gateway is out of a resource, or its store cannot write.
    GatewayExhausted = "gateway_exhausted",
    /// A mistake of the gateway's own.
    GatewayBug = "gateway_bug",
    /// The client left.
    ClientGone = "client_gone",
    /// Anything nobody thought of.
    Unclassified = "unclassified",
    /// The caller's key is missing or wrong.
    Unauthenticated = "unauthenticated",
    /// The caller's key may not use this model.
    ModelForbidden = "model_forbidden",
    /// The caller is over its own rate.
    CallerRateLimited = "caller_rate_limited",
    /// The caller is over its own budget.
    CallerBudgetExhausted = "caller_budget_exhausted",
    /// The request body is over the limit.
    TooLarge = "too_large",
    /// The request body did not arrive in time.
    BodyTimeout = "body_timeout",
}

impl FaultKind {
    /// The counter's name: as the kind's, but the unclassified ones are counted as `unclassified_fault`.
    pub fn counter(self) -> &'static str {
        if self == FaultKind::Unclassified { "unclassified_fault" } else { self.name() }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How far the request had gone when the fault struck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Certainly not a byte of the request left.
    Unsent,
    /// Some of it may have left; the upstream may be at work.
    MaybeSent,
    /// The upstream had begun to answer.
    Answered,
}

/// A clock of the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockKind {
    /// Name, TCP and TLS handshake.
    Connect,
    /// Until the first content.
    FirstContent,
    /// Between two events.
    Between,
    /// The whole turn.
    Total,
    /// A streamed turn after its answer began.
    MaxTurn,
    /// The provider's own.
    Provider,
}

/// Which clock fired and who had set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Which.
    pub kind: ClockKind,
    /// The caller asked for a shorter time than ours.
    pub set_by_caller: bool,
}

/// The proof of a fault: what was seen, bounded and free of secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// The HTTP status of the upstream's reply.
    pub status: Option<u16>,
    /// The provider's own code or type, at most 120 bytes.
    pub code: Option<String>,
    /// The provider's message or the error's text, at most [`crate::limit::EVIDENCE_BYTES`].
    pub detail: String,
    /// Where in the reply, in bytes from its start.
    pub offset: Option<u64>,
}

impl Evidence {
    /// Evidence that is only a text; cut to the bound.
    pub fn text(detail: impl Into<String>) -> Self {
        Evidence { detail: bounded(detail.into(), crate::limit::EVIDENCE_BYTES), ..Evidence::default() }
    }

    /// With the provider's code; cut to its bound.
    pub fn with_code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(bounded(code.into(), 120));
        self
    }

    /// With the reply's status.
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }
}

fn bounded(mut text: String, bytes: usize) -> String {
    if text.len() > bytes {
        let cut = (0..=bytes).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        text.truncate(cut);
    }
    text
}

/// What a limit of a provider covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LimitScope {
    /// The whole account.
    Account,
    /// The account's rate of requests.
    Requests,
    /// The account's money or plan.
    Quota,
    /// The account with the model that was asked for.
    Model,
}

/// A window that the reply itself shows as used up: its remaining count is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// What it covers.
    pub scope: LimitScope,
    /// Until it opens again, from the reply's own time.
    pub wait: Duration,
}

/// What a reply says of its provider's limits. Facts, not judgements: they are applied even if the client has left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    /// The wait in its general forms: `retry-after`, `RetryInfo`, "try again in 20s".
    pub wait: Option<Duration>,
    /// The windows that are used up, at most [`crate::limit::WINDOWS`].
    pub windows: Vec<Window>,
    /// The reply names the model as what the limit covers.
    pub names_model: bool,
}

impl Declared {
    /// The longest wait that the reply asks for, in whatever scope.
    pub fn longest(&self) -> Option<Duration> {
        self.windows.iter().map(|window| window.wait).chain(self.wait).max()
    }

    /// What two parts of one reply declare, its headers and its body: the later wait binds, and every window counts.
    pub fn and(mut self, other: Declared) -> Self {
        self.wait = self.wait.max(other.wait);
        self.windows.extend(other.windows);
        self.windows.truncate(crate::limit::WINDOWS);
        self.names_model |= other.names_model;
        self
    }

    /// The reply's own count shows why it was refused; a wait alone explains nothing.
    pub fn explains(&self) -> bool {
        !self.windows.is_empty()
    }
}

/// One fault of one attempt, or of a turn before any attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What.
    pub kind: FaultKind,
    /// How far the request had gone.
    pub phase: Phase,
    /// The proof.
    pub evidence: Evidence,
    /// The clock that fired, for the time faults.
    pub clock: Option<Clock>,
    /// The limits that the upstream declared.
    pub declared: Declared,
    /// The request is longer than the model's window: a larger model may take it.
    pub context_too_long: bool,
}

impl Fault {
    /// A fault with its proof and nothing else known.
    pub fn new(kind: FaultKind, phase: Phase, evidence: Evidence) -> Self {
        Fault { kind, phase, evidence, clock: None, declared: Declared::default(), context_too_long: false }
    }

    /// A time fault.
    pub fn clock(kind: FaultKind, phase: Phase, clock: Clock) -> Self {
        let detail = format!("the {:?} clock fired", clock.kind);
        Fault { clock: Some(clock), ..Fault::new(kind, phase, Evidence::text(detail)) }
    }

    /// With the limits that the upstream declared.
    pub fn declaring(mut self, declared: Declared) -> Self {
        self.declared = declared;
        self
    }

    /// With a declared wait and no window.
    pub fn wait(self, wait: Option<Duration>) -> Self {
        self.declaring(Declared { wait, ..Declared::default() })
    }

    /// A refusal that came in the shell of a 401 or 403 although its code or wording is the upstream's own trouble.
    pub fn is_shell(&self) -> bool {
        matches!(self.evidence.status, Some(401 | 403))
            && matches!(self.kind, FaultKind::UpstreamInternal | FaultKind::ModelOverloaded)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if let Some(status) = self.evidence.status {
            write!(f, " (status {status})")?;
        }
        if let Some(code) = &self.evidence.code {
            write!(f, " [{code}]")?;
        }
        if !self.evidence.detail.is_empty() {
            write!(f, ": {}", self.evidence.detail)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_cut_at_a_character_boundary_within_its_bound() {
        let evidence = Evidence::text("é".repeat(1000)).with_code("c".repeat(1000));
        assert_eq!(evidence.detail.len(), crate::limit::EVIDENCE_BYTES);
        assert_eq!(evidence.code.map(|code| code.len()), Some(120));
    }

    #[test]
    fn of_what_two_parts_of_a_reply_declare_the_later_wait_binds_and_every_window_counts() {
        let seconds = Duration::from_secs;
        let window = |scope, wait| Window { scope, wait: seconds(wait) };
        let headers =
            Declared { wait: Some(seconds(3)), windows: vec![window(LimitScope::Requests, 9)], names_model: false };
        let body =
            Declared { wait: Some(seconds(20)), windows: vec![window(LimitScope::Account, 60)], names_model: true };
        let both = headers.and(body);
        assert_eq!((both.wait, both.longest(), both.windows.len()), (Some(seconds(20)), Some(seconds(60)), 2));
        assert!(both.explains() && both.names_model);
        assert!(!Declared { wait: Some(seconds(3)), ..Declared::default() }.explains());
    }

    #[test]
    fn every_kind_has_a_name_of_its_own() {
        let names: std::collections::BTreeSet<_> = FaultKind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), FaultKind::ALL.len());
    }
}
