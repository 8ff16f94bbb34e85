//! Writing a turn for one route: the same bytes with the named edits, or the translation; and the headers that cross.

use crate::engine::TurnInput;
use crate::route::Route;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use turnkeep_base::Dialect;
use turnkeep_dialect::identity;
use turnkeep_dialect::json::Invalid;
use turnkeep_dialect::request::{Operation, encode};

/// A request written for a route.
#[derive(Debug)]
pub struct Written {
    /// The path below the upstream's base URL.
    pub path: &'static str,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// What the target has no place for.
    pub dropped: Vec<String>,
}

/// Writes the turn for a route. `elsewhere`: what the history holds of a provider's own making was made at another upstream
/// than the route's, which cannot read it.
pub fn write(input: &TurnInput, route: &Route, elsewhere: bool) -> Result<Written, Invalid> {
    let request = &input.request;
    let same = request.dialect == route.upstream.dialect;
    let path = match (route.upstream.dialect, request.operation, input.beta && same) {
        (Dialect::Chat, Operation::Generate | Operation::CountTokens, _) => "/chat/completions",
        (Dialect::Messages, Operation::Generate, false) => "/v1/messages",
        (Dialect::Messages, Operation::Generate, true) => "/v1/messages?beta=true",
        (Dialect::Messages, Operation::CountTokens, false) => "/v1/messages/count_tokens",
        (Dialect::Messages, Operation::CountTokens, true) => "/v1/messages/count_tokens?beta=true",
    };
    if same {
        let (body, dropped) = if elsewhere {
            let (body, stripped) = request.pass_through_elsewhere(&route.model);
            (body, if stripped { vec!["thinking".to_owned()] } else { Vec::new() })
        } else {
            (request.pass_through(&route.model), request.dropped_in_passing())
        };
        return Ok(Written { path, headers: input.headers.clone(), body, dropped });
    }
    let mut turn = request.turn()?;
    let stripped = elsewhere && identity::strip_opaque_state(&mut turn);
    let mut encoded = encode(route.upstream.dialect, &turn, &route.model)?;
    if stripped && !encoded.dropped.iter().any(|name| name == "thinking") {
        encoded.dropped.push("thinking".to_owned());
    }
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
    Ok(Written { path, headers, body: encoded.body, dropped: encoded.dropped })
}
