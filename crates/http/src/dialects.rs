//! Which dialect a path speaks and what it asks for. Errors of every kind are in the dialect of their path.

use crate::responses::{self, StoredPlace};
use http::Method;
use std::borrow::Cow;
use turnkeep_base::Dialect;
use turnkeep_dialect::request::Operation;

/// What a path asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place<'a> {
    /// A turn.
    Turn(Dialect, Operation),
    /// The list of models; in whose shape is told by the headers.
    Models,
    /// One model.
    Model(&'a str),
    /// What the Responses API stores.
    Stored(StoredPlace<'a>),
    /// Claude Code's greeting.
    Hello,
    /// Liveness.
    Health,
    /// Readiness.
    Ready,
    /// Prometheus.
    Metrics,
    /// The counters as JSON.
    ConnectMetrics,
    /// Nothing is there.
    Unknown,
}

/// Reads a path. Each dialect's routes are also under a prefix of its own (`/openai`, `/anthropic`).
pub fn place(path: &str) -> Place<'_> {
    let path = strip_prefix(path);
    match path {
        "/v1/chat/completions" => Place::Turn(Dialect::Chat, Operation::Generate),
        "/v1/responses" => Place::Turn(Dialect::Responses, Operation::Generate),
        "/v1/messages" => Place::Turn(Dialect::Messages, Operation::Generate),
        "/v1/messages/count_tokens" => Place::Turn(Dialect::Messages, Operation::CountTokens),
        "/v1/models" => Place::Models,
        "/api/hello" => Place::Hello,
        "/healthz" => Place::Health,
        "/readyz" => Place::Ready,
        "/metrics" => Place::Metrics,
        "/dashboard/api/connect-metrics" => Place::ConnectMetrics,
        other => match (other.strip_prefix("/v1/models/"), responses::place(other)) {
            (Some(id), _) if !id.is_empty() => Place::Model(id),
            (_, Some(stored)) => Place::Stored(stored),
            (Some(_) | None, None) => Place::Unknown,
        },
    }
}

fn strip_prefix(path: &str) -> &str {
    for prefix in ["/openai", "/anthropic"] {
        if let Some(rest) = path.strip_prefix(prefix)
            && rest.starts_with("/v1/")
        {
            return rest;
        }
    }
    path
}

/// The dialect that an error at this place is written in.
pub fn error_dialect(place: &Place<'_>, path: &str, headers: &http::HeaderMap) -> Dialect {
    match place {
        Place::Turn(dialect, _) => return *dialect,
        Place::Stored(_) => return Dialect::Responses,
        Place::Models
        | Place::Model(_)
        | Place::Hello
        | Place::Health
        | Place::Ready
        | Place::Metrics
        | Place::ConnectMetrics
        | Place::Unknown => {}
    }
    let messages = path.starts_with("/anthropic/")
        || path.starts_with("/v1/messages")
        || (strip_prefix(path).starts_with("/v1/models") && headers.contains_key("anthropic-version"));
    if messages { Dialect::Messages } else { Dialect::Chat }
}

/// The methods that a place takes, for a 405 and its `allow`.
pub fn methods(place: &Place<'_>) -> &'static [Method] {
    match place {
        Place::Turn(..) => &[Method::POST],
        Place::Stored(stored) => responses::methods(stored),
        Place::Hello => &[Method::HEAD, Method::GET],
        Place::Models | Place::Model(_) | Place::Health | Place::Ready | Place::Metrics | Place::ConnectMetrics => {
            &[Method::GET, Method::HEAD]
        }
        Place::Unknown => &[],
    }
}

/// Says that nothing is at a path; of paths that other servers have, that this version does not.
pub fn nothing_at(method: &Method, path: &str) -> String {
    let bare = strip_prefix(path);
    let under = |root: &str| bare.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let known = [
        ("/v1/completions", "the legacy completions endpoint"),
        ("/v1/embeddings", "the embeddings endpoint"),
        ("/v1beta", "the Gemini API"),
    ];
    match known.into_iter().find(|(root, _)| under(root)) {
        Some((root, name)) => format!(
            "{name} ({root}) is not in this version; what is: POST /v1/chat/completions, POST /v1/messages, \
             POST /v1/messages/count_tokens and GET /v1/models"
        ),
        None => format!("there is nothing at {method} {path}"),
    }
}

/// A path's segment with its `%XX` read. What is no such triple stays as it is; what is not UTF-8 then is replaced, and
/// so names nothing.
pub fn percent_decoded(segment: &str) -> Cow<'_, str> {
    if !segment.contains('%') {
        return Cow::Borrowed(segment);
    }
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let mut out = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let read = match (byte, digit(after.first()), digit(after.get(1))) {
            (b'%', Some(high), Some(low)) => u8::try_from(high * 16 + low).ok(),
            _ => None,
        };
        out.push(read.unwrap_or(byte));
        rest = after.get(if read.is_some() { 2 } else { 0 }..).unwrap_or_default();
    }
    Cow::Owned(String::from_utf8_lossy(&out).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderMap;

    #[test]
    fn a_turns_errors_are_in_its_own_dialect_under_any_prefix() {
        for (path, dialect) in [
            ("/openai/v1/messages", Dialect::Messages),
            ("/openai/v1/messages/count_tokens", Dialect::Messages),
            ("/anthropic/v1/chat/completions", Dialect::Chat),
            ("/anthropic/v1/other", Dialect::Messages),
            ("/v1/other", Dialect::Chat),
        ] {
            assert_eq!(error_dialect(&place(path), path, &HeaderMap::new()), dialect, "{path}");
        }
    }

    #[test]
    fn a_models_name_is_percent_decoded_and_what_is_no_triple_stays() {
        for (segment, name) in [
            ("org%2Fmodel%3a1", "org/model:1"),
            ("plain", "plain"),
            ("5%", "5%"),
            ("%zz%4", "%zz%4"),
            ("%e2%82%ac", "€"),
        ] {
            assert_eq!(percent_decoded(segment), name);
        }
    }

    #[test]
    fn an_endpoint_of_other_servers_is_said_not_to_be_in_this_version() {
        let paths = ["/openai/v1/embeddings", "/v1/completions", "/v1beta/models/g:generateContent"];
        for path in paths {
            let message = nothing_at(&Method::POST, path);
            assert!(message.contains("not in this version") && message.contains("/v1/messages"), "{message}");
        }
        assert_eq!(nothing_at(&Method::GET, "/v1/responsesx"), "there is nothing at GET /v1/responsesx");
    }

    #[test]
    fn every_dialect_also_answers_under_its_own_prefix() {
        assert_eq!(place("/anthropic/v1/messages"), Place::Turn(Dialect::Messages, Operation::Generate));
        assert_eq!(place("/openai/v1/models/gpt"), Place::Model("gpt"));
        assert_eq!(place("/openaix/v1/models"), Place::Unknown);
        assert_eq!(place("/v1/models/"), Place::Unknown);
        assert_eq!(place("/openai/v1/responses/resp_1"), Place::Stored(StoredPlace::Response("resp_1")));
        assert_eq!(place("/v1/responses"), Place::Turn(Dialect::Responses, Operation::Generate));
    }
}
