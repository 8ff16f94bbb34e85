//! What a client understands of an answer, streamed or plain, and what it sends back of it: put together as the official
//! SDKs and the agents do.
//!
//! Included by `#[path = "support/heard.rs"] mod heard;`.

#![allow(dead_code, reason = "each test file uses a part of it")]

use serde_json::{Value, json};
use std::collections::BTreeMap;
use turnkeep_base::Dialect;

/// What a client has of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heard {
    pub text: String,
    pub thinking: String,
    /// Every proof in it, as the client sees it.
    pub proofs: Vec<String>,
    pub refusal: String,
    /// Id, name, arguments as text.
    pub calls: Vec<(String, String, String)>,
    /// What came in which order: thinking, text, refusal, call.
    pub order: Vec<&'static str>,
    pub finish: String,
    pub stop_sequence: Option<String>,
    /// All input, output with reasoning.
    pub usage: Option<(u64, u64)>,
    /// The messages, items, or contents that the client sends back.
    pub echo: Vec<Value>,
}

fn str_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

impl Heard {
    fn met(&mut self, what: &'static str) {
        if self.order.last() != Some(&what) || what == "call" {
            self.order.push(what);
        }
    }
}

/// Of a streamed answer.
pub fn stream(client: Dialect, datas: &[Value]) -> Heard {
    match client {
        Dialect::Chat => chat_stream(datas),
        Dialect::Responses => responses(&datas.last().unwrap()["response"]),
        Dialect::Messages => messages_stream(datas),
        Dialect::Gemini => gemini(datas),
    }
}

/// Of a plain answer.
pub fn whole(client: Dialect, body: &Value) -> Heard {
    match client {
        Dialect::Chat => chat_whole(body),
        Dialect::Responses => responses(body),
        Dialect::Messages => messages(body),
        Dialect::Gemini => gemini(std::slice::from_ref(body)),
    }
}

/// What the client says of the tools' results, each `done`.
pub fn results(client: Dialect, heard: &Heard) -> Vec<Value> {
    let calls = heard.calls.iter();
    match client {
        Dialect::Chat => calls.map(|(id, _, _)| json!({"role":"tool","tool_call_id":id,"content":"done"})).collect(),
        Dialect::Responses => {
            calls.map(|(id, _, _)| json!({"type":"function_call_output","call_id":id,"output":"done"})).collect()
        }
        Dialect::Messages => {
            let blocks: Vec<_> =
                calls.map(|(id, _, _)| json!({"type":"tool_result","tool_use_id":id,"content":"done"})).collect();
            vec![json!({"role":"user","content":blocks})]
        }
        Dialect::Gemini => {
            let part = |(id, name, _): &(String, String, String)| {
                let mut response = json!({"name":name,"response":{"output":"done"}});
                if !id.is_empty() {
                    response["id"] = json!(id);
                }
                json!({"functionResponse":response})
            };
            vec![json!({"role":"user","parts":calls.map(part).collect::<Vec<_>>()})]
        }
    }
}

fn chat_stream(datas: &[Value]) -> Heard {
    let mut message = json!({"role":"assistant","content":null});
    let mut calls: BTreeMap<u64, Value> = BTreeMap::new();
    let mut heard = Heard::default();
    for chunk in datas {
        let choice = &chunk["choices"][0];
        let delta = &choice["delta"];
        for field in ["reasoning_content", "content", "refusal"] {
            if let Some(more) = delta[field].as_str().filter(|more| !more.is_empty()) {
                message[field] = json!(format!("{}{more}", str_of(&message[field])));
                heard.met(match field {
                    "reasoning_content" => "thinking",
                    "content" => "text",
                    _ => "refusal",
                });
            }
        }
        for block in delta["thinking_blocks"].as_array().into_iter().flatten() {
            if message["thinking_blocks"].is_null() {
                message["thinking_blocks"] = json!([]);
            }
            message["thinking_blocks"].as_array_mut().unwrap().push(block.clone());
        }
        for part in delta["tool_calls"].as_array().into_iter().flatten() {
            let index = part["index"].as_u64().unwrap();
            let Some(call) = calls.get_mut(&index) else {
                heard.met("call");
                assert!(part["id"].is_string() && part["function"]["name"].is_string(), "{part}");
                let mut call = part.clone();
                call.as_object_mut().unwrap().remove("index");
                calls.insert(index, call);
                continue;
            };
            let more = [&call["function"]["arguments"], &part["function"]["arguments"]].map(str_of).concat();
            call["function"]["arguments"] = json!(more);
        }
        if let Some(reason) = choice["finish_reason"].as_str() {
            heard.finish = reason.into();
        }
        if chunk["usage"].is_object() {
            heard.usage =
                Some((number(&chunk["usage"]["prompt_tokens"]), number(&chunk["usage"]["completion_tokens"])));
        }
    }
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls.into_values().collect::<Vec<_>>());
    }
    chat_message(heard, message)
}

fn chat_whole(body: &Value) -> Heard {
    let choice = &body["choices"][0];
    let mut heard = Heard { finish: str_of(&choice["finish_reason"]).into(), ..Heard::default() };
    heard.usage = Some((number(&body["usage"]["prompt_tokens"]), number(&body["usage"]["completion_tokens"])));
    chat_message(heard, choice["message"].clone())
}

fn chat_message(mut heard: Heard, message: Value) -> Heard {
    heard.text = str_of(&message["content"]).into();
    heard.thinking = str_of(&message["reasoning_content"]).into();
    heard.refusal = str_of(&message["refusal"]).into();
    for block in message["thinking_blocks"].as_array().into_iter().flatten() {
        let proof = [&block["signature"], &block["data"]].map(str_of).concat();
        heard.proofs.extend((!proof.is_empty()).then_some(proof));
    }
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        let function = &call["function"];
        let text = |value: &Value| str_of(value).to_owned();
        heard.calls.push((text(&call["id"]), text(&function["name"]), text(&function["arguments"])));
        let proof = str_of(&call["extra_content"]["google"]["thought_signature"]);
        heard.proofs.extend((!proof.is_empty()).then(|| proof.to_owned()));
    }
    heard.echo = vec![message];
    heard
}

fn responses(response: &Value) -> Heard {
    let mut heard = Heard { finish: str_of(&response["status"]).into(), ..Heard::default() };
    if let Some(reason) = response["incomplete_details"]["reason"].as_str() {
        heard.finish = reason.into();
    }
    let usage = &response["usage"];
    heard.usage = usage.is_object().then(|| (number(&usage["input_tokens"]), number(&usage["output_tokens"])));
    for item in response["output"].as_array().unwrap() {
        match str_of(&item["type"]) {
            "reasoning" => {
                heard.met("thinking");
                for part in
                    item["summary"].as_array().unwrap().iter().chain(item["content"].as_array().into_iter().flatten())
                {
                    heard.thinking += str_of(&part["text"]);
                }
                let proof = str_of(&item["encrypted_content"]);
                heard.proofs.extend((!proof.is_empty()).then(|| proof.to_owned()));
            }
            "message" => {
                for part in item["content"].as_array().unwrap() {
                    heard.met(if part["type"] == "refusal" { "refusal" } else { "text" });
                    heard.text += str_of(&part["text"]);
                    heard.refusal += str_of(&part["refusal"]);
                }
            }
            "function_call" => {
                heard.met("call");
                let text = |field: &str| str_of(&item[field]).to_owned();
                heard.calls.push((text("call_id"), text("name"), text("arguments")));
            }
            other => panic!("an item of the type {other}"),
        }
    }
    heard.echo = response["output"].as_array().unwrap().clone();
    heard
}

fn messages_stream(datas: &[Value]) -> Heard {
    let mut body = json!({"content":[],"usage":{}});
    let mut inputs: Vec<String> = Vec::new();
    for data in datas {
        let index = number(&data["index"]) as usize;
        match str_of(&data["type"]) {
            "message_start" => body["usage"] = data["message"]["usage"].clone(),
            "content_block_start" => {
                body["content"].as_array_mut().unwrap().push(data["content_block"].clone());
                inputs.push(String::new());
            }
            "content_block_delta" => {
                inputs[index] += str_of(&data["delta"]["partial_json"]);
                let block = &mut body["content"][index];
                for field in ["text", "thinking", "signature"] {
                    if let Some(more) = data["delta"][field].as_str() {
                        block[field] = json!(format!("{}{more}", str_of(&block[field])));
                    }
                }
            }
            "message_delta" => {
                for field in ["stop_reason", "stop_sequence"] {
                    body[field] = data["delta"][field].clone();
                }
                for (key, value) in data["usage"].as_object().unwrap() {
                    body["usage"][key] = value.clone();
                }
            }
            _ => {}
        }
    }
    for (block, input) in body["content"].as_array_mut().unwrap().iter_mut().zip(&inputs) {
        if !input.is_empty() {
            block["input"] = serde_json::from_str(input).unwrap_or_else(|error| panic!("{error}: {input}"));
        }
    }
    messages(&body)
}

fn messages(body: &Value) -> Heard {
    let mut heard = Heard { finish: str_of(&body["stop_reason"]).into(), ..Heard::default() };
    heard.stop_sequence = body["stop_sequence"].as_str().map(Into::into);
    let usage = &body["usage"];
    let input = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
    heard.usage = Some((input.map(|field| number(&usage[field])).iter().sum(), number(&usage["output_tokens"])));
    for block in body["content"].as_array().unwrap() {
        match str_of(&block["type"]) {
            "thinking" => {
                heard.met("thinking");
                heard.thinking += str_of(&block["thinking"]);
                assert!(!str_of(&block["signature"]).is_empty(), "unsigned: {block}");
                heard.proofs.push(str_of(&block["signature"]).into());
            }
            "redacted_thinking" => heard.proofs.push(str_of(&block["data"]).into()),
            "text" => {
                heard.met("text");
                heard.text += str_of(&block["text"]);
            }
            "tool_use" => {
                heard.met("call");
                let text = |field: &str| str_of(&block[field]).to_owned();
                heard.calls.push((text("id"), text("name"), block["input"].to_string()));
            }
            other => panic!("a block of the type {other}"),
        }
    }
    heard.echo = vec![json!({"role":"assistant","content":body["content"]})];
    heard
}

/// Chunks of a stream, or one whole answer.
fn gemini(chunks: &[Value]) -> Heard {
    let mut heard = Heard::default();
    let mut parts: Vec<Value> = Vec::new();
    for chunk in chunks {
        let candidate = &chunk["candidates"][0];
        for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
            let said = str_of(&part["text"]);
            if part["thought"] == true {
                heard.met("thinking");
                heard.thinking += said;
            } else if part["functionCall"].is_object() {
                heard.met("call");
                let call = &part["functionCall"];
                let text = |field: &str| str_of(&call[field]).to_owned();
                heard.calls.push((text("id"), text("name"), call["args"].to_string()));
            } else if !said.is_empty() {
                heard.met("text");
                heard.text += said;
            }
            let proof = str_of(&part["thoughtSignature"]);
            heard.proofs.extend((!proof.is_empty()).then(|| proof.to_owned()));
            parts.push(part.clone());
        }
        if let Some(reason) = candidate["finishReason"].as_str() {
            heard.finish = reason.into();
        }
        let usage = &chunk["usageMetadata"];
        if usage.is_object() {
            let output = number(&usage["candidatesTokenCount"]) + number(&usage["thoughtsTokenCount"]);
            heard.usage = Some((number(&usage["promptTokenCount"]), output));
        }
    }
    heard.echo = vec![json!({"role":"model","parts":parts})];
    heard
}
