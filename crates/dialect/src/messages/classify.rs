//! What an Anthropic-style error means, by the rows of `classify_table`.

use super::classify_table::ROWS;
use crate::classify::{self, Classified};
use crate::reply::ReplyFault;

/// Classifies a reply with an error status.
pub fn reply(status: u16, body: &[u8]) -> Classified {
    reply_at(status, body, 0)
}

/// Classifies a reply with an error status that was made at `made_ms` (0 is unknown).
pub fn reply_at(status: u16, body: &[u8], made_ms: u64) -> Classified {
    classify::by_rows(ROWS, status, body, made_ms, false)
}

/// Classifies the `error` event of a stream, whose status was 200 and says nothing.
pub fn in_stream(data: &[u8]) -> ReplyFault {
    classify::in_stream(ROWS, data).into()
}
