//! Proof that a whole reply reached the client's host. Only the one [`Mint`] makes it, and only the connection layer
//! holds the mint; what must wait for delivery takes `&Receipt`, so it cannot be called without one.

use crate::id::TurnId;

/// How sure a receipt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The kernel accepted every byte up to the reply's end and no reset was seen.
    Flushed,
    /// The peer's host acknowledged every byte up to the reply's end.
    Acked,
    /// A later turn of the same caller carries our answer in its history.
    Echoed,
}

/// The reply of `turn` arrived. Not `Clone`, no `Default`, no public field: it cannot be forged.
#[derive(Debug)]
pub struct Receipt {
    turn: TurnId,
    level: Level,
}

impl Receipt {
    /// Whose reply it was.
    pub fn turn(&self) -> TurnId {
        self.turn
    }

    /// What the receipt rests on.
    pub fn level(&self) -> Level {
        self.level
    }
}

/// The only maker of receipts. The wiring makes exactly one and hands it to the connection layer; the layering check
/// fails when another crate names it.
#[derive(Debug)]
pub struct Mint(());

impl Mint {
    /// To be called once per process, by the wiring.
    pub fn for_the_wiring() -> Self {
        Mint(())
    }

    /// The reply of `turn` has arrived.
    pub fn receipt(&self, turn: TurnId, level: Level) -> Receipt {
        Receipt { turn, level }
    }
}
