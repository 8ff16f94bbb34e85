//! The waits that headers state.

use std::time::Duration;
use turnkeep_base::limit::WINDOWS;
use turnkeep_base::{Declared, Window};
use turnkeep_dialect::windows;

/// Longer than this nothing is a statement about a limit.
const LONGEST: Duration = Duration::from_secs(366 * 86_400);

/// Headers, one a line as `name: value`; the first of a name counts.
pub fn stated_waits(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let headers: Vec<(String, &str)> = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim()))
        .collect();
    let get = |name: &str| headers.iter().find(|(own, _)| own == name).map(|(_, value)| *value);
    for wall_ms in [0, 1_700_000_000_000, u64::MAX] {
        let declared = windows::from_headers(&get, wall_ms);
        assert_eq!(declared, windows::from_headers(&get, wall_ms), "the same headers, another wait");
        bounded(&declared);
        if let (Some(said), None) = (get("retry-after"), get("retry-after-ms")) {
            let whole = !said.is_empty() && said.len() <= 15 && said.bytes().all(|byte| byte.is_ascii_digit());
            if let Some(seconds) = said.parse::<u64>().ok().filter(|_| whole) {
                let wanted = Some(Duration::from_secs(seconds)).filter(|wait| !wait.is_zero() && *wait <= LONGEST);
                assert_eq!(declared.wait, wanted, "retry-after: {said}");
            }
            if said.starts_with('-') {
                assert_eq!(declared.wait, None, "retry-after: {said}");
            }
        }
        if get("retry-after").is_none() && get("retry-after-ms").is_none() {
            assert_eq!(declared.wait, None, "a wait that nobody stated");
        }
    }
    let names = ["retry-after", "retry-after-ms"];
    if !headers.iter().any(|(name, _)| names.contains(&&name[..]) || name.contains("ratelimit")) {
        assert_eq!(windows::from_headers(&get, 1), Declared::default());
    }
}

/// Whether everything that is declared is within its bounds.
pub(super) fn bounded(declared: &Declared) {
    let Declared { wait, windows, names_model: _ } = declared;
    let waits = wait.iter().chain(windows.iter().map(|Window { scope: _, wait }| wait));
    for wait in waits {
        assert!(!wait.is_zero() && *wait <= LONGEST, "a wait of {wait:?}");
    }
    assert!(windows.len() <= WINDOWS, "{} windows", windows.len());
}
