//! Our own errors in the form of Responses, whole or as the end of a stream that had begun.

use bytes::Bytes;
use turnkeep_base::ClientError;

/// The status and body of an error; the same as Chat's.
pub fn body(error: &ClientError, request_id: &str) -> (u16, Bytes) {
    crate::chat::error::body(error, request_id)
}

/// The end of a stream that failed after it had begun.
pub fn event(_error: &ClientError, _request_id: &str) -> Bytes {
    todo!()
}
