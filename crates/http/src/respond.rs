//! Responses that no turn makes: errors in the dialect of their path, and small documents.

use crate::reply_body::ReplyBody;
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use turnkeep_base::{ClientError, Dialect, TurnId};
use turnkeep_dialect::reply::error_body;

/// An error, with the id under which the log knows it.
pub fn error(dialect: Dialect, error: &ClientError, id: TurnId) -> Response<ReplyBody> {
    let id = id.to_string();
    let (status, body) = error_body(dialect, error, &id);
    let mut response = json(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), body);
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&id) {
        headers.insert("x-turnkeep-turn", value.clone());
        headers.insert(dialect.request_id_header(), value);
    }
    if let Some(seconds) = error.retry_after_seconds() {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// A JSON document.
pub fn json(status: StatusCode, body: impl Into<Bytes>) -> Response<ReplyBody> {
    with_type(status, "application/json", body)
}

/// A text.
pub fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<ReplyBody> {
    with_type(status, "text/plain; charset=utf-8", body)
}

/// A document of a type.
pub fn with_type(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::whole(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
