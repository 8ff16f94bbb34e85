//! Which dialect a path speaks and what it asks for. Errors of every kind are in the dialect of their path.

use http::Method;
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
        "/v1/messages" => Place::Turn(Dialect::Messages, Operation::Generate),
        "/v1/messages/count_tokens" => Place::Turn(Dialect::Messages, Operation::CountTokens),
        "/v1/models" => Place::Models,
        "/api/hello" => Place::Hello,
        "/healthz" => Place::Health,
        "/readyz" => Place::Ready,
        "/metrics" => Place::Metrics,
        "/dashboard/api/connect-metrics" => Place::ConnectMetrics,
        other => match other.strip_prefix("/v1/models/") {
            Some(id) if !id.is_empty() => Place::Model(id),
            Some(_) | None => Place::Unknown,
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

/// The dialect that an error on this path is written in.
pub fn error_dialect(path: &str, headers: &http::HeaderMap) -> Dialect {
    let messages = path.starts_with("/anthropic/")
        || path.starts_with("/v1/messages")
        || (strip_prefix(path).starts_with("/v1/models") && headers.contains_key("anthropic-version"));
    if messages { Dialect::Messages } else { Dialect::Chat }
}

/// The methods that a place takes, for a 405 and its `allow`.
pub fn methods(place: &Place<'_>) -> &'static [Method] {
    match place {
        Place::Turn(..) => &[Method::POST],
        Place::Hello => &[Method::HEAD, Method::GET],
        Place::Models | Place::Model(_) | Place::Health | Place::Ready | Place::Metrics | Place::ConnectMetrics => {
            &[Method::GET, Method::HEAD]
        }
        Place::Unknown => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dialect_also_answers_under_its_own_prefix() {
        assert_eq!(place("/anthropic/v1/messages"), Place::Turn(Dialect::Messages, Operation::Generate));
        assert_eq!(place("/openai/v1/models/gpt"), Place::Model("gpt"));
        assert_eq!(place("/openaix/v1/models"), Place::Unknown);
        assert_eq!(place("/v1/models/"), Place::Unknown);
    }
}
