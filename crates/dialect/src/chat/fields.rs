//! The checks that the smaller requests (completions, embeddings) share: a value of the wrong kind is an error with its
//! path, and nothing is built.

use crate::json::{Invalid, Kind, Reader, Span};
use crate::request::{BAD_NAME, is_name};

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

/// A required field is not there.
pub(super) fn missing(r: &Reader<'_>, field: &str) -> Invalid {
    let mut error = r.fail("a required field is missing");
    error.path = field.to_owned();
    error
}

pub(super) fn optional_bool(r: &mut Reader<'_>) -> Result<bool, Invalid> {
    if r.null()? { Ok(false) } else { r.bool() }
}

pub(super) fn optional_u64(r: &mut Reader<'_>) -> Result<Option<u64>, Invalid> {
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
