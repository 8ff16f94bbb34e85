//! The fields of a standing are its own.

use turnkeep_policy::accounts::{Standing, Status};

fn revive(standing: &mut Standing) {
    standing.status = Status::Active;
}

fn main() {
    let _ = revive;
}
