//! The headers that tell a caller what is left of its limits, in the names and forms that its dialect's SDKs read.

use super::{seconds, shown_time};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::time::Duration;
use turnkeep_base::Dialect;
use turnkeep_base::price::shown_usd;
use turnkeep_policy::limits::{Amount, Left, LeftOf, Now};

/// Of the limits that there are; a key without limits has no such header.
pub(crate) fn told(left: &Left, now: Now, dialect: Dialect) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (what, of) in [("requests", &left.requests), ("tokens", &left.tokens)] {
        let Some(of) = of else { continue };
        match dialect {
            Dialect::Chat | Dialect::Responses | Dialect::Gemini => {
                put(&mut headers, &format!("x-ratelimit-limit-{what}"), of.limit.to_string());
                put(&mut headers, &format!("x-ratelimit-remaining-{what}"), of.left.to_string());
                put(&mut headers, &format!("x-ratelimit-reset-{what}"), span(of.reset));
            }
            Dialect::Messages => {
                put(&mut headers, &format!("anthropic-ratelimit-{what}-limit"), of.limit.to_string());
                put(&mut headers, &format!("anthropic-ratelimit-{what}-remaining"), of.left.to_string());
                put(&mut headers, &format!("anthropic-ratelimit-{what}-reset"), shown_time(now.unix_ms, of.reset));
            }
        }
    }
    if let Some((budget, LeftOf { limit, left, reset })) = left.budget {
        let (unit, shown): (_, fn(u64) -> String) = match budget.amount {
            Amount::NanoUsd(_) => ("usd", shown_usd),
            Amount::Tokens(_) => ("tokens", |number| number.to_string()),
        };
        put(&mut headers, "x-turnkeep-budget-unit", unit.to_owned());
        put(&mut headers, "x-turnkeep-budget-limit", shown(limit));
        put(&mut headers, "x-turnkeep-budget-remaining", shown(left));
        put(&mut headers, "x-turnkeep-budget-reset", shown_time(now.unix_ms, reset));
    }
    headers
}

fn put(headers: &mut HeaderMap, name: &str, value: String) {
    if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
        headers.insert(name, value);
    }
}

/// A time as OpenAI writes it: `17ms`, `8s`, `6m0s`.
fn span(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        return format!("{}ms", time.as_millis());
    }
    match (seconds(time) / 60, seconds(time) % 60) {
        (0, seconds) => format!("{seconds}s"),
        (minutes, seconds) => format!("{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnkeep_policy::Moment;
    use turnkeep_policy::limits::{Budget, Per};

    const NOW: Now = Now { moment: Moment(0), unix_ms: 1_784_116_800_000 };

    fn all(left: &Left, dialect: Dialect) -> Vec<String> {
        let headers = told(left, NOW, dialect);
        headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect()
    }

    #[test]
    fn each_dialect_has_its_own_names_and_forms() {
        let of = |limit, left, ms| Some(LeftOf { limit, left, reset: Duration::from_millis(ms) });
        let left = Left { requests: of(60, 59, 1_000), tokens: of(100, 0, 90_001), budget: None };
        let chat = [
            "x-ratelimit-limit-requests: 60",
            "x-ratelimit-remaining-requests: 59",
            "x-ratelimit-reset-requests: 1s",
            "x-ratelimit-limit-tokens: 100",
            "x-ratelimit-remaining-tokens: 0",
            "x-ratelimit-reset-tokens: 1m31s",
        ];
        assert_eq!(all(&left, Dialect::Chat), chat);
        let messages = [
            "anthropic-ratelimit-requests-limit: 60",
            "anthropic-ratelimit-requests-remaining: 59",
            "anthropic-ratelimit-requests-reset: 2026-07-15T12:00:01Z",
            "anthropic-ratelimit-tokens-limit: 100",
            "anthropic-ratelimit-tokens-remaining: 0",
            "anthropic-ratelimit-tokens-reset: 2026-07-15T12:01:31Z",
        ];
        assert_eq!(all(&left, Dialect::Messages), messages);
    }

    #[test]
    fn a_budget_is_told_alike_in_both_and_without_limits_nothing_is() {
        let budget = Budget { amount: Amount::NanoUsd(20_000_000_000), per: Per::Day };
        let of = LeftOf { limit: 20_000_000_000, left: 12_500_000_000, reset: Duration::from_secs(60) };
        let left = Left { budget: Some((budget, of)), ..Left::default() };
        let expected = [
            "x-turnkeep-budget-unit: usd",
            "x-turnkeep-budget-limit: 20",
            "x-turnkeep-budget-remaining: 12.5",
            "x-turnkeep-budget-reset: 2026-07-15T12:01:00Z",
        ];
        assert_eq!(all(&left, Dialect::Chat), expected);
        assert_eq!(all(&left, Dialect::Messages), expected);
        assert!(told(&Left::default(), NOW, Dialect::Chat).is_empty());
    }
}
