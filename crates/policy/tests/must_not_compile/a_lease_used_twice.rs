//! A mutable conversation is in one turn at a time.

use turnkeep_policy::conversations::{Clean, ConversationLease};

fn use_twice(lease: ConversationLease<Clean>) {
    let _first = lease.sent();
    let _second = lease.sent();
}

fn main() {
    let _ = use_twice;
}
