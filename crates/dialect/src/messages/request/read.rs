//! The one pass over every Messages request: is it of the form the protocol asks for, and what must the gateway know of
//! it. It builds no tree and copies no text but the model's name. Unknown fields and unknown block types pass.

use crate::json::{Invalid, Kind, Reader, Span};
use crate::request::{BAD_NAME, ClientRequest, Made, Operation, Spans, StreamForm, is_name};
use bytes::Bytes;
use turnkeep_base::Dialect;

/// Checks a request body and notes what the gateway needs of it. A duplicate of a key that the gateway reads is an
/// error, because the upstream could read the other one.
pub fn read(operation: Operation, body: Bytes) -> Result<ClientRequest, Invalid> {
    let mut seen = Seen::default();
    let mut r = Reader::new(&body)?;
    r.object::<Invalid>(|r, key| field(r, key, operation, &mut seen))?;
    r.end()?;
    let Some((model, span)) = seen.model else { return Err(missing("", "model")) };
    if !seen.messages {
        return Err(missing("", "messages"));
    }
    if operation == Operation::Generate && seen.max_output.is_none() {
        return Err(missing("", "max_tokens"));
    }
    Ok(ClientRequest {
        dialect: Dialect::Messages,
        operation,
        body,
        model,
        stream: seen.stream.unwrap_or(false),
        max_output: seen.max_output,
        choices: 1,
        usage_wanted: false,
        form: StreamForm::Events,
        made: Made::new(),
        spans: Spans { model: span, stream_options: None, include_usage: None },
    })
}

#[derive(Default)]
struct Seen {
    model: Option<(String, Span)>,
    messages: bool,
    stream: Option<bool>,
    stream_seen: bool,
    max_output: Option<u64>,
    max_seen: bool,
}

fn missing(path: &str, name: &str) -> Invalid {
    let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    Invalid { path, message: "this field is required".into(), at: 0 }
}

fn once(r: &Reader<'_>, key: &str, again: bool) -> Result<(), Invalid> {
    if !again {
        return Ok(());
    }
    let message = format!("duplicate `{key}`: the field may be given only once");
    Err(Invalid { path: String::new(), message, at: r.position() })
}

fn field(r: &mut Reader<'_>, key: &str, operation: Operation, seen: &mut Seen) -> Result<(), Invalid> {
    match key {
        "model" => {
            once(r, key, seen.model.is_some())?;
            r.kind()?;
            let start = r.position();
            let model = r.string()?.into_owned();
            if model.is_empty() {
                return Err(r.fail("expected the name of a model, found an empty string"));
            }
            if !is_name(&model) {
                return Err(r.fail(BAD_NAME));
            }
            seen.model = Some((model, start..r.position()));
        }
        "messages" => {
            once(r, key, seen.messages)?;
            seen.messages = true;
            let mut any = false;
            r.array::<Invalid>(|r, _| {
                any = true;
                message(r)
            })?;
            if !any {
                return Err(r.fail("expected at least one message, found none"));
            }
        }
        "max_tokens" => {
            once(r, key, seen.max_seen)?;
            seen.max_seen = true;
            if operation == Operation::CountTokens && r.null()? {
                return Ok(());
            }
            seen.max_output = Some(r.u64()?);
        }
        "stream" => {
            once(r, key, seen.stream_seen)?;
            seen.stream_seen = true;
            if !r.null()? {
                seen.stream = Some(r.bool()?);
            }
        }
        "system" => match r.kind()? {
            Kind::String | Kind::Null => r.skip().map(drop)?,
            Kind::Array => r.array::<Invalid>(|r, _| block(r))?,
            Kind::Object | Kind::Number | Kind::Bool => {
                return Err(r.fail("expected a string or an array of text blocks"));
            }
        },
        "tools" => {
            if !r.null()? {
                r.array::<Invalid>(|r, _| tool(r))?;
            }
        }
        "temperature" | "top_p" | "top_k" => {
            if !r.null()? {
                r.number()?;
            }
        }
        "stop_sequences" => {
            if !r.null()? {
                r.array::<Invalid>(|r, _| text(r))?;
            }
        }
        "output_config" | "metadata" => {
            if !r.null()? {
                object(r)?;
            }
        }
        "thinking" | "tool_choice" => {
            if !r.null()? {
                typed(r)?;
            }
        }
        _ => r.skip().map(drop)?,
    }
    Ok(())
}

/// A string, not unescaped. The typed call in the other arm words the error.
fn text(r: &mut Reader<'_>) -> Result<(), Invalid> {
    if r.kind()? == Kind::String { r.skip().map(drop) } else { r.string().map(drop) }
}

fn object(r: &mut Reader<'_>) -> Result<(), Invalid> {
    if r.kind()? == Kind::Object { r.skip().map(drop) } else { r.object(|_, _| Ok(())) }
}

/// An object that says by a `type` what it is; the rest is left where it is.
fn typed(r: &mut Reader<'_>) -> Result<(), Invalid> {
    let mut typed = false;
    r.object::<Invalid>(|r, key| {
        if key == "type" {
            typed = true;
            return text(r);
        }
        r.skip().map(drop)
    })?;
    if typed { Ok(()) } else { Err(missing_here(r, "type")) }
}

fn message(r: &mut Reader<'_>) -> Result<(), Invalid> {
    let (mut role, mut content) = (false, false);
    r.object::<Invalid>(|r, key| {
        match key {
            "role" => {
                role = true;
                let said = r.string()?;
                if !matches!(&*said, "user" | "assistant" | "system") {
                    return Err(r.fail(format!("expected `user`, `assistant` or `system`, found `{}`", brief(&said))));
                }
            }
            "content" => {
                content = true;
                match r.kind()? {
                    Kind::String => r.skip().map(drop)?,
                    Kind::Array => r.array::<Invalid>(|r, _| block(r))?,
                    Kind::Object | Kind::Number | Kind::Bool | Kind::Null => {
                        return Err(r.fail("expected a string or an array of content blocks"));
                    }
                }
            }
            _ => r.skip().map(drop)?,
        }
        Ok(())
    })?;
    match (role, content) {
        (true, true) => Ok(()),
        (false, _) => Err(missing_here(r, "role")),
        (true, false) => Err(missing_here(r, "content")),
    }
}

fn missing_here(r: &Reader<'_>, name: &str) -> Invalid {
    Invalid { at: r.position(), ..missing(&r.path(), name) }
}

fn brief(text: &str) -> &str {
    let end = (0..=text.len().min(40)).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    &text[..end]
}

/// The kinds of the fields that some block type needs.
#[derive(Default)]
struct Shape {
    text: Option<Kind>,
    id: Option<Kind>,
    name: Option<Kind>,
    input: Option<Kind>,
    tool_use_id: Option<Kind>,
    source: Option<Kind>,
    thinking: Option<Kind>,
    data: Option<Kind>,
    content: Option<Kind>,
    /// An item of `content` that is no typed object.
    odd_item: Option<usize>,
}

/// A content block. `type` may stand anywhere in it, so the needed fields are looked at after the whole is read.
fn block(r: &mut Reader<'_>) -> Result<(), Invalid> {
    let mut kind = None;
    let mut shape = Shape::default();
    r.object::<Invalid>(|r, key| {
        let slot = match key {
            "type" => {
                kind = Some(r.string()?);
                return Ok(());
            }
            "text" => &mut shape.text,
            "id" => &mut shape.id,
            "name" => &mut shape.name,
            "input" => &mut shape.input,
            "tool_use_id" => &mut shape.tool_use_id,
            "source" => &mut shape.source,
            "thinking" => &mut shape.thinking,
            "data" => &mut shape.data,
            "content" => {
                let found = r.kind()?;
                shape.content = Some(found);
                return match found {
                    Kind::Array => r.array::<Invalid>(|r, index| item(r, index, &mut shape.odd_item)),
                    Kind::Object | Kind::String | Kind::Number | Kind::Bool | Kind::Null => r.skip().map(drop),
                };
            }
            _ => return r.skip().map(drop),
        };
        *slot = Some(r.kind()?);
        r.skip().map(drop)
    })?;
    let Some(kind) = kind else { return Err(missing_here(r, "type")) };
    check(r, &kind, &shape)
}

fn item(r: &mut Reader<'_>, index: usize, odd: &mut Option<usize>) -> Result<(), Invalid> {
    let mut typed = false;
    if r.kind()? == Kind::Object {
        let (mut is_text, mut text) = (false, None);
        r.object::<Invalid>(|r, key| {
            match key {
                "type" if r.kind()? == Kind::String => {
                    typed = true;
                    is_text = r.string()? == "text";
                    return Ok(());
                }
                "text" => text = Some(r.kind()?),
                _ => {}
            }
            r.skip().map(drop)
        })?;
        typed &= !is_text || text == Some(Kind::String);
    } else {
        r.skip()?;
    }
    if !typed {
        odd.get_or_insert(index);
    }
    Ok(())
}

fn check(r: &Reader<'_>, kind: &str, shape: &Shape) -> Result<(), Invalid> {
    let need = |name: &str, found: Option<Kind>, wanted: Kind| match found {
        Some(found) if found == wanted => Ok(()),
        Some(_) => Err(Invalid {
            path: format!("{}.{name}", r.path()),
            message: format!("a `{kind}` block needs {} here", words(wanted)),
            at: r.position(),
        }),
        None => Err(missing_here(r, name)),
    };
    match kind {
        "text" => need("text", shape.text, Kind::String),
        "image" => need("source", shape.source, Kind::Object),
        "tool_use" => {
            need("id", shape.id, Kind::String)?;
            need("name", shape.name, Kind::String)?;
            if shape.input.is_none() { Err(missing_here(r, "input")) } else { Ok(()) }
        }
        "tool_result" => {
            need("tool_use_id", shape.tool_use_id, Kind::String)?;
            match (shape.content, shape.odd_item) {
                (None | Some(Kind::String | Kind::Null), _) | (Some(Kind::Array), None) => Ok(()),
                (Some(Kind::Array), Some(odd)) => Err(Invalid {
                    path: format!("{}.content[{odd}]", r.path()),
                    message: "expected a content block, an object with a string `type` and what that type needs".into(),
                    at: r.position(),
                }),
                (Some(Kind::Object | Kind::Number | Kind::Bool), _) => Err(Invalid {
                    path: format!("{}.content", r.path()),
                    message: "expected a string or an array of content blocks".into(),
                    at: r.position(),
                }),
            }
        }
        "thinking" => need("thinking", shape.thinking, Kind::String),
        "redacted_thinking" => need("data", shape.data, Kind::String),
        _ => Ok(()),
    }
}

fn words(kind: Kind) -> &'static str {
    match kind {
        Kind::Object => "an object",
        Kind::Array => "an array",
        Kind::String => "a string",
        Kind::Number => "a number",
        Kind::Bool => "a boolean",
        Kind::Null => "null",
    }
}

/// A tool: the client's own need a name; the provider's own are known by their type.
fn tool(r: &mut Reader<'_>) -> Result<(), Invalid> {
    let (mut own, mut name) = (true, false);
    r.object::<Invalid>(|r, key| match key {
        "type" => {
            own = r.optional_string()?.is_none_or(|kind| kind == "custom");
            Ok(())
        }
        "name" => {
            name = true;
            text(r)
        }
        "description" => {
            if r.null()? {
                return Ok(());
            }
            text(r)
        }
        "input_schema" => {
            if r.null()? {
                return Ok(());
            }
            object(r)
        }
        _ => r.skip().map(drop),
    })?;
    if own && !name { Err(missing_here(r, "name")) } else { Ok(()) }
}
