//! Writing a turn for one route: the same bytes with the named edits, or the translation; and the headers that cross.

use crate::engine::TurnInput;
use crate::fetched;
use crate::ports::{Native, Upstream, Writing};
use crate::route::{Route, Speech};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;
use turnkeep_base::Dialect;
use turnkeep_dialect::json::Invalid;
use turnkeep_dialect::request::{ClientRequest, Encoded, Operation, for_native, write_for, write_turn};
use turnkeep_dialect::tool_names::ToolNames;
use turnkeep_dialect::turn::Role;
use turnkeep_policy::conversations::Conversation;

/// A request written for a route.
pub struct Written {
    /// What is sent.
    pub what: Sending,
    /// What the target has no place for.
    pub dropped: Vec<String>,
    /// How the client knows the tools that are sent under another name.
    pub names: Arc<ToolNames>,
}

/// What is sent, and by which driver.
pub enum Sending {
    /// A request of a client's dialect.
    Http {
        /// The driver.
        port: Arc<dyn Upstream>,
        /// The path below the upstream's base URL.
        path: Cow<'static, str>,
        /// The headers.
        headers: HeaderMap,
        /// The body.
        body: Bytes,
    },
    /// What the driver of a protocol of its own has made.
    Native {
        /// The driver.
        port: Arc<dyn Native>,
        /// In its own form.
        body: Bytes,
        /// `traceparent` and `tracestate`.
        trace: HeaderMap,
    },
}

/// Writes the turn for a route. `elsewhere`: what the history holds of a provider's own making was made at another upstream
/// than the route's, which cannot read it. `resume`: the conversation that goes on there, so that only what follows its
/// last answer is sent.
pub fn write(
    input: &TurnInput,
    route: &Route,
    elsewhere: bool,
    resume: Option<&Conversation>,
) -> Result<Written, Invalid> {
    match &route.upstream.speech {
        Speech::Native { port, .. } => write_native(input, port, &route.model, elsewhere, resume.is_some()),
        Speech::Dialect { dialect, port, .. } => write_http(input, *dialect, port, &route.model, elsewhere),
    }
}

fn write_native(
    input: &TurnInput,
    port: &Arc<dyn Native>,
    model: &str,
    elsewhere: bool,
    goes_on: bool,
) -> Result<Written, Invalid> {
    let request = &input.request;
    match request.operation {
        Operation::Generate | Operation::Complete => {}
        Operation::CountTokens | Operation::Embed => {
            let message = "no upstream of this model does this".to_owned();
            return Err(Invalid { path: "model".into(), message, at: 0 });
        }
    }
    let client = request.dialect;
    let mut turn = request.turn()?;
    let mut dropped = for_native(&mut turn, elsewhere).map_err(|error| in_words(client, error))?;
    if goes_on {
        let last = turn.messages.iter().rposition(|message| message.role == Role::Assistant);
        turn.messages.drain(..last.map_or(0, |last| last + 1));
    }
    let how = Writing { model, goes_on, stream: request.stream };
    let written = port.write(&turn, how).map_err(|error| in_words(client, error))?;
    dropped.extend(written.dropped.iter().map(|name| turnkeep_dialect::dropped::in_words(client, name).to_owned()));
    let mut told = BTreeSet::new();
    dropped.retain(|name| told.insert(name.clone()));
    let what = Sending::Native { port: port.clone(), body: written.body, trace: trace_of(&input.headers) };
    Ok(Written { what, dropped: turnkeep_dialect::dropped::names(dropped), names: Arc::new(written.names) })
}

/// An error's place in the words of the client's dialect.
fn in_words(client: Dialect, error: Invalid) -> Invalid {
    let path = turnkeep_dialect::dropped::in_words(client, &error.path).to_owned();
    Invalid { path, ..error }
}

/// The headers that carry a trace on.
fn trace_of(from: &HeaderMap) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for name in [HeaderName::from_static("traceparent"), HeaderName::from_static("tracestate")] {
        if let Some(value) = from.get(&name) {
            headers.insert(name, value.clone());
        }
    }
    headers
}

fn write_http(
    input: &TurnInput,
    target: Dialect,
    port: &Arc<dyn Upstream>,
    model: &str,
    elsewhere: bool,
) -> Result<Written, Invalid> {
    let request = &input.request;
    let same = request.dialect == target;
    let path = path(target, request, model, input.beta && same);
    if same {
        let (body, dropped) = if elsewhere {
            let (body, stripped) = request.pass_through_elsewhere(model);
            (body, if stripped { vec!["thinking".to_owned()] } else { Vec::new() })
        } else {
            (request.pass_through(model), request.dropped_in_passing())
        };
        let what = Sending::Http { port: port.clone(), path, headers: input.headers.clone(), body };
        return Ok(Written { what, dropped, names: Arc::default() });
    }
    let encoded = if target == Dialect::Gemini && !input.fetched.is_empty() {
        with_fetched(input, model, elsewhere)?
    } else {
        write_for(request, target, model, elsewhere)?
    };
    let mut headers = trace_of(&input.headers);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if target == Dialect::Messages {
        headers.insert("anthropic-version", HeaderValue::from_static(encoded.version.header()));
    }
    let what = Sending::Http { port: port.clone(), path, headers, body: encoded.body };
    Ok(Written { what, dropped: encoded.dropped, names: Arc::new(encoded.names) })
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
