//! The models list, in the shape of each dialect.

use serde_json::{Value, json};

use crate::ask::Dialect;

/// The names listed when a script lists none.
const LISTED: [&str; 2] = ["lab-1", "lab-mini"];

fn one(dialect: Dialect, id: &str) -> Value {
    match dialect {
        Dialect::Chat | Dialect::Completions | Dialect::Responses => {
            json!({"id": id, "object": "model", "created": 1_793_000_000, "owned_by": "lab"})
        }
        Dialect::Gemini => json!({
            "name": format!("models/{id}"), "version": "001", "displayName": format!("Lab model {id}"),
            "description": "A lab model.", "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536,
            "supportedGenerationMethods": ["generateContent", "countTokens"],
        }),
        Dialect::Messages => json!({
            "type": "model", "id": id, "display_name": format!("Lab model {id}"),
            "created_at": "2026-10-26T00:00:00Z", "max_input_tokens": 200_000, "max_tokens": 64_000,
        }),
    }
}

/// The list.
pub(crate) fn list(dialect: Dialect, known: &[String]) -> Value {
    let ids: Vec<&str> = match known.is_empty() {
        true => LISTED.to_vec(),
        false => known.iter().map(String::as_str).collect(),
    };
    let data: Vec<Value> = ids.iter().map(|id| one(dialect, id)).collect();
    match dialect {
        Dialect::Chat | Dialect::Completions | Dialect::Responses => json!({"object": "list", "data": data}),
        Dialect::Gemini => json!({"models": data}),
        Dialect::Messages => {
            json!({"data": data, "has_more": false, "first_id": ids.first(), "last_id": ids.last()})
        }
    }
}

/// One model, if it is known.
pub(crate) fn get(dialect: Dialect, id: &str, known: &[String]) -> Option<Value> {
    let listed = known.iter().any(|name| name == id) || (known.is_empty() && LISTED.contains(&id));
    listed.then(|| one(dialect, id))
}
