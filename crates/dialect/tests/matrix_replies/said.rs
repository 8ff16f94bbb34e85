//! What a client gets out of an answer: streams and whole answers put together as the official SDKs do it.

use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What a client understands of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Said {
    pub text: String,
    pub thinking: String,
    pub signature: String,
    pub refusal: String,
    /// Id, name, arguments.
    pub calls: Vec<(String, String, Value)>,
    pub finish: String,
    pub stop_sequence: Option<String>,
    /// Fresh input, read from the cache, written to it, output, reasoning.
    pub usage: Option<[u64; 5]>,
}

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

pub fn arguments(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("arguments {json}: {error}"))
}

pub fn chat_usage(usage: &Value) -> Option<[u64; 5]> {
    usage.is_object().then(|| {
        let (read, written) = (
            number(&usage["prompt_tokens_details"]["cached_tokens"]),
            number(&usage["prompt_tokens_details"]["cache_write_tokens"]),
        );
        let reasoning = number(&usage["completion_tokens_details"]["reasoning_tokens"]);
        [
            number(&usage["prompt_tokens"]) - read - written,
            read,
            written,
            number(&usage["completion_tokens"]),
            reasoning,
        ]
    })
}

pub fn messages_usage(usage: &Value) -> Option<[u64; 5]> {
    let of = |name: &str| number(&usage[name]);
    let reasoning = number(&usage["output_tokens_details"]["thinking_tokens"]);
    usage.is_object().then(|| {
        [
            of("input_tokens"),
            of("cache_read_input_tokens"),
            of("cache_creation_input_tokens"),
            of("output_tokens"),
            reasoning,
        ]
    })
}

/// As a Chat SDK puts a stream together.
pub fn chat_stream(datas: &[Value]) -> Said {
    let mut said = Said::default();
    let mut calls: BTreeMap<u64, (String, String, String)> = BTreeMap::new();
    for chunk in datas {
        let choice = &chunk["choices"][0];
        let delta = &choice["delta"];
        said.text += text(&delta["content"]);
        said.thinking += text(&delta["reasoning_content"]);
        said.signature += text(&delta["thinking_blocks"][0]["signature"]);
        said.refusal += text(&delta["refusal"]);
        for part in delta["tool_calls"].as_array().into_iter().flatten() {
            let call = calls.entry(part["index"].as_u64().unwrap()).or_default();
            call.0 += text(&part["id"]);
            call.1 += text(&part["function"]["name"]);
            call.2 += text(&part["function"]["arguments"]);
        }
        if let Some(reason) = choice["finish_reason"].as_str() {
            said.finish = reason.into();
        }
        said.usage = chat_usage(&chunk["usage"]).or(said.usage);
    }
    said.calls = calls.into_values().map(|(id, name, json)| (id, name, arguments(&json))).collect();
    said
}

/// As a Messages SDK puts a stream together.
pub fn messages_stream(datas: &[Value]) -> Said {
    let mut blocks: Vec<Value> = Vec::new();
    let mut inputs: Vec<String> = Vec::new();
    let (mut end, mut usage) = (json!({}), json!({}));
    for data in datas {
        let index = number(&data["index"]) as usize;
        match text(&data["type"]) {
            "message_start" => usage = data["message"]["usage"].clone(),
            "content_block_start" => {
                blocks.push(data["content_block"].clone());
                inputs.push(String::new());
            }
            "content_block_delta" => {
                inputs[index] += text(&data["delta"]["partial_json"]);
                for field in ["text", "thinking", "signature"] {
                    if let Some(more) = data["delta"][field].as_str() {
                        blocks[index][field] = format!("{}{more}", text(&blocks[index][field])).into();
                    }
                }
            }
            "message_delta" => {
                end = data["delta"].clone();
                for (key, value) in data["usage"].as_object().unwrap() {
                    usage[key] = value.clone();
                }
            }
            _ => {}
        }
    }
    for (block, input) in blocks.iter_mut().zip(inputs) {
        if block["type"] == "tool_use" && !input.is_empty() {
            block["input"] = arguments(&input);
        }
    }
    end["content"] = blocks.into();
    end["usage"] = usage;
    messages_plain(&end)
}

pub fn chat_plain(body: &Value) -> Said {
    let message = &body["choices"][0]["message"];
    let call = |call: &Value| {
        let function = &call["function"];
        (text(&call["id"]).to_owned(), text(&function["name"]).to_owned(), arguments(text(&function["arguments"])))
    };
    Said {
        text: text(&message["content"]).into(),
        thinking: text(&message["reasoning_content"]).into(),
        signature: text(&message["thinking_blocks"][0]["signature"]).into(),
        refusal: text(&message["refusal"]).into(),
        calls: message["tool_calls"].as_array().into_iter().flatten().map(call).collect(),
        finish: text(&body["choices"][0]["finish_reason"]).into(),
        stop_sequence: None,
        usage: chat_usage(&body["usage"]),
    }
}

pub fn messages_plain(body: &Value) -> Said {
    let mut said = Said { finish: text(&body["stop_reason"]).into(), ..Said::default() };
    said.stop_sequence = body["stop_sequence"].as_str().map(str::to_owned);
    said.usage = messages_usage(&body["usage"]);
    for block in body["content"].as_array().unwrap() {
        said.text += text(&block["text"]);
        said.thinking += text(&block["thinking"]);
        said.signature += text(&block["signature"]);
        if block["type"] == "tool_use" {
            said.calls.push((text(&block["id"]).into(), text(&block["name"]).into(), block["input"].clone()));
        }
    }
    said
}
