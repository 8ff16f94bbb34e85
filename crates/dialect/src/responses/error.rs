//! Our own errors in the form of Responses, whole or as the end of a stream that had begun.

use crate::json::Object;
use bytes::Bytes;
use turnkeep_base::ClientError;
use turnkeep_wire::sse;

/// The status and body of an error; the same as Chat's.
pub fn body(error: &ClientError, request_id: &str) -> (u16, Bytes) {
    crate::chat::error::body(error, request_id)
}

/// The end of a stream that failed after it had begun: one `error` event. Its fields stand in it twice: flat, as the
/// protocol has them, and under `error`, without which the official clients raise nothing. As there are no headers any
/// more, the wait stands in the error itself, in seconds. `sequence_number` is there because clients read it; which one
/// is next is not known here.
pub fn event(error: &ClientError, request_id: &str) -> Bytes {
    let mut data = Vec::new();
    {
        let mut object = Object::open(&mut data);
        object.string("type", "error");
        fields(&mut object, error);
        object.number("sequence_number", 0);
        {
            let mut inner = object.object("error");
            inner.string("type", kind(error));
            fields(&mut inner, error);
            if let Some(seconds) = error.retry_after_seconds() {
                inner.number("retry_after", seconds);
            }
        }
        if !request_id.is_empty() {
            object.string("request_id", request_id);
        }
    }
    let mut out = Vec::with_capacity(data.len() + 24);
    sse::write(&mut out, Some("error"), &data);
    out.into()
}

fn fields(object: &mut Object<'_>, error: &ClientError) {
    object.string("code", code(error));
    object.string("message", &error.message);
    object.optional_string("param", error.param.as_deref());
}

/// The protocol's own code where one fits, by which clients decide whether to try again; else ours.
fn code(error: &ClientError) -> &'static str {
    match (error.status, error.code) {
        (402, _) | (_, "quota_exhausted" | "caller_budget_exhausted") => "insufficient_quota",
        (429, _) => "rate_limit_exceeded",
        (500.., _) => "server_error",
        (400 | 413 | 422, "request_invalid" | "invalid_request") => "invalid_prompt",
        (_, own) => own,
    }
}

fn kind(error: &ClientError) -> &'static str {
    match error.status {
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_says_it_flat_and_nested_with_the_wait() {
        let event = event(&ClientError::new(429, "rate_limited", "slow\ndown"), "turn_1");
        assert_eq!(
            std::str::from_utf8(&event).unwrap(),
            "event: error\ndata: {\"type\":\"error\",\"code\":\"rate_limit_exceeded\",\"message\":\"slow\\ndown\",\
             \"param\":null,\"sequence_number\":0,\"error\":{\"type\":\"rate_limit_error\",\
             \"code\":\"rate_limit_exceeded\",\"message\":\"slow\\ndown\",\"param\":null,\"retry_after\":1},\
             \"request_id\":\"turn_1\"}\n\n"
        );
    }

    #[test]
    fn a_code_is_the_protocols_own_where_one_fits() {
        for (status, ours, theirs) in [
            (429, "rate_limited", "rate_limit_exceeded"),
            (429, "quota_exhausted", "insufficient_quota"),
            (402, "x", "insufficient_quota"),
            (500, "x", "server_error"),
            (503, "model_overloaded", "server_error"),
            (529, "model_overloaded", "server_error"),
            (400, "request_invalid", "invalid_prompt"),
            (403, "policy_blocked", "policy_blocked"),
            (404, "model_not_found", "model_not_found"),
        ] {
            assert_eq!(code(&ClientError::new(status, ours, "")), theirs, "{status} {ours}");
        }
    }
}
