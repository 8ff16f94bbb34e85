//! Waiting for what only another process can bring about.

use std::time::Duration;

/// Longer than anything here takes, and shorter than a test may.
pub const LONG: Duration = Duration::from_secs(20);

/// Waits until something is so.
pub async fn until(what: &str, so: impl Fn() -> bool) {
    let waited = async {
        while !so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(LONG, waited).await.is_ok(), "never so: {what}");
}

/// The process runs.
pub fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}
