//! One pass over a Chat request that checks its form and keeps what the gateway must know. It builds nothing: every turn
//! goes through here, most of them never further.

use crate::chat::fields::{Once, missing, model, optional_bool, optional_u64, stream_options};
use crate::json::{Invalid, Kind, Reader};
use crate::request::{ClientRequest, Made, Operation, Spans, StreamForm};
use bytes::Bytes;
use turnkeep_base::Dialect;

/// Reads and checks a Chat request.
pub fn read(body: Bytes) -> Result<ClientRequest, Invalid> {
    let mut found = Found::default();
    let mut reader = Reader::new(&body)?;
    reader.object(|r, key| top(r, key, &mut found))?;
    reader.end()?;
    for (field, is_there) in [("model", found.model.is_some()), ("messages", found.messages)] {
        if !is_there {
            return Err(Invalid { at: 0, ..missing(&reader, field) });
        }
    }
    Ok(ClientRequest {
        dialect: Dialect::Chat,
        operation: Operation::Generate,
        model: found.model.unwrap_or_default(),
        stream: found.stream,
        max_output: found.max_completion_tokens.or(found.max_tokens),
        choices: found.choices.unwrap_or(1),
        usage_wanted: found.stream && found.usage_wanted,
        form: StreamForm::Events,
        made: Made::new(),
        spans: found.spans,
        body,
    })
}

#[derive(Default)]
struct Found {
    once: Once,
    model: Option<String>,
    messages: bool,
    stream: bool,
    usage_wanted: bool,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    choices: Option<u64>,
    spans: Spans,
}

fn top(r: &mut Reader<'_>, key: &str, found: &mut Found) -> Result<(), Invalid> {
    match key {
        "model" => {
            found.once.check(r, 0, key)?;
            let (name, span) = model(r)?;
            found.spans.model = span;
            found.model = Some(name);
        }
        "messages" => {
            found.once.check(r, 1, key)?;
            let mut any = false;
            r.array(|r, _| {
                any = true;
                message(r)
            })?;
            if !any {
                return Err(r.fail("expected at least one message"));
            }
            found.messages = true;
        }
        "stream" => {
            found.once.check(r, 2, key)?;
            found.stream = optional_bool(r)?;
        }
        "stream_options" => {
            found.once.check(r, 3, key)?;
            found.usage_wanted = stream_options(r, &mut found.once, 7, &mut found.spans)?;
        }
        "max_tokens" => {
            found.once.check(r, 4, key)?;
            found.max_tokens = optional_u64(r)?;
        }
        "max_completion_tokens" => {
            found.once.check(r, 5, key)?;
            found.max_completion_tokens = optional_u64(r)?;
        }
        "n" => {
            found.once.check(r, 6, key)?;
            found.choices = optional_u64(r)?;
            if found.choices == Some(0) {
                return Err(r.fail("expected a whole number of at least 1, found 0"));
            }
        }
        "tools" => {
            if !r.null()? {
                r.array(|r, _| tool(r))?;
            }
        }
        "tool_choice" => match r.kind()? {
            Kind::String | Kind::Null => {
                r.skip()?;
            }
            Kind::Object => typed(r)?,
            Kind::Array | Kind::Number | Kind::Bool => {
                return Err(r.fail("expected a word (auto, none, required) or an object that names a tool"));
            }
        },
        "temperature" | "top_p" | "frequency_penalty" | "presence_penalty" | "seed" | "top_logprobs" => {
            if !r.null()? {
                r.number()?;
            }
        }
        "parallel_tool_calls" | "logprobs" | "store" => {
            optional_bool(r)?;
        }
        "user" | "safety_identifier" | "reasoning_effort" | "service_tier" => {
            if !r.null()? {
                a_string(r)?;
            }
        }
        "metadata" | "logit_bias" => {
            if !r.null()? {
                an_object(r)?;
            }
        }
        "stop" => match r.kind()? {
            Kind::Array => r.array(|r, _| a_string(r))?,
            Kind::Null => {
                r.null()?;
            }
            Kind::Object | Kind::String | Kind::Number | Kind::Bool => a_string(r)?,
        },
        "response_format" => {
            if !r.null()? {
                typed(r)?;
            }
        }
        _ => {
            r.skip()?;
        }
    }
    Ok(())
}

/// A string, checked and left where it is.
pub(crate) fn a_string(r: &mut Reader<'_>) -> Result<(), Invalid> {
    if r.kind()? == Kind::String { r.skip().map(|_| ()) } else { r.string().map(|_| ()) }
}

/// An object, checked and left where it is.
pub(crate) fn an_object(r: &mut Reader<'_>) -> Result<(), Invalid> {
    if r.kind()? == Kind::Object { r.skip().map(|_| ()) } else { r.object(|r, _| r.skip().map(|_| ())) }
}

/// An object that says by a `type` what it is; the rest is left where it is.
fn typed(r: &mut Reader<'_>) -> Result<(), Invalid> {
    let mut typed = false;
    r.object(|r, key| {
        if key == "type" {
            typed = true;
            return a_string(r);
        }
        r.skip().map(|_| ())
    })?;
    if typed { Ok(()) } else { Err(missing(r, "type")) }
}

#[derive(Clone, Copy, PartialEq)]
enum Role {
    Instruction,
    User,
    Assistant,
    Tool,
    Function,
}

#[derive(Clone, Copy, PartialEq)]
enum Content {
    Missing,
    Null,
    There,
}

fn message(r: &mut Reader<'_>) -> Result<(), Invalid> {
    let mut role = None;
    let mut content = Content::Missing;
    let mut stands_in = false;
    let mut call_id = false;
    r.object(|r, key| {
        match key {
            "role" => {
                let name = r.string()?;
                role = Some(match name.as_ref() {
                    "system" | "developer" => Role::Instruction,
                    "user" => Role::User,
                    "assistant" => Role::Assistant,
                    "tool" => Role::Tool,
                    "function" => Role::Function,
                    other => return Err(unknown_role(r, other)),
                });
            }
            "content" => content = check_content(r)?,
            "tool_calls" => {
                if !r.null()? {
                    r.array(|r, _| {
                        stands_in = true;
                        tool_call(r)
                    })?;
                }
            }
            "tool_call_id" => {
                if !r.null()? {
                    a_string(r)?;
                    call_id = true;
                }
            }
            "function_call" | "refusal" | "audio" => {
                if !r.null()? {
                    r.skip()?;
                    stands_in = true;
                }
            }
            _ => {
                r.skip()?;
            }
        }
        Ok::<(), Invalid>(())
    })?;
    let Some(role) = role else { return Err(missing(r, "role")) };
    if role == Role::Tool && !call_id {
        return Err(missing(r, "tool_call_id"));
    }
    match (content, role) {
        (Content::There, _) | (Content::Null, Role::Assistant | Role::Function) => Ok(()),
        (Content::Missing, Role::Assistant) if stands_in => Ok(()),
        (Content::Missing, _) => Err(missing(r, "content")),
        (Content::Null, Role::Instruction | Role::User | Role::Tool) => {
            let mut error = r.fail("expected a string or an array of parts, found null");
            error.path.push_str(".content");
            Err(error)
        }
    }
}

pub(super) fn unknown_role(r: &Reader<'_>, role: &str) -> Invalid {
    let role: String = role.chars().take(40).collect();
    r.fail(format!("unknown role `{role}`; expected system, developer, user, assistant, tool or function"))
}

fn check_content(r: &mut Reader<'_>) -> Result<Content, Invalid> {
    match r.kind()? {
        Kind::Null => r.null().map(|_| Content::Null),
        Kind::String => r.skip().map(|_| Content::There),
        Kind::Array => {
            r.array(|r, _| content_part(r))?;
            Ok(Content::There)
        }
        Kind::Object | Kind::Number | Kind::Bool => Err(r.fail("expected a string or an array of parts")),
    }
}

/// A part. Its type may stand behind its content, so the known types are looked at once the whole is read; other types
/// pass.
fn content_part(r: &mut Reader<'_>) -> Result<(), Invalid> {
    let mut kind = None;
    let (mut text, mut refusal, mut image, mut url) = (None, None, None, None);
    r.object(|r, key| {
        match key {
            "type" => {
                kind = Some(r.string()?);
                return Ok(());
            }
            "text" => text = Some(r.kind()?),
            "refusal" => refusal = Some(r.kind()?),
            "image_url" => {
                let found = r.kind()?;
                image = Some(found);
                if found == Kind::Object {
                    return r.object(|r, key| {
                        if key == "url" {
                            url = Some(r.kind()?);
                        }
                        r.skip().map(|_| ())
                    });
                }
            }
            _ => {}
        }
        r.skip().map(|_| ())
    })?;
    let text_in = |r: &Reader<'_>, field: &str, found: Option<Kind>| match found {
        Some(Kind::String) => Ok(()),
        None => Err(missing(r, field)),
        Some(Kind::Object | Kind::Array | Kind::Number | Kind::Bool | Kind::Null) => {
            Err(below(r, field, "expected a string"))
        }
    };
    match kind.as_deref() {
        None => Err(missing(r, "type")),
        Some("text") => text_in(r, "text", text),
        Some("refusal") => text_in(r, "refusal", refusal),
        Some("image_url") => match image {
            Some(Kind::Object) => text_in(r, "image_url.url", url),
            None => Err(missing(r, "image_url")),
            // Some servers take the address itself.
            Some(Kind::String) => Ok(()),
            Some(Kind::Array | Kind::Number | Kind::Bool | Kind::Null) => {
                Err(below(r, "image_url", "expected an object with a `url`"))
            }
        },
        Some(_) => Ok(()),
    }
}

/// An error about a field of the value at hand that has been read already.
pub(crate) fn below(r: &Reader<'_>, field: &str, message: &str) -> Invalid {
    Invalid { message: message.to_owned(), ..missing(r, field) }
}

/// A tool: a function needs a name; other types are their server's business.
fn tool(r: &mut Reader<'_>) -> Result<(), Invalid> {
    let (mut kind, mut function) = (None, None);
    r.object(|r, key| match key {
        "type" => {
            kind = Some(r.string()?);
            Ok(())
        }
        "function" if r.kind()? != Kind::Null => {
            let mut name = false;
            r.object(|r, key| match key {
                "name" => {
                    name = true;
                    a_string(r)
                }
                "parameters" => {
                    if r.null()? {
                        return Ok(());
                    }
                    an_object(r)
                }
                "description" => {
                    if r.null()? {
                        return Ok(());
                    }
                    a_string(r)
                }
                _ => r.skip().map(|_| ()),
            })?;
            function = Some(name);
            Ok(())
        }
        _ => r.skip().map(|_| ()),
    })?;
    match (kind.as_deref(), function) {
        (Some("function") | None, None) => Err(missing(r, "function")),
        (Some("function") | None, Some(false)) => Err(missing(r, "function.name")),
        (Some("function") | None, Some(true)) | (Some(_), _) => Ok(()),
    }
}

fn tool_call(r: &mut Reader<'_>) -> Result<(), Invalid> {
    let (mut id, mut custom, mut function) = (false, false, None);
    r.object(|r, key| {
        match key {
            "id" => {
                a_string(r)?;
                id = true;
            }
            "type" => custom = r.string()? != "function",
            "function" => {
                let (mut name, mut arguments) = (false, false);
                if r.kind()? == Kind::Null {
                    return r.skip().map(|_| ());
                }
                r.object(|r, key| match key {
                    "name" => {
                        name = true;
                        a_string(r)
                    }
                    "arguments" => {
                        arguments = true;
                        a_string(r)
                    }
                    _ => r.skip().map(|_| ()),
                })?;
                function = Some((name, arguments));
            }
            _ => {
                r.skip()?;
            }
        }
        Ok(())
    })?;
    if !id {
        return Err(missing(r, "id"));
    }
    match function {
        _ if custom => Ok(()),
        None => Err(missing(r, "function")),
        Some((false, _)) => Err(missing(r, "function.name")),
        Some((true, false)) => Err(missing(r, "function.arguments")),
        Some((true, true)) => Ok(()),
    }
}
