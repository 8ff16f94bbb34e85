//! Only the protocol's own end makes a conversation stand under the new history.

use turnkeep_base::Fingerprint;
use turnkeep_policy::conversations::{Clean, Conversation, ConversationLease};

fn advance(lease: ConversationLease<Clean>, key: Fingerprint, conversation: Conversation) {
    lease.sent().advance(key, conversation);
}

fn main() {
    let _ = advance;
}
