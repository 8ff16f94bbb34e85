//! The check of one item of `input`. Its type may stand anywhere in it, and other types use the same names for other
//! things, so what an item holds is looked at by kind on the way and judged once the type is known.

use super::read_tool::tool;
use crate::chat::request::{below, missing};
use crate::json::{Invalid, Kind, Reader};
use std::borrow::Cow;

/// Fields of items by whose kind an item is judged.
#[derive(Default)]
struct Shape<'a> {
    kind: Option<Cow<'a, str>>,
    role: Option<Cow<'a, str>>,
    role_kind: Option<Kind>,
    id: Option<Kind>,
    call_id: Option<Kind>,
    name: Option<Kind>,
    namespace: Option<Kind>,
    arguments: Option<Kind>,
    input: Option<Kind>,
    encrypted: Option<Kind>,
    content: List,
    output: List,
    summary: List,
    tools: Option<Reader<'a>>,
}

/// A list of parts, and what is wrong with the first wrong one.
#[derive(Default)]
struct List {
    kind: Option<Kind>,
    wrong: Option<Invalid>,
}

/// Checks one item.
pub(super) fn item(r: &mut Reader<'_>) -> Result<(), Invalid> {
    let mut shape = Shape::default();
    r.object(|r, key| field(r, key, &mut shape))?;
    check(r, shape)
}

fn field<'a>(r: &mut Reader<'a>, key: &str, shape: &mut Shape<'a>) -> Result<(), Invalid> {
    let slot = match key {
        "type" => {
            shape.kind = r.optional_string()?;
            return Ok(());
        }
        "role" => {
            shape.role_kind = Some(r.kind()?);
            if shape.role_kind == Some(Kind::String) {
                shape.role = Some(r.string()?);
                return Ok(());
            }
            return r.skip().map(drop);
        }
        "content" => return list(r, &mut shape.content),
        "output" => return list(r, &mut shape.output),
        "summary" => return list(r, &mut shape.summary),
        "tools" => {
            shape.tools = Some(r.clone());
            return r.skip().map(drop);
        }
        "id" => &mut shape.id,
        "call_id" => &mut shape.call_id,
        "name" => &mut shape.name,
        "namespace" => &mut shape.namespace,
        "arguments" => &mut shape.arguments,
        "input" => &mut shape.input,
        "encrypted_content" => &mut shape.encrypted,
        _ => return r.skip().map(drop),
    };
    *slot = Some(r.kind()?);
    r.skip().map(drop)
}

fn check(r: &Reader<'_>, shape: Shape<'_>) -> Result<(), Invalid> {
    match shape.kind.as_deref() {
        // The one kind without a role whose type may be left out.
        None if shape.role_kind.is_none() && shape.id == Some(Kind::String) => Ok(()),
        None | Some("message") => {
            role(r, &shape)?;
            content(r, "content", shape.content)
        }
        Some("function_call") => {
            text(r, "call_id", shape.call_id)?;
            text(r, "name", shape.name)?;
            optional_text(r, "namespace", shape.namespace)?;
            text(r, "arguments", shape.arguments)
        }
        Some("custom_tool_call") => {
            text(r, "call_id", shape.call_id)?;
            text(r, "name", shape.name)?;
            optional_text(r, "namespace", shape.namespace)?;
            text(r, "input", shape.input)
        }
        Some("function_call_output" | "custom_tool_call_output") => {
            text(r, "call_id", shape.call_id)?;
            content(r, "output", shape.output)
        }
        Some("reasoning") => {
            optional_text(r, "encrypted_content", shape.encrypted)?;
            optional_list(r, "summary", shape.summary)?;
            optional_list(r, "content", shape.content)
        }
        Some("item_reference") => text(r, "id", shape.id),
        Some("additional_tools") => match shape.tools {
            Some(mut tools) => tools.array(|r, _| tool(r)),
            None => Err(missing(r, "tools")),
        },
        Some(_) => Ok(()),
    }
}

fn role(r: &Reader<'_>, shape: &Shape<'_>) -> Result<(), Invalid> {
    match (shape.role.as_deref(), shape.role_kind) {
        (Some("user" | "assistant" | "system" | "developer"), _) => Ok(()),
        (Some(other), _) => {
            let brief: String = other.chars().take(40).collect();
            let message = format!("unknown role `{brief}`; expected user, assistant, system or developer");
            Err(below(r, "role", &message))
        }
        (None, None) => Err(missing(r, "role")),
        (None, Some(_)) => Err(below(r, "role", "expected a string")),
    }
}

fn text(r: &Reader<'_>, field: &str, found: Option<Kind>) -> Result<(), Invalid> {
    match found {
        Some(Kind::String) => Ok(()),
        None => Err(missing(r, field)),
        Some(Kind::Object | Kind::Array | Kind::Number | Kind::Bool | Kind::Null) => {
            Err(below(r, field, "expected a string"))
        }
    }
}

fn optional_text(r: &Reader<'_>, field: &str, found: Option<Kind>) -> Result<(), Invalid> {
    match found {
        None | Some(Kind::Null) => Ok(()),
        Some(_) => text(r, field, found),
    }
}

/// A string or parts.
fn content(r: &Reader<'_>, field: &str, list: List) -> Result<(), Invalid> {
    match (list.kind, list.wrong) {
        (_, Some(wrong)) => Err(wrong),
        (Some(Kind::String | Kind::Array), None) => Ok(()),
        (None, None) => Err(missing(r, field)),
        (Some(Kind::Object | Kind::Number | Kind::Bool | Kind::Null), None) => {
            Err(below(r, field, "expected a string or an array of parts"))
        }
    }
}

fn optional_list(r: &Reader<'_>, field: &str, list: List) -> Result<(), Invalid> {
    match (list.kind, list.wrong) {
        (_, Some(wrong)) => Err(wrong),
        (None | Some(Kind::Array | Kind::Null), None) => Ok(()),
        (Some(Kind::Object | Kind::String | Kind::Number | Kind::Bool), None) => {
            Err(below(r, field, "expected an array of parts"))
        }
    }
}

fn list(r: &mut Reader<'_>, list: &mut List) -> Result<(), Invalid> {
    let kind = r.kind()?;
    list.kind = Some(kind);
    if kind != Kind::Array {
        return r.skip().map(drop);
    }
    r.array(|r, _| {
        let wrong = part(r)?;
        list.wrong = list.wrong.take().or(wrong);
        Ok(())
    })
}

/// What is wrong with a part; unknown types pass.
fn part(r: &mut Reader<'_>) -> Result<Option<Invalid>, Invalid> {
    if r.kind()? != Kind::Object {
        let wrong = r.fail("expected an object with a `type`");
        r.skip()?;
        return Ok(Some(wrong));
    }
    let (mut kind, mut kind_kind) = (None, None);
    let (mut words, mut refusal, mut url, mut file_id) = (None, None, None, None);
    let (mut data, mut file_url, mut filename) = (None, None, None);
    r.object::<Invalid>(|r, key| {
        let slot = match key {
            "type" => {
                let found = r.kind()?;
                kind_kind = Some(found);
                if found == Kind::String {
                    kind = Some(r.string()?);
                    return Ok(());
                }
                return r.skip().map(drop);
            }
            "text" => &mut words,
            "refusal" => &mut refusal,
            "image_url" => &mut url,
            "file_id" => &mut file_id,
            "file_data" => &mut data,
            "file_url" => &mut file_url,
            "filename" => &mut filename,
            _ => return r.skip().map(drop),
        };
        *slot = Some(r.kind()?);
        r.skip().map(drop)
    })?;
    let one_of = |fields: &[(&str, Option<Kind>)], all: &str| {
        for (field, found) in fields {
            optional_text(r, field, *found)?;
        }
        let any = fields.iter().any(|(_, found)| *found == Some(Kind::String));
        if any { Ok(()) } else { Err(r.fail(format!("expected one of {all} in it"))) }
    };
    let judged = match kind.as_deref() {
        None => match kind_kind {
            None => Err(missing(r, "type")),
            Some(_) => Err(below(r, "type", "expected a string")),
        },
        Some("input_text" | "output_text" | "text" | "summary_text" | "reasoning_text") => text(r, "text", words),
        Some("refusal") => text(r, "refusal", refusal),
        Some("input_image") => one_of(&[("image_url", url), ("file_id", file_id)], "`image_url` and `file_id`"),
        Some("input_file") => optional_text(r, "filename", filename).and_then(|()| {
            let fields = [("file_data", data), ("file_url", file_url), ("file_id", file_id)];
            one_of(&fields, "`file_data`, `file_url` and `file_id`")
        }),
        Some(_) => Ok(()),
    };
    Ok(judged.err())
}
