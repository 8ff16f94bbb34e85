//! When a process may be started again: a pure count of its failures.

use super::ProcessLimits;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// The failures of one process that still count.
#[derive(Clone, Debug, Default)]
pub struct Restarts {
    failures: VecDeque<Instant>,
}

impl Restarts {
    /// It ended without having been asked to, or did not become ready.
    pub fn failed(&mut self, now: Instant, limits: &ProcessLimits) {
        self.forget_old(now, limits);
        self.failures.push_back(now);
        // One more than are allowed is enough to refuse.
        while self.failures.len() > limits.restarts.saturating_add(1) {
            self.failures.pop_front();
        }
    }

    /// How long the next start is to wait, or, refused, until when.
    pub fn next(&mut self, now: Instant, limits: &ProcessLimits) -> Result<Duration, Duration> {
        self.forget_old(now, limits);
        let (Some(last), failures) = (self.failures.back().copied(), self.failures.len()) else {
            return Ok(Duration::ZERO);
        };
        if failures > limits.restarts {
            let first = self.failures.front().copied().unwrap_or(last);
            return Err((first + limits.window).saturating_duration_since(now));
        }
        let Some(doublings) = failures.checked_sub(2) else { return Ok(Duration::ZERO) };
        let factor = 1u32.checked_shl(u32::try_from(doublings).unwrap_or(u32::MAX)).unwrap_or(u32::MAX);
        let backoff = limits.backoff.saturating_mul(factor).min(limits.longest_backoff);
        Ok((last + backoff).saturating_duration_since(now))
    }

    fn forget_old(&mut self, now: Instant, limits: &ProcessLimits) {
        while self.failures.front().is_some_and(|&at| now.saturating_duration_since(at) >= limits.window) {
            self.failures.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_restarts_in_ten_minutes_with_a_growing_wait_and_then_none() {
        let (limits, start) = (ProcessLimits::default(), Instant::now());
        let mut restarts = Restarts::default();
        let mut now = start;
        let mut waits = Vec::new();
        while let Ok(wait) = restarts.next(now, &limits) {
            waits.push(wait.as_millis());
            now += wait;
            restarts.failed(now, &limits);
        }
        // The first start, and five more.
        assert_eq!(waits, [0, 0, 500, 1000, 2000, 4000]);
        let refused = restarts.next(now, &limits).expect_err("refused");
        assert_eq!(start + limits.window, now + refused);
        assert!(restarts.next(now + refused, &limits).is_ok());
    }

    #[test]
    fn a_failure_of_long_ago_does_not_count() {
        let (limits, start) = (ProcessLimits::default(), Instant::now());
        let mut restarts = Restarts::default();
        for _ in 0..3 {
            restarts.failed(start, &limits);
        }
        assert_ne!(restarts.next(start, &limits), Ok(Duration::ZERO));
        assert_eq!(restarts.next(start + limits.window, &limits), Ok(Duration::ZERO));
    }
}
