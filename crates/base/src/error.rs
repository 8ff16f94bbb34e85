//! What a client is told when its turn cannot be answered, before a dialect gives it its form.

use std::time::Duration;

/// An error for the client. The dialect's encoder turns it into a body or an in-band event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientError {
    /// The HTTP status, before a dialect's own exceptions (529 in Messages, …) are applied.
    pub status: u16,
    /// A stable, low-cardinality code (`pool_exhausted`, a fault's name, …).
    pub code: &'static str,
    /// Written for the person who reads it: what, where, what to do.
    pub message: String,
    /// The JSON path of the field at fault, if there is one.
    pub param: Option<String>,
    /// When trying again makes sense; always set on 429, 503 and 529.
    pub retry_after: Option<Duration>,
    /// After our own retries a client's retry would only repeat them (`x-should-retry: false`).
    pub no_retry: bool,
}

impl ClientError {
    /// An error without path or wait. 429 and 503 get a wait of one second, so that the header is never missing.
    pub fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        let retry_after = matches!(status, 429 | 503 | 529).then_some(Duration::from_secs(1));
        ClientError { status, code, message: message.into(), param: None, retry_after, no_retry: false }
    }

    /// A 400 about one field, named by its JSON path.
    pub fn invalid(param: impl Into<String>, message: impl Into<String>) -> Self {
        let mut error = ClientError::new(400, "invalid_request", message);
        let param = param.into();
        error.param = (!param.is_empty()).then_some(param);
        error
    }

    /// The whole seconds for a `retry-after` header, rounded up, 1 to 600.
    pub fn retry_after_seconds(&self) -> Option<u64> {
        self.retry_after.map(|wait| {
            let up = wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0));
            up.clamp(1, 600)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_429_and_503_carries_a_wait() {
        assert_eq!(ClientError::new(429, "x", "").retry_after_seconds(), Some(1));
        assert_eq!(ClientError::new(503, "x", "").retry_after_seconds(), Some(1));
        assert_eq!(ClientError::new(400, "x", "").retry_after_seconds(), None);
    }

    #[test]
    fn a_wait_is_rounded_up_and_kept_between_one_second_and_ten_minutes() {
        let mut error = ClientError::new(429, "x", "");
        for (wait, seconds) in [(0, 1), (1, 1), (1_001, 2), (10_000_000, 600)] {
            error.retry_after = Some(Duration::from_millis(wait));
            assert_eq!(error.retry_after_seconds(), Some(seconds));
        }
    }
}
