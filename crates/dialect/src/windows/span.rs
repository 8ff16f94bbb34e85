//! Lengths of time as providers write them. Strict, without floating point: what is not wholly a length, is negative, or
//! is longer than anybody waits, is none. Rounding is downwards, so that no wait gets longer than it was said.

use std::time::Duration;

/// Longer than this is no statement about a limit.
const LONGEST: Duration = Duration::from_secs(366 * 86_400);
/// Digits before the point that are read; more could not be within [`LONGEST`] in any unit.
const DIGITS: usize = 18;
/// Bytes of a length that are read.
const BYTES: usize = 64;

const NANOS: [(&str, u64); 9] = [
    ("ms", 1_000_000),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ns", 1),
    ("d", 86_400 * 1_000_000_000),
    ("h", 3_600 * 1_000_000_000),
    ("m", 60 * 1_000_000_000),
    ("s", 1_000_000_000),
];
const SECOND: u64 = 1_000_000_000;
const MILLI: u64 = 1_000_000;

/// A length that is worth a wait: neither zero nor longer than a year.
pub fn worth(wait: Duration) -> Option<Duration> {
    (!wait.is_zero() && wait <= LONGEST).then_some(wait)
}

/// A plain number of seconds, with a fraction or without.
pub(crate) fn seconds(text: &str) -> Option<Duration> {
    plain(text, SECOND)
}

/// A plain number of milliseconds, with a fraction or without.
pub fn millis(text: &str) -> Option<Duration> {
    plain(text, MILLI)
}

/// `6m0s`, `1h2m3.5s`, `20ms`, `13s`: numbers with units, the larger unit first, each unit once. A fraction only in the
/// last one.
pub(crate) fn units(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    if rest.is_empty() || rest.len() > BYTES {
        return None;
    }
    let (mut sum, mut before) = (Duration::ZERO, u64::MAX);
    while !rest.is_empty() {
        let (number, after) = number(rest)?;
        let &(unit, nanos) = NANOS.iter().find(|(unit, _)| {
            after.strip_prefix(unit).is_some_and(|more| !more.starts_with(|next: char| next.is_alphabetic()))
        })?;
        rest = &after[unit.len()..];
        if nanos >= before || (number.contains('.') && !rest.is_empty()) {
            return None;
        }
        before = nanos;
        sum = sum.checked_add(times(number, nanos)?)?;
    }
    (sum <= LONGEST).then_some(sum)
}

/// Seconds, or a number with units.
pub(crate) fn length(text: &str) -> Option<Duration> {
    seconds(text).or_else(|| units(text))
}

/// The length that a sentence goes on with: `20s. Visit`, `1h2m`, `30 seconds`, `2 hours and 5 minutes`.
pub(crate) fn spoken(text: &str) -> Option<Duration> {
    let text = text.trim_start();
    let word = text.split(|char: char| char.is_whitespace() || matches!(char, ',' | ';' | ')')).next().unwrap_or("");
    if let Some(wait) = units(word.trim_end_matches(['.', '!'])) {
        return Some(wait);
    }
    let (mut sum, mut before, mut rest) = (None::<Duration>, u64::MAX, text);
    while let Some((number, after)) = number(rest) {
        let after = after.trim_start();
        let end = after.find(|char: char| !char.is_alphabetic()).unwrap_or(after.len());
        let nanos = match &after[..end] {
            "millisecond" | "milliseconds" | "ms" => MILLI,
            "second" | "seconds" | "sec" | "secs" | "s" => SECOND,
            "minute" | "minutes" | "min" | "mins" => 60 * SECOND,
            "hour" | "hours" => 3_600 * SECOND,
            "day" | "days" => 86_400 * SECOND,
            _ => break,
        };
        if nanos >= before {
            break;
        }
        before = nanos;
        sum = Some(sum.unwrap_or_default().checked_add(times(number, nanos)?)?);
        let more = after[end..].trim_start_matches([' ', ',']);
        rest = more.strip_prefix("and ").unwrap_or(more);
    }
    sum.filter(|sum| *sum <= LONGEST)
}

fn plain(text: &str, nanos: u64) -> Option<Duration> {
    let text = text.trim();
    let (number, rest) = number(text)?;
    rest.is_empty().then(|| times(number, nanos)).flatten()
}

/// The number that a text begins with: digits, and a fraction if there is one.
fn number(text: &str) -> Option<(&str, &str)> {
    let digits = |from: usize| text.as_bytes()[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(0);
    if whole == 0 || whole > DIGITS {
        return None;
    }
    let fraction = if text[whole..].starts_with('.') { digits(whole + 1) } else { 0 };
    let end = if fraction == 0 { whole } else { whole + 1 + fraction };
    (end <= BYTES).then(|| text.split_at(end))
}

fn times(number: &str, nanos: u64) -> Option<Duration> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let mut sum = u128::from(whole.parse::<u64>().ok()?).checked_mul(u128::from(nanos))?;
    if !fraction.is_empty() {
        // What is below a nanosecond is dropped.
        let digits = &fraction[..fraction.len().min(DIGITS)];
        let parts = u128::from(digits.parse::<u64>().ok()?) * u128::from(nanos);
        sum = sum.checked_add(parts / 10u128.checked_pow(u32::try_from(digits.len()).ok()?)?)?;
    }
    let wait = Duration::new(u64::try_from(sum / 1_000_000_000).ok()?, u32::try_from(sum % 1_000_000_000).ok()?);
    (wait <= LONGEST).then_some(wait)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(millis: u64) -> Option<Duration> {
        Some(Duration::from_millis(millis))
    }

    #[test]
    fn lengths_are_read_as_they_are_written() {
        for (text, wait) in [
            ("20", ms(20_000)),
            (" 0.5 ", ms(500)),
            ("0", ms(0)),
            ("6m0s", ms(360_000)),
            ("1h2m3.5s", ms(3_723_500)),
            ("20ms", ms(20)),
            ("7.66s", ms(7_660)),
            ("1d2h", ms(93_600_000)),
            ("644ms", ms(644)),
            ("1m0.363142857s", Some(Duration::new(60, 363_142_857))),
            ("1.984999999999999s", Some(Duration::new(1, 984_999_999))),
        ] {
            assert_eq!(length(text), wait, "{text}");
        }
        assert_eq!(millis("1500.9"), Some(Duration::from_nanos(1_500_900_000)));
    }

    #[test]
    fn what_is_not_wholly_a_length_is_none() {
        for text in [
            "",
            " ",
            "-1",
            "+1",
            "1e3",
            "NaN",
            "inf",
            "1.",
            ".5",
            "1 2",
            "1s2",
            "s",
            "1x",
            "1m2h",
            "1s1s",
            "1.5m2s",
            "0x10",
            "1,5",
            "９",
            "1ss",
            "99999999999",
            "1e999",
            "9999999999999999999999h",
            "5 apples",
        ] {
            assert_eq!(length(text), None, "{text}");
        }
        for text in ["9".repeat(10_000), format!("0.{}", "9".repeat(10_000)), format!("{}s", "1m".repeat(5_000))] {
            assert_eq!(length(&text), None);
            assert_eq!(spoken(&text), None);
        }
        assert_eq!((worth(Duration::ZERO), worth(LONGEST + Duration::from_nanos(1))), (None, None));
    }

    #[test]
    fn a_sentence_goes_on_with_a_length() {
        for (text, wait) in [
            ("6m0s. Visit", ms(360_000)),
            ("20ms.", ms(20)),
            ("7.66s", ms(7_660)),
            ("1h2m", ms(3_720_000)),
            ("30 seconds.", ms(30_000)),
            ("1.5 seconds", ms(1_500)),
            ("2 hours, 5 minutes and 1 second, then", ms(7_501_000)),
            ("5 minutes 3 apples", ms(300_000)),
            ("3 days", ms(3 * 86_400_000)),
            ("a few seconds", None),
            ("-3 seconds", None),
            ("", None),
            ("3", None),
            ("999999999999 days", None),
        ] {
            assert_eq!(spoken(text), wait, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,40}", digits in "[0-9.hmsd µe+-]{0,30}") {
            for text in [text, digits] {
                for wait in [seconds(&text), millis(&text), units(&text), spoken(&text)].into_iter().flatten() {
                    prop_assert!(wait <= LONGEST);
                }
            }
        }

        #[test]
        fn no_length_gets_longer_than_it_was_said(whole in 0u32..30_000_000, fraction in 0u32..1_000_000_000) {
            let said = seconds(&format!("{whole}.{fraction:09}"));
            prop_assert_eq!(said, Some(Duration::new(u64::from(whole), fraction)));
            let longer = seconds(&format!("{whole}.{fraction:09}9"));
            prop_assert_eq!(longer, said);
        }
    }
}
