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
    /// A turn whose model and mode are in the path (Gemini).
    InPath(Verb, &'a str),
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
    /// The incident trace of a turn, by its id.
    Incident(&'a str),
    /// Nothing is there.
    Unknown,
}

/// What a Gemini path asks of its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// One answer, whole.
    Generate,
    /// One answer, as a stream.
    Stream,
    /// The number of input tokens.
    Count,
}

impl Verb {
    /// Every verb.
    pub const ALL: [Verb; 3] = [Verb::Generate, Verb::Stream, Verb::Count];

    /// The word in the path.
    pub fn name(self) -> &'static str {
        match self {
            Verb::Generate => "generateContent",
            Verb::Stream => "streamGenerateContent",
            Verb::Count => "countTokens",
        }
    }

    /// What the client wants done.
    pub fn operation(self) -> Operation {
        match self {
            Verb::Generate | Verb::Stream => Operation::Generate,
            Verb::Count => Operation::CountTokens,
        }
    }
}

/// Prefixes under which every route is found once more, and the dialect that each decides where a path alone does not.
const PREFIXES: [(&str, Dialect); 3] =
    [("/openai", Dialect::Chat), ("/anthropic", Dialect::Messages), ("/gemini", Dialect::Gemini)];

/// Reads a path. Each route is also under a prefix (`/openai`, `/anthropic`, `/gemini`).
pub fn place(path: &str) -> Place<'_> {
    let path = strip_prefix(path).0;
    match path {
        "/v1/chat/completions" => Place::Turn(Dialect::Chat, Operation::Generate),
        "/v1/completions" => Place::Turn(Dialect::Chat, Operation::Complete),
        "/v1/embeddings" => Place::Turn(Dialect::Chat, Operation::Embed),
        "/v1/responses" => Place::Turn(Dialect::Responses, Operation::Generate),
        "/v1/responses/input_tokens" => Place::Turn(Dialect::Responses, Operation::CountTokens),
        "/v1/messages" => Place::Turn(Dialect::Messages, Operation::Generate),
        "/v1/messages/count_tokens" => Place::Turn(Dialect::Messages, Operation::CountTokens),
        "/v1/models" | "/v1beta/models" => Place::Models,
        "/api/hello" => Place::Hello,
        "/healthz" => Place::Health,
        "/readyz" => Place::Ready,
        "/metrics" => Place::Metrics,
        "/dashboard/api/connect-metrics" => Place::ConnectMetrics,
        other => match (responses::place(other), incident(other)) {
            (Some(stored), _) => Place::Stored(stored),
            (None, Some(turn)) => Place::Incident(turn),
            (None, None) => model_place(other),
        },
    }
}

/// The turn whose trace a path asks for.
fn incident(path: &str) -> Option<&str> {
    let turn = path.strip_prefix("/dashboard/api/turns/")?.strip_suffix("/incident")?;
    (!turn.is_empty() && !turn.contains('/')).then_some(turn)
}

/// Below the models: a turn of Gemini's where a known verb ends it, else one model. Without a version only turns are
/// there (litellm asks so).
fn model_place(path: &str) -> Place<'_> {
    let (bare, versioned) = match path.strip_prefix("/v1beta").or_else(|| path.strip_prefix("/v1")) {
        Some(bare) => (bare, true),
        None => (path, false),
    };
    let tuned = bare.starts_with("/tunedModels/");
    let name = if tuned { bare.strip_prefix('/') } else { bare.strip_prefix("/models/") };
    let Some(name) = name.filter(|name| !name.is_empty()) else { return Place::Unknown };
    if let Some((model, word)) = verb(name)
        && let Some(verb) = Verb::ALL.into_iter().find(|verb| verb.name() == word)
        && !model.is_empty()
    {
        return Place::InPath(verb, model);
    }
    if versioned { Place::Model(name) } else { Place::Unknown }
}

/// A model's name and the verb behind it: the last colon is before the verb, as names may hold some of their own.
fn verb(name: &str) -> Option<(&str, &str)> {
    let plain = name.rfind(':').map(|at| (at, 1));
    let escaped = name.rfind("%3A").max(name.rfind("%3a")).map(|at| (at, 3));
    let (at, length) = plain.max(escaped)?;
    Some((name.get(..at)?, name.get(at + length..)?))
}

/// The model that a Gemini path names: as it is written, without `models/`.
pub fn named_model(segment: &str) -> String {
    let name = percent_decoded(segment);
    name.strip_prefix("models/").unwrap_or(&name).to_owned()
}

fn strip_prefix(path: &str) -> (&str, Option<Dialect>) {
    for (prefix, dialect) in PREFIXES {
        if let Some(rest) = path.strip_prefix(prefix)
            && rest.starts_with('/')
        {
            let routes = ["/v1/", "/v1beta/", "/models/", "/tunedModels/"];
            return (if routes.iter().any(|root| rest.starts_with(root)) { rest } else { path }, Some(dialect));
        }
    }
    (path, None)
}

/// The dialect that an error at this place is written in, and a list of models. A prefix decides first, then the version
/// in the path, then what the client sends: `anthropic-version`, or a key where only Gemini's clients put it.
pub fn error_dialect(place: &Place<'_>, path: &str, query: Option<&str>, headers: &http::HeaderMap) -> Dialect {
    let (bare, prefixed) = strip_prefix(path);
    let under = |root: &str| bare.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    match place {
        Place::Turn(dialect, _) => *dialect,
        Place::InPath(..) => Dialect::Gemini,
        Place::Stored(_) => Dialect::Responses,
        Place::Models | Place::Model(_) => match prefixed {
            Some(dialect) => dialect,
            None if under("/v1beta") => Dialect::Gemini,
            None if headers.contains_key("anthropic-version") => Dialect::Messages,
            None if headers.contains_key("x-goog-api-key") || query_value(query, "key").is_some() => Dialect::Gemini,
            None => Dialect::Chat,
        },
        Place::Hello
        | Place::Health
        | Place::Ready
        | Place::Metrics
        | Place::ConnectMetrics
        | Place::Incident(_)
        | Place::Unknown => {
            if under("/v1/messages") {
                Dialect::Messages
            } else if under("/v1/responses") {
                Dialect::Responses
            } else if ["/v1beta", "/models", "/tunedModels", "/v1/tunedModels"].into_iter().any(under) {
                Dialect::Gemini
            } else {
                prefixed.unwrap_or(Dialect::Chat)
            }
        }
    }
}

/// The methods that a place takes, for a 405 and its `allow`.
pub fn methods(place: &Place<'_>) -> &'static [Method] {
    match place {
        Place::Turn(..) | Place::InPath(..) => &[Method::POST],
        Place::Stored(stored) => responses::methods(stored),
        Place::Hello => &[Method::HEAD, Method::GET],
        Place::Models
        | Place::Model(_)
        | Place::Health
        | Place::Ready
        | Place::Metrics
        | Place::ConnectMetrics
        | Place::Incident(_) => &[Method::GET, Method::HEAD],
        Place::Unknown => &[],
    }
}

/// The word that a Gemini client sent in place of a verb: something is asked of a model, and it is none that is known.
pub fn unknown_verb<'a>(place: &Place<'a>, method: &Method) -> Option<&'a str> {
    match place {
        Place::Model(name) if method == Method::POST => verb(name).map(|(_, word)| word),
        Place::Model(_)
        | Place::Turn(..)
        | Place::InPath(..)
        | Place::Stored(_)
        | Place::Models
        | Place::Hello
        | Place::Health
        | Place::Ready
        | Place::Metrics
        | Place::ConnectMetrics
        | Place::Incident(_)
        | Place::Unknown => None,
    }
}

/// Says that a verb is not known, and which are.
pub fn no_such_verb(word: &str) -> String {
    let known: Vec<String> = Verb::ALL.iter().map(|verb| format!(":{}", verb.name())).collect();
    let shown: String = word.chars().take(80).collect();
    format!("there is no verb {shown:?} here; models take {}", known.join(", "))
}

/// Says that nothing is at a path; of paths that other servers have, that this version does not.
pub fn nothing_at(method: &Method, path: &str) -> String {
    let bare = strip_prefix(path).0;
    let under = |root: &str| bare.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let known = [
        ("/v1/messages/batches", "the batch API"),
        ("/v1/batches", "the batch API"),
        ("/v1/files", "the files API"),
        ("/v1beta/files", "the files API"),
        ("/v1beta/cachedContents", "the API of cached contents"),
        ("/v1beta/interactions", "the Interactions API"),
        ("/v1/images", "the images API"),
        ("/v1/audio", "the audio API"),
        ("/v1/moderations", "the moderations endpoint"),
        ("/v1/assistants", "the Assistants API"),
        ("/v1/threads", "the Assistants API"),
        ("/v1/realtime", "the Realtime API"),
    ];
    match known.into_iter().find(|(root, _)| under(root)) {
        Some((root, name)) => format!(
            "{name} ({root}) is not in this version; what is: POST /v1/chat/completions, /v1/completions, /v1/embeddings, \
             /v1/responses, /v1/messages, /v1/messages/count_tokens and /v1beta/models/MODEL:generateContent, and GET \
             /v1/models"
        ),
        None => format!("there is nothing at {method} {path}"),
    }
}

/// The first value of a parameter of a query, decoded; `None` where it is missing or empty.
pub fn query_value<'a>(query: Option<&'a str>, name: &str) -> Option<Cow<'a, str>> {
    let pairs = query?.split('&').filter_map(|pair| pair.split_once('='));
    let value = pairs.filter(|(key, _)| *key == name).map(|(_, value)| value).next()?;
    let value = if value.contains('+') {
        Cow::Owned(percent_decoded(&value.replace('+', " ")).into_owned())
    } else {
        percent_decoded(value)
    };
    (!value.is_empty()).then_some(value)
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

    fn dialect(path: &str, query: Option<&str>, names: &[&'static str]) -> Dialect {
        let value = http::HeaderValue::from_static("x");
        let headers = names.iter().map(|name| (http::HeaderName::from_static(name), value.clone())).collect();
        error_dialect(&place(path), path, query, &headers)
    }

    #[test]
    fn a_turns_errors_are_in_its_own_dialect_under_any_prefix() {
        for (path, expected) in [
            ("/openai/v1/messages", Dialect::Messages),
            ("/openai/v1/messages/count_tokens", Dialect::Messages),
            ("/anthropic/v1/chat/completions", Dialect::Chat),
            ("/anthropic/v1/responses", Dialect::Responses),
            ("/anthropic/v1beta/models/m:generateContent", Dialect::Gemini),
            ("/anthropic/v1/other", Dialect::Messages),
            ("/anthropic/", Dialect::Messages),
            ("/gemini/v1/other", Dialect::Gemini),
            ("/gemini/v1beta", Dialect::Gemini),
            ("/openai/v1/other", Dialect::Chat),
            ("/v1/other", Dialect::Chat),
            ("/v1/messages/batches", Dialect::Messages),
            ("/v1/responses/x/y", Dialect::Responses),
            ("/v1beta/files", Dialect::Gemini),
            ("/v1betas", Dialect::Chat),
            ("/models/m", Dialect::Gemini),
            ("/healthz", Dialect::Chat),
        ] {
            assert_eq!(dialect(path, None, &[]), expected, "{path}");
        }
    }

    #[test]
    fn whose_list_of_models_is_meant_is_told_by_the_prefix_then_the_version_then_the_headers() {
        for (path, query, headers, expected) in [
            ("/v1/models", None, &[][..], Dialect::Chat),
            ("/v1/models/gpt", None, &["authorization"], Dialect::Chat),
            ("/v1/models", None, &["anthropic-version"], Dialect::Messages),
            ("/v1/models/claude", None, &["anthropic-version", "x-goog-api-key"], Dialect::Messages),
            ("/v1/models", None, &["x-goog-api-key"], Dialect::Gemini),
            ("/v1/models", Some("pageSize=2&key=k"), &[], Dialect::Gemini),
            ("/v1/models", Some("monkey=k&key="), &[], Dialect::Chat),
            ("/v1beta/models", None, &["anthropic-version"], Dialect::Gemini),
            ("/openai/v1/models", Some("key=k"), &["anthropic-version"], Dialect::Chat),
            ("/anthropic/v1/models/m", None, &["x-goog-api-key"], Dialect::Messages),
            ("/gemini/v1/models", None, &["anthropic-version"], Dialect::Gemini),
        ] {
            assert_eq!(dialect(path, query, headers), expected, "{path} {query:?} {headers:?}");
        }
    }

    #[test]
    fn a_gemini_path_names_its_model_and_what_is_asked_of_it() {
        for (path, verb, model) in [
            ("/v1beta/models/gemini-3:generateContent", Verb::Generate, "gemini-3"),
            ("/v1/models/gemini-3:streamGenerateContent", Verb::Stream, "gemini-3"),
            ("/models/gemini-3:countTokens", Verb::Count, "gemini-3"),
            ("/gemini/v1beta/models/a:generateContent", Verb::Generate, "a"),
            ("/gemini/models/a:generateContent", Verb::Generate, "a"),
            ("/v1beta/models/models/a:generateContent", Verb::Generate, "a"),
            ("/v1beta/models/models%2Fa:generateContent", Verb::Generate, "a"),
            ("/v1beta/tunedModels/mine-7:generateContent", Verb::Generate, "tunedModels/mine-7"),
            ("/v1beta/models/tunedModels%2fmine:generateContent", Verb::Generate, "tunedModels/mine"),
            ("/v1beta/models/llama3:8b:streamGenerateContent", Verb::Stream, "llama3:8b"),
            ("/v1beta/models/llama3%3A8b:streamGenerateContent", Verb::Stream, "llama3:8b"),
            ("/v1beta/models/a%3AgenerateContent", Verb::Generate, "a"),
            ("/v1beta/models/org%2Fmodel:generateContent", Verb::Generate, "org/model"),
            ("/v1beta/models/org/model:generateContent", Verb::Generate, "org/model"),
        ] {
            let Place::InPath(found, segment) = place(path) else { panic!("{path}") };
            assert_eq!((found, named_model(segment).as_str()), (verb, model), "{path}");
        }
        assert_eq!(place("/v1/models/llama3:8b"), Place::Model("llama3:8b"));
        assert_eq!(place("/v1beta/models/:generateContent"), Place::Model(":generateContent"));
        assert_eq!(place("/models/gemini-3"), Place::Unknown);
        assert_eq!(place("/models"), Place::Unknown);
    }

    #[test]
    fn only_a_post_with_a_colon_asks_for_a_verb() {
        let unknown = |path, method| unknown_verb(&place(path), &method);
        assert_eq!(unknown("/v1beta/models/m:embedContent", Method::POST), Some("embedContent"));
        assert_eq!(unknown("/v1/models/m:GenerateContent", Method::POST), Some("GenerateContent"));
        assert_eq!(unknown("/v1/models/llama3:8b", Method::GET), None);
        assert_eq!(unknown("/v1/models/m", Method::POST), None);
        let message = no_such_verb("embedContent");
        assert!(message.contains(":generateContent, :streamGenerateContent, :countTokens"), "{message}");
    }

    #[test]
    fn a_parameter_is_found_by_its_whole_name_and_decoded() {
        let query = Some("monkey=1&key=a%2Bb+c&key=d&empty=");
        assert_eq!(query_value(query, "key").as_deref(), Some("a+b c"));
        assert_eq!(query_value(query, "empty"), None);
        assert_eq!(query_value(query, "nothing"), None);
        assert_eq!(query_value(None, "key"), None);
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
        for path in ["/v1/files", "/openai/v1/images/edits", "/v1/messages/batches", "/gemini/v1beta/cachedContents/c"]
        {
            let message = nothing_at(&Method::POST, path);
            assert!(message.contains("not in this version") && message.contains("/v1/messages"), "{message}");
        }
        assert_eq!(nothing_at(&Method::GET, "/v1/filesx"), "there is nothing at GET /v1/filesx");
    }

    #[test]
    fn every_route_is_also_under_each_prefix() {
        let chat = |operation| Place::Turn(Dialect::Chat, operation);
        for (path, expected) in [
            ("/v1/chat/completions", chat(Operation::Generate)),
            ("/v1/completions", chat(Operation::Complete)),
            ("/v1/embeddings", chat(Operation::Embed)),
            ("/v1/responses", Place::Turn(Dialect::Responses, Operation::Generate)),
            ("/v1/responses/input_tokens", Place::Turn(Dialect::Responses, Operation::CountTokens)),
            ("/v1/messages", Place::Turn(Dialect::Messages, Operation::Generate)),
            ("/v1/messages/count_tokens", Place::Turn(Dialect::Messages, Operation::CountTokens)),
            ("/v1/models", Place::Models),
            ("/v1beta/models", Place::Models),
            ("/v1/models/gpt", Place::Model("gpt")),
            ("/v1beta/models/gpt", Place::Model("gpt")),
            ("/v1beta/models/g:countTokens", Place::InPath(Verb::Count, "g")),
        ] {
            assert_eq!(place(path), expected, "{path}");
            for prefix in ["/openai", "/anthropic", "/gemini"] {
                assert_eq!(place(&format!("{prefix}{path}")), expected, "{prefix}{path}");
            }
        }
        assert_eq!(place("/openaix/v1/models"), Place::Unknown);
        assert_eq!(place("/openai/healthz"), Place::Unknown);
        assert_eq!(place("/v1/models/"), Place::Unknown);
        assert_eq!(place("/openai/v1/responses/resp_1"), Place::Stored(StoredPlace::Response("resp_1")));
        assert_eq!(place("/v1/responses"), Place::Turn(Dialect::Responses, Operation::Generate));
    }
}
