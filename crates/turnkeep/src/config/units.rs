//! Durations and sizes with their units.

use std::time::Duration;

/// Whole numbers of `ms`, `s`, `m`, `h` or `d`.
pub fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = split(text)?;
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.checked_mul(unit_ms).map(Duration::from_millis)
}

/// Whole numbers of `B`, `KiB`, `MiB`, `GiB` (powers of 1024) or `kB`, `KB`, `MB`, `GB` (powers of 1000).
pub fn size(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let unit_bytes: u64 = match unit {
        "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        _ => return None,
    };
    number.checked_mul(unit_bytes)
}

fn split(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at_checked(end)?;
    Some((number.parse().ok()?, unit.trim_start()))
}

/// In the largest unit that shows it exactly.
pub fn show_duration(duration: Duration) -> String {
    let ms = duration.as_millis();
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    match units.iter().find(|(unit, _)| ms > 0 && ms.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{}{name}", ms / unit),
        None => format!("{ms}ms"),
    }
}

/// In the largest unit that shows it exactly.
pub fn show_size(bytes: u64) -> String {
    let units = [(1u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(unit, _)| bytes > 0 && bytes.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{}{name}", bytes / unit),
        None => format!("{bytes}B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_take_a_whole_number_and_a_unit() {
        assert_eq!(duration("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(duration("30s"), Some(Duration::from_secs(30)));
        assert_eq!(duration("2m"), Some(Duration::from_secs(120)));
        assert_eq!(duration("7d"), Some(Duration::from_secs(7 * 86_400)));
        for wrong in ["30", "", "s", "-1s", "1.5s", "30 sec", "99999999999999999999s", "9999999999999999999d"] {
            assert_eq!(duration(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn sizes_take_a_whole_number_and_a_unit() {
        assert_eq!(size("32MiB"), Some(32 << 20));
        assert_eq!(size("10 MB"), Some(10_000_000));
        for wrong in ["32", "32M", "MiB", "-1B", "99999999999GiB"] {
            assert_eq!(size(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn units_are_shown_as_they_are_written() {
        assert_eq!(show_duration(Duration::from_secs(120)), "2m");
        assert_eq!(show_duration(Duration::from_millis(1500)), "1500ms");
        assert_eq!(show_size(32 << 20), "32MiB");
        assert_eq!(show_size(1000), "1000B");
    }
}
