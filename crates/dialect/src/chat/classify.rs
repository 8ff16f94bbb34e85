//! What an error of a Chat upstream means, by the rows of `classify_table`.

use super::classify_table::ROWS;
use crate::classify::{self, Classified};
use crate::reply::ReplyFault;

/// Classifies a reply with an error status that was made at `made_ms` (0 is unknown).
pub fn reply_at(status: u16, body: &[u8], made_ms: u64) -> Classified {
    classify::by_rows(ROWS, status, body, made_ms, false)
}

/// The same for a request that continued a conversation which the upstream keeps (`previous_response_id`): only there
/// can a reply mean that the conversation is gone. For upstreams of the Responses kind.
pub fn continued_at(status: u16, body: &[u8], made_ms: u64) -> Classified {
    classify::by_rows(ROWS, status, body, made_ms, true)
}

/// Classifies an error inside a stream, or in a reply that says 200: the raw `error` value.
pub(crate) fn in_band(error: &str) -> ReplyFault {
    classify::in_stream(ROWS, error.as_bytes()).into()
}
