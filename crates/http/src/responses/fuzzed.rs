//! The stored forms by themselves, for the fuzz targets and nobody else (the layer check looks).

use super::record::{StoredConversation, StoredResponse};
use bytes::Bytes;

/// A stored response as it is written again; `None` for what is none.
pub fn stored_response(bytes: &[u8]) -> Option<Bytes> {
    let stored = StoredResponse::from_bytes(bytes)?;
    // What the routes ask of it.
    let _ = (stored.status(), stored.item("msg_0"));
    Some(stored.to_bytes())
}

/// A stored conversation as it is written again; `None` for what is none.
pub fn stored_conversation(bytes: &[u8]) -> Option<Bytes> {
    let stored = StoredConversation::from_bytes(bytes)?;
    let _ = stored.shown();
    Some(stored.to_bytes())
}
