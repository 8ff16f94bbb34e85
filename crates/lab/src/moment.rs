//! Moments in scripted headers: `{date+30}` and the like become the time when the reply is made, and some seconds more
//! or less. Providers write their windows in all of these forms.

use std::time::{SystemTime, UNIX_EPOCH};

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Unix milliseconds, now.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or_default()
}

/// Replaces each moment in a value; what is none stays as it is.
pub(crate) fn fill(value: &str, now_ms: i64) -> String {
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(open) = rest.find('{') {
        let (before, from) = rest.split_at(open);
        out.push_str(before);
        let filled = from.find('}').and_then(|close| Some((close, moment(from.get(1..close)?, now_ms)?)));
        match filled {
            Some((close, text)) => {
                out.push_str(&text);
                rest = &from[close + 1..];
            }
            None => {
                out.push('{');
                rest = &from[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn moment(text: &str, now_ms: i64) -> Option<String> {
    let at = text.find(['+', '-']).unwrap_or(text.len());
    let (form, seconds) = text.split_at(at);
    let seconds: i64 = if seconds.is_empty() { 0 } else { seconds.parse().ok()? };
    // The years 1970 to 9999, which is all that the forms can say.
    let ms = now_ms.checked_add(seconds.checked_mul(1000)?)?.clamp(0, 253_402_300_799_999);
    let unix = ms / 1000;
    match form {
        "date" => Some(http_date(unix)),
        "rfc3339" => Some(rfc3339(unix)),
        "unix" => Some(unix.to_string()),
        "unix_ms" => Some(ms.to_string()),
        _ => None,
    }
}

/// Year, month (from 1) and day of so many days since 1970, by the proleptic Gregorian calendar.
fn calendar(days: i64) -> (i64, usize, i64) {
    // Counted in eras of 400 years that begin on the first of March, so that the leap day is the last of its year.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march + 2) / 5 + 1;
    let month = if march < 10 { march + 3 } else { march - 9 };
    (era * 400 + year + i64::from(month <= 2), usize::try_from(month).unwrap_or(1), day)
}

fn clock(unix: i64) -> String {
    let of_day = unix.rem_euclid(86_400);
    format!("{:02}:{:02}:{:02}", of_day / 3600, of_day / 60 % 60, of_day % 60)
}

fn http_date(unix: i64) -> String {
    let days = unix.div_euclid(86_400);
    let (year, month, day) = calendar(days);
    let weekday = DAYS[usize::try_from(days.rem_euclid(7)).unwrap_or_default()];
    format!("{weekday}, {day:02} {} {year:04} {} GMT", MONTHS[month - 1], clock(unix))
}

fn rfc3339(unix: i64) -> String {
    let (year, month, day) = calendar(unix.div_euclid(86_400));
    format!("{year:04}-{month:02}-{day:02}T{}Z", clock(unix))
}

#[cfg(test)]
mod tests {
    use super::fill;

    #[test]
    fn a_moment_is_written_in_each_form_and_anything_else_stays() {
        // Sun, 06 Nov 1994 08:49:37 GMT, the example of the HTTP standard.
        let now = 784_111_777_123;
        for (value, want) in [
            ("{date}", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("{date+23}", "Sun, 06 Nov 1994 08:50:00 GMT"),
            ("{rfc3339-31778}", "1994-11-05T23:59:59Z"),
            ("{unix+1}", "784111778"),
            ("a {unix_ms} b {unix}", "a 784111777123 b 784111777"),
            ("{rfc3339+41526623}", "1996-03-01T00:00:00Z"),
            ("{nothing} {date+x} {", "{nothing} {date+x} {"),
            ("{date+999999999999}", "Fri, 31 Dec 9999 23:59:59 GMT"),
            ("{date-99999999999}", "Thu, 01 Jan 1970 00:00:00 GMT"),
            ("-1", "-1"),
        ] {
            assert_eq!(fill(value, now), want, "{value}");
        }
        assert_eq!(fill("{rfc3339}", 951_782_400_000), "2000-02-29T00:00:00Z");
    }
}
