//! What only a delivered answer may leave behind asks for its receipt.

use turnkeep_base::Fingerprint;
use turnkeep_policy::Moment;
use turnkeep_policy::continuity::{Continuity, Owner};

fn commit(histories: &mut Continuity, history: Fingerprint, owner: Owner) {
    histories.commit(Moment(0), history, owner);
}

fn main() {
    let _ = commit;
}
