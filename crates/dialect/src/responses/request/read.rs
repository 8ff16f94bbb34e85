//! One pass over a Responses request that checks its form and keeps what the gateway must know. It builds nothing: every
//! turn goes through here, most of them never further. Unknown fields and unknown item types pass.

use super::read_item::item;
use super::read_tool::{tool, tool_choice};
use crate::chat::request::{a_string, an_object, below, missing, optional_bool, optional_u64};
use crate::json::{Invalid, Kind, Reader, Span};
use crate::request::{BAD_NAME, ClientRequest, Made, Operation, Spans, StreamForm, is_name};
use bytes::Bytes;
use turnkeep_base::Dialect;

/// Fields that the gateway itself reads. Each may stand there once: with two, the upstream could read the other one.
const ONCE: [&str; 11] = [
    "model",
    "input",
    "stream",
    "max_output_tokens",
    "previous_response_id",
    "conversation",
    "store",
    "background",
    "prompt",
    "include",
    "instructions",
];

/// Reads and checks a request; the body of `/responses/input_tokens` has the same form.
pub fn read(operation: Operation, body: Bytes) -> Result<ClientRequest, Invalid> {
    match operation {
        Operation::Generate | Operation::CountTokens => {}
        Operation::Complete | Operation::Embed => {
            let message = "Responses has neither completions nor embeddings".to_owned();
            return Err(Invalid { path: String::new(), message, at: 0 });
        }
    }
    let mut found = Found::default();
    let mut r = Reader::new(&body)?;
    r.object(|r, key| top(r, key, &mut found))?;
    r.end()?;
    let Some((model, span)) = found.model else { return Err(Invalid { at: 0, ..missing(&r, "model") }) };
    if !found.input && !found.elsewhere {
        let message =
            "one of `input`, `previous_response_id`, `conversation` and `prompt` must say something".to_owned();
        return Err(Invalid { path: "input".into(), message, at: 0 });
    }
    Ok(ClientRequest {
        dialect: Dialect::Responses,
        operation,
        body,
        model,
        stream: found.stream,
        max_output: found.max_output,
        choices: 1,
        usage_wanted: false,
        form: StreamForm::Events,
        made: Made::new(),
        spans: Spans { model: span, stream_options: None, include_usage: None },
    })
}

#[derive(Default)]
struct Found {
    seen: u16,
    model: Option<(String, Span)>,
    /// `input` has something in it.
    input: bool,
    /// What is asked stands elsewhere: in stored state, or in a template.
    elsewhere: bool,
    stream: bool,
    max_output: Option<u64>,
}

fn top(r: &mut Reader<'_>, key: &str, found: &mut Found) -> Result<(), Invalid> {
    if let Some(bit) = ONCE.iter().position(|known| *known == key) {
        if found.seen & 1 << bit != 0 {
            return Err(r.fail(format!("duplicate `{key}`: it may be given only once")));
        }
        found.seen |= 1 << bit;
    }
    match key {
        "model" => {
            r.kind()?;
            let start = r.position();
            let model = r.string()?;
            if model.is_empty() {
                return Err(r.fail("expected the name of a model, found an empty string"));
            }
            if !is_name(&model) {
                return Err(r.fail(BAD_NAME));
            }
            found.model = Some((model.into_owned(), start..r.position()));
            Ok(())
        }
        "input" => match r.kind()? {
            Kind::Null => r.null().map(drop),
            Kind::String => {
                found.input = true;
                r.skip().map(drop)
            }
            Kind::Array => r.array(|r, _| {
                found.input = true;
                item(r)
            }),
            Kind::Object | Kind::Number | Kind::Bool => Err(r.fail("expected a string or an array of items")),
        },
        "stream" => {
            found.stream = optional_bool(r)?;
            Ok(())
        }
        "max_output_tokens" => {
            found.max_output = optional_u64(r)?;
            Ok(())
        }
        "max_tool_calls" | "top_logprobs" => optional_u64(r).map(drop),
        "store" | "background" | "parallel_tool_calls" => optional_bool(r).map(drop),
        // Of the rest `null` is as good as nothing.
        _ if r.null()? => Ok(()),
        "previous_response_id" => {
            found.elsewhere = true;
            a_string(r)
        }
        "conversation" => {
            found.elsewhere = true;
            if r.kind()? == Kind::String { r.skip().map(drop) } else { with_id(r) }
        }
        "prompt" => {
            found.elsewhere = true;
            with_id(r)
        }
        "temperature" | "top_p" => r.number().map(drop),
        "instructions" | "user" | "safety_identifier" | "prompt_cache_key" | "service_tier" | "truncation" => {
            a_string(r)
        }
        "metadata" | "stream_options" => an_object(r),
        "include" => r.array(|r, _| a_string(r)),
        "tools" => r.array(|r, _| tool(r)),
        "tool_choice" => tool_choice(r),
        "reasoning" => r.object(|r, key| match key {
            "effort" | "summary" | "generate_summary" | "context" | "mode" => optional_text(r),
            _ => r.skip().map(drop),
        }),
        "text" => r.object(|r, key| match key {
            "format" => format(r),
            "verbosity" => optional_text(r),
            _ => r.skip().map(drop),
        }),
        _ => r.skip().map(drop),
    }
}

fn optional_text(r: &mut Reader<'_>) -> Result<(), Invalid> {
    if r.null()? { Ok(()) } else { a_string(r) }
}

/// An object that names something stored by its `id`.
fn with_id(r: &mut Reader<'_>) -> Result<(), Invalid> {
    let mut id = false;
    r.object(|r, key| {
        if key == "id" {
            id = true;
            return a_string(r);
        }
        r.skip().map(drop)
    })?;
    if id { Ok(()) } else { Err(missing(r, "id")) }
}

/// `text.format`. Its type may stand behind what the type asks for.
fn format(r: &mut Reader<'_>) -> Result<(), Invalid> {
    if r.null()? {
        return Ok(());
    }
    let (mut kind, mut name, mut schema) = (None, None, None);
    r.object::<Invalid>(|r, key| {
        match key {
            "type" => {
                kind = Some(r.string()?);
                return Ok(());
            }
            "name" => name = Some(r.kind()?),
            "schema" => schema = Some(r.kind()?),
            _ => {}
        }
        r.skip().map(drop)
    })?;
    match (kind.as_deref(), name, schema) {
        (None, ..) => Err(missing(r, "type")),
        (Some("json_schema"), Some(Kind::String), Some(Kind::Object)) => Ok(()),
        (Some("json_schema"), None, _) => Err(missing(r, "name")),
        (Some("json_schema"), Some(Kind::String), None) => Err(missing(r, "schema")),
        (Some("json_schema"), Some(Kind::String), Some(_)) => {
            Err(below(r, "schema", "expected a JSON schema, which is an object"))
        }
        (Some("json_schema"), Some(_), _) => Err(below(r, "name", "expected a string")),
        (Some(_), ..) => Ok(()),
    }
}
