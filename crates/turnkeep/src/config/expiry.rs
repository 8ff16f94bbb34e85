//! When a key ends by itself: a date, or a moment with its offset.

use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use time::{Date, OffsetDateTime, UtcOffset};

/// Unix milliseconds of an RFC 3339 moment (`2026-12-31T18:00:00Z`), or of the first moment in UTC of a date
/// (`2026-12-31`).
///
/// # Errors
/// What it takes instead.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let shape = "must be a date (its first moment in UTC), as in 2026-12-31, or a moment with its offset, as in \
                 2026-12-31T18:00:00Z";
    let day = Date::parse(text, format_description!("[year]-[month]-[day]")).ok();
    let at = match day {
        Some(day) => day.midnight().assume_utc(),
        // TOML lets a blank stand for the T.
        None => OffsetDateTime::parse(&text.replacen(' ', "T", 1), &Rfc3339).map_err(|_| shape)?,
    };
    let ms = at.to_offset(UtcOffset::UTC).unix_timestamp_nanos() / 1_000_000;
    u64::try_from(ms).map_err(|_| "must not be before 1970".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_its_first_moment_in_utc_and_a_moment_has_an_offset() {
        assert_eq!(parse("1970-01-02"), Ok(86_400_000));
        assert_eq!(parse("1970-01-01T01:00:00.5+01:00"), Ok(500));
        assert_eq!(parse("1970-01-01 00:00:01Z"), Ok(1_000));
        for wrong in ["", "tomorrow", "2026-13-01", "2026-02-30", "2026-12-31T18:00:00", "1969-12-31", "1900"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
