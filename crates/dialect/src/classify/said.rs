//! What an error body says, found in the many forms that providers and proxies give it: an object (which may hold the
//! error under `error` or `detail`), a list of such, a bare text, a web page, or bytes that are nothing of this.

use super::redact;
use super::wording::{lead, outside, unquoted};
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
    /// The message's beginning in lower case.
    pub(crate) lower: String,
    /// The same with empty quotations.
    pub(crate) unquoted: String,
    /// The same without anything from the first quotation mark to the last: a caller may end a quotation itself.
    pub(crate) outside: String,
    /// The same up to the first quotation mark or colon, behind which a caller's text may follow.
    pub(crate) lead: String,
    /// The message stands where a provider puts it, beside a type or a code. Plain text, a bare `detail` and a list of
    /// what a validator found are no such form.
    pub(crate) shaped: bool,
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
                said.shaped = false;
            }
        }
        said.finish()
    }

    /// A bare code with a message.
    pub(crate) fn named(code: String, message: &str) -> Self {
        Said { code, message: message.to_owned(), shaped: true, ..Said::default() }.finish()
    }

    fn finish(mut self) -> Self {
        let end = (0..=self.message.len().min(WORDING_BYTES)).rev().find(|&at| self.message.is_char_boundary(at));
        self.lower = self.message[..end.unwrap_or(0)].to_lowercase();
        self.unquoted = unquoted(&self.lower);
        self.outside = outside(&self.lower);
        lead(&self.lower).clone_into(&mut self.lead);
        // The `error` of an envelope is no type.
        let named = !matches!(self.kind.as_str(), "" | "error") || !self.code.is_empty() || !self.detail.is_empty();
        self.shaped &= named;
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
        // What a validator found: its types and codes are those of the caller's fields.
        ("detail", Kind::Array) => {
            let mut found = Said::default();
            let read = value(r, &mut found, depth + 1);
            if said.message.is_empty() {
                said.message = found.message;
            }
            return read;
        }
        // xAI's form: the message under `error`, a code beside it.
        ("error", Kind::String) => {
            said.shaped |= said.message.is_empty();
            return value(r, said, depth + 1);
        }
        ("error" | "detail" | "errors", _) => return value(r, said, depth + 1),
        ("message", Kind::String) => {
            said.message = r.string()?.into_owned();
            said.shaped = true;
        }
        ("msg" | "error_description", Kind::String) => {
            said.message = r.string()?.into_owned();
            said.shaped = false;
        }
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

/// A detail names a code; its other fields quote the caller. Of Google's typed details only the `ErrorInfo` names one.
fn detail(r: &mut Reader<'_>, said: &mut Said) -> Result<(), Invalid> {
    let (mut named, mut names) = (None, true);
    let read = r.object(|r, key| {
        match (key, r.kind()?) {
            ("reason" | "error_code", Kind::String) => named = Some(word(r)?),
            ("@type", Kind::String) => names = r.string()?.ends_with("google.rpc.ErrorInfo"),
            _ => {
                r.skip()?;
            }
        }
        Ok(())
    });
    if let Some(named) = named.filter(|_| names) {
        said.detail = named;
    }
    read
}

/// A code as it is compared. A key goes while it can be told by its capitals.
fn word(r: &mut Reader<'_>) -> Result<String, Invalid> {
    r.string().map(|text| redact(&text).to_lowercase())
}
