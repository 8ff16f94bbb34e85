//! A client's requests, in its dialect.

use crate::plan::Dialect;
use serde_json::{Value, json};

/// One exchange of a conversation: what was asked, and what was answered.
#[derive(Clone, Debug)]
pub struct Exchange {
    pub asked: String,
    pub answered: String,
}

/// Path and body of a request that goes on from these exchanges.
pub fn request(dialect: Dialect, model: &str, stream: bool, before: &[Exchange], asks: &str) -> (String, Value) {
    let said = |user: fn(&str) -> Value, model: fn(&str) -> Value| -> Vec<Value> {
        let before = before.iter().flat_map(|exchange| [user(&exchange.asked), model(&exchange.answered)]);
        before.chain([user(asks)]).collect()
    };
    match dialect {
        Dialect::Chat => {
            let messages = said(
                |text| json!({"role": "user", "content": text}),
                |text| json!({"role": "assistant", "content": text}),
            );
            ("/v1/chat/completions".into(), json!({"model": model, "stream": stream, "messages": messages}))
        }
        Dialect::Messages => {
            let messages = said(
                |text| json!({"role": "user", "content": [{"type": "text", "text": text}]}),
                |text| json!({"role": "assistant", "content": [{"type": "text", "text": text}]}),
            );
            let body = json!({"model": model, "stream": stream, "max_tokens": 8192, "messages": messages});
            ("/v1/messages".into(), body)
        }
        Dialect::Responses => {
            let input = said(
                |text| json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}),
                |text| json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}),
            );
            ("/v1/responses".into(), json!({"model": model, "stream": stream, "store": false, "input": input}))
        }
        Dialect::Gemini => {
            let contents = said(
                |text| json!({"role": "user", "parts": [{"text": text}]}),
                |text| json!({"role": "model", "parts": [{"text": text}]}),
            );
            let call = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
            (format!("/v1beta/models/{model}:{call}"), json!({"contents": contents}))
        }
    }
}
