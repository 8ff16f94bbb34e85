//! The tools of a Chat request, which of them must be called, and the form of the answer.

use super::decode::{hint, says_nothing};
use super::read::missing;
use crate::json::{Invalid, Kind, Reader};
use crate::turn::{Output, Text, Tool, ToolChoice, ToolKind, Turn};

pub(super) fn tools<'a>(r: &mut Reader<'a>, turn: &mut Turn<'a>) -> Result<(), Invalid> {
    let (list, hints) = (&mut turn.tools, &mut turn.hints);
    r.array(|r, at| {
        let mut kind: Option<Text<'a>> = None;
        let mut inner = None;
        r.object(|r, key| {
            match key {
                "type" => kind = Some(r.string()?),
                "function" if r.kind()? == Kind::Object => inner = Some(function(r, hints)?),
                "custom" => {
                    r.skip()?;
                }
                _ => named(r, hints, "tools[].", key)?,
            }
            Ok::<(), Invalid>(())
        })?;
        let kind = match (kind.as_deref(), inner) {
            (Some("function") | None, Some(function)) => function,
            (Some("function") | None, None) => return Err(missing(r, "function")),
            (Some(other), _) => ToolKind::Hosted(other.to_owned()),
        };
        list.push(Tool { index: at as u32, kind });
        Ok(())
    })
}

/// The old `functions`.
pub(super) fn functions<'a>(r: &mut Reader<'a>, turn: &mut Turn<'a>) -> Result<(), Invalid> {
    let (list, hints) = (&mut turn.tools, &mut turn.hints);
    r.array(|r, at| {
        list.push(Tool { index: at as u32, kind: function(r, hints)? });
        Ok(())
    })
}

fn function<'a>(r: &mut Reader<'a>, hints: &mut Vec<String>) -> Result<ToolKind<'a>, Invalid> {
    let (mut name, mut description, mut schema, mut strict) = (None, None, None, None);
    r.object(|r, key| {
        match key {
            "name" => name = Some(r.string()?),
            "description" => description = r.optional_string()?,
            "parameters" => {
                if !r.null()? {
                    if r.kind()? != Kind::Object {
                        return Err(r.fail("expected a JSON schema, which is an object"));
                    }
                    schema = Some(r.raw()?);
                }
            }
            "strict" => {
                if !r.null()? {
                    strict = Some(r.bool()?);
                }
            }
            _ => named(r, hints, "tools[].function.", key)?,
        }
        Ok(())
    })?;
    match name {
        Some(name) => Ok(ToolKind::Function { name, description, schema, strict }),
        None => Err(missing(r, "name")),
    }
}

/// Skips a field that has no canonical place, and names it.
pub(crate) fn named(r: &mut Reader<'_>, hints: &mut Vec<String>, place: &str, key: &str) -> Result<(), Invalid> {
    if !says_nothing(r.raw()?) {
        hint(hints, &format!("{place}{key}"));
    }
    Ok(())
}

pub(super) fn tool_choice<'a>(r: &mut Reader<'a>, hints: &mut Vec<String>) -> Result<ToolChoice<'a>, Invalid> {
    if r.kind()? == Kind::String {
        let word = r.string()?;
        return Ok(match word.as_ref() {
            "auto" => ToolChoice::Auto,
            "none" => ToolChoice::None,
            "required" => ToolChoice::Any,
            other => ToolChoice::Other(other.to_owned()),
        });
    }
    let (mut kind, mut name): (Option<Text<'a>>, _) = (None, None);
    r.object(|r, key| match key {
        "type" => {
            kind = Some(r.string()?);
            Ok(())
        }
        "function" => r.object(|r, key| {
            if key == "name" {
                name = Some(r.string()?);
                return Ok(());
            }
            named(r, hints, "tool_choice.function.", key)
        }),
        _ => named(r, hints, "tool_choice.", key),
    })?;
    match (kind.as_deref(), name) {
        (Some("function") | None, Some(name)) => Ok(ToolChoice::Named(name)),
        (Some("function") | None, None) => Err(missing(r, "function.name")),
        (Some(other), _) => Ok(ToolChoice::Other(other.to_owned())),
    }
}

/// The old `function_call`.
pub(super) fn legacy_choice<'a>(r: &mut Reader<'a>, hints: &mut Vec<String>) -> Result<ToolChoice<'a>, Invalid> {
    if r.kind()? == Kind::String {
        return tool_choice(r, hints);
    }
    let mut name = None;
    r.object(|r, key| {
        if key == "name" {
            name = Some(r.string()?);
            return Ok(());
        }
        named(r, hints, "function_call.", key)
    })?;
    name.map(ToolChoice::Named).ok_or_else(|| missing(r, "name"))
}

pub(super) fn response_format<'a>(r: &mut Reader<'a>, hints: &mut Vec<String>) -> Result<Output<'a>, Invalid> {
    let mut kind: Option<Text<'a>> = None;
    let (mut name, mut schema, mut strict) = (None, None, None);
    r.object(|r, key| match key {
        "type" => {
            kind = Some(r.string()?);
            Ok(())
        }
        "json_schema" => r.object(|r, key| {
            match key {
                "name" => name = r.optional_string()?,
                "schema" => {
                    if r.kind()? != Kind::Object {
                        return Err(r.fail("expected a JSON schema, which is an object"));
                    }
                    schema = Some(r.raw()?);
                }
                "strict" => {
                    if !r.null()? {
                        strict = Some(r.bool()?);
                    }
                }
                _ => named(r, hints, "response_format.json_schema.", key)?,
            }
            Ok(())
        }),
        _ => named(r, hints, "response_format.", key),
    })?;
    match (kind.as_deref(), schema) {
        (Some("text"), _) => Ok(Output::Text),
        (Some("json_object"), _) => Ok(Output::Json),
        (Some("json_schema"), Some(schema)) => Ok(Output::Schema { name, schema, strict }),
        (Some("json_schema"), None) => Err(missing(r, "json_schema.schema")),
        (Some(other), _) => Err(r.fail(format!("an answer in the form `{other}` cannot be carried"))),
        (None, _) => Err(missing(r, "type")),
    }
}
