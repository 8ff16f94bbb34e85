//! Which path asks for what.

use http::{HeaderMap, Uri};

use crate::ask::{Dialect, InPath};

/// What a path asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route<'a> {
    Turn(Dialect, InPath<'a>),
    CountTokens(Dialect, InPath<'a>),
    /// Vectors of texts; with a model in the path, Gemini's.
    Embed(Dialect, InPath<'a>),
    Models,
    Model(&'a str),
    /// The lab's own: what it was asked so far.
    Transcript,
    /// The lab's own: what was said in the sessions of its Devin.
    DevinTranscript,
    Unknown,
}

/// Reads a path.
pub(crate) fn route(uri: &Uri) -> Route<'_> {
    let none = InPath::default();
    match uri.path() {
        "/v1/chat/completions" | "/chat/completions" => Route::Turn(Dialect::Chat, none),
        "/v1/completions" => Route::Turn(Dialect::Completions, none),
        "/v1/embeddings" => Route::Embed(Dialect::Chat, none),
        "/v1/responses" => Route::Turn(Dialect::Responses, none),
        "/v1/responses/input_tokens" => Route::CountTokens(Dialect::Responses, none),
        "/v1/messages" => Route::Turn(Dialect::Messages, none),
        "/v1/messages/count_tokens" => Route::CountTokens(Dialect::Messages, none),
        "/lab/requests" => Route::Transcript,
        "/lab/devin" => Route::DevinTranscript,
        "/v1/models" | "/models" | "/v1beta/models" => Route::Models,
        path => {
            let below = path.strip_prefix("/v1beta/models/").or_else(|| path.strip_prefix("/v1/models/"));
            match below.filter(|name| !name.is_empty()) {
                Some(name) => model(name, uri.query().unwrap_or_default()),
                None => Route::Unknown,
            }
        }
    }
}

fn model<'a>(name: &'a str, query: &str) -> Route<'a> {
    let Some((model, verb)) = name.rsplit_once(':') else { return Route::Model(name) };
    let array = !query.split('&').any(|pair| pair == "alt=sse");
    let path = |stream: bool| InPath { model: Some(model), stream, array: stream && array };
    match verb {
        "generateContent" => Route::Turn(Dialect::Gemini, path(false)),
        "streamGenerateContent" => Route::Turn(Dialect::Gemini, path(true)),
        "countTokens" => Route::CountTokens(Dialect::Gemini, path(false)),
        "batchEmbedContents" => Route::Embed(Dialect::Gemini, path(false)),
        _ => Route::Unknown,
    }
}

/// The dialect that answers a request.
pub(crate) fn dialect(route: &Route<'_>, path: &str, headers: &HeaderMap) -> Dialect {
    match route {
        Route::Turn(dialect, _) | Route::CountTokens(dialect, _) | Route::Embed(dialect, _) => *dialect,
        Route::Models | Route::Model(_) | Route::Transcript | Route::DevinTranscript | Route::Unknown => {
            if headers.contains_key("anthropic-version") {
                Dialect::Messages
            } else if path.starts_with("/v1beta") || headers.contains_key("x-goog-api-key") {
                Dialect::Gemini
            } else {
                Dialect::Chat
            }
        }
    }
}
