//! The calendar windows of budgets, in UTC: days, weeks from Monday, months. Days are counted from 1 January 1970.

/// Milliseconds of a day.
pub const DAY_MS: u64 = 86_400_000;

/// How long a budget is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Per {
    /// A calendar day.
    Day,
    /// A week from Monday.
    Week,
    /// A calendar month.
    Month,
}

impl Per {
    /// All of them.
    pub const ALL: [Per; 3] = [Per::Day, Per::Week, Per::Month];

    /// The word in configuration and store.
    pub fn name(self) -> &'static str {
        match self {
            Per::Day => "day",
            Per::Week => "week",
            Per::Month => "month",
        }
    }

    /// The one with this word.
    pub fn from_name(word: &str) -> Option<Per> {
        Per::ALL.into_iter().find(|per| per.name() == word)
    }

    /// The first day of the window that a day is in.
    pub fn first_day(self, day: u64) -> u64 {
        match self {
            Per::Day => day,
            // 1 January 1970 was a Thursday.
            Per::Week => ((day + 3) / 7 * 7).saturating_sub(3),
            Per::Month => day - u64::from(civil(day).day - 1),
        }
    }

    /// When the window that a moment is in ends, Unix milliseconds; then the next one begins.
    pub fn end_ms(self, unix_ms: u64) -> u64 {
        let day = unix_ms / DAY_MS;
        let next = match self {
            Per::Day => day + 1,
            Per::Week => (day + 3) / 7 * 7 + 4,
            Per::Month => {
                let date = civil(day);
                self.first_day(day) + u64::from(length(date.year, date.month))
            }
        };
        next * DAY_MS
    }
}

struct Date {
    year: u64,
    month: u32,
    day: u32,
}

/// The Gregorian date of a day. Counted from 1 March of the year 0, so that a leap day ends its year; an era is 400 years.
fn civil(day: u64) -> Date {
    let since = day + 719_468;
    let (era, day_of_era) = (since / 146_097, since % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = u32::try_from(day_of_year - (153 * from_march + 2) / 5 + 1).unwrap_or(1);
    let month = u32::try_from(if from_march < 10 { from_march + 3 } else { from_march - 9 }).unwrap_or(1);
    Date { year: era * 400 + year_of_era + u64::from(month <= 2), month, day }
}

fn length(year: u64, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The day of a date, counted one by one.
    fn day_of(year: u64, month: u32, day: u32) -> u64 {
        let years: u64 = (1970..year).map(|y| (1..=12).map(|m| u64::from(length(y, m))).sum::<u64>()).sum();
        let months: u64 = (1..month).map(|m| u64::from(length(year, m))).sum();
        years + months + u64::from(day - 1)
    }

    #[test]
    fn dates_are_those_of_the_calendar_for_two_centuries() {
        let mut day = 0;
        for year in 1970..2170 {
            for month in 1..=12 {
                for of_month in 1..=length(year, month) {
                    let date = civil(day);
                    assert_eq!((date.year, date.month, date.day), (year, month, of_month));
                    day += 1;
                }
            }
        }
    }

    #[test]
    fn a_week_begins_on_monday_and_a_month_on_its_first_in_leap_years_too() {
        // 29 February 2024 was a Thursday.
        let leap = day_of(2024, 2, 29);
        assert_eq!(Per::Week.first_day(leap), day_of(2024, 2, 26));
        assert_eq!(Per::Month.first_day(leap), day_of(2024, 2, 1));
        let noon = leap * DAY_MS + DAY_MS / 2;
        assert_eq!(Per::Day.end_ms(noon), day_of(2024, 3, 1) * DAY_MS);
        assert_eq!(Per::Week.end_ms(noon), day_of(2024, 3, 4) * DAY_MS);
        assert_eq!(Per::Month.end_ms(noon), day_of(2024, 3, 1) * DAY_MS);
        assert_eq!(Per::Month.end_ms(day_of(2024, 12, 31) * DAY_MS), day_of(2025, 1, 1) * DAY_MS);
    }

    #[test]
    fn the_first_moment_of_a_window_is_in_it_and_its_end_is_not() {
        for per in Per::ALL {
            let mut at = day_of(2026, 1, 1) * DAY_MS + 5;
            for _ in 0..40 {
                let end = per.end_ms(at);
                assert!(end > at);
                assert_eq!(per.first_day(end / DAY_MS), end / DAY_MS, "{per:?}");
                assert_eq!(per.end_ms(end - 1), end, "{per:?}");
                at = end;
            }
        }
    }
}
