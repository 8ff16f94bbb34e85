//! What the headers of a reply declare of its provider's limits.

#![allow(clippy::unwrap_used, reason = "a helper of a test may fail the test")]

use proptest::prelude::*;
use std::time::Duration;
use turnkeep_base::LimitScope::{self, *};
use turnkeep_base::{Declared, limit};
use turnkeep_dialect::windows::{from_headers, made_at};

/// Mon, 30 Nov 2026 21:23:20 GMT
const NOW: u64 = 1_796_073_800_000;

fn declared_at(headers: &[(&str, &str)], wall_ms: u64) -> Declared {
    from_headers(&|name| headers.iter().find(|(header, _)| *header == name).map(|&(_, value)| value), wall_ms)
}

fn declared(headers: &[(&str, &str)]) -> Declared {
    declared_at(headers, NOW)
}

fn wait(headers: &[(&str, &str)]) -> Option<u64> {
    declared(headers).wait.map(|wait| u64::try_from(wait.as_millis()).unwrap())
}

fn windows(headers: &[(&str, &str)]) -> Vec<(LimitScope, u64)> {
    let windows = declared(headers).windows;
    windows.iter().map(|window| (window.scope, u64::try_from(window.wait.as_millis()).unwrap())).collect()
}

#[test]
fn a_wait_is_read_in_milliseconds_in_seconds_and_as_a_date() {
    assert_eq!(wait(&[("retry-after", "20")]), Some(20_000));
    assert_eq!(wait(&[("retry-after", " 0.25 ")]), Some(250));
    assert_eq!(wait(&[("retry-after-ms", "1500"), ("retry-after", "2")]), Some(1_500));
    assert_eq!(wait(&[("retry-after-ms", "soon"), ("retry-after", "2")]), Some(2_000));
    for date in ["Mon, 30 Nov 2026 21:24:20 GMT", "Monday, 30-Nov-26 21:24:20 GMT", "Mon Nov 30 21:24:20 2026"] {
        assert_eq!(wait(&[("retry-after", date)]), Some(60_000), "{date}");
    }
}

#[test]
fn a_date_is_measured_from_the_replys_own_date() {
    let headers = [("retry-after", "Mon, 30 Nov 2026 10:00:30 GMT"), ("date", "Mon, 30 Nov 2026 10:00:00 GMT")];
    assert_eq!(wait(&headers), Some(30_000));
    let spoilt = [("retry-after", "Mon, 30 Nov 2026 21:23:50 GMT"), ("date", "yesterday")];
    assert_eq!(wait(&spoilt), Some(30_000));
    assert_eq!(declared_at(&[("retry-after", "Mon, 30 Nov 2026 21:23:50 GMT")], 0).wait, None);
    assert_eq!(made_at(&|_| Some("Thu, 01 Jan 1970 00:01:00 GMT"), NOW), 60_000);
    assert_eq!(made_at(&|_| None, NOW), NOW);
}

#[test]
fn a_hostile_wait_is_none() {
    let long = "9".repeat(10_000);
    for said in [
        "0",
        "-1",
        "-0.5",
        "+5",
        "1e9",
        "NaN",
        "inf",
        "",
        " ",
        "99999999999",
        "soon",
        "20 s",
        "20s",
        "1,5",
        "0x10",
        "Mon, 30 Nov 2026 21:23:20 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Mon, 31 Nov 2026 21:24:20 GMT",
        "Fri, 31 Dec 9999 23:59:59 GMT",
        &long,
    ] {
        assert_eq!(wait(&[("retry-after", said)]), None, "{said:.40}");
        let count = [("x-ratelimit-remaining-requests", said), ("x-ratelimit-reset-requests", "60")];
        assert_eq!(windows(&count).len(), usize::from(said == "0"), "{said:.40}");
    }
    for said in
        ["-1s", "1s1h", "NaN", "1e9s", "999999d", &long, "2020-01-01T00:00:00Z", "1700000000", "0", "0s", "soon"]
    {
        let count = [("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-requests", said)];
        assert_eq!(windows(&count), [], "{said:.40}");
    }
}

#[test]
fn only_a_count_of_exactly_zero_is_a_window() {
    let count = |left| [("x-ratelimit-remaining-requests", left), ("x-ratelimit-reset-requests", "60")];
    for left in ["0", " 0 ", "0.0", "00"] {
        assert_eq!(windows(&count(left)), [(Requests, 60_000)], "{left}");
    }
    for left in ["1", "0.5", "-0", "-1", "", "none", "0 of 5", "1000", "."] {
        assert_eq!(windows(&count(left)), [], "{left}");
    }
    assert_eq!(windows(&[("x-ratelimit-remaining-requests", "0")]), []);
    // Where no reset is said, the general wait is the window's.
    assert_eq!(windows(&[("x-ratelimit-remaining-requests", "0"), ("retry-after", "7")]), [(Requests, 7_000)]);
}

#[test]
fn a_reset_is_read_in_every_form() {
    for (said, ms) in [
        ("6m0s", 360_000),
        ("1h2m3.5s", 3_723_500),
        ("20ms", 20),
        ("2m59.56s", 179_560),
        ("18", 18_000),
        ("7.66", 7_660),
        ("1796073860", 60_000),
        ("1796073860500", 60_500),
        ("2026-11-30T21:24:20Z", 60_000),
        ("2026-11-30T22:24:20.5+01:00", 60_500),
        ("Mon, 30 Nov 2026 21:24:20 GMT", 60_000),
    ] {
        let count = [("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", said)];
        assert_eq!(windows(&count), [(Account, ms)], "{said}");
    }
}

#[test]
fn every_family_of_counts_is_known_with_its_scope() {
    for (left, reset, scope) in [
        ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests", Requests),
        ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens", Account),
        ("x-ratelimit-remaining-input-tokens", "x-ratelimit-reset-input-tokens", Account),
        ("x-ratelimit-remaining-output-tokens", "x-ratelimit-reset-output-tokens", Account),
        ("x-ratelimit-remaining-requests-minute", "x-ratelimit-reset-requests-minute", Requests),
        ("x-ratelimit-remaining-requests-hour", "x-ratelimit-reset-requests-hour", Requests),
        ("x-ratelimit-remaining-requests-day", "x-ratelimit-reset-requests-day", Requests),
        ("x-ratelimit-remaining-tokens-minute", "x-ratelimit-reset-tokens-minute", Account),
        ("x-ratelimit-remaining-tokens-hour", "x-ratelimit-reset-tokens-hour", Account),
        ("x-ratelimit-remaining-tokens-day", "x-ratelimit-reset-tokens-day", Account),
        ("x-ratelimit-remaining-req-minute", "x-ratelimit-reset-req-minute", Requests),
        ("x-ratelimit-remaining", "x-ratelimit-reset", Requests),
        ("ratelimit-remaining", "ratelimit-reset", Requests),
        ("x-tokenlimit-remaining", "x-tokenlimit-reset", Account),
        ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset", Requests),
        ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset", Account),
        ("anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset", Account),
        ("anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset", Account),
    ] {
        assert_eq!(windows(&[(left, "0"), (reset, "2026-11-30T21:23:50Z")]), [(scope, 30_000)], "{left}");
        assert_eq!(windows(&[(left, "1"), (reset, "2026-11-30T21:23:50Z")]), [], "{left}");
    }
}

#[test]
fn a_rejected_window_of_a_subscription_is_the_accounts_quota_until_it_resets() {
    const STATUS: &str = "anthropic-ratelimit-unified-status";
    const RESET: &str = "anthropic-ratelimit-unified-reset";
    assert_eq!(windows(&[(STATUS, "rejected"), (RESET, "1796077400")]), [(Quota, 3_600_000)]);
    for status in ["allowed", "allowed_warning", "", "REJECTED soon"] {
        assert_eq!(windows(&[(STATUS, status), (RESET, "1796077400")]), [], "{status}");
    }
    let both = [
        (STATUS, "rejected"),
        (RESET, "1796077400"),
        ("anthropic-ratelimit-unified-5h-status", "rejected"),
        ("anthropic-ratelimit-unified-5h-reset", "1796077400"),
        ("anthropic-ratelimit-unified-7d-status", "rejected"),
        ("anthropic-ratelimit-unified-7d-reset", "1796160200"),
    ];
    assert_eq!(windows(&both), [(Quota, 3_600_000), (Quota, 86_400_000)]);
    let spoilt = [both[0], both[1], both[2], ("anthropic-ratelimit-unified-5h-reset", "soon")];
    assert_eq!(windows(&spoilt), [(Quota, 3_600_000)]);
    // A rejected part of a whole that is allowed is paid for by the use beyond the plan.
    let paid = [(STATUS, "allowed"), both[2], both[3]];
    assert_eq!(windows(&paid), []);
    let opus = [
        (STATUS, "rejected"),
        (RESET, "1796077400"),
        ("anthropic-ratelimit-unified-representative-claim", "seven_day_opus"),
    ];
    assert_eq!(windows(&opus), [(Model, 3_600_000)]);
    assert!(declared(&opus).names_model && !declared(&both).names_model);
    for part in ["7d_oi", "7d_opus", "7d_sonnet"] {
        let (status, reset) =
            (format!("anthropic-ratelimit-unified-{part}-status"), format!("anthropic-ratelimit-unified-{part}-reset"));
        assert_eq!(windows(&[(&status, "rejected"), (&reset, "1796077400")]), [(Model, 3_600_000)], "{part}");
    }
}

#[test]
fn a_codex_window_that_is_wholly_used_is_the_accounts_quota() {
    for part in ["primary", "secondary"] {
        let [used, after, at] =
            ["used-percent", "reset-after-seconds", "reset-at"].map(|end| format!("x-codex-{part}-{end}"));
        assert_eq!(windows(&[(&used, "100"), (&after, "13873"), (&at, "1796077400")]), [(Quota, 13_873_000)]);
        assert_eq!(windows(&[(&used, "100.0"), (&at, "1796077400")]), [(Quota, 3_600_000)]);
        for left in ["99", "99.9", "", "-100", "1e2", "full"] {
            assert_eq!(windows(&[(&used, left), (&after, "13873")]), [], "{left}");
        }
    }
}

#[test]
fn more_windows_than_the_bound_are_not_kept() {
    let every = from_headers(
        &|name| match name {
            name if name.contains("-remaining") => Some("0"),
            name if name.contains("-status") => Some("rejected"),
            name if name.contains("-used-percent") => Some("100"),
            _ => Some("30"),
        },
        NOW,
    );
    assert_eq!(every.windows.len(), limit::WINDOWS);
}

const NAMES: &[&str] = &[
    "date",
    "retry-after",
    "retry-after-ms",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-reset-requests",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "anthropic-ratelimit-tokens-remaining",
    "anthropic-ratelimit-tokens-reset",
    "anthropic-ratelimit-unified-status",
    "anthropic-ratelimit-unified-reset",
    "anthropic-ratelimit-unified-5h-status",
    "anthropic-ratelimit-unified-5h-reset",
    "x-codex-primary-used-percent",
    "x-codex-primary-reset-after-seconds",
];

proptest! {
    #[test]
    fn no_headers_make_it_panic(
        values in prop::collection::vec(prop_oneof![
            "\\PC{0,40}", "[0-9.hmsdTZ:+ -]{0,30}", "[0-9]{1,30}",
            Just("0".to_owned()), Just("rejected".to_owned()), Just("100".to_owned()),
            Just("Mon, 30 Nov 2026 21:24:20 GMT".to_owned()),
        ], NAMES.len()),
        wall in prop_oneof![Just(0), Just(NOW), Just(u64::MAX), any::<u64>()],
    ) {
        let headers: Vec<_> = NAMES.iter().copied().zip(values.iter().map(String::as_str)).collect();
        let declared = declared_at(&headers, wall);
        prop_assert!(declared.windows.len() <= limit::WINDOWS);
        for wait in declared.windows.iter().map(|window| window.wait).chain(declared.wait) {
            prop_assert!(!wait.is_zero() && wait <= Duration::from_secs(366 * 86_400));
        }
    }

    #[test]
    fn no_wait_is_longer_than_its_header_said(seconds in 1u64..31_000_000, millis in 0u64..1000) {
        let said = format!("{seconds}.{millis:03}");
        prop_assert_eq!(wait(&[("retry-after", &said)]), Some(seconds * 1000 + millis));
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
        let go = format!("{hours}h{minutes}m{}.{millis:03}s", seconds % 60);
        let count = [("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", go.as_str())];
        prop_assert_eq!(windows(&count), vec![(Account, seconds * 1000 + millis)]);
        let epoch = (NOW / 1000 + seconds).to_string();
        let count = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", epoch.as_str())];
        prop_assert_eq!(windows(&count), vec![(Requests, seconds * 1000)]);
    }
}
