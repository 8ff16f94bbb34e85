//! What only a delivered answer may leave behind asks for its receipt, and nobody but the mint makes one.

use turnkeep_base::receipt::Level;
use turnkeep_base::{Fingerprint, Receipt, TurnId};
use turnkeep_policy::Moment;
use turnkeep_policy::continuity::{Continuity, Owner};

fn commit(histories: &mut Continuity, history: Fingerprint, owner: Owner) {
    histories.commit(Moment(0), history, owner);
}

fn commit_with_one_of_its_own(histories: &mut Continuity, history: Fingerprint, owner: Owner, turn: TurnId) {
    let receipt = Receipt { turn, level: Level::Acked };
    histories.commit(&receipt, Moment(0), history, owner);
}

fn main() {
    let _ = (commit, commit_with_one_of_its_own);
}
