//! What an error body says, found in the many forms that providers and proxies give it: an object (which may hold the
//! error under `error` or `detail`), a list of such, a bare text, a web page, or bytes that are nothing of this.

use super::redact::redact;
use super::wording::unquoted;
use crate::json::{Invalid, Kind, Reader};

/// Bytes that are kept of a body that is no JSON.
const TEXT_BYTES: usize = 16 << 10;
/// Bytes of a message that are read as wording. What a provider has to say, it says at the beginning.
const WORDING_BYTES: usize = 4 << 10;
/// How deep errors may be wrapped in errors.
const WRAPS: u8 = 4;

/// What an error says; codes are in lower case.
#[derive(Debug, Default)]
pub(crate) struct Said {
    /// `code`, or `status` where there is no word in `code`.
    pub(crate) code: String,
    /// `type`.
    pub(crate) kind: String,
    /// The code that a detail names: Anthropic's `error_code`, Google's `reason`, Azure's inner code.
    pub(crate) detail: String,
    pub(crate) message: String,
    /// The message's beginning as wording: in lower case, and with empty quotations.
    pub(crate) unquoted: String,
    pub(crate) param: Option<String>,
    /// The body is a page (HTML, XML) and no API's answer.
    pub(crate) html: bool,
}

impl Said {
    /// Reads a body, of which `text` is what can be read. Never fails: what is not JSON, or was cut, is taken for its text
    /// and for what it had said.
    pub(crate) fn read(body: &[u8], text: &str) -> Self {
        let mut said = Said::default();
        let mut r = Reader::over(text);
        let whole = value(&mut r, &mut said, 0).and_then(|()| r.end());
        if whole.is_err() {
            said.html = text.trim_start().starts_with('<');
            if said.message.is_empty() {
                let text = String::from_utf8_lossy(&body[..body.len().min(TEXT_BYTES)]);
                text.trim().clone_into(&mut said.message);
            }
        }
        said.finish()
    }

    /// A bare code with a message.
    pub(crate) fn named(code: String, message: &str) -> Self {
        Said { code, message: message.to_owned(), ..Said::default() }.finish()
    }

    fn finish(mut self) -> Self {
        let end = (0..=self.message.len().min(WORDING_BYTES)).rev().find(|&at| self.message.is_char_boundary(at));
        self.unquoted = unquoted(&self.message[..end.unwrap_or(0)]);
        self
    }

    /// Whether the error names this code, wherever it does.
    pub(crate) fn names(&self, code: &str) -> bool {
        self.code == code || self.kind == code || self.detail == code
    }

    /// The most telling code.
    pub(crate) fn name(&self) -> Option<&str> {
        let number = is_number(&self.code);
        [&self.detail, if number { &self.kind } else { &self.code }, &self.kind, &self.code]
            .into_iter()
            .map(String::as_str)
            .find(|name| !name.is_empty())
    }

    /// An HTTP status that stands where the code would.
    pub(crate) fn status(&self) -> Option<u16> {
        self.code.parse::<u16>().ok().filter(|status| (400..600).contains(status))
    }
}

fn is_number(code: &str) -> bool {
    code.bytes().all(|byte| byte.is_ascii_digit())
}

fn value(r: &mut Reader<'_>, said: &mut Said, depth: u8) -> Result<(), Invalid> {
    if depth > WRAPS {
        return r.skip().map(drop);
    }
    match r.kind()? {
        Kind::String => {
            let text = r.string()?;
            if said.message.is_empty() {
                said.message = text.into_owned();
            }
            Ok(())
        }
        Kind::Array => r.array(|r, at| if at == 0 { value(r, said, depth + 1) } else { r.skip().map(drop) }),
        Kind::Object => r.object(|r, key| field(r, key, said, depth)),
        Kind::Number | Kind::Bool | Kind::Null => r.skip().map(drop),
    }
}

fn field(r: &mut Reader<'_>, key: &str, said: &mut Said, depth: u8) -> Result<(), Invalid> {
    match (key, r.kind()?) {
        ("error" | "detail" | "errors", _) => return value(r, said, depth + 1),
        ("message" | "msg" | "error_description", Kind::String) => said.message = r.string()?.into_owned(),
        ("type" | "error_type", Kind::String) => {
            // `"type":"error"` is the envelope's own.
            let kind = word(r)?;
            if kind != "error" || said.kind.is_empty() {
                said.kind = kind;
            }
        }
        ("code", Kind::String) => said.code = word(r)?,
        ("code" | "status_code", Kind::Number) => {
            let number = r.number()?;
            if said.code.is_empty() {
                number.clone_into(&mut said.code);
            }
        }
        // Google's name for the code, beside a number under `code`.
        ("status", Kind::String) => {
            let word = word(r)?;
            if is_number(&said.code) {
                said.code = word;
            }
        }
        ("reason", Kind::String) => said.detail = word(r)?,
        ("details", Kind::Object) => return detail(r, said),
        ("details", Kind::Array) => {
            return r.array(|r, _| if r.kind()? == Kind::Object { detail(r, said) } else { r.skip().map(drop) });
        }
        ("param", Kind::String) => said.param = Some(r.string()?.into_owned()).filter(|param| !param.is_empty()),
        ("innererror" | "inner_error", Kind::Object) => {
            return r.object(|r, key| {
                if key == "code" && r.kind()? == Kind::String {
                    said.detail = word(r)?;
                    return Ok(());
                }
                r.skip().map(drop)
            });
        }
        _ => return r.skip().map(drop),
    }
    Ok(())
}

/// A detail names a code; its other fields quote the caller.
fn detail(r: &mut Reader<'_>, said: &mut Said) -> Result<(), Invalid> {
    r.object(|r, key| {
        if matches!(key, "reason" | "error_code") && r.kind()? == Kind::String {
            said.detail = word(r)?;
            return Ok(());
        }
        r.skip().map(drop)
    })
}

/// A code as it is compared. A key goes while it can be told by its capitals.
fn word(r: &mut Reader<'_>) -> Result<String, Invalid> {
    r.string().map(|text| redact(&text).to_lowercase())
}
