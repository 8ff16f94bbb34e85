//! What a real upstream refuses of any request: no credential, not JSON, no model.

use http::HeaderMap;
use serde_json::Value;

use crate::ask::Dialect;
use crate::frame::Refused;
use crate::signature::Signatures;
use crate::{check_chat, check_gemini, check_messages, check_responses};

/// The credential as sent: `x-api-key`, `x-goog-api-key`, else the bearer token.
pub(crate) fn credential(headers: &HeaderMap) -> Option<String> {
    for name in ["x-api-key", "x-goog-api-key"] {
        if let Some(key) = headers.get(name).and_then(|value| value.to_str().ok()) {
            return Some(key.to_owned());
        }
    }
    let value = headers.get(http::header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty()).then(|| token.trim().to_owned())
}

/// 401 without a credential.
pub(crate) fn entitled(dialect: Dialect, headers: &HeaderMap) -> Result<(), Refused> {
    if credential(headers).is_some_and(|key| !key.is_empty()) {
        return Ok(());
    }
    Err(match dialect {
        Dialect::Chat | Dialect::Completions | Dialect::Responses => {
            Refused::new(401, "You didn't provide an API key.").code("invalid_api_key")
        }
        Dialect::Gemini => Refused::new(403, "Method doesn't allow unregistered callers."),
        Dialect::Messages => Refused::new(401, "x-api-key header is required"),
    })
}

/// Checks a turn's headers and body.
pub(crate) fn turn(
    dialect: Dialect,
    headers: &HeaderMap,
    body: Option<&Value>,
    counts_only: bool,
    model: &str,
    models: &[String],
    signatures: &Signatures,
) -> Result<(), Refused> {
    entitled(dialect, headers)?;
    if dialect == Dialect::Messages {
        check_messages::version(headers)?;
    }
    let body = body.ok_or_else(|| Refused::bad("The request body is not valid JSON."))?;
    if !body.is_object() {
        return Err(Refused::bad("The request body is not a JSON object."));
    }
    match dialect {
        Dialect::Chat => check_chat::body(body)?,
        Dialect::Completions if body["prompt"].is_null() => {
            return Err(Refused::bad("you must provide a prompt").param("prompt"));
        }
        Dialect::Completions => {}
        Dialect::Responses => check_responses::body(body, signatures)?,
        Dialect::Gemini if counts_only && body["generateContentRequest"].is_object() => {
            let mut inner = body["generateContentRequest"].clone();
            if let Some(map) = inner.as_object_mut() {
                map.remove("model");
            }
            check_gemini::body(&inner, model, signatures)?;
        }
        Dialect::Gemini => check_gemini::body(body, model, signatures)?,
        Dialect::Messages => check_messages::body(headers, body, counts_only, signatures)?,
    }
    known_model(dialect, model, models)
}

/// 404 for a model that a script's list does not name.
pub(crate) fn known_model(dialect: Dialect, model: &str, models: &[String]) -> Result<(), Refused> {
    if models.is_empty() || models.iter().any(|known| known == model) {
        return Ok(());
    }
    Err(match dialect {
        Dialect::Chat | Dialect::Completions | Dialect::Responses => {
            Refused::new(404, format!("The model `{model}` does not exist.")).code("model_not_found")
        }
        Dialect::Gemini => Refused::new(
            404,
            format!("models/{model} is not found for API version v1beta, or is not supported for generateContent."),
        ),
        Dialect::Messages => Refused::new(404, format!("model: {model}")),
    })
}

/// Whether a tool's name is one both real APIs take.
pub(crate) fn is_tool_name(name: &str, most: usize) -> bool {
    (1..=most).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}
