//! Nobody but the mint makes a receipt.

use turnkeep_base::receipt::Level;
use turnkeep_base::{Receipt, TurnId};

fn forge(turn: TurnId) -> Receipt {
    Receipt { turn, level: Level::Acked }
}

fn main() {
    let _ = forge;
}
