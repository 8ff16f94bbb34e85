//! The check of tools, in the request and in `additional_tools` items, and of which of them must be called.

use crate::chat::request::{below, missing};
use crate::json::{Invalid, Kind, Reader};

/// Checks a tool: the client's own need a name; the provider's own are known by their type.
pub(super) fn tool(r: &mut Reader<'_>) -> Result<(), Invalid> {
    checked(r, false)
}

fn checked(r: &mut Reader<'_>, inside: bool) -> Result<(), Invalid> {
    let mut kind = None;
    let (mut name, mut description, mut parameters, mut strict, mut form) = (None, None, None, None, None);
    let mut tools: Option<Reader<'_>> = None;
    r.object::<Invalid>(|r, key| {
        let slot = match key {
            "type" => {
                kind = Some(r.string()?);
                return Ok(());
            }
            "tools" => {
                tools = Some(r.clone());
                return r.skip().map(drop);
            }
            "name" => &mut name,
            "description" => &mut description,
            "parameters" => &mut parameters,
            "strict" => &mut strict,
            "format" => &mut form,
            _ => return r.skip().map(drop),
        };
        *slot = Some(r.kind()?);
        r.skip().map(drop)
    })?;
    let r = &*r;
    let optional = |field: &str, found: Option<Kind>, wanted: Kind, words: &str| match found {
        None | Some(Kind::Null) => Ok(()),
        Some(found) if found == wanted => Ok(()),
        Some(_) => Err(below(r, field, words)),
    };
    let named = || match name {
        Some(Kind::String) => optional("description", description, Kind::String, "expected a string"),
        None => Err(missing(r, "name")),
        Some(_) => Err(below(r, "name", "expected a string")),
    };
    match kind.as_deref() {
        None => Err(missing(r, "type")),
        Some("function") => {
            named()?;
            optional("parameters", parameters, Kind::Object, "expected a JSON schema, which is an object")?;
            optional("strict", strict, Kind::Bool, "expected a boolean")
        }
        Some("custom") => {
            named()?;
            optional("format", form, Kind::Object, "expected an object")
        }
        Some("namespace") if inside => Err(below(r, "type", "a namespace within a namespace")),
        Some("namespace") => {
            named()?;
            match tools {
                Some(mut tools) => tools.array(|r, _| checked(r, true)),
                None => Err(missing(r, "tools")),
            }
        }
        Some(_) => Ok(()),
    }
}

/// Checks `tool_choice`, which is not `null`.
pub(super) fn tool_choice(r: &mut Reader<'_>) -> Result<(), Invalid> {
    match r.kind()? {
        Kind::String => return r.skip().map(drop),
        Kind::Object => {}
        Kind::Array | Kind::Number | Kind::Bool | Kind::Null => {
            return Err(r.fail("expected a word (auto, none, required) or an object that names a tool"));
        }
    }
    let (mut kind, mut name, mut mode) = (None, None, None);
    let mut tools: Option<Reader<'_>> = None;
    r.object::<Invalid>(|r, key| {
        match key {
            "type" => {
                kind = Some(r.string()?);
                return Ok(());
            }
            "name" => name = Some(r.kind()?),
            "mode" => mode = Some(r.kind()?),
            "tools" => tools = Some(r.clone()),
            _ => {}
        }
        r.skip().map(drop)
    })?;
    match (kind.as_deref(), name, tools) {
        (None, ..) => Err(missing(r, "type")),
        (Some("function" | "custom"), Some(Kind::String), _) => Ok(()),
        (Some("function" | "custom"), None, _) => Err(missing(r, "name")),
        (Some("function" | "custom"), Some(_), _) => Err(below(r, "name", "expected a string")),
        (Some("allowed_tools"), _, None) => Err(missing(r, "tools")),
        (Some("allowed_tools"), _, Some(mut tools)) => {
            if !matches!(mode, None | Some(Kind::String)) {
                return Err(below(r, "mode", "expected a string"));
            }
            tools.array(|r, _| typed(r))
        }
        (Some(_), ..) => Ok(()),
    }
}

/// An object that says by a `type` what it is.
fn typed(r: &mut Reader<'_>) -> Result<(), Invalid> {
    let mut typed = false;
    r.object::<Invalid>(|r, key| match key {
        "type" => {
            typed = true;
            r.string().map(drop)
        }
        "name" => r.optional_string().map(drop),
        _ => r.skip().map(drop),
    })?;
    if typed { Ok(()) } else { Err(missing(r, "type")) }
}
