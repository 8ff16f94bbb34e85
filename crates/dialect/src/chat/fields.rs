//! The checks that Chat's requests, completions and embeddings share: a value of the wrong kind is an error with its path,
//! and nothing is built.

use crate::json::{Invalid, Kind, Reader, Span};
use crate::request::{BAD_NAME, Spans, is_name};

/// Fields that the gateway itself reads may stand once: with two, the upstream could read the other one.
#[derive(Default)]
pub(super) struct Once(u16);

impl Once {
    /// Marks a field, by its bit, as seen.
    pub(super) fn check(&mut self, r: &Reader<'_>, bit: u8, key: &str) -> Result<(), Invalid> {
        if self.0 & 1 << bit != 0 {
            return Err(r.fail(format!("duplicate `{key}`: it may be given only once")));
        }
        self.0 |= 1 << bit;
        Ok(())
    }
}

/// The model's name and where it stands.
pub(super) fn model(r: &mut Reader<'_>) -> Result<(String, Span), Invalid> {
    r.kind()?;
    let start = r.position();
    let model = r.string()?;
    if model.is_empty() {
        return Err(r.fail("expected the name of a model, found an empty string"));
    }
    if !is_name(&model) {
        return Err(r.fail(BAD_NAME));
    }
    Ok((model.into_owned(), start..r.position()))
}

/// `stream_options`, or `null` for none: notes where it stands, and tells whether the client wants usage. `bit` is that of
/// `include_usage`.
pub(super) fn stream_options(r: &mut Reader<'_>, once: &mut Once, bit: u8, spans: &mut Spans) -> Result<bool, Invalid> {
    let null = r.kind()? == Kind::Null;
    let start = r.position();
    let mut wanted = false;
    if null {
        r.null()?;
    } else {
        r.object::<Invalid>(|r, key| {
            if key != "include_usage" {
                return r.skip().map(drop);
            }
            once.check(r, bit, key)?;
            r.kind()?;
            let start = r.position();
            wanted = optional_bool(r)?;
            spans.include_usage = Some(start..r.position());
            Ok(())
        })?;
    }
    spans.stream_options = Some(start..r.position());
    Ok(wanted)
}

/// A required field of the value at hand is not there.
pub(crate) fn missing(r: &Reader<'_>, field: &str) -> Invalid {
    let mut error = r.fail("a required field is missing");
    if !error.path.is_empty() {
        error.path.push('.');
    }
    error.path.push_str(field);
    error
}

pub(crate) fn optional_bool(r: &mut Reader<'_>) -> Result<bool, Invalid> {
    if r.null()? { Ok(false) } else { r.bool() }
}

pub(crate) fn optional_u64(r: &mut Reader<'_>) -> Result<Option<u64>, Invalid> {
    if r.null()? { Ok(None) } else { r.u64().map(Some) }
}

pub(super) fn optional_number(r: &mut Reader<'_>) -> Result<(), Invalid> {
    if r.null()? { Ok(()) } else { r.number().map(drop) }
}

/// A string or `null`, checked and left where it is.
pub(super) fn optional_string(r: &mut Reader<'_>) -> Result<(), Invalid> {
    match r.kind()? {
        Kind::String | Kind::Null => r.skip().map(drop),
        Kind::Object | Kind::Array | Kind::Number | Kind::Bool => r.string().map(drop),
    }
}
