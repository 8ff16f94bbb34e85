//! The families of headers that providers count their limits in, as data: what is counted, where the count and the reset
//! are, and what the limit covers.

use super::{moment, span};
use std::time::Duration;
use turnkeep_base::limit::WINDOWS;
use turnkeep_base::{LimitScope, Window};

/// Pairs of headers: a remaining count and its reset. OpenAI and Groq, then those that name the window (Cerebras, Mistral),
/// then counters without a name (OpenRouter, proxies), then Anthropic.
#[rustfmt::skip]
pub(super) const COUNTS: &[(&str, &str, LimitScope)] = &[
    ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests", LimitScope::Requests),
    ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens", LimitScope::Account),
    ("x-ratelimit-remaining-input-tokens", "x-ratelimit-reset-input-tokens", LimitScope::Account),
    ("x-ratelimit-remaining-output-tokens", "x-ratelimit-reset-output-tokens", LimitScope::Account),
    ("x-ratelimit-remaining-requests-minute", "x-ratelimit-reset-requests-minute", LimitScope::Requests),
    ("x-ratelimit-remaining-requests-hour", "x-ratelimit-reset-requests-hour", LimitScope::Requests),
    ("x-ratelimit-remaining-requests-day", "x-ratelimit-reset-requests-day", LimitScope::Requests),
    ("x-ratelimit-remaining-tokens-minute", "x-ratelimit-reset-tokens-minute", LimitScope::Account),
    ("x-ratelimit-remaining-tokens-hour", "x-ratelimit-reset-tokens-hour", LimitScope::Account),
    ("x-ratelimit-remaining-tokens-day", "x-ratelimit-reset-tokens-day", LimitScope::Account),
    ("x-ratelimit-remaining-req-minute", "x-ratelimit-reset-req-minute", LimitScope::Requests),
    ("x-ratelimit-remaining", "x-ratelimit-reset", LimitScope::Requests),
    ("ratelimit-remaining", "ratelimit-reset", LimitScope::Requests),
    ("x-tokenlimit-remaining", "x-tokenlimit-reset", LimitScope::Account),
    ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset", LimitScope::Requests),
    ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset", LimitScope::Account),
    ("anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset", LimitScope::Account),
    ("anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset", LimitScope::Account),
];

/// Windows of an Anthropic subscription: status, reset, and what they cover. Those of a class of models are the model's.
#[rustfmt::skip]
pub(super) const UNIFIED: &[(&str, &str, LimitScope)] = &[
    ("anthropic-ratelimit-unified-5h-status", "anthropic-ratelimit-unified-5h-reset", LimitScope::Quota),
    ("anthropic-ratelimit-unified-7d-status", "anthropic-ratelimit-unified-7d-reset", LimitScope::Quota),
    ("anthropic-ratelimit-unified-7d_oi-status", "anthropic-ratelimit-unified-7d_oi-reset", LimitScope::Model),
    ("anthropic-ratelimit-unified-7d_opus-status", "anthropic-ratelimit-unified-7d_opus-reset", LimitScope::Model),
    ("anthropic-ratelimit-unified-7d_sonnet-status", "anthropic-ratelimit-unified-7d_sonnet-reset", LimitScope::Model),
];
pub(super) const UNIFIED_STATUS: &str = "anthropic-ratelimit-unified-status";
const UNIFIED_RESET: &str = "anthropic-ratelimit-unified-reset";
const UNIFIED_CLAIM: &str = "anthropic-ratelimit-unified-representative-claim";

/// Windows of a Codex subscription: the part that is used in percent, the reset as a length, and as a moment.
#[rustfmt::skip]
pub(super) const CODEX: &[(&str, &str, &str)] = &[
    ("x-codex-primary-used-percent", "x-codex-primary-reset-after-seconds", "x-codex-primary-reset-at"),
    ("x-codex-secondary-used-percent", "x-codex-secondary-reset-after-seconds", "x-codex-secondary-reset-at"),
];

/// The windows that are used up. Where a count of 0 comes without a reset, `retry_after` is its wait.
pub(super) fn used_up<'h>(
    get: &dyn Fn(&str) -> Option<&'h str>,
    made_ms: u64,
    retry_after: Option<Duration>,
) -> Vec<Window> {
    let mut windows = Vec::new();
    let mut push = |scope, wait: Option<Duration>| {
        if let Some(wait) = wait.filter(|_| windows.len() < WINDOWS) {
            windows.push(Window { scope, wait });
        }
    };
    let resets = |name: &str| match get(name) {
        Some(said) => reset(said, made_ms),
        None => retry_after,
    };
    unified(get, &resets, &mut push);
    for &(used, after, at) in CODEX {
        if get(used).is_some_and(is_hundred) {
            let length = get(after).and_then(span::seconds).and_then(span::worth);
            push(LimitScope::Quota, length.or_else(|| get(at).and_then(|said| reset(said, made_ms))));
        }
    }
    for &(remaining, reset, scope) in COUNTS {
        if get(remaining).is_some_and(is_zero) {
            push(scope, resets(reset));
        }
    }
    windows
}

/// A subscription refuses as a whole; its parts then say why. A rejected part of an accepted whole is being paid for.
fn unified<'h>(
    get: &dyn Fn(&str) -> Option<&'h str>,
    resets: &dyn Fn(&str) -> Option<Duration>,
    push: &mut impl FnMut(LimitScope, Option<Duration>),
) {
    let rejected = |name: &str| get(name).map(|status| status.trim().eq_ignore_ascii_case("rejected"));
    let whole = rejected(UNIFIED_STATUS);
    if whole == Some(false) {
        return;
    }
    let mut parts = 0;
    for &(status, reset, scope) in UNIFIED {
        if let Some(wait) = resets(reset).filter(|_| rejected(status) == Some(true)) {
            parts += 1;
            push(scope, Some(wait));
        }
    }
    if whole == Some(true) && parts == 0 {
        // `seven_day_…` is the week of one class of models.
        let of_model = get(UNIFIED_CLAIM).is_some_and(|claim| claim.trim().starts_with("seven_day_"));
        push(if of_model { LimitScope::Model } else { LimitScope::Quota }, resets(UNIFIED_RESET));
    }
}

/// A reset as a length (`6m0s`, `20`), as a moment (seconds or milliseconds since 1970, RFC 3339) or as a date.
fn reset(said: &str, made_ms: u64) -> Option<Duration> {
    if let Some(at) = moment::number(said) {
        return moment::until(at, made_ms);
    }
    if let Some(length) = span::length(said) {
        return span::worth(length);
    }
    moment::rfc3339(said).or_else(|| moment::http_date(said)).and_then(|at| moment::until(at, made_ms))
}

fn is_zero(count: &str) -> bool {
    let count = count.trim();
    let (whole, fraction) = count.split_once('.').unwrap_or((count, "0"));
    let zeros = |text: &str| (1..=16).contains(&text.len()) && text.bytes().all(|byte| byte == b'0');
    zeros(whole) && zeros(fraction)
}

fn is_hundred(percent: &str) -> bool {
    let percent = percent.trim();
    let whole = percent.split_once('.').map_or(percent, |(whole, _)| whole);
    whole.len() == 3 && whole.parse::<u16>().is_ok_and(|used| (100..=999).contains(&used))
}
