//! Errors in the form a Messages client understands: the body of a reply, and the in-band event that ends a stream that
//! had already begun. Never a `message_stop` after it.

use crate::json::{Invalid, Object, Reader};
use bytes::Bytes;
use turnkeep_base::ClientError;
use turnkeep_wire::sse;

/// The status, with Messages' own exceptions (529, 402), and the error's type.
fn form(error: &ClientError) -> (u16, &'static str) {
    match (error.code, error.status) {
        ("model_overloaded", _) | (_, 529) => (529, "overloaded_error"),
        ("quota_exhausted" | "caller_budget_exhausted", _) | (_, 402) => (402, "billing_error"),
        (_, 401) => (401, "authentication_error"),
        (_, 403) => (403, "permission_error"),
        (_, 404) => (404, "not_found_error"),
        (_, 409) => (409, "conflict_error"),
        (_, 413) => (413, "request_too_large"),
        (_, 429) => (429, "rate_limit_error"),
        (_, status @ (408 | 504)) => (status, "timeout_error"),
        (_, 503) => (503, "overloaded_error"),
        (_, status) if status >= 500 => (status, "api_error"),
        (_, status) => (status, "invalid_request_error"),
    }
}

fn write(out: &mut Vec<u8>, error: &ClientError, request_id: &str, in_band: bool) {
    let mut object = Object::open(out);
    object.string("type", "error");
    {
        let mut inner = object.object("error");
        inner.string("type", form(error).1);
        inner.string("message", &error.message);
        if in_band && let Some(seconds) = error.retry_after_seconds() {
            inner.number("retry_after", seconds);
        }
    }
    object.string("request_id", request_id);
}

/// The status and body of an error reply.
pub fn body(error: &ClientError, request_id: &str) -> (u16, Bytes) {
    let mut out = Vec::new();
    write(&mut out, error, request_id, false);
    (form(error).0, out.into())
}

/// Whether a body is an error as Messages' own clients read it: the type `error`, and inside a type and a message.
pub fn is_body(body: &[u8]) -> bool {
    let (mut outer, mut kind, mut message) = (false, false, false);
    let read = Reader::new(body).and_then(|mut r| {
        r.object(|r, key| match key {
            "type" => {
                outer = r.string()? == "error";
                Ok::<(), Invalid>(())
            }
            "error" => r.object(|r, key| {
                match key {
                    "type" => kind = !r.string()?.is_empty(),
                    "message" => {
                        r.string()?;
                        message = true;
                    }
                    _ => r.skip().map(drop)?,
                }
                Ok::<(), Invalid>(())
            }),
            _ => r.skip().map(drop),
        })?;
        r.end()
    });
    read.is_ok() && outer && kind && message
}

/// The event that ends a stream with an error. A wait that a header can no longer tell stands in it as `retry_after`,
/// in whole seconds.
pub fn event(error: &ClientError, request_id: &str) -> Bytes {
    let mut data = Vec::new();
    write(&mut data, error, request_id, true);
    let mut out = Vec::new();
    sse::write(&mut out, Some("error"), &data);
    out.into()
}
