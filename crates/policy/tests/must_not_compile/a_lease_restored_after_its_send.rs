//! What was sent may have begun: only a driver's proof brings it back.

use turnkeep_policy::conversations::{Clean, ConversationLease};

fn give_back(lease: ConversationLease<Clean>) {
    lease.sent().restore();
}

fn main() {
    let _ = give_back;
}
