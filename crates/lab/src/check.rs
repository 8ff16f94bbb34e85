//! What a real upstream refuses of any request: no credential, not JSON, no model.

use http::HeaderMap;
use serde_json::Value;

use crate::ask::Dialect;
use crate::frame::Refused;
use crate::signature::Signatures;
use crate::{check_chat, check_messages};

/// The credential as sent: `x-api-key`, else the bearer token.
pub(crate) fn credential(headers: &HeaderMap) -> Option<String> {
    if let Some(key) = headers.get("x-api-key").and_then(|value| value.to_str().ok()) {
        return Some(key.to_owned());
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
        Dialect::Chat => Refused::new(401, "You didn't provide an API key.").code("invalid_api_key"),
        Dialect::Messages => Refused::new(401, "x-api-key header is required"),
    })
}

/// Checks a turn's headers and body.
pub(crate) fn turn(
    dialect: Dialect,
    headers: &HeaderMap,
    body: Option<&Value>,
    counts_only: bool,
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
        Dialect::Messages => check_messages::body(headers, body, counts_only, signatures)?,
    }
    let model = body["model"].as_str().unwrap_or_default();
    known_model(dialect, model, models)
}

/// 404 for a model that a script's list does not name.
pub(crate) fn known_model(dialect: Dialect, model: &str, models: &[String]) -> Result<(), Refused> {
    if models.is_empty() || models.iter().any(|known| known == model) {
        return Ok(());
    }
    Err(match dialect {
        Dialect::Chat => Refused::new(404, format!("The model `{model}` does not exist.")).code("model_not_found"),
        Dialect::Messages => Refused::new(404, format!("model: {model}")),
    })
}

/// Whether a tool's name is one both real APIs take.
pub(crate) fn is_tool_name(name: &str, most: usize) -> bool {
    (1..=most).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}
