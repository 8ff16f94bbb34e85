//! A gateway without receipts and without a ledger, for the benchmark alone: it measures what they cost beside one that has
//! them. There is no key for it, and it is heeded only where every connection is kept on this machine, so that no
//! gateway that serves anybody runs without them. What a caller's answers leave behind (recordings, bindings, histories)
//! is not its business: the benchmark's caller has a shared key, for which nothing is kept.

use futures_util::future::BoxFuture;
use turnkeep_engine::ports::{AnsweredAgain, AttemptClosed, AttemptOpened, Ledger, StoreError};
use turnkeep_upstream::Egress;

/// The variable that asks for it.
const VARIABLE: &str = "TURNKEEP_BENCH_BARE";

/// Whether it is asked for, and may be had.
pub(super) fn wanted(egress: &Egress) -> bool {
    let asked = std::env::var(VARIABLE).is_ok_and(|value| value == "1");
    let wanted = heeded(asked, matches!(egress, Egress::Loopback));
    if wanted {
        tracing::warn!("{VARIABLE}: no receipt is waited for and no usage is recorded; this is for a benchmark only");
    } else if asked {
        tracing::error!("{VARIABLE} is passed over: it needs {}=loopback", super::EGRESS_VARIABLE);
    }
    wanted
}

fn heeded(asked: bool, on_this_machine: bool) -> bool {
    asked && on_this_machine
}

/// A ledger that keeps nothing.
pub(super) struct NoLedger;

impl Ledger for NoLedger {
    fn open(&self, _: AttemptOpened) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn close(&self, _: AttemptClosed) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn again(&self, _: AnsweredAgain) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_that_may_reach_another_machine_keeps_its_ledger_and_its_receipts() {
        assert!(heeded(true, true));
        assert!(!heeded(true, false) && !heeded(false, true));
    }
}
