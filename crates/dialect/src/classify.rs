//! What an upstream's error reply, or an error inside its stream, means. Named codes come before the status, the status
//! before wording; provider tables are data in each dialect's `classify`.

pub(crate) mod context;
pub(crate) mod declared;
mod redact;
pub(crate) mod said;
pub(crate) mod sentences;
pub(crate) mod table;
pub(crate) mod wording;

pub use redact::redact;

use crate::{chat, gemini, messages};
use said::Said;
use table::Row;
use turnkeep_base::limit::MAX_ERROR_BODY;
use turnkeep_base::{Declared, Dialect, Evidence, FaultKind};

/// Bytes of the provider's message that are kept for the caller.
const MESSAGE_BYTES: usize = 4 << 10;
/// Bytes of the field's name that are kept.
const PARAM_BYTES: usize = 256;
/// Bytes of a provider's code; what is longer is none.
const CODE_BYTES: usize = 64;

/// An upstream's error, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classified {
    /// The kind of fault.
    pub kind: FaultKind,
    /// Status, provider code and message, bounded.
    pub evidence: Evidence,
    /// The provider's message in full, up to 4 KiB, for the caller of a `request_invalid`.
    pub message: String,
    /// The field that the provider names, up to 256 bytes.
    pub param: Option<String>,
    /// What the body says of the provider's limits; the headers' part is [`crate::windows::from_headers`].
    pub declared: Declared,
    /// The request is longer than the model's window.
    pub context_too_long: bool,
}

/// Classifies a reply with an error status. `body` is at most [`turnkeep_base::limit::MAX_ERROR_BODY`] bytes of it.
/// Resets that the body gives as moments are not read; see [`reply_at`].
pub fn reply(upstream: Dialect, status: u16, body: &[u8]) -> Classified {
    reply_at(upstream, status, body, 0)
}

/// Classifies a reply with an error status that was made at `made_ms`, in milliseconds since 1970 by its own `Date` (see
/// [`crate::windows::made_at`]): resets that the body gives as moments are measured from there. 0 is unknown.
pub fn reply_at(upstream: Dialect, status: u16, body: &[u8], made_ms: u64) -> Classified {
    match upstream {
        Dialect::Chat | Dialect::Responses => chat::classify::reply_at(status, body, made_ms),
        Dialect::Messages => messages::classify::reply_at(status, body, made_ms),
        Dialect::Gemini => gemini::classify::reply_at(status, body, made_ms),
    }
}

/// What an error means by a provider's rows. A status that says success is none.
pub(crate) fn by_rows(rows: &[Row], status: u16, body: &[u8], made_ms: u64, handle: bool) -> Classified {
    let text = readable(body);
    let said = Said::read(body, text);
    let judged = Some(status).filter(|status| *status >= 300);
    let kind = table::judge(rows, judged, &said, handle);
    Classified::of(kind, Some(status), judged, &said, text, made_ms)
}

/// What an error inside a stream means, the raw `error` value or what holds it. A number that looks like an HTTP status
/// is taken for one.
pub(crate) fn in_stream(rows: &[Row], error: &[u8]) -> Classified {
    in_stream_of(rows, error, false)
}

/// The same; `handle` for an answer that goes on with a conversation which the upstream keeps.
pub(crate) fn in_stream_of(rows: &[Row], error: &[u8], handle: bool) -> Classified {
    let text = readable(error);
    let said = Said::read(error, text);
    let status = said.status();
    Classified::of(table::judge(rows, status, &said, handle), status, status, &said, text, 0)
}

/// The part of a body that is text: within the bound, and up to where its encoding breaks.
fn readable(body: &[u8]) -> &str {
    let body = &body[..body.len().min(MAX_ERROR_BODY)];
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let valid = match std::str::from_utf8(body) {
        Ok(text) => return text,
        Err(bad) => bad.valid_up_to(),
    };
    std::str::from_utf8(&body[..valid]).unwrap_or("")
}

/// What a bare code with a message means.
pub(crate) fn named(rows: &[Row], code: String, message: &str, handle: bool) -> Classified {
    let said = Said::named(code, message);
    Classified::of(table::judge(rows, None, &said, handle), None, None, &said, "", 0)
}

impl Classified {
    /// From what the provider said: without secrets, and within bounds. A code that is not of a code's form is no code,
    /// and stays in the detail. `judged` is the status as it was judged.
    fn of(kind: FaultKind, status: Option<u16>, judged: Option<u16>, said: &Said, body: &str, made_ms: u64) -> Self {
        let message = bounded(redact(&said.message), MESSAGE_BYTES);
        let code = said.name().map(redact);
        let mut evidence = match code {
            Some(code) if is_code(&code) => Evidence::text(message.as_str()).with_code(code),
            Some(code) => Evidence::text(format!("code {}: {message}", bounded(code, 2 * CODE_BYTES))),
            None => Evidence::text(message.as_str()),
        };
        evidence.status = status;
        let param = said.param.as_deref().map(|param| bounded(redact(param), PARAM_BYTES));
        Classified {
            kind,
            evidence,
            message,
            param,
            declared: declared::declared(kind, said, body, made_ms),
            context_too_long: context::is_too_long(kind, judged, said),
        }
    }
}

fn is_code(code: &str) -> bool {
    code.len() <= CODE_BYTES
        && code.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b':' | b'-'))
}

fn bounded(mut text: String, bytes: usize) -> String {
    let end = (0..=text.len().min(bytes)).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    text.truncate(end);
    text
}
