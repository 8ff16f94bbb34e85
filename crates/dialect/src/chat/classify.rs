//! What an error of a Chat upstream means. This file finds code, type and message in the many forms that compatible
//! servers give them; what they mean is data in `classify_table`.

use super::classify_table::{ROWS, Row};
use crate::classify::Classified;
use crate::classify::redact::redact;
use crate::classify::wording::{begins, contains, unquoted};
use crate::json::{Invalid, Kind, Reader};
use crate::reply::ReplyFault;
use turnkeep_base::FaultKind;

/// Classifies a reply with an error status.
pub fn reply(status: u16, body: &[u8]) -> Classified {
    let found = read(body);
    let kind = judge(Some(status), &found);
    classified(kind, Some(status), &found)
}

/// Classifies an error inside a stream, or in a reply that says 200: the raw `error` value. A number in it that looks
/// like an HTTP status is taken for one.
pub(super) fn in_band(error: &str) -> ReplyFault {
    let mut found = Found::default();
    if let Err(invalid) = Reader::over(error).pipe(|r| error_value(r, &mut found, 0)) {
        return ReplyFault::malformed(invalid.to_string());
    }
    let status = found.code.parse::<u16>().ok().filter(|status| (400..600).contains(status));
    let kind = judge(status, &found);
    classified(kind, status, &found).into()
}

/// What an error says, in lower case where it is compared.
#[derive(Debug, Default)]
struct Found {
    /// `code`, or `status` where there is no word in `code`.
    code: String,
    /// `type`.
    kind: String,
    message: String,
    param: Option<String>,
    html: bool,
}

trait Pipe: Sized {
    fn pipe<T>(mut self, with: impl FnOnce(&mut Self) -> T) -> T {
        with(&mut self)
    }
}
impl Pipe for Reader<'_> {}

fn read(body: &[u8]) -> Found {
    let mut found = Found::default();
    let whole = Reader::new(body).and_then(|mut r| {
        error_value(&mut r, &mut found, 0)?;
        r.end()
    });
    if whole.is_err() {
        // Not JSON, or cut: the text is all there is. Named codes in it still count as wording.
        let text = String::from_utf8_lossy(body);
        let start: String = text.trim_start().chars().take(64).collect::<String>().to_lowercase();
        found.html = start.starts_with("<!doctype") || start.starts_with("<html") || start.starts_with("<head");
        if found.message.is_empty() {
            found.message = text.trim().to_owned();
        }
    }
    found
}

/// Reads an error in any form: an object (which may hold the error under `error` or `detail`), a list of such, a text.
fn error_value(r: &mut Reader<'_>, found: &mut Found, depth: u8) -> Result<(), Invalid> {
    if depth > 4 {
        return r.skip().map(|_| ());
    }
    match r.kind()? {
        Kind::String => {
            let text = r.string()?;
            if found.message.is_empty() {
                found.message = text.into_owned();
            }
        }
        Kind::Array => r.array(|r, at| {
            if at == 0 {
                return error_value(r, found, depth + 1);
            }
            r.skip().map(|_| ())
        })?,
        Kind::Object => r.object(|r, key| field(r, key, found, depth))?,
        Kind::Number | Kind::Bool | Kind::Null => {
            r.skip()?;
        }
    }
    Ok(())
}

fn field(r: &mut Reader<'_>, key: &str, found: &mut Found, depth: u8) -> Result<(), Invalid> {
    let kind = r.kind()?;
    match (key, kind) {
        ("error" | "detail" | "errors", _) => error_value(r, found, depth + 1),
        ("message" | "msg" | "error_description", Kind::String) => {
            found.message = r.string()?.into_owned();
            Ok(())
        }
        ("type", Kind::String) => {
            found.kind = word(r)?;
            Ok(())
        }
        ("code", Kind::String) => {
            found.code = word(r)?;
            Ok(())
        }
        ("code", Kind::Number) => {
            let number = r.number()?;
            if found.code.is_empty() {
                found.code = number.to_owned();
            }
            Ok(())
        }
        // Google's name for the code, beside a number under `code`.
        ("status" | "reason", Kind::String) => {
            let word = word(r)?;
            if found.code.is_empty() || found.code.bytes().all(|byte| byte.is_ascii_digit()) {
                found.code = word;
            }
            Ok(())
        }
        ("details", Kind::Array | Kind::Object) => {
            // Google again: `API_KEY_INVALID` is the reason in a detail. Other fields of a detail quote the caller.
            if kind == Kind::Object {
                return detail(r, found);
            }
            r.array(|r, _| if r.kind()? == Kind::Object { detail(r, found) } else { r.skip().map(|_| ()) })
        }
        ("param", Kind::String) => {
            found.param = Some(r.string()?.into_owned()).filter(|param| !param.is_empty());
            Ok(())
        }
        // Azure and some routers say the real code deeper.
        ("innererror" | "inner_error", Kind::Object) => r.object(|r, key| {
            if key == "code" && r.kind()? == Kind::String {
                found.kind = word(r)?;
                return Ok(());
            }
            r.skip().map(|_| ())
        }),
        _ => r.skip().map(|_| ()),
    }
}

/// A code as it is compared. A key goes while it can be told by its capitals.
fn word(r: &mut Reader<'_>) -> Result<String, Invalid> {
    r.string().map(|text| redact(&text).to_lowercase())
}

fn detail(r: &mut Reader<'_>, found: &mut Found) -> Result<(), Invalid> {
    r.object(|r, key| {
        if key == "reason" && r.kind()? == Kind::String {
            if r.string()? == "API_KEY_INVALID" {
                found.code = "api_key_invalid".into();
            }
            return Ok(());
        }
        r.skip().map(|_| ())
    })
}

fn judge(status: Option<u16>, found: &Found) -> FaultKind {
    let message = unquoted(&found.message);
    let fits = |row: &Row| {
        (row.statuses.is_empty() || status.is_some_and(|status| row.statuses.contains(&status)))
            && (row.codes.is_empty() || row.codes.iter().any(|code| *code == found.code || *code == found.kind))
            && (row.words.is_empty() || contains(&message, row.words))
            && (row.sentences.is_empty() || begins(&message, row.sentences))
            && (!row.html || found.html)
            && (!row.in_band || status.is_none())
    };
    ROWS.iter().find(|row| fits(row)).map_or(FaultKind::Unclassified, |row| row.kind)
}

fn classified(kind: FaultKind, status: Option<u16>, found: &Found) -> Classified {
    let code = if found.code.is_empty() { &found.kind } else { &found.code };
    Classified::of(kind, status, Some(code), &found.message, found.param.as_deref())
}
