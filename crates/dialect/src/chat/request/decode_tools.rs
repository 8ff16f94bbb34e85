//! The tools of a Chat request, which of them must be called, and the form of the answer.

use super::decode::{hint, says_nothing};
use super::missing;
use crate::json::{Invalid, Kind, Object, Reader};
use crate::turn::{Output, Text, Tool, ToolChoice, ToolKind, Turn};

pub(super) fn tools<'a>(r: &mut Reader<'a>, turn: &mut Turn<'a>) -> Result<(), Invalid> {
    let (list, hints) = (&mut turn.tools, &mut turn.hints);
    r.array(|r, at| {
        let mut kind: Option<Text<'a>> = None;
        let (mut inner, mut free) = (None, None);
        r.object(|r, key| {
            match key {
                "type" => kind = Some(r.string()?),
                "function" if r.kind()? == Kind::Object => inner = Some(function(r, hints)?),
                "custom" if r.kind()? == Kind::Object => free = Some(custom(r, hints)?),
                "function" | "custom" => {
                    r.skip()?;
                }
                _ => named(r, hints, "tools[].", key)?,
            }
            Ok::<(), Invalid>(())
        })?;
        let kind = match (kind.as_deref(), inner) {
            (Some("function") | None, Some(function)) => function,
            (Some("function") | None, None) => return Err(missing(r, "function")),
            (Some("custom"), _) => free.ok_or_else(|| missing(r, "custom"))?,
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

/// A tool that takes free text.
fn custom<'a>(r: &mut Reader<'a>, hints: &mut Vec<String>) -> Result<ToolKind<'a>, Invalid> {
    let (mut name, mut description, mut form) = (None, None, None);
    r.object(|r, key| {
        match key {
            "name" => name = Some(r.string()?),
            "description" => description = r.optional_string()?,
            "format" if r.kind()? == Kind::Object => form = grammar(r, hints)?,
            _ => named(r, hints, "tools[].custom.", key)?,
        }
        Ok::<(), Invalid>(())
    })?;
    match name {
        Some(name) => Ok(ToolKind::Custom { name, description, format: form }),
        None => Err(missing(r, "name")),
    }
}

/// The form of a free text in Responses' flat form; `None` where any text will do.
fn grammar<'a>(r: &mut Reader<'a>, hints: &mut Vec<String>) -> Result<Option<Text<'a>>, Invalid> {
    let (mut kind, mut syntax, mut definition): (Option<Text<'a>>, Option<Text<'a>>, Option<Text<'a>>) =
        (None, None, None);
    r.object(|r, key| match key {
        "type" => {
            kind = Some(r.string()?);
            Ok(())
        }
        "grammar" if r.kind()? == Kind::Object => r.object(|r, key| {
            match key {
                "syntax" => syntax = Some(r.string()?),
                "definition" => definition = Some(r.string()?),
                _ => named(r, hints, "tools[].custom.format.grammar.", key)?,
            }
            Ok(())
        }),
        _ => named(r, hints, "tools[].custom.format.", key),
    })?;
    match (kind.as_deref(), definition) {
        (Some("text"), _) => Ok(None),
        (Some("grammar"), Some(definition)) => {
            let mut out = Vec::with_capacity(definition.len() + 64);
            {
                let mut format = Object::open(&mut out);
                format.string("type", "grammar");
                format.string("definition", &definition);
                format.string("syntax", syntax.as_deref().unwrap_or("lark"));
            }
            Ok(String::from_utf8(out).ok().map(Text::from))
        }
        (Some("grammar"), None) => Err(missing(r, "grammar.definition")),
        (Some(_) | None, _) => {
            hint(hints, "tools[].custom.format");
            Ok(None)
        }
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
        return Ok(ToolChoice::of_word(&r.string()?));
    }
    let mut allowed = None;
    let (kind, name) = pointed(r, hints, |r, hints, key| {
        if key != "allowed_tools" || r.kind()? != Kind::Object {
            return named(r, hints, "tool_choice.", key);
        }
        allowed = Some(allowed_tools(r, hints)?);
        Ok(())
    })?;
    match (kind.as_deref(), name) {
        (Some("function" | "custom") | None, Some(name)) => Ok(ToolChoice::Named(name)),
        (Some("function") | None, None) => Err(missing(r, "function.name")),
        (Some("custom"), None) => Err(missing(r, "custom.name")),
        (Some("allowed_tools"), _) => allowed.ok_or_else(|| missing(r, "allowed_tools")),
        (Some(other), _) => Ok(ToolChoice::Other(other.to_owned())),
    }
}

/// An object that points to a tool: its type and the name. Other fields are left to the caller.
fn pointed<'a>(
    r: &mut Reader<'a>,
    hints: &mut Vec<String>,
    mut other: impl FnMut(&mut Reader<'a>, &mut Vec<String>, &str) -> Result<(), Invalid>,
) -> Result<(Option<Text<'a>>, Option<Text<'a>>), Invalid> {
    let (mut kind, mut name): (Option<Text<'a>>, _) = (None, None);
    r.object(|r, key| match key {
        "type" => {
            kind = Some(r.string()?);
            Ok(())
        }
        "function" | "custom" => r.object(|r, inner| {
            if inner == "name" {
                name = Some(r.string()?);
                return Ok(());
            }
            named(r, hints, &format!("tool_choice.{key}."), inner)
        }),
        _ => other(r, hints, key),
    })?;
    Ok((kind, name))
}

fn allowed_tools<'a>(r: &mut Reader<'a>, hints: &mut Vec<String>) -> Result<ToolChoice<'a>, Invalid> {
    let (mut mode, mut names): (Option<Text<'a>>, Option<Vec<Text<'a>>>) = (None, None);
    r.object(|r, key| match key {
        "mode" => {
            mode = Some(r.string()?);
            Ok(())
        }
        "tools" => {
            let mut list = Vec::new();
            r.array(|r, _| {
                let (kind, name) = pointed(r, hints, |r, hints, key| named(r, hints, "tool_choice.tools[].", key))?;
                match (kind.as_deref(), name) {
                    (Some("function" | "custom") | None, Some(name)) => list.push(name),
                    (Some(_) | None, _) => return Err(r.fail("expected a function or a custom tool with its name")),
                }
                Ok::<(), Invalid>(())
            })?;
            names = Some(list);
            Ok(())
        }
        _ => named(r, hints, "tool_choice.allowed_tools.", key),
    })?;
    match (mode.as_deref(), names) {
        (_, None) => Err(missing(r, "tools")),
        (Some("auto") | None, Some(names)) => Ok(ToolChoice::Allowed { required: false, names }),
        (Some("required"), Some(names)) => Ok(ToolChoice::Allowed { required: true, names }),
        (Some(_), Some(_)) => Err(r.fail("expected the mode `auto` or `required`")),
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
