//! Lengths of time in files that people read: a whole number and its largest whole unit, as in `"250ms"`. Exact, up to the
//! 584 years that 64 bits of nanoseconds hold; a longer one is written as that.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

const UNITS: [(&str, u64); 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];

/// A length of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX);
        let (unit, size) = UNITS.into_iter().find(|(_, size)| ns % size == 0).unwrap_or(("ns", 1));
        write!(f, "{}{unit}", ns / size)
    }
}

/// The text is not a length of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadSpan;

impl fmt::Display for BadSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a length of time: write a whole number and s, ms, us or ns, as in \"250ms\"")
    }
}

impl FromStr for Span {
    type Err = BadSpan;

    fn from_str(text: &str) -> Result<Self, BadSpan> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let (_, size) = UNITS.into_iter().find(|(name, _)| *name == unit).ok_or(BadSpan)?;
        let ns = number.parse::<u64>().ok().and_then(|number| number.checked_mul(size)).ok_or(BadSpan)?;
        Ok(Span(Duration::from_nanos(ns)))
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// For `#[serde(with = …)]` on a [`Duration`].
///
/// # Errors
/// The serializer's.
pub fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    Span(*time).serialize(serializer)
}

/// For `#[serde(with = …)]` on a [`Duration`].
///
/// # Errors
/// The deserializer's, or [`BadSpan`].
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    Ok(Span::deserialize(deserializer)?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_reads_back_as_it_was_and_what_is_none_is_refused() {
        for (time, text) in [
            (Duration::ZERO, "0s"),
            (Duration::from_secs(90), "90s"),
            (Duration::from_millis(1_250), "1250ms"),
            (Duration::from_nanos(1), "1ns"),
        ] {
            assert_eq!((Span(time).to_string(), text.parse()), (text.to_owned(), Ok(Span(time))));
        }
        assert_eq!(Span(Duration::MAX).to_string().parse(), Ok(Span(Duration::from_nanos(u64::MAX))));
        for text in ["", "5", "s", "5 s", "-1s", "1.5s", "5h", "18446744073709551616ns", "18446744073709551615s"] {
            assert_eq!(text.parse::<Span>(), Err(BadSpan), "{text}");
        }
    }
}
