//! What a client is told at the end of a failed turn: one place for the words.

use crate::machine::Ending;
use std::time::Duration;
use turnkeep_base::{ClientError, ClientView, Dialect, Effect, Fault, FaultKind, limit, verdict};
use turnkeep_policy::Moment;
use turnkeep_policy::accounts::Unavailable;

/// How the evidence of a ledger entry that could not be written begins, and the code the client sees.
pub const STORE_UNAVAILABLE: &str = "store_unavailable";

/// The error for an ending. `message` and `param` are the upstream's own words, for a fault of the request.
pub fn client_error(
    ending: &Ending,
    dialect: Dialect,
    now: Moment,
    upstreams: Option<(&str, Option<&str>)>,
) -> ClientError {
    match ending {
        Ending::Fault(fault) => of_fault(fault, dialect, upstreams),
        Ending::Unavailable(unavailable) => of_unavailable(*unavailable, now),
        Ending::Uncarriable => {
            ClientError::new(400, "invalid_request", "the request cannot be carried to any upstream of this model")
        }
        Ending::Shutdown => {
            ClientError::new(503, "shutting_down", "the gateway is shutting down; try again in a moment")
        }
    }
}

fn of_fault(fault: &Fault, dialect: Dialect, upstreams: Option<(&str, Option<&str>)>) -> ClientError {
    let view = verdict::row(fault.kind).client;
    let status = match (view, fault.evidence.status) {
        (ClientView::UpstreamsOwn, Some(status))
            if (400..500).contains(&status) && !matches!(status, 401 | 403 | 429) =>
        {
            status
        }
        (view, _) => view.status(dialect == Dialect::Messages),
    };
    // An error inside a stream has no reply of its own; its words are in the evidence.
    let theirs = upstreams.map_or(fault.evidence.detail.as_str(), |(message, _)| message);
    let message = if theirs.is_empty() {
        words(fault.kind, fault)
    } else if matches!(fault.kind, FaultKind::RequestInvalid | FaultKind::PolicyBlocked) {
        theirs.to_owned()
    } else if matches!(fault.kind, FaultKind::ModelNotFound | FaultKind::ModelNotEntitled) {
        format!("the upstream does not serve this model: {theirs}")
    } else {
        words(fault.kind, fault)
    };
    let code = if fault.evidence.detail.starts_with(STORE_UNAVAILABLE) { STORE_UNAVAILABLE } else { code(fault.kind) };
    let mut error = ClientError::new(status, code, message);
    error.param = upstreams.and_then(|(_, param)| param).map(str::to_owned);
    if error.retry_after.is_some() {
        error.retry_after = Some(fault.declared.longest().unwrap_or(default_wait(fault.kind)));
    }
    error.no_retry = status >= 500;
    error
}

fn code(kind: FaultKind) -> &'static str {
    if kind == FaultKind::RequestInvalid { "invalid_request" } else { kind.name() }
}

fn default_wait(kind: FaultKind) -> Duration {
    match verdict::row(kind).effect {
        Effect::RateCooldown => limit::RATE_COOLDOWN,
        Effect::QuotaCooldown => limit::QUOTA_COOLDOWN,
        Effect::None
        | Effect::Budget
        | Effect::Suspend
        | Effect::ModelBlocked
        | Effect::ModelOverload
        | Effect::HealthSample
        | Effect::Misconfigured => Duration::from_secs(2),
    }
}

fn words(kind: FaultKind, fault: &Fault) -> String {
    let what = match kind {
        FaultKind::CredentialRejected => {
            "the upstream rejected the gateway's own credential; the operator must check the account"
        }
        FaultKind::AccountSuspended => "the upstream has suspended the gateway's account; the operator must act",
        FaultKind::QuotaExhausted => "the quota of every account for this model is used up",
        FaultKind::RateLimited => "every account for this model is rate limited by its provider",
        FaultKind::ModelNotEntitled => "no account may use this model",
        FaultKind::ModelOverloaded => "the model is overloaded at its provider",
        FaultKind::ModelNotFound => "the upstream does not know this model",
        FaultKind::RequestInvalid => "the upstream refused the request",
        FaultKind::PolicyBlocked => "the provider refused the request for its content",
        FaultKind::EgressThrottled => "the provider limits the gateway's own network address",
        FaultKind::UpstreamInternal => "the upstream failed inside",
        FaultKind::UpstreamUnavailable => "the upstream is not available",
        FaultKind::UpstreamStalled => "the upstream went silent",
        FaultKind::DeadlineExceeded => "the time for this turn is used up",
        // Some agents try a stream again that ends so only where the message says "connection lost".
        FaultKind::StreamTruncated => "connection lost: the upstream's answer broke off before its end",
        FaultKind::MalformedResponse => "the upstream's answer is not of its protocol",
        FaultKind::DnsFailure => "the upstream's name does not resolve",
        FaultKind::ConnectRefused => "the upstream refuses connections",
        FaultKind::ConnectTimeout => "connecting to the upstream took too long",
        FaultKind::Unreachable => "the upstream cannot be reached",
        FaultKind::TlsFailure => "the TLS connection to the upstream failed",
        FaultKind::ConnectionReset => "connection lost: the upstream closed or reset it",
        FaultKind::HttpProtocolError => "the upstream's answer is not valid HTTP",
        FaultKind::ConversationGone => "the upstream no longer holds the conversation",
        FaultKind::NoCredential => "no account for this model has a usable credential; the operator must set one",
        FaultKind::GatewayExhausted => "the gateway is out of a resource",
        FaultKind::GatewayBug => "the gateway made a mistake; its log has the turn's id",
        FaultKind::ClientGone => "the client left",
        FaultKind::Unclassified => "the upstream failed in a way that is not known",
        FaultKind::Unauthenticated => "a valid key is missing",
        FaultKind::ModelForbidden => "this key may not use this model",
        FaultKind::CallerRateLimited => "this key is over its rate",
        FaultKind::CallerBudgetExhausted => "this key is over its budget",
        FaultKind::TooLarge => "the request body is too large",
        FaultKind::BodyTimeout => "the request body did not arrive in time",
    };
    match &fault.evidence.code {
        _ if kind == FaultKind::GatewayExhausted => format!("{what}: {}", fault.evidence.detail),
        Some(code) => format!("{what} ({}: {code})", kind.name()),
        None => format!("{what} ({})", kind.name()),
    }
}

fn of_unavailable(unavailable: Unavailable, now: Moment) -> ClientError {
    let exhausted = "account queue exhausted (账号队列耗尽)";
    let (status, code, message, retry_at) = match unavailable {
        Unavailable::AllCooling { retry_at } => (
            429,
            "pool_exhausted",
            format!("{exhausted}: every account for this model is cooling down"),
            Some(retry_at),
        ),
        Unavailable::AllBusy { retry_at } => {
            (429, "pool_exhausted", format!("{exhausted}: every account for this model is busy"), retry_at)
        }
        Unavailable::QueueFull => (429, "pool_exhausted", format!("{exhausted}: too many turns are waiting"), None),
        Unavailable::AllErrored { retry_at } => {
            let message = format!("{exhausted}: the credential of every account for this model was rejected");
            (502, "pool_exhausted", message, Some(retry_at))
        }
        Unavailable::EgressClosed { retry_at } => (
            429,
            FaultKind::EgressThrottled.name(),
            "the provider limits the gateway's own network address: several accounts behind it were rate limited at once, \
             so all of them wait"
                .to_owned(),
            Some(retry_at),
        ),
        Unavailable::RetriesSpent => (
            503,
            "retries_spent",
            "the upstream fails too often for another try of this turn; try again in a moment".to_owned(),
            None,
        ),
        Unavailable::NoneEntitled => {
            (403, "model_not_entitled", "no account of the gateway may use this model".to_owned(), None)
        }
        Unavailable::NoAccounts => (
            503,
            "pool_exhausted",
            format!(
                "{exhausted}: no account can serve this model; those there are lack a secret, or are suspended or disabled, \
                 and the operator must act"
            ),
            None,
        ),
        Unavailable::DeadlinePassed => {
            (504, "deadline_exceeded", "the time for this turn was up before an account was free".to_owned(), None)
        }
    };
    let mut error = ClientError::new(status, code, message);
    if let Some(at) = retry_at {
        error.retry_after = Some(now.until(at));
    }
    error
}

/// An idempotency key that stands for another request.
pub fn idempotency_key_reused() -> ClientError {
    let message = "idempotency-key: this key was used for another request; a key stands for one request for 24 hours, so \
                   send a new one with a new request";
    ClientError { param: Some("idempotency-key".into()), ..ClientError::new(422, "idempotency_key_reused", message) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnkeep_base::{Evidence, Phase};

    #[test]
    fn an_exhausted_pool_is_told_in_both_forms_with_the_true_wait() {
        let ending = Ending::Unavailable(Unavailable::AllCooling { retry_at: Moment(91_500) });
        let error = client_error(&ending, Dialect::Chat, Moment(1_000), None);
        assert_eq!((error.status, error.code, error.retry_after_seconds()), (429, "pool_exhausted", Some(91)));
        assert!(error.message.contains("account queue exhausted (账号队列耗尽)"));
    }

    #[test]
    fn a_refused_credential_is_never_the_callers_401_and_an_overload_is_529_in_messages() {
        let ending =
            |kind, status| Ending::Fault(Fault::new(kind, Phase::Answered, Evidence::text("x").with_status(status)));
        let rejected = ending(FaultKind::CredentialRejected, 401);
        assert_eq!(client_error(&rejected, Dialect::Chat, Moment(0), None).status, 502);
        let overloaded = ending(FaultKind::ModelOverloaded, 503);
        assert_eq!(client_error(&overloaded, Dialect::Messages, Moment(0), None).status, 529);
        assert_eq!(client_error(&overloaded, Dialect::Chat, Moment(0), None).status, 503);
        assert!(client_error(&overloaded, Dialect::Messages, Moment(0), None).retry_after.is_some());
    }

    #[test]
    fn a_request_fault_keeps_the_upstreams_status_and_words() {
        let fault = Fault::new(FaultKind::RequestInvalid, Phase::Answered, Evidence::text("x").with_status(413));
        let error = client_error(&Ending::Fault(fault), Dialect::Chat, Moment(0), Some(("too long", Some("messages"))));
        assert_eq!((error.status, &*error.message, error.param.as_deref()), (413, "too long", Some("messages")));
    }
}
