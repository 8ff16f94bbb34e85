//! Moments as providers write them, in milliseconds since 1970: the three forms of an HTTP date, RFC 3339, and the number
//! of seconds or milliseconds since 1970. Strict; a text that is wholly none of these is none.

use std::time::Duration;

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const LONG_DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
/// Numbers from here on are moments in seconds (September 2001), below they are lengths.
const EPOCH_SECONDS: u64 = 1_000_000_000;
/// Numbers from here on are moments in milliseconds.
const EPOCH_MILLIS: u64 = 100_000_000_000;
/// Numbers from here on are nothing: the year 9999 is over.
const END_MILLIS: u64 = 253_402_300_800_000;

/// From `made_ms` to the moment. None for a moment that is past, and where it is not known when the reply was made (0).
pub(crate) fn until(moment_ms: u64, made_ms: u64) -> Option<Duration> {
    let wait = moment_ms.checked_sub(made_ms).filter(|_| made_ms != 0)?;
    super::span::worth(Duration::from_millis(wait))
}

/// A moment as a number: seconds since 1970, or milliseconds if it is too large for that. None for a smaller number,
/// which is a length.
pub(crate) fn number(text: &str) -> Option<u64> {
    let whole = text.trim();
    let (digits, fraction) = whole.split_once('.').unwrap_or((whole, "0"));
    let all = |text: &str| (1..=15).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse::<u64>().ok().filter(|_| all(digits) && all(fraction))?;
    match number {
        EPOCH_SECONDS..EPOCH_MILLIS => Some(number * 1_000),
        EPOCH_MILLIS..END_MILLIS => Some(number),
        _ => None,
    }
}

/// `2026-11-30T21:23:20Z`, with a fraction and an offset or without. An offset must be there.
pub(crate) fn rfc3339(text: &str) -> Option<u64> {
    let text = text.trim();
    let date = text.get(..10)?;
    let time = text.get(11..19)?;
    if !matches!(text.as_bytes()[10], b'T' | b't' | b' ') {
        return None;
    }
    let mut parts = Parts(date);
    let (year, month, day) = (parts.digits(4)?, parts.after("-")?.digits(2)?, parts.after("-")?.digits(2)?);
    let mut rest = Parts(text.get(19..)?);
    let mut millis = 0;
    if rest.0.starts_with('.') {
        let fraction: &str = &rest.0[1..];
        let length = fraction.bytes().take_while(u8::is_ascii_digit).count();
        if !(1..=18).contains(&length) {
            return None;
        }
        let three: String = fraction[..length].chars().chain("00".chars()).take(3).collect();
        millis = three.parse::<u64>().ok()?;
        rest = Parts(&fraction[length..]);
    }
    let offset = match rest.0 {
        "Z" | "z" => 0,
        other => {
            let sign = if other.starts_with('-') { -1 } else { 1 };
            let mut parts = Parts(other.strip_prefix(['+', '-'])?);
            let (hours, minutes) = (parts.digits(2)?, parts.after(":")?.digits(2)?);
            if hours > 23 || minutes > 59 || !parts.0.is_empty() {
                return None;
            }
            sign * i64::try_from(hours * 60 + minutes).ok()?
        }
    };
    let at = moment(year, month, day, clock(time)?)?;
    let at = i64::try_from(at).ok()?.checked_sub(offset * 60_000)?;
    Some(u64::try_from(at).ok()? + millis)
}

/// An HTTP date: `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT` or `Sun Nov  6 08:49:37 1994`. The day
/// of the week is not checked against the date.
pub(crate) fn http_date(text: &str) -> Option<u64> {
    let text = text.trim();
    let mut parts = Parts(text);
    if let Some((day_name, rest)) = text.split_once(", ") {
        parts = Parts(rest);
        let (day, month, year);
        if DAYS.contains(&day_name) {
            (day, month, year) = (parts.digits(2)?, parts.after(" ")?.month()?, parts.after(" ")?.digits(4)?);
        } else {
            LONG_DAYS.contains(&day_name).then_some(())?;
            (day, month) = (parts.digits(2)?, parts.after("-")?.month()?);
            let short = parts.after("-")?.digits(2)?;
            // Two digits of a year are this side of 1970 and 2070.
            year = if short < 70 { 2000 + short } else { 1900 + short };
        }
        let time = parts.after(" ")?.0.strip_suffix(" GMT")?;
        return moment(year, month, day, clock(time)?);
    }
    DAYS.contains(&parts.take(3)?).then_some(())?;
    let month = parts.after(" ")?.month()?;
    parts.after(" ")?;
    let day = match parts.0.strip_prefix(' ') {
        Some(rest) => {
            parts = Parts(rest);
            parts.digits(1)?
        }
        None => parts.digits(2)?,
    };
    let time = parts.after(" ")?.take(8)?;
    let year = parts.after(" ")?.digits(4)?;
    if !parts.0.is_empty() {
        return None;
    }
    moment(year, month, day, clock(time)?)
}

/// A text that is taken from the front.
struct Parts<'a>(&'a str);

impl<'a> Parts<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a str> {
        let taken = self.0.get(..bytes)?;
        self.0 = &self.0[bytes..];
        Some(taken)
    }

    fn digits(&mut self, count: usize) -> Option<u64> {
        let digits = self.take(count)?;
        if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
    }

    fn month(&mut self) -> Option<u64> {
        let name = self.take(3)?;
        (1..).zip(MONTHS).find(|(_, month)| *month == name).map(|(number, _)| number)
    }

    fn after(&mut self, between: &str) -> Option<&mut Self> {
        self.0 = self.0.strip_prefix(between)?;
        Some(self)
    }
}

/// `08:49:37` in seconds of the day; a leap second is the second before it.
fn clock(text: &str) -> Option<u64> {
    let mut parts = Parts(text);
    let (hour, minute, second) = (parts.digits(2)?, parts.after(":")?.digits(2)?, parts.after(":")?.digits(2)?);
    let fits = hour < 24 && minute < 60 && second <= 60 && parts.0.is_empty();
    fits.then_some(hour * 3_600 + minute * 60 + second.min(59))
}

fn moment(year: u64, month: u64, day: u64, second_of_day: u64) -> Option<u64> {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let length = match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => return None,
    };
    if year < 1970 || day == 0 || day > length {
        return None;
    }
    // Years from March on, so that the leap day is the last of one.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    Some((days.checked_sub(719_468)? * 86_400 + second_of_day) * 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_three_forms_of_an_http_date_are_one_moment() {
        for text in ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
            assert_eq!(http_date(text), Some(784_111_777_000), "{text}");
        }
        assert_eq!(http_date("Mon, 30 Nov 2026 21:23:20 GMT"), Some(1_796_073_800_000));
        assert_eq!(http_date("Thu, 29 Feb 2024 12:00:00 GMT"), Some(1_709_208_000_000));
        assert_eq!(http_date("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
    }

    #[test]
    fn what_is_wholly_no_date_is_none() {
        for text in [
            "",
            "Sun",
            "Sun, 06 Nov 1994",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun, 06 nov 1994 08:49:37 GMT",
            "Son, 06 Nov 1994 08:49:37 GMT",
            "Sun, 31 Nov 1994 08:49:37 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 GMT ago",
            "Wed, 29 Feb 2023 12:00:00 GMT",
            "Thu, 01 Jan 1900 00:00:00 GMT",
            "Sun Nov  6 08:49:37 1994 x",
            "é, 06 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(http_date(text), None, "{text}");
        }
    }

    #[test]
    fn rfc_3339_is_read_with_its_fraction_and_offset() {
        for (text, ms) in [
            ("2026-11-30T21:23:20Z", Some(1_796_073_800_000)),
            ("2026-11-30T22:23:20.5+01:00", Some(1_796_073_800_500)),
            ("2026-11-30T20:53:20.123456789-00:30", Some(1_796_073_800_123)),
            ("2026-11-30 21:23:20z", Some(1_796_073_800_000)),
            ("2026-11-30T21:23:20", None),
            ("2026-11-30T21:23:20.Z", None),
            ("2026-13-30T21:23:20Z", None),
            ("2026-11-31T21:23:20Z", None),
            ("2026-11-30T21:23:20+24:00", None),
            ("2026-11-30T21:23:20+1:00", None),
            ("-026-11-30T21:23:20Z", None),
            ("1970-01-01T00:00:00+01:00", None),
            ("", None),
        ] {
            assert_eq!(rfc3339(text), ms, "{text}");
        }
    }

    #[test]
    fn a_number_is_a_moment_only_if_it_is_large_enough() {
        assert_eq!(number("1796073800"), Some(1_796_073_800_000));
        assert_eq!(number("1796073800.75"), Some(1_796_073_800_000));
        assert_eq!(number("1796073800123"), Some(1_796_073_800_123));
        for text in
            ["", "60", "999999999", "-1796073800", "1e9", "9999999999999999", "1796073800x", &"9".repeat(10_000)]
        {
            assert_eq!(number(text), None, "{text:.20}");
        }
    }

    #[test]
    fn a_wait_until_a_past_moment_or_from_an_unknown_one_is_none() {
        assert_eq!(until(5_000, 2_000), Some(Duration::from_secs(3)));
        assert_eq!(
            (until(2_000, 5_000), until(5_000, 5_000), until(5_000, 0), until(u64::MAX, 1)),
            (None, None, None, None)
        );
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,40}", near in "[SunModay, 0-9:GTZNovz.+-]{0,32}") {
            for text in [text, near] {
                let _ = (number(&text), rfc3339(&text), http_date(&text));
            }
        }
    }
}
