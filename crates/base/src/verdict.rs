//! The blame table: one exhaustive match from a fault to everything that follows from it.
//!
//! Deny by default: only a row that names the account may change an account's standing, and only this file can make the
//! [`Charge`] that spends an error budget. A fault without a row does not compile.

use crate::fault::{Fault, FaultKind};
use crate::limit;
use crate::seeded;
use std::time::Duration;

/// Whose fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// The credential or its plan.
    Account,
    /// The model's capacity.
    Model,
    /// The request.
    Request,
    /// The caller's key or limits.
    Caller,
    /// The upstream's service.
    Upstream,
    /// The network between.
    Network,
    /// The gateway's own address.
    Egress,
    /// The conversation held upstream.
    Conversation,
    /// The gateway.
    Gateway,
    /// The client.
    Client,
    /// Nobody's, until somebody thinks of it.
    Unclassified,
}

impl Origin {
    /// The name in metrics and tables.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Account => "account",
            Origin::Model => "model",
            Origin::Request => "request",
            Origin::Caller => "caller",
            Origin::Upstream => "upstream",
            Origin::Network => "network",
            Origin::Egress => "egress",
            Origin::Conversation => "conversation",
            Origin::Gateway => "gateway",
            Origin::Client => "client",
            Origin::Unclassified => "unclassified",
        }
    }
}

/// What the account suffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// One of its three budgeted faults is spent.
    Budget,
    /// Out until the operator acts, when the provider names it twice; the first time is a budgeted fault.
    Suspend,
    /// The quota dimension cools to the stated reset, else for [`limit::QUOTA_COOLDOWN`].
    QuotaCooldown,
    /// The whole account cools for the stated window, else for [`limit::RATE_COOLDOWN`]; only (account, model) where the
    /// reply names the model as the limit's scope.
    RateCooldown,
    /// Remembered for (account, model) for [`limit::MODEL_BLOCKED`].
    ModelBlocked,
    /// (account, model) cools for 2 s, doubling to 60 s.
    ModelOverload,
    /// A health sample: later in selection for 5 minutes, never ineligible.
    HealthSample,
    /// Shown as misconfigured.
    Misconfigured,
}

/// What the turn does while its answer is uncommitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Another account, then the next route; a replay counts against the attempts.
    Elsewhere,
    /// The same, at most once per turn.
    ElsewhereOnce,
    /// The same, and the refused attempt does not count.
    ElsewhereFree,
    /// One replay on the same account if its cooldown ends soon, then elsewhere.
    SameThenElsewhere,
    /// Only another route can serve it.
    NextRoute,
    /// The same account with a new conversation and the full history, once.
    SameFullHistory,
    /// The turn ends, but for a request that is too long for the model's window: a configured larger model may take it.
    StopOrLarger,
    /// The turn ends.
    Stop,
    /// No account was asked.
    NeverStarted,
}

/// What becomes of a conversation lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    /// As its state says: clean if nothing left or it was refused with proof.
    Kept,
    /// The handle is spoilt.
    Dead,
    /// It goes with the account.
    WithAccount,
    /// No lease was taken.
    None,
}

/// What the client is told when the turn ends with the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientView {
    /// This status; the second one in the Messages dialect.
    Status(u16, u16),
    /// The upstream's own 4xx, in the client's dialect.
    UpstreamsOwn,
    /// Nothing: it is repaired or the client is gone (the number is for logs).
    Unseen(u16),
}

impl ClientView {
    /// The status in this dialect; for an upstream's own reply the fallback 400.
    pub fn status(self, messages: bool) -> u16 {
        match self {
            ClientView::Status(any, in_messages) => {
                if messages {
                    in_messages
                } else {
                    any
                }
            }
            ClientView::UpstreamsOwn => 400,
            ClientView::Unseen(status) => status,
        }
    }
}

/// Whose health takes a sample, beside the account's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// Nobody's.
    None,
    /// The endpoint's: its breaker counts it.
    Upstream,
    /// The model's: its own cooldown is all of it, and the endpoint has answered.
    Model,
}

/// One row of the blame table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Whose fault.
    pub origin: Origin,
    /// What tells it, in words.
    pub recognised_by: &'static str,
    /// What the account suffers.
    pub effect: Effect,
    /// Whose health takes a sample.
    pub health: Health,
    /// What the turn does next.
    pub next: Next,
    /// What becomes of the lease.
    pub lease: Lease,
    /// What the client sees.
    pub client: ClientView,
}

/// The row of a kind. This match is the table; `docs/faults.md` is printed from it.
pub fn row(kind: FaultKind) -> Row {
    use ClientView::{Status, Unseen, UpstreamsOwn};
    let make = |origin, recognised_by, effect, health, next, lease, client| Row {
        origin,
        recognised_by,
        effect,
        health,
        next,
        lease,
        client,
    };
    let same = |status| Status(status, status);
    match kind {
        FaultKind::CredentialRejected => make(
            Origin::Account,
            "401, or a named rejection of the key in another status; five 401/403 shells in a row on one account without a success \
             count as one",
            Effect::Budget,
            Health::None,
            Next::ElsewhereFree,
            Lease::Kept,
            same(502),
        ),
        FaultKind::AccountSuspended => make(
            Origin::Account,
            "the provider's named suspension codes, twice within 30 min",
            Effect::Suspend,
            Health::None,
            Next::ElsewhereFree,
            Lease::WithAccount,
            same(502),
        ),
        FaultKind::QuotaExhausted => make(
            Origin::Account,
            "402, the money family of 429, credit too low in a 400",
            Effect::QuotaCooldown,
            Health::None,
            Next::ElsewhereFree,
            Lease::Kept,
            Status(429, 402),
        ),
        FaultKind::RateLimited => make(
            Origin::Account,
            "429 of the rate family",
            Effect::RateCooldown,
            Health::None,
            Next::ElsewhereFree,
            Lease::Kept,
            same(429),
        ),
        FaultKind::ModelNotEntitled => make(
            Origin::Account,
            "403 or 404 that says this key may not use this model",
            Effect::ModelBlocked,
            Health::None,
            Next::ElsewhereFree,
            Lease::Kept,
            same(403),
        ),
        FaultKind::ModelOverloaded => make(
            Origin::Model,
            "529, 503 overloaded, an overload error in a 200 stream before content",
            Effect::ModelOverload,
            Health::Model,
            Next::SameThenElsewhere,
            Lease::Kept,
            Status(503, 529),
        ),
        FaultKind::ModelNotFound => make(
            Origin::Request,
            "404 that names the model",
            Effect::None,
            Health::None,
            Next::NextRoute,
            Lease::Kept,
            same(404),
        ),
        FaultKind::RequestInvalid => make(
            Origin::Request,
            "400, 404 (neither handle nor model named), 405, 409, 413, 415, 422 and their named codes; context too long; the same 4xx \
             from a second account",
            Effect::None,
            Health::None,
            Next::StopOrLarger,
            Lease::Kept,
            UpstreamsOwn,
        ),
        FaultKind::PolicyBlocked => make(
            Origin::Request,
            "the provider refuses the request for its content",
            Effect::None,
            Health::None,
            Next::Stop,
            Lease::Kept,
            same(451),
        ),
        FaultKind::EgressThrottled => make(
            Origin::Egress,
            "rate_limited on 3 accounts of different limit groups by one egress address, upstream and model within 8 s, no success \
             between, not each explained by its own used-up windows",
            Effect::None,
            Health::None,
            Next::NextRoute,
            Lease::Kept,
            same(429),
        ),
        FaultKind::UpstreamInternal => make(
            Origin::Upstream,
            "500, or internal error wording in another status",
            Effect::HealthSample,
            Health::Upstream,
            Next::ElsewhereOnce,
            Lease::Kept,
            same(502),
        ),
        FaultKind::UpstreamUnavailable => make(
            Origin::Upstream,
            "502, 503, HTML from a proxy",
            Effect::HealthSample,
            Health::Upstream,
            Next::Elsewhere,
            Lease::Kept,
            same(503),
        ),
        FaultKind::UpstreamStalled => make(
            Origin::Upstream,
            "the first-content or between clock fired",
            Effect::HealthSample,
            Health::Upstream,
            Next::ElsewhereOnce,
            Lease::Dead,
            same(504),
        ),
        FaultKind::DeadlineExceeded => make(
            Origin::Upstream,
            "the total clock, or the provider's own deadline",
            Effect::HealthSample,
            Health::Upstream,
            Next::Stop,
            Lease::Dead,
            same(504),
        ),
        FaultKind::StreamTruncated => make(
            Origin::Network,
            "the answer ends without the protocol's terminal event",
            Effect::HealthSample,
            Health::Upstream,
            Next::ElsewhereOnce,
            Lease::Kept,
            same(502),
        ),
        FaultKind::MalformedResponse => make(
            Origin::Upstream,
            "bytes that are not the protocol, an oversized event, a failed inflate",
            Effect::HealthSample,
            Health::Upstream,
            Next::ElsewhereOnce,
            Lease::Kept,
            same(502),
        ),
        FaultKind::DnsFailure => network("the name does not resolve", Next::Elsewhere, same(502)),
        FaultKind::ConnectRefused => network("the address refuses", Next::Elsewhere, same(502)),
        FaultKind::ConnectTimeout => {
            network("name, TCP and TLS took longer than the connect clock", Next::Elsewhere, same(504))
        }
        FaultKind::Unreachable => network("no route to the address", Next::Elsewhere, same(502)),
        FaultKind::TlsFailure => network("any TLS error: version, alert, certificate", Next::Elsewhere, same(502)),
        FaultKind::ConnectionReset => network("the socket broke after sending began", Next::ElsewhereOnce, same(502)),
        FaultKind::HttpProtocolError => {
            network("header overflow, bad header or chunk, HTTP/2 protocol error", Next::ElsewhereOnce, same(502))
        }
        FaultKind::ConversationGone => make(
            Origin::Conversation,
            "not found or expired, naming the handle",
            Effect::None,
            Health::None,
            Next::SameFullHistory,
            Lease::Dead,
            Unseen(502),
        ),
        FaultKind::NoCredential => make(
            Origin::Gateway,
            "the account has no usable secret",
            Effect::Misconfigured,
            Health::None,
            Next::ElsewhereFree,
            Lease::Kept,
            same(502),
        ),
        FaultKind::GatewayExhausted => make(
            Origin::Gateway,
            "out of files or memory, or the store cannot write",
            Effect::None,
            Health::None,
            Next::Stop,
            Lease::Kept,
            same(503),
        ),
        FaultKind::GatewayBug => {
            make(Origin::Gateway, "a caught panic", Effect::None, Health::None, Next::Stop, Lease::Kept, same(500))
        }
        FaultKind::ClientGone => make(
            Origin::Client,
            "the client closed, reset or stopped reading",
            Effect::None,
            Health::None,
            Next::Stop,
            Lease::Kept,
            Unseen(499),
        ),
        FaultKind::Unclassified => make(
            Origin::Unclassified,
            "anything else, the raw code kept",
            Effect::HealthSample,
            Health::None,
            Next::ElsewhereOnce,
            Lease::Kept,
            same(502),
        ),
        FaultKind::Unauthenticated => caller("missing or wrong key", same(401)),
        FaultKind::ModelForbidden => caller("the key may not use the model", same(403)),
        FaultKind::CallerRateLimited => caller("the key is over its rate", same(429)),
        FaultKind::CallerBudgetExhausted => caller("the key is over its budget", Status(429, 402)),
        FaultKind::TooLarge => caller("the body is over the limit", same(413)),
        FaultKind::BodyTimeout => caller("the body did not arrive in time", same(408)),
    }
}

fn network(recognised_by: &'static str, next: Next, client: ClientView) -> Row {
    Row {
        origin: Origin::Network,
        recognised_by,
        effect: Effect::HealthSample,
        health: Health::Upstream,
        next,
        lease: Lease::Kept,
        client,
    }
}

fn caller(recognised_by: &'static str, client: ClientView) -> Row {
    Row {
        origin: Origin::Caller,
        recognised_by,
        effect: Effect::None,
        health: Health::None,
        next: Next::NeverStarted,
        lease: Lease::None,
        client,
    }
}

/// The permission to spend one unit of an account's error budget. Only this file makes it, for a row that says so
/// ([`verdict`]) or for the last of a run of [`Shells`]; it cannot be copied.
#[derive(Debug)]
pub struct Charge(());

/// What follows from one fault.
#[derive(Debug)]
pub struct Verdict {
    /// The row.
    pub row: Row,
    /// Whose fault it is for this very fault (a deadline that the caller set is the caller's).
    pub origin: Origin,
    /// What the account suffers for this very fault.
    pub effect: Effect,
    /// Whose health takes a sample for this very fault.
    pub health: Health,
    /// Present if and only if the effect is a budgeted one.
    pub charge: Option<Charge>,
}

/// The run of 401 and 403 shells on one account: replies whose status speaks of the credential and whose code or wording
/// speaks of the upstream's own trouble. Proxies make them; so does a provider that hides a dead key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shells(u8);

impl Shells {
    /// Notes a fault. The last of [`limit::SHELLS_IN_A_ROW`] counts as one rejected credential, and a new run begins. A
    /// reply with another status ends the run; a fault without a reply says nothing.
    pub fn note(&mut self, fault: &Fault) -> Option<Charge> {
        if !fault.is_shell() {
            if fault.evidence.status.is_some() {
                self.0 = 0;
            }
            return None;
        }
        self.0 += 1;
        if self.0 < limit::SHELLS_IN_A_ROW {
            return None;
        }
        self.0 = 0;
        Some(Charge(()))
    }

    /// A success ends the run.
    pub fn clear(&mut self) {
        self.0 = 0;
    }

    /// How many there are in the run.
    pub fn count(self) -> u8 {
        self.0
    }
}

/// Judges a fault.
pub fn verdict(fault: &Fault) -> Verdict {
    let row = row(fault.kind);
    let callers_clock = fault.clock.is_some_and(|clock| clock.set_by_caller);
    let (origin, effect, health) = match callers_clock {
        true => (Origin::Caller, Effect::None, Health::None),
        false => (row.origin, row.effect, row.health),
    };
    let due = match effect {
        Effect::Budget | Effect::Suspend => Some(Charge(())),
        Effect::None
        | Effect::QuotaCooldown
        | Effect::RateCooldown
        | Effect::ModelBlocked
        | Effect::ModelOverload
        | Effect::HealthSample
        | Effect::Misconfigured => None,
    };
    let charge = if is_seeded(fault.kind) { Some(Charge(())) } else { due };
    Verdict { row, origin, effect, health, charge }
}

/// A bug that is put in on purpose charges for this.
fn is_seeded(kind: FaultKind) -> bool {
    seeded::is("charge-in-the-fallthrough") && kind == FaultKind::Unclassified
        || seeded::is("charge-for-the-network") && kind == FaultKind::ConnectionReset
        || seeded::is("charge-for-a-rate-limit") && kind == FaultKind::RateLimited
        || seeded::is("charge-for-the-request") && kind == FaultKind::RequestInvalid
}

/// Whether an attempt that ended so counts against the turn's attempts: refused and certainly unsent ones do not, nor one whose
/// conversation was gone.
pub fn counts(fault: &Fault) -> bool {
    let free = matches!(row(fault.kind).next, Next::ElsewhereFree | Next::SameFullHistory);
    !free && fault.phase != crate::fault::Phase::Unsent
}

/// The table as Markdown, for `explain faults` and `docs/faults.md`.
pub fn table() -> String {
    let mut out = String::from(
        "| fault | origin | recognised by | effect on the account | health sample of | next step while uncommitted | \
         lease | client sees |\n|---|---|---|---|---|---|---|---|\n",
    );
    for &kind in FaultKind::ALL {
        let row = row(kind);
        let sample = match row.health {
            Health::None => "-",
            Health::Upstream => "upstream",
            Health::Model => "model",
        };
        let line = format!(
            "| `{}` | {} | {} | {} | {} | {} | {} | {} |\n",
            kind.name(),
            row.origin.name(),
            row.recognised_by,
            effect_words(row.effect),
            sample,
            next_words(row.next),
            lease_words(row.lease),
            client_words(row.client),
        );
        out.push_str(&line);
    }
    out
}

fn effect_words(effect: Effect) -> String {
    match effect {
        Effect::None => "none".into(),
        Effect::Budget => "error budget +1".into(),
        Effect::Suspend => "suspended until `turnkeep accounts enable` (the first time: error budget +1)".into(),
        Effect::QuotaCooldown => format!("quota cooldown to the stated reset, else {}", span(limit::QUOTA_COOLDOWN)),
        Effect::RateCooldown => format!(
            "account cooldown for the stated window, else {}; (account, model) where the reply names the model as the \
             limit's scope",
            span(limit::RATE_COOLDOWN)
        ),
        Effect::ModelBlocked => format!("remembered for (account, model) {}", span(limit::MODEL_BLOCKED)),
        Effect::ModelOverload => format!(
            "(account, model) cooldown: the stated wait, else {} doubling to {}",
            span(limit::OVERLOAD_COOLDOWN),
            span(limit::LONGEST_OVERLOAD)
        ),
        Effect::HealthSample => "health sample".into(),
        Effect::Misconfigured => "none (shown as misconfigured)".into(),
    }
}

fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds > 60 { format!("{} min", seconds / 60) } else { format!("{seconds} s") }
}

fn next_words(next: Next) -> &'static str {
    match next {
        Next::Elsewhere => "elsewhere",
        Next::ElsewhereOnce => "elsewhere, once",
        Next::ElsewhereFree => "elsewhere, not counted",
        Next::SameThenElsewhere => "one replay on the same account if its cooldown ends soon, then elsewhere",
        Next::NextRoute => "next route",
        Next::SameFullHistory => "same account, new conversation, full history, once",
        Next::StopOrLarger => "stop (context too long: a configured larger model)",
        Next::Stop => "stop",
        Next::NeverStarted => "refused before any account",
    }
}

fn lease_words(lease: Lease) -> &'static str {
    match lease {
        Lease::Kept => "kept",
        Lease::Dead => "dead",
        Lease::WithAccount => "goes with the account",
        Lease::None => "-",
    }
}

fn client_words(client: ClientView) -> String {
    match client {
        ClientView::Status(any, messages) if any == messages => any.to_string(),
        ClientView::Status(any, messages) => format!("{any} ({messages} in Messages)"),
        ClientView::UpstreamsOwn => "the upstream's own 4xx in the caller's dialect".into(),
        ClientView::Unseen(status) => format!("nothing ({status} in logs)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{Clock, ClockKind, Evidence, Phase};

    fn fault(kind: FaultKind) -> Fault {
        Fault::new(kind, Phase::MaybeSent, Evidence::default())
    }

    #[test]
    fn only_the_two_credential_faults_can_spend_an_error_budget() {
        for &kind in FaultKind::ALL {
            let charged = verdict(&fault(kind)).charge.is_some();
            let named = matches!(kind, FaultKind::CredentialRejected | FaultKind::AccountSuspended);
            assert_eq!(charged, named, "{kind}");
        }
    }

    #[test]
    fn no_fault_outside_the_account_origin_cools_the_whole_account() {
        for &kind in FaultKind::ALL {
            let row = row(kind);
            let whole = matches!(row.effect, Effect::RateCooldown | Effect::QuotaCooldown | Effect::Suspend);
            assert!(!whole || row.origin == Origin::Account, "{kind}");
        }
    }

    #[test]
    fn a_deadline_that_the_caller_set_is_the_callers() {
        let mut late = fault(FaultKind::DeadlineExceeded);
        late.clock = Some(Clock { kind: ClockKind::Total, set_by_caller: true });
        let judged = verdict(&late);
        assert_eq!((judged.origin, judged.effect), (Origin::Caller, Effect::None));
        assert_eq!(verdict(&fault(FaultKind::DeadlineExceeded)).effect, Effect::HealthSample);
    }

    #[test]
    fn the_fifth_shell_in_a_row_is_one_rejected_credential_and_a_plain_fault_never_is() {
        let shell =
            |status| Fault::new(FaultKind::ModelOverloaded, Phase::Answered, Evidence::default().with_status(status));
        let charges = |faults: &[Fault]| {
            let mut shells = Shells::default();
            faults.iter().map(|fault| shells.note(fault).is_some()).collect::<Vec<_>>()
        };
        let run = [shell(401), shell(403), shell(401), shell(403), shell(403), shell(403)];
        assert_eq!(charges(&run), [false, false, false, false, true, false]);
        let plain = [shell(401), shell(401), shell(503), shell(401), shell(401), shell(401)];
        assert_eq!(charges(&plain), [false; 6]);
        let unknown = Fault::new(FaultKind::Unclassified, Phase::Answered, Evidence::default().with_status(403));
        assert!(charges(&vec![unknown; 9]).iter().all(|charged| !charged));
    }

    #[test]
    fn refused_and_unsent_attempts_do_not_count() {
        assert!(!counts(&fault(FaultKind::RateLimited)));
        assert!(counts(&fault(FaultKind::UpstreamInternal)));
        assert!(!counts(&Fault::new(FaultKind::ConnectRefused, Phase::Unsent, Evidence::default())));
    }

    #[test]
    fn the_printed_table_has_a_line_for_every_fault() {
        let table = table();
        for &kind in FaultKind::ALL {
            assert!(table.contains(&format!("| `{}` |", kind.name())), "{kind}");
        }
        assert_eq!(table.lines().count(), FaultKind::ALL.len() + 2);
    }
}
