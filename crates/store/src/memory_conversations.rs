//! Upstreams' conversations in memory, for as long as the store lives. Bounded; what finds no room is not kept.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use turnkeep_engine::ports::{ConversationKey, KeptConversation};

/// Conversations kept.
const MOST: usize = 16 * 1024;

#[derive(Default)]
pub(crate) struct MemoryConversations(Mutex<BTreeMap<ConversationKey, KeptConversation>>);

impl MemoryConversations {
    pub fn keep(&self, conversation: KeptConversation) {
        let mut all = self.0.lock();
        if all.len() < MOST || all.contains_key(&conversation.key) {
            all.insert(conversation.key.clone(), conversation);
        }
    }

    pub fn remove(&self, key: &ConversationKey) {
        self.0.lock().remove(key);
    }

    /// Those whose time is not over, the soonest to end first; the others go.
    pub fn load(&self, now_ms: u64) -> Vec<KeptConversation> {
        self.prune(now_ms);
        let mut all: Vec<KeptConversation> = self.0.lock().values().cloned().collect();
        all.sort_by_key(|kept| kept.until_ms);
        all
    }

    pub fn prune(&self, now_ms: u64) -> u64 {
        let mut all = self.0.lock();
        let had = all.len();
        all.retain(|_, kept| kept.until_ms > now_ms);
        (had - all.len()) as u64
    }
}
