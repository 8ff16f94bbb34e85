//! A charge cannot be copied, so it is spent once.

fn twice(charge: turnkeep_base::Charge) -> (turnkeep_base::Charge, turnkeep_base::Charge) {
    (charge.clone(), charge)
}

fn main() {
    let _ = twice;
}
