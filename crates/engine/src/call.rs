//! Writing a turn for one route: the same bytes with the named edits, or the translation; and the headers that cross.

use crate::engine::TurnInput;
use crate::fetched;
use crate::route::Route;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;
use turnkeep_base::Dialect;
use turnkeep_dialect::json::Invalid;
use turnkeep_dialect::request::{ClientRequest, Encoded, Operation, write_for, write_turn};
use turnkeep_dialect::tool_names::ToolNames;

/// A request written for a route.
#[derive(Debug)]
pub struct Written {
    /// The path below the upstream's base URL.
    pub path: Cow<'static, str>,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// What the target has no place for.
    pub dropped: Vec<String>,
    /// How the client knows the tools that are sent under another name.
    pub names: Arc<ToolNames>,
}

/// Writes the turn for a route. `elsewhere`: what the history holds of a provider's own making was made at another upstream
/// than the route's, which cannot read it.
pub fn write(input: &TurnInput, route: &Route, elsewhere: bool) -> Result<Written, Invalid> {
    let request = &input.request;
    let same = request.dialect == route.upstream.dialect;
    let path = path(route.upstream.dialect, request, &route.model, input.beta && same);
    if same {
        let (body, dropped) = if elsewhere {
            let (body, stripped) = request.pass_through_elsewhere(&route.model);
            (body, if stripped { vec!["thinking".to_owned()] } else { Vec::new() })
        } else {
            (request.pass_through(&route.model), request.dropped_in_passing())
        };
        return Ok(Written { path, headers: input.headers.clone(), body, dropped, names: Arc::default() });
    }
    let encoded = if route.upstream.dialect == Dialect::Gemini && !input.fetched.is_empty() {
        with_fetched(input, &route.model, elsewhere)?
    } else {
        write_for(request, route.upstream.dialect, &route.model, elsewhere)?
    };
    let mut headers = HeaderMap::new();
    for name in [HeaderName::from_static("traceparent"), HeaderName::from_static("tracestate")] {
        if let Some(value) = input.headers.get(&name) {
            headers.insert(name, value.clone());
        }
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if route.upstream.dialect == Dialect::Messages {
        headers.insert("anthropic-version", HeaderValue::from_static(encoded.version.header()));
    }
    Ok(Written { path, headers, body: encoded.body, dropped: encoded.dropped, names: Arc::new(encoded.names) })
}

/// As [`write_for`] for Gemini, with what was fetched in place of its URLs.
fn with_fetched(input: &TurnInput, model: &str, elsewhere: bool) -> Result<Encoded, Invalid> {
    let mut turn = input.request.turn()?;
    fetched::put(&mut turn, &input.fetched)?;
    write_turn(&input.request, turn, Dialect::Gemini, model, elsewhere)
}

/// The path below the base URL, which is what the vendor's own SDK takes: with `/v1` for OpenAI, without a version for
/// the others.
fn path(upstream: Dialect, request: &ClientRequest, model: &str, beta: bool) -> Cow<'static, str> {
    match (upstream, request.operation) {
        (Dialect::Chat, Operation::Generate | Operation::CountTokens) => "/chat/completions".into(),
        (Dialect::Chat, Operation::Complete) => "/completions".into(),
        (Dialect::Chat, Operation::Embed) => "/embeddings".into(),
        (Dialect::Responses, Operation::Generate | Operation::Complete | Operation::Embed) => "/responses".into(),
        (Dialect::Responses, Operation::CountTokens) => "/responses/input_tokens".into(),
        (Dialect::Messages, Operation::Generate | Operation::Complete | Operation::Embed) if beta => {
            "/v1/messages?beta=true".into()
        }
        (Dialect::Messages, Operation::Generate | Operation::Complete | Operation::Embed) => "/v1/messages".into(),
        (Dialect::Messages, Operation::CountTokens) if beta => "/v1/messages/count_tokens?beta=true".into(),
        (Dialect::Messages, Operation::CountTokens) => "/v1/messages/count_tokens".into(),
        (Dialect::Gemini, operation) => {
            let verb = match operation {
                Operation::CountTokens => "countTokens",
                Operation::Embed => "batchEmbedContents",
                Operation::Generate | Operation::Complete if request.stream => "streamGenerateContent?alt=sse",
                Operation::Generate | Operation::Complete => "generateContent",
            };
            let (folder, name) = match model.strip_prefix("tunedModels/") {
                Some(name) => ("tunedModels", name),
                None => ("models", model.strip_prefix("models/").unwrap_or(model)),
            };
            format!("/v1beta/{folder}/{}:{verb}", segment(name)).into()
        }
    }
}

/// A name as one segment of a path.
fn segment(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _infallible = write!(out, "%{byte:02X}");
        }
    }
    out
}
