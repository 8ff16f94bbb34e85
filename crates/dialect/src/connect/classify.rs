//! What an error of a Connect or gRPC service means, by the rows of `classify_table`.

use super::classify_table::{NAMES, ROWS};
use crate::classify::{self, Classified};
use crate::reply::ReplyFault;

/// Classifies a unary reply with an error status that was made at `made_ms`, in milliseconds since 1970 (0 is unknown).
/// Without a Connect error in it, the HTTP status says what it means.
pub fn reply_at(status: u16, body: &[u8], made_ms: u64) -> Classified {
    classify::by_rows(ROWS, status, body, made_ms, false)
}

/// The same for a call that continued a conversation which the upstream keeps: only there can `not_found` mean that the
/// conversation is gone.
pub fn continued_at(status: u16, body: &[u8], made_ms: u64) -> Classified {
    classify::by_rows(ROWS, status, body, made_ms, true)
}

/// Classifies the error of an end of stream: the raw `error` value, or the end that holds it.
pub fn in_stream(error: &[u8]) -> ReplyFault {
    classify::in_stream(ROWS, error).into()
}

/// The same for a call that continued a conversation which the upstream keeps.
pub fn in_stream_continued(error: &[u8]) -> ReplyFault {
    classify::in_stream_of(ROWS, error, true).into()
}

/// Classifies a gRPC status: its number, and its message after percent decoding. 0 is no error and has no meaning here.
pub fn grpc(number: u32, message: &str) -> ReplyFault {
    classify::named(ROWS, grpc_code(number), message, false).into()
}

/// The same for a call that continued a conversation which the upstream keeps.
pub fn grpc_continued(number: u32, message: &str) -> ReplyFault {
    classify::named(ROWS, grpc_code(number), message, true).into()
}

/// Connect's word for a gRPC status; one that there is none for keeps its number.
fn grpc_code(number: u32) -> String {
    let name = usize::try_from(number).ok().and_then(|number| NAMES.get(number)).copied();
    name.map_or_else(|| format!("grpc_{number}"), str::to_owned)
}
