//! What spends an error budget takes a charge, and an unclassified fault is none.

use turnkeep_base::{Charge, Evidence, Fault, FaultKind, Phase};

fn spend(_: Charge) {}

fn main() {
    spend(Fault::new(FaultKind::Unclassified, Phase::Answered, Evidence::default()));
}
