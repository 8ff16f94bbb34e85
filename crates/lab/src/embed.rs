//! Vectors of texts, made from their letters: the same text has the same vector, and no model is needed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::frame::Refused;

/// How long a vector is that nobody asked otherwise for.
const LENGTH: usize = 8;

fn vector(text: &str, length: usize) -> Vec<f32> {
    let mut out = vec![0.0_f32; length.clamp(1, 4096)];
    let count = out.len();
    for (at, byte) in text.bytes().enumerate() {
        out[(at + usize::from(byte)) % count] += f32::from(byte) / 255.0;
    }
    out
}

fn length(value: &Value) -> usize {
    value.as_u64().and_then(|length| usize::try_from(length).ok()).unwrap_or(LENGTH)
}

/// OpenAI's embeddings.
pub(crate) fn openai(body: &Value) -> Result<Value, Refused> {
    let input = &body["input"];
    let texts: Vec<&str> = match (input.as_str(), input.as_array()) {
        (Some(text), _) => vec![text],
        (None, Some(list)) if !list.is_empty() => list.iter().map(|text| text.as_str().unwrap_or("tokens")).collect(),
        (None, _) => return Err(Refused::bad("'input' is a required property").param("input")),
    };
    let tokens: usize = texts.iter().map(|text| text.split_whitespace().count()).sum();
    let one = |(index, text): (usize, &&str)| {
        let vector = vector(text, length(&body["dimensions"]));
        let embedding = if body["encoding_format"] == "base64" {
            let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
            json!(STANDARD.encode(bytes))
        } else {
            json!(vector)
        };
        json!({"object": "embedding", "index": index, "embedding": embedding})
    };
    let data: Vec<Value> = texts.iter().enumerate().map(one).collect();
    let usage = json!({"prompt_tokens": tokens, "total_tokens": tokens});
    Ok(json!({"object": "list", "data": data, "model": body["model"], "usage": usage}))
}

/// Gemini's.
pub(crate) fn gemini(body: &Value) -> Result<Value, Refused> {
    let Some(requests) = body["requests"].as_array().filter(|requests| !requests.is_empty()) else {
        return Err(Refused::bad("* BatchEmbedContentsRequest.requests: at least one request is required"));
    };
    let one = |request: &Value| {
        let text = request["content"]["parts"][0]["text"].as_str().unwrap_or_default();
        json!({"values": vector(text, length(&request["outputDimensionality"]))})
    };
    Ok(json!({"embeddings": requests.iter().map(one).collect::<Vec<Value>>()}))
}
