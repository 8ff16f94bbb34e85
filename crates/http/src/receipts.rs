//! The one place where receipts are made: the connection layer's own proof, and the proof that a later turn gives.

use std::sync::Arc;
use turnkeep_base::receipt::Level;
use turnkeep_base::{Mint, Receipt, TurnId};
use turnkeep_engine::ports::Echo;

/// How much proof a reply's arrival needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// The peer's host has acknowledged every byte, where the system tells; elsewhere as [`Delivery::Flushed`].
    #[default]
    Acked,
    /// The kernel has accepted every byte and no reset was seen.
    Flushed,
    /// No proof at all: the last byte has left for the connection. For the tests that must fail with it.
    #[doc(hidden)]
    Forced,
}

/// Makes receipts. All clones share the one mint.
#[derive(Clone, Debug)]
pub struct Receipts(Arc<Mint>);

impl Receipts {
    /// With the mint of the wiring.
    pub fn new(mint: Mint) -> Self {
        Receipts(Arc::new(mint))
    }

    /// The reply of this turn has arrived.
    pub(crate) fn receipt(&self, turn: TurnId, level: Level) -> Receipt {
        self.0.receipt(turn, level)
    }
}

impl Echo for Receipts {
    fn receipt(&self, turn: TurnId) -> Receipt {
        Receipts::receipt(self, turn, Level::Echoed)
    }
}
