//! What `POST /v1/messages/count_tokens` answers; the estimate is every dialect's.

use bytes::Bytes;
use turnkeep_base::Dialect;

pub use crate::count::estimate;

/// The count in an upstream's reply.
pub fn count_reply(body: &[u8]) -> Option<u64> {
    crate::count::count_reply(Dialect::Messages, body)
}

/// The reply with a count.
pub fn count_body(tokens: u64) -> Bytes {
    crate::count::count_body(Dialect::Messages, tokens)
}
