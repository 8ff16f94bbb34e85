//! Our own errors in Chat's form, whole or as the end of a stream that had begun.

use crate::json::{Invalid, Object, Reader};
use bytes::Bytes;
use turnkeep_base::ClientError;
use turnkeep_wire::sse;

/// The status and body of an error.
pub fn body(error: &ClientError, request_id: &str) -> (u16, Bytes) {
    let mut out = Vec::new();
    write(&mut out, error, request_id, false);
    (error.status, out.into())
}

/// The end of a stream that failed after it had begun: one data frame, which every SDK raises, and no `[DONE]`. As there
/// are no headers any more, the wait stands in the error itself, in seconds.
pub fn event(error: &ClientError, request_id: &str) -> Bytes {
    let mut data = Vec::new();
    write(&mut data, error, request_id, true);
    let mut out = Vec::with_capacity(data.len() + 8);
    sse::write(&mut out, None, &data);
    out.into()
}

/// Whether a body is an error as Chat's own clients read it: `message` a text, `type`, `param` and `code` texts or null.
pub fn is_body(body: &[u8]) -> bool {
    let mut seen = [false; 4];
    let read = Reader::new(body).and_then(|mut r| {
        r.object(|r, key| {
            if key != "error" {
                return r.skip().map(drop);
            }
            r.object(|r, key| {
                let at = ["message", "type", "param", "code"].iter().position(|known| *known == key);
                match at {
                    Some(0) => r.string().map(drop)?,
                    Some(_) => r.optional_string().map(drop)?,
                    None => r.skip().map(drop)?,
                }
                if let Some(at) = at {
                    seen[at] = true;
                }
                Ok::<(), Invalid>(())
            })
        })?;
        r.end()
    });
    read.is_ok() && seen == [true; 4]
}

fn write(out: &mut Vec<u8>, error: &ClientError, request_id: &str, in_band: bool) {
    let mut object = Object::open(out);
    let mut inner = object.object("error");
    inner.string("message", &error.message);
    inner.string("type", kind(error));
    inner.optional_string("param", error.param.as_deref());
    inner.string("code", error.code);
    if in_band && let Some(seconds) = error.retry_after_seconds() {
        inner.number("retry_after", seconds);
    }
    if !request_id.is_empty() {
        inner.string("request_id", request_id);
    }
}

/// Chat's name for the kind of error. Clients of its SDKs tell errors apart by the status; programs that read the type
/// know OpenAI's names.
fn kind(error: &ClientError) -> &'static str {
    match error.status {
        401 => "authentication_error",
        403 => "permission_error",
        402 => "insufficient_quota",
        429 => match error.code {
            "quota_exhausted" | "caller_budget_exhausted" => "insufficient_quota",
            _ => "rate_limit_error",
        },
        408 | 504 => "timeout_error",
        503 | 529 => "service_unavailable_error",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_body_names_message_type_path_and_code() {
        let (status, body) = body(&ClientError::invalid("messages[0].role", "no \"role\""), "turn_1");
        assert_eq!(status, 400);
        assert_eq!(
            text(&body),
            r#"{"error":{"message":"no \"role\"","type":"invalid_request_error","param":"messages[0].role","code":"invalid_request","request_id":"turn_1"}}"#
        );
    }

    #[test]
    fn only_a_body_with_every_field_in_its_own_type_is_one_of_chat() {
        for (body, is) in [
            (r#"{"error":{"message":"m","type":"t","param":null,"code":null},"more":1}"#, true),
            (r#"{"error":{"message":"m","type":"t","param":"p","code":"c","n_ctx":1}}"#, true),
            (r#"{"error":{"message":"m","type":"t","param":null,"code":400}}"#, false),
            (r#"{"error":{"message":"m","type":"t","code":null}}"#, false),
            (r#"{"error":"text"}"#, false),
            ("{", false),
            ("", false),
        ] {
            assert_eq!(is_body(body.as_bytes()), is, "{body}");
        }
    }

    #[test]
    fn an_event_is_one_data_frame_with_the_wait_and_no_done() {
        let event = event(&ClientError::new(503, "model_overloaded", "full"), "");
        assert_eq!(
            text(&event),
            "data: {\"error\":{\"message\":\"full\",\"type\":\"service_unavailable_error\",\"param\":null,\
             \"code\":\"model_overloaded\",\"retry_after\":1}}\n\n"
        );
    }

    #[test]
    fn every_status_has_the_type_that_openai_programs_know() {
        for (status, code, named) in [
            (400, "x", "invalid_request_error"),
            (401, "x", "authentication_error"),
            (403, "x", "permission_error"),
            (404, "x", "invalid_request_error"),
            (408, "x", "timeout_error"),
            (413, "x", "invalid_request_error"),
            (429, "rate_limited", "rate_limit_error"),
            (429, "quota_exhausted", "insufficient_quota"),
            (429, "caller_budget_exhausted", "insufficient_quota"),
            (451, "x", "invalid_request_error"),
            (500, "x", "server_error"),
            (502, "x", "server_error"),
            (503, "x", "service_unavailable_error"),
            (504, "x", "timeout_error"),
        ] {
            assert_eq!(kind(&ClientError::new(status, code, "")), named, "{status} {code}");
        }
    }
}
