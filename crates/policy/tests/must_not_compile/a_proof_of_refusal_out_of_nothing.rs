//! A proof says what it is a proof of.

use turnkeep_policy::conversations::RefusalProof;

fn proof() -> RefusalProof {
    RefusalProof { reread: false }
}

fn main() {
    let _ = proof;
}
