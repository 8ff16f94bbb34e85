//! A charge is made by the blame table alone.

fn main() {
    let _ = turnkeep_base::Charge(());
}
