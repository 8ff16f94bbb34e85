//! Which tool must be called, in what form to answer, and how much to think.

use crate::chat::request::{hint, missing, named};
use crate::json::{Invalid, Kind, Reader};
use crate::turn::{Output, Text, Thinking, ToolChoice, Turn};

/// `tool_choice`, with the tools' names as the client knows them.
pub(super) fn tool_choice<'a>(r: &mut Reader<'a>, hints: &mut Vec<String>) -> Result<ToolChoice<'a>, Invalid> {
    if r.kind()? == Kind::String {
        return Ok(ToolChoice::of_word(&r.string()?));
    }
    let (mut kind, mut name, mut mode): (Option<Text<'a>>, _, _) = (None, None, None);
    let mut tools: Option<Reader<'a>> = None;
    r.object::<Invalid>(|r, key| {
        match key {
            "type" => kind = Some(r.string()?),
            "name" => name = r.optional_string()?,
            "mode" => mode = r.optional_string()?,
            "tools" => {
                tools = Some(r.clone());
                r.skip()?;
            }
            _ => named(r, hints, "tool_choice.", key)?,
        }
        Ok(())
    })?;
    match (kind.as_deref(), name, tools) {
        (Some("function" | "custom"), Some(name), _) => Ok(ToolChoice::Named(name)),
        (Some("function" | "custom"), None, _) => Err(missing(r, "name")),
        (Some("allowed_tools"), _, Some(mut tools)) => allowed(&mut tools, mode.as_deref() == Some("required"), hints),
        (Some("allowed_tools"), _, None) => Err(missing(r, "tools")),
        (Some(other), ..) => Ok(ToolChoice::Other(other.to_owned())),
        (None, ..) => Err(missing(r, "type")),
    }
}

fn allowed<'a>(r: &mut Reader<'a>, required: bool, hints: &mut Vec<String>) -> Result<ToolChoice<'a>, Invalid> {
    let (mut names, mut other) = (Vec::new(), None);
    r.array::<Invalid>(|r, _| {
        let (mut kind, mut name): (Text<'a>, _) = (Text::default(), None);
        r.object::<Invalid>(|r, key| {
            match key {
                "type" => kind = r.string()?,
                "name" => name = r.optional_string()?,
                _ => named(r, hints, "tool_choice.tools[].", key)?,
            }
            Ok(())
        })?;
        match (kind.as_ref(), name) {
            ("function" | "custom", Some(name)) => names.push(name),
            ("function" | "custom", None) => return Err(missing(r, "name")),
            (kind, _) => other = Some(format!("allowed_tools with {kind}")),
        }
        Ok(())
    })?;
    Ok(other.map_or(ToolChoice::Allowed { required, names }, ToolChoice::Other))
}

/// `text`: the form of the answer and how many words.
pub(super) fn text<'a>(r: &mut Reader<'a>, turn: &mut Turn<'a>) -> Result<(), Invalid> {
    r.object(|r, key| {
        if r.null()? {
            return Ok(());
        }
        match key {
            "format" => turn.output = format(r, &mut turn.hints)?,
            "verbosity" => turn.verbosity = Some(r.string()?),
            _ => named(r, &mut turn.hints, "text.", key)?,
        }
        Ok(())
    })
}

fn format<'a>(r: &mut Reader<'a>, hints: &mut Vec<String>) -> Result<Output<'a>, Invalid> {
    let mut kind: Option<Text<'a>> = None;
    let (mut name, mut schema, mut strict) = (None, None, None);
    r.object::<Invalid>(|r, key| {
        match key {
            "type" => kind = Some(r.string()?),
            "name" => name = r.optional_string()?,
            "schema" if r.kind()? == Kind::Object => schema = Some(r.raw()?),
            "strict" if r.kind()? == Kind::Bool => strict = Some(r.bool()?),
            _ => named(r, hints, "text.format.", key)?,
        }
        Ok(())
    })?;
    match (kind.as_deref(), schema) {
        (Some("text"), _) => Ok(Output::Text),
        (Some("json_object"), _) => Ok(Output::Json),
        (Some("json_schema"), Some(schema)) => Ok(Output::Schema { name, schema, strict }),
        (Some("json_schema"), None) => Err(missing(r, "schema")),
        (Some(other), _) => Err(r.fail(format!("an answer in the form `{other}` cannot be carried"))),
        (None, _) => Err(missing(r, "type")),
    }
}

/// `reasoning`. Its summary is not asked for elsewhere: what thinking there is, is always shown.
pub(super) fn reasoning<'a>(r: &mut Reader<'a>, turn: &mut Turn<'a>) -> Result<(), Invalid> {
    r.object(|r, key| {
        if r.null()? {
            return Ok(());
        }
        match key {
            "effort" => {
                let effort = r.string()?;
                if effort == "none" {
                    turn.reasoning.mode = Some(Thinking::Off);
                } else {
                    turn.reasoning.effort = Some(effort);
                }
            }
            "summary" | "generate_summary" => {
                r.string()?;
            }
            "context" | "mode" => {
                let word = r.string()?;
                if word != "auto" && word != "standard" {
                    hint(&mut turn.hints, &format!("reasoning.{key}"));
                }
            }
            _ => named(r, &mut turn.hints, "reasoning.", key)?,
        }
        Ok(())
    })
}
