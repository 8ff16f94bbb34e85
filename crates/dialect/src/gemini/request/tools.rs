//! The tools of a request, which of them must be called, and the schemas that are rewritten for other dialects.

use super::fields::{self, CALLING, CONFIG, DECLARATION, Hints, REQUEST, TOOL, TOOL_CONFIG, list, missing};
use super::results::number;
use crate::gemini::schema::{Form, to_json_schema};
use crate::json::{Invalid, Kind, Reader};
use crate::turn::{Tool, ToolChoice, ToolKind, Turn};
use std::collections::BTreeMap;

type Made = BTreeMap<usize, Box<str>>;

/// The schemas of a body that other dialects want in other words, by where they begin. What cannot be read has none: the
/// decoding that follows tells why.
pub(super) fn made(body: &[u8]) -> Made {
    let mut made = Made::new();
    if let Ok(mut r) = Reader::new(body) {
        // An error is met again, and told, by the decoding.
        let _told_later = rewritten(&mut r, &mut made);
    }
    made
}

fn rewritten(r: &mut Reader<'_>, made: &mut Made) -> Result<(), Invalid> {
    let mut take = |r: &mut Reader<'_>, form: Form| {
        r.kind()?;
        let start = r.position();
        if let Some(text) = to_json_schema(r.raw()?, form) {
            made.insert(start, text.into_boxed_str());
        }
        Ok::<(), Invalid>(())
    };
    // One level down for `generateContentRequest`, and no further.
    let mut inner = None;
    let mut each = |r: &mut Reader<'_>, key: &str| match key {
        "tools" => list(r, |r, _| {
            fields::object(r, TOOL, |r, key| match key {
                "functionDeclarations" => list(r, |r, _| {
                    fields::object(r, DECLARATION, |r, key| match key {
                        "parameters" => take(r, Form::OpenApi),
                        "parametersJsonSchema" => take(r, Form::Json),
                        _ => r.skip().map(drop),
                    })
                }),
                _ => r.skip().map(drop),
            })
        }),
        "generationConfig" => fields::object(r, CONFIG, |r, key| match key {
            "responseSchema" => take(r, Form::OpenApi),
            "responseJsonSchema" => take(r, Form::Json),
            _ => r.skip().map(drop),
        }),
        _ => r.skip().map(drop),
    };
    fields::object(r, REQUEST, |r, key| {
        if key == "generateContentRequest" {
            inner = Some(r.clone());
            return r.skip().map(drop);
        }
        each(r, key)
    })?;
    match inner {
        Some(mut r) => fields::object(&mut r, REQUEST, each),
        None => Ok(()),
    }
}

/// The schema at hand, in the words of JSON Schema.
pub(super) fn schema<'a>(r: &mut Reader<'a>, made: &'a Made) -> Result<&'a str, Invalid> {
    r.kind()?;
    let start = r.position();
    let raw = r.raw()?;
    Ok(made.get(&start).map_or(raw, |made| made))
}

/// Reads `tools`.
pub(super) fn tools<'a>(
    r: &mut Reader<'a>,
    turn: &mut Turn<'a>,
    made: &'a Made,
    hints: &mut Hints,
) -> Result<(), Invalid> {
    list(r, |r, index| {
        let index = number(index);
        fields::object(r, TOOL, |r, key| {
            if key != "functionDeclarations" {
                // An empty object switches such a tool on.
                r.skip()?;
                turn.tools.push(Tool { index, kind: ToolKind::Hosted(key.to_owned()) });
                return Ok(());
            }
            list(r, |r, _| {
                let kind = function(r, made, hints)?;
                turn.tools.push(Tool { index, kind });
                Ok(())
            })
        })
    })
}

fn function<'a>(r: &mut Reader<'a>, made: &'a Made, hints: &mut Hints) -> Result<ToolKind<'a>, Invalid> {
    let (mut name, mut description, mut open_api, mut json) = (None, None, None, None);
    fields::object(r, DECLARATION, |r, key| {
        match key {
            "name" => name = Some(r.string()?),
            "description" => description = Some(r.string()?),
            "parameters" => open_api = Some(schema(r, made)?),
            "parametersJsonSchema" => json = Some(schema(r, made)?),
            other => hints.skip(r, "tools[].functionDeclarations[].", other)?,
        }
        Ok(())
    })?;
    let Some(name) = name else { return Err(missing(r, "name")) };
    Ok(ToolKind::Function { name, description, schema: json.or(open_api), strict: None })
}

/// Reads `toolConfig`.
pub(super) fn tool_config<'a>(r: &mut Reader<'a>, turn: &mut Turn<'a>, hints: &mut Hints) -> Result<(), Invalid> {
    fields::object(r, TOOL_CONFIG, |r, key| match key {
        "functionCallingConfig" => calling(r, turn, hints),
        other => hints.skip(r, "toolConfig.", other),
    })
}

fn calling<'a>(r: &mut Reader<'a>, turn: &mut Turn<'a>, hints: &mut Hints) -> Result<(), Invalid> {
    let place = "toolConfig.functionCallingConfig.";
    let (mut mode, mut names) = (None, Vec::new());
    fields::object(r, CALLING, |r, key| {
        match key {
            "mode" => mode = Some(r.string()?),
            "allowedFunctionNames" => r.array::<Invalid>(|r, _| {
                names.push(r.string()?);
                Ok(())
            })?,
            other => hints.skip(r, place, other)?,
        }
        Ok(())
    })?;
    let mode = mode.as_deref().map(str::to_ascii_uppercase);
    turn.tool_choice = match mode.as_deref() {
        None | Some("MODE_UNSPECIFIED" | "") => None,
        Some("AUTO") => {
            // They count only where a call is asked for.
            if !names.is_empty() {
                hints.name("toolConfig.functionCallingConfig.allowedFunctionNames");
            }
            Some(ToolChoice::Auto)
        }
        Some("NONE") => Some(ToolChoice::None),
        Some("ANY") => Some(match (names.len(), names.pop()) {
            (1, Some(only)) => ToolChoice::Named(only),
            (_, Some(last)) => {
                names.push(last);
                ToolChoice::Allowed { required: true, names }
            }
            (_, None) => ToolChoice::Any,
        }),
        // The model decides, and its calls are held to their schemas.
        Some("VALIDATED") => {
            hints.name("toolConfig.functionCallingConfig.mode");
            Some(if names.is_empty() { ToolChoice::Auto } else { ToolChoice::Allowed { required: false, names } })
        }
        Some(other) => Some(ToolChoice::Other(other.to_owned())),
    };
    Ok(())
}

/// The kind of a value that must be an object or a boolean to be a schema.
pub(super) fn is_schema(raw: &str) -> bool {
    matches!(Reader::over(raw).kind(), Ok(Kind::Object | Kind::Bool))
}
