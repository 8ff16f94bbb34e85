//! Our own errors in Gemini's form, a `google.rpc.Status`, whole or as the end of a stream that had begun.

use crate::json::{Array, Invalid, Kind, Object, Reader};
use crate::request::StreamForm;
use bytes::Bytes;
use turnkeep_base::ClientError;
use turnkeep_wire::sse;

/// The status and body of an error.
pub fn body(error: &ClientError, request_id: &str) -> (u16, Bytes) {
    let mut out = Vec::new();
    write(&mut out, error, request_id);
    (status(error), out.into())
}

/// The end of a stream that failed: one event, which Google's clients raise, or the array's last element and its end.
/// `begun`: something of the answer has been sent, so that the array has an element; white space is nothing.
pub fn event(form: StreamForm, begun: bool, error: &ClientError, request_id: &str) -> Bytes {
    let mut data = Vec::new();
    write(&mut data, error, request_id);
    let mut out = Vec::with_capacity(data.len() + 8);
    match form {
        StreamForm::Events => sse::write(&mut out, None, &data),
        StreamForm::Array => {
            out.extend_from_slice(if begun { b",\r\n" } else { b"[" });
            out.extend_from_slice(&data);
            out.push(b']');
        }
    }
    out.into()
}

/// Whether a body is an error as Gemini's own clients read it: `code` a number, `message` and `status` texts; also in a
/// list of one, as some endpoints have it.
pub fn is_body(body: &[u8]) -> bool {
    let mut all = false;
    let read = Reader::new(body).and_then(|mut r| {
        if r.kind()? == Kind::Array {
            r.array(|r, at| {
                let good = is_status(r)?;
                all = good && at == 0;
                Ok::<(), Invalid>(())
            })?;
        } else {
            all = is_status(&mut r)?;
        }
        r.end()
    });
    read.is_ok() && all
}

fn is_status(r: &mut Reader<'_>) -> Result<bool, Invalid> {
    let mut seen = [false; 3];
    r.object(|r, key| {
        if key != "error" {
            return r.skip().map(drop);
        }
        r.object(|r, key| {
            let [code, message, status] = &mut seen;
            match key {
                "code" => *code = r.u64().map(|_| true)?,
                "message" => *message = r.string().map(|_| true)?,
                "status" => *status = r.string().map(|_| true)?,
                "details" if r.kind()? == Kind::Array => r.array(|r, _| r.object(|r, _| r.skip().map(drop)))?,
                "details" => return Err(r.fail("expected an array")),
                _ => r.skip().map(drop)?,
            }
            Ok::<(), Invalid>(())
        })
    })?;
    Ok(seen == [true; 3])
}

/// Gemini has no status of its own for an overload.
fn status(error: &ClientError) -> u16 {
    if error.status == 529 { 503 } else { error.status }
}

fn write(out: &mut Vec<u8>, error: &ClientError, request_id: &str) {
    let status = status(error);
    let mut object = Object::open(out);
    let mut inner = object.object("error");
    inner.number("code", status.into());
    inner.string("message", &error.message);
    inner.string("status", word(status));
    let mut details = inner.array("details");
    {
        let mut info = detail(&mut details, "ErrorInfo");
        info.string("reason", &error.code.to_ascii_uppercase());
        info.string("domain", "turnkeep");
    }
    // Gemini CLI waits for as long as this says, and reads no header.
    let wait = error.retry_after_seconds().or((status == 429).then_some(1));
    if let Some(seconds) = wait {
        detail(&mut details, "RetryInfo").string("retryDelay", &format!("{seconds}s"));
    }
    if let Some(param) = &error.param {
        let mut request = detail(&mut details, "BadRequest");
        let mut violations = request.array("fieldViolations");
        let mut violation = violations.object();
        violation.string("field", param);
        violation.string("description", &error.message);
    }
    if !request_id.is_empty() {
        detail(&mut details, "RequestInfo").string("requestId", request_id);
    }
}

fn detail<'a>(details: &'a mut Array<'_>, kind: &str) -> Object<'a> {
    let mut detail = details.object();
    detail.string("@type", &format!("type.googleapis.com/google.rpc.{kind}"));
    detail
}

/// Google's word for a status.
fn word(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 | 410 => "NOT_FOUND",
        402 | 412 | 424 | 451 => "FAILED_PRECONDITION",
        405 | 501 => "UNIMPLEMENTED",
        409 => "ABORTED",
        429 => "RESOURCE_EXHAUSTED",
        499 => "CANCELLED",
        408 | 504 => "DEADLINE_EXCEEDED",
        502 | 503 => "UNAVAILABLE",
        400..=499 => "INVALID_ARGUMENT",
        _ => "INTERNAL",
    }
}
