//! What an Anthropic-style error means. The provider's words are rows of data, tried in this order: a reply that is no
//! JSON, the named detail code, wording that shows a transient fault behind an authentication status, the named type,
//! the status. What matches no row is `unclassified`, which charges nobody.

use crate::classify::Classified;
use crate::classify::wording::{begins, contains, unquoted};
use crate::json::{Invalid, Kind, Reader};
use crate::reply::ReplyFault;
use turnkeep_base::{Evidence, FaultKind};

/// Bytes that are kept of a body that is no JSON.
const TEXT_BYTES: usize = 16 << 10;

/// `error.details.error_code`, or `error.code` where a server has that.
const DETAIL_CODES: &[(&str, FaultKind)] = &[
    ("enforced_spend_limit_reached", FaultKind::QuotaExhausted),
    ("credit_balance_exhausted", FaultKind::QuotaExhausted),
    ("account_suspended", FaultKind::AccountSuspended),
    ("organization_disabled", FaultKind::AccountSuspended),
];

/// `error.type` that says it all, whatever the status.
const TYPES: &[(&str, FaultKind)] = &[
    ("overloaded_error", FaultKind::ModelOverloaded),
    ("billing_error", FaultKind::QuotaExhausted),
    ("rate_limit_error", FaultKind::RateLimited),
    ("authentication_error", FaultKind::CredentialRejected),
    ("api_error", FaultKind::UpstreamInternal),
    ("timeout_error", FaultKind::DeadlineExceeded),
    ("request_too_large", FaultKind::RequestInvalid),
    ("conflict_error", FaultKind::RequestInvalid),
    // llama.cpp's own.
    ("exceed_context_size_error", FaultKind::RequestInvalid),
    ("not_supported_error", FaultKind::RequestInvalid),
    ("unavailable_error", FaultKind::UpstreamUnavailable),
    ("server_error", FaultKind::UpstreamInternal),
];

/// Wording of a spent account, in lower case; only where type and status speak of the account.
const MONEY: &[&str] = &["credit balance is too low", "specified api usage limits", "spend limit", "spending limit"];
/// How a message of a spent account begins, where the status mostly speaks of the request: such a message may hold the
/// caller's own text, so nothing less than the provider's sentence counts.
const MONEY_SENTENCES: &[&str] = &[
    "your credit balance is too low",
    "your credit balance is too low to access the anthropic api",
    "your credit balance is too low to access the claude api",
    "you have reached your specified api usage limits",
    "you have reached your specified workspace api usage limits",
];
/// How a message of a suspension begins; believed at 401 and 403 only.
const SUSPENDED: &[&str] = &[
    "this organization has been disabled",
    "your organization has been disabled",
    "this account has been disabled",
    "your account has been disabled",
    "this account has been suspended",
    "your account has been suspended",
];
/// Wording of a refusal of the request for its content.
const POLICY: &[&str] = &["content filtering policy", "usage policy", "violates our policies"];
/// Wording of a lack of capacity.
const OVERLOAD: &[&str] = &["overloaded", "at capacity", "no capacity"];
/// Wording of a fault inside the upstream.
const INTERNAL: &[&str] = &["internal server error", "internal error"];
/// Wording of the provider's own clock.
const DEADLINE: &[&str] = &["context deadline", "deadline exceeded"];

/// Classifies a reply with an error status.
pub fn reply(status: u16, body: &[u8]) -> Classified {
    let words = Words::read(body);
    let kind = kind(status, &words);
    Classified::of(kind, Some(status), words.codes().next(), &words.message, words.param.as_deref())
}

/// Classifies the `error` event of a stream, whose status was 200 and says nothing.
pub fn in_stream(data: &[u8]) -> ReplyFault {
    let error = reply(200, data);
    Classified { evidence: Evidence { status: None, ..error.evidence }, ..error }.into()
}

fn row(rows: &[(&str, FaultKind)], word: Option<&str>) -> Option<FaultKind> {
    let word = word?;
    rows.iter().find(|(name, _)| *name == word).map(|&(_, kind)| kind)
}

fn kind(status: u16, words: &Words) -> FaultKind {
    if words.html && !matches!(status, 404 | 405 | 413 | 429) {
        return FaultKind::UpstreamUnavailable;
    }
    let lower = unquoted(&words.message);
    let says = |wordings: &[&str]| contains(&lower, wordings);
    let detailed = words.detail_code.as_deref().or(words.code.as_deref());
    if let Some(kind) = row(DETAIL_CODES, detailed) {
        return kind;
    }
    let named = words.kind.as_deref();
    let shell = matches!(status, 401 | 403) || matches!(named, Some("authentication_error" | "permission_error"));
    if shell && says(OVERLOAD) {
        return FaultKind::ModelOverloaded;
    }
    if shell && says(INTERNAL) {
        return FaultKind::UpstreamInternal;
    }
    if matches!(status, 401 | 403) && begins(&lower, SUSPENDED) {
        return FaultKind::AccountSuspended;
    }
    match (named, row(TYPES, named)) {
        (Some("rate_limit_error"), _) if says(MONEY) => FaultKind::QuotaExhausted,
        (Some("api_error"), _) if says(OVERLOAD) && matches!(status, 200 | 503 | 529) => FaultKind::ModelOverloaded,
        (Some("api_error"), _) if says(DEADLINE) => FaultKind::DeadlineExceeded,
        (_, Some(kind)) => kind,
        (Some("not_found_error"), None) => not_found(&lower),
        (Some("permission_error"), None) => forbidden(&lower),
        // The catch-all type of every 4xx: it decides only where the status does not name the account.
        (Some("invalid_request_error"), None) if !matches!(status, 401..=404 | 429 | 500..) => invalid(&lower),
        (_, None) => by_status(status, words.html, &lower),
    }
}

fn invalid(lower: &str) -> FaultKind {
    if begins(lower, MONEY_SENTENCES) {
        FaultKind::QuotaExhausted
    } else if contains(lower, POLICY) {
        FaultKind::PolicyBlocked
    } else {
        FaultKind::RequestInvalid
    }
}

fn not_found(lower: &str) -> FaultKind {
    if lower.contains("model") { FaultKind::ModelNotFound } else { FaultKind::RequestInvalid }
}

fn forbidden(lower: &str) -> FaultKind {
    if contains(lower, MONEY) {
        FaultKind::QuotaExhausted
    } else if lower.contains("model") {
        FaultKind::ModelNotEntitled
    } else {
        FaultKind::Unclassified
    }
}

fn by_status(status: u16, html: bool, lower: &str) -> FaultKind {
    match status {
        401 => FaultKind::CredentialRejected,
        402 => FaultKind::QuotaExhausted,
        403 => forbidden(lower),
        404 if html => FaultKind::RequestInvalid,
        404 => not_found(lower),
        429 if contains(lower, MONEY) => FaultKind::QuotaExhausted,
        429 => FaultKind::RateLimited,
        451 => FaultKind::PolicyBlocked,
        400 | 405 | 409 | 412 | 413 | 415 | 422 | 431 => invalid(lower),
        501 => FaultKind::RequestInvalid,
        529 => FaultKind::ModelOverloaded,
        503 if contains(lower, OVERLOAD) => FaultKind::ModelOverloaded,
        504 => FaultKind::DeadlineExceeded,
        500.. if contains(lower, DEADLINE) => FaultKind::DeadlineExceeded,
        500 => FaultKind::UpstreamInternal,
        502 | 503 | 520..=527 => FaultKind::UpstreamUnavailable,
        ..400 if contains(lower, OVERLOAD) => FaultKind::ModelOverloaded,
        ..400 if contains(lower, INTERNAL) => FaultKind::UpstreamInternal,
        _ => FaultKind::Unclassified,
    }
}

/// What an error body says.
#[derive(Default)]
struct Words {
    html: bool,
    kind: Option<String>,
    code: Option<String>,
    detail_code: Option<String>,
    message: String,
    param: Option<String>,
}

impl Words {
    /// The provider's codes, the most specific first.
    fn codes(&self) -> impl Iterator<Item = &str> {
        let kind = self.kind.as_deref().filter(|kind| *kind != "error");
        [self.detail_code.as_deref(), kind, self.code.as_deref()].into_iter().flatten()
    }

    fn read(body: &[u8]) -> Self {
        let trimmed = body.trim_ascii_start();
        if trimmed.first() == Some(&b'<') {
            let message = String::from_utf8_lossy(&trimmed[..trimmed.len().min(TEXT_BYTES)]).into_owned();
            return Words { html: true, message, ..Words::default() };
        }
        let mut words = Words::default();
        // A body that was cut, or is no JSON, is taken for its text.
        let complete = Reader::new(body).and_then(|mut r| words.top(&mut r));
        if complete.is_err() && words.message.is_empty() {
            words.message = String::from_utf8_lossy(&body[..body.len().min(TEXT_BYTES)]).into_owned();
        }
        words
    }

    fn top(&mut self, r: &mut Reader<'_>) -> Result<(), Invalid> {
        r.object(|r, key| match (key, r.kind()?) {
            ("error", Kind::Object) => r.object(|r, key| self.field(r, key)),
            ("error" | "message" | "detail", Kind::String) => {
                if self.message.is_empty() {
                    self.message = r.string()?.into_owned();
                    return Ok(());
                }
                r.skip().map(drop)
            }
            _ => r.skip().map(drop),
        })
    }

    fn field(&mut self, r: &mut Reader<'_>, key: &str) -> Result<(), Invalid> {
        match (key, r.kind()?) {
            ("type", Kind::String) => self.kind = Some(r.string()?.into_owned()),
            ("code", Kind::String) => self.code = Some(r.string()?.into_owned()),
            ("code", Kind::Number) => self.code = Some(r.number()?.to_owned()),
            ("message", Kind::String) => self.message = r.string()?.into_owned(),
            ("param", Kind::String) => self.param = Some(r.string()?.into_owned()),
            ("details", Kind::Object) => r.object::<Invalid>(|r, key| {
                if key == "error_code" && r.kind()? == Kind::String {
                    self.detail_code = Some(r.string()?.into_owned());
                    return Ok(());
                }
                r.skip().map(drop)
            })?,
            _ => r.skip().map(drop)?,
        }
        Ok(())
    }
}
