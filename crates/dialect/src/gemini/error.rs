//! Our own errors in Gemini's form, whole or as the end of a stream that had begun.

use crate::request::StreamForm;
use bytes::Bytes;
use turnkeep_base::ClientError;

/// The status and body of an error.
pub fn body(_error: &ClientError, _request_id: &str) -> (u16, Bytes) {
    todo!()
}

/// The end of a stream that failed after it had begun.
pub fn event(_form: StreamForm, _error: &ClientError, _request_id: &str) -> Bytes {
    todo!()
}

/// Whether a body is an error as Gemini's own clients read it.
pub fn is_body(_body: &[u8]) -> bool {
    todo!()
}
