//! Writing a turn for one route: the same bytes with the named edits, or the translation; and the headers that cross.

use crate::engine::TurnInput;
use crate::fetched;
use crate::ports::{Native, Upstream, Writing};
use crate::route::{Route, Speech};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;
use turnkeep_base::Dialect;
use turnkeep_dialect::dropped::{self, place_in_words};
use turnkeep_dialect::json::Invalid;
use turnkeep_dialect::request::{ClientRequest, Encoded, Operation, apply, for_native, write_for, write_turn};
use turnkeep_dialect::responses::chain;
use turnkeep_dialect::tool_names::ToolNames;
use turnkeep_dialect::turn::At;
use turnkeep_policy::conversations::Conversation;

/// A request written for a route.
pub struct Written {
    /// What is sent.
    pub what: Sending,
    /// What the target has no place for.
    pub dropped: Vec<String>,
    /// How the client knows the tools that are sent under another name.
    pub names: Arc<ToolNames>,
    /// It goes on with the conversation that was given.
    pub goes_on: bool,
}

/// What is sent, and by which driver.
pub enum Sending {
    /// A request of a client's dialect.
    Http {
        /// The driver.
        port: Arc<dyn Upstream>,
        /// The upstream is asked to keep its answer.
        chained: bool,
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
        Speech::Dialect { dialect, port, .. } => {
            let chain = may_chain(input, route).then_some(Chain { previous: resume });
            write_http(input, *dialect, port, &route.model, elsewhere, chain)
        }
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
    let mut dropped = for_native(&mut turn, elsewhere).map_err(|error| place_in_words(client, error))?;
    if goes_on {
        turn.messages.drain(..turn.behind_last_answer());
    }
    let how = Writing { model, goes_on, stream: request.stream };
    let written = port.write(&turn, how).map_err(|error| place_in_words(client, error))?;
    dropped.extend(written.dropped.iter().map(|name| dropped::in_words(client, name).to_owned()));
    let what = Sending::Native { port: port.clone(), body: written.body, trace: trace_of(&input.headers) };
    let dropped = dropped::names(dropped);
    Ok(Written { what, dropped, names: Arc::new(written.names), goes_on })
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

/// The upstream keeps its answer; with a conversation the turn goes on from the one that it kept last.
struct Chain<'a> {
    previous: Option<&'a Conversation>,
}

/// The turn may go on from an answer that its upstream keeps, or be gone on from: its caller is known, and its client does
/// not want its answer unstored.
fn may_chain(input: &TurnInput, route: &Route) -> bool {
    let chains = route.upstream.conversations().is_some() && input.caller.is_scoped();
    chains && input.request.operation == Operation::Generate && chain::lets_store(&input.request.body)
}

/// Writes a turn for a Responses upstream that keeps its answer. `None` where it cannot be one of a chain.
fn chained(
    input: &TurnInput,
    model: &str,
    elsewhere: bool,
    previous: Option<&str>,
) -> Result<Option<(Bytes, Vec<String>, ToolNames)>, Invalid> {
    let request = &input.request;
    if request.dialect == Dialect::Responses {
        let body = match previous {
            None => Some(request.pass_through(model)),
            Some(previous) => {
                let turn = request.turn()?;
                let next = match turn.behind_last_answer() {
                    0 => None,
                    at => turn.messages.get(at),
                };
                let Some(At::Item(from)) = next.map(|next| next.at) else { return Ok(None) };
                request.pass_through_chained(model, (previous, from))
            }
        };
        return Ok(body.map(|body| (body, request.dropped_in_passing(), ToolNames::default())));
    }
    // Results are written beside their calls, so all of it is written before it is cut. The system prompt, which is not kept
    // with an answer, is no part of the input.
    let encoded = write_for(request, Dialect::Responses, model, elsewhere)?;
    let previous = match previous {
        None => None,
        Some(previous) => match chain::behind_last_answer(&encoded.body) {
            Some(from) => Some((previous, from)),
            None => return Ok(None),
        },
    };
    let edits = chain::edits(&encoded.body, previous, true);
    Ok(edits.map(|edits| (apply(&encoded.body, &edits), encoded.dropped, encoded.names)))
}

fn write_http(
    input: &TurnInput,
    target: Dialect,
    port: &Arc<dyn Upstream>,
    model: &str,
    elsewhere: bool,
    chain: Option<Chain<'_>>,
) -> Result<Written, Invalid> {
    let request = &input.request;
    let same = request.dialect == target;
    let path = path(target, request, model, input.beta && same);
    // What another provider made is not what this one keeps; a history with it begins a chain anew.
    if let Some(Chain { previous }) =
        chain.filter(|chain| target == Dialect::Responses && !(same && elsewhere && chain.previous.is_none()))
        && let Some((body, dropped, names)) =
            chained(input, model, elsewhere, previous.map(|conversation| &*conversation.handle))?
    {
        let headers = if same { input.headers.clone() } else { json_headers(input) };
        let what = Sending::Http { port: port.clone(), chained: true, path, headers, body };
        return Ok(Written { what, dropped, names: Arc::new(names), goes_on: previous.is_some() });
    }
    if same {
        let (body, dropped) = if elsewhere {
            let (body, stripped) = request.pass_through_elsewhere(model);
            (body, if stripped { vec!["thinking".to_owned()] } else { Vec::new() })
        } else {
            (request.pass_through(model), request.dropped_in_passing())
        };
        let what = Sending::Http { port: port.clone(), chained: false, path, headers: input.headers.clone(), body };
        return Ok(Written { what, dropped, names: Arc::default(), goes_on: false });
    }
    let encoded = if target == Dialect::Gemini && !input.fetched.is_empty() {
        with_fetched(input, model, elsewhere)?
    } else {
        write_for(request, target, model, elsewhere)?
    };
    let mut headers = json_headers(input);
    if target == Dialect::Messages {
        headers.insert("anthropic-version", HeaderValue::from_static(encoded.version.header()));
    }
    let what = Sending::Http { port: port.clone(), chained: false, path, headers, body: encoded.body };
    Ok(Written { what, dropped: encoded.dropped, names: Arc::new(encoded.names), goes_on: false })
}

/// The headers of a translated request.
fn json_headers(input: &TurnInput) -> HeaderMap {
    let mut headers = trace_of(&input.headers);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers
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
