//! There is one hold of what was lent.

use turnkeep_policy::conversations::{Clean, ConversationLease};

fn copy(lease: &ConversationLease<Clean>) -> ConversationLease<Clean> {
    lease.clone()
}

fn main() {
    let _ = copy;
}
