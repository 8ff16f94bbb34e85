//! Answers as each vendor writes them, streamed and plain, out of one list of what the model says.
//!
//! Included by `#[path = "support/answers.rs"] mod answers;`.

#![allow(dead_code, reason = "each test file uses a part of it")]

use serde_json::{Value, json};
use turnkeep_base::Dialect;

/// One thing that the model says.
#[derive(Clone, Debug)]
pub enum Say {
    /// It thinks; with its provider's proof, which Chat has none of and Gemini puts on the next part.
    Think(String, String),
    /// It speaks, in pieces.
    Text(Vec<String>),
    /// It refuses in words.
    Refuse(String),
    /// It calls a tool: id, name, arguments in pieces.
    Call(String, String, Vec<String>),
}

pub fn think(text: &str, proof: &str) -> Say {
    Say::Think(text.into(), proof.into())
}

pub fn text(text: &str) -> Say {
    // Two pieces where there are two letters, so that streams are streams.
    let at = text.char_indices().nth(1).map_or(0, |(at, _)| at);
    Say::Text(vec![text[..at].into(), text[at..].into()])
}

pub fn call(id: &str, name: &str, arguments: &str) -> Say {
    let at = arguments.char_indices().nth(3).map_or(0, |(at, _)| at);
    Say::Call(id.into(), name.into(), vec![arguments[..at].into(), arguments[at..].into()])
}

/// Why it stops, in the vendor's words.
pub fn reason(upstream: Dialect, end: &str) -> &'static str {
    match (upstream, end) {
        (Dialect::Chat, "length") => "length",
        (Dialect::Chat, "tools") => "tool_calls",
        (Dialect::Chat, "filter") => "content_filter",
        (Dialect::Chat, _) => "stop",
        (Dialect::Responses, "length") => "max_output_tokens",
        (Dialect::Responses, "filter") => "content_filter",
        (Dialect::Responses, _) => "completed",
        (Dialect::Messages, "length") => "max_tokens",
        (Dialect::Messages, "tools") => "tool_use",
        (Dialect::Messages, "filter") => "refusal",
        (Dialect::Messages, _) => "end_turn",
        (Dialect::Gemini, "length") => "MAX_TOKENS",
        (Dialect::Gemini, "filter") => "SAFETY",
        (Dialect::Gemini, _) => "STOP",
    }
}

/// The answer as a stream.
pub fn streamed(upstream: Dialect, says: &[Say], end: &str) -> String {
    let reason = reason(upstream, end);
    match upstream {
        Dialect::Chat => chat_stream(&chat_deltas(says), reason),
        Dialect::Responses => responses_stream(says, reason),
        Dialect::Messages => messages_stream(&messages_events(says), reason),
        Dialect::Gemini => gemini_stream(&gemini_parts(says), reason),
    }
}

/// The same answer at once.
pub fn whole(upstream: Dialect, says: &[Say], end: &str) -> Value {
    let reason = reason(upstream, end);
    match upstream {
        Dialect::Chat => chat_whole(says, reason),
        Dialect::Responses => response(&says.iter().enumerate().map(item).collect::<Vec<_>>(), reason),
        Dialect::Messages => messages_whole(says, reason),
        Dialect::Gemini => gemini_chunk(json!(gemini_parts(says)), Some(reason)),
    }
}

// Chat.

fn chat_deltas(says: &[Say]) -> Vec<Value> {
    let mut out = vec![json!({"role":"assistant","content":""})];
    let mut calls = 0;
    for say in says {
        match say {
            Say::Think(text, _) => out.push(json!({"reasoning_content":text})),
            Say::Text(pieces) => out.extend(pieces.iter().map(|piece| json!({"content":piece}))),
            Say::Refuse(text) => out.push(json!({"refusal":text})),
            Say::Call(id, name, pieces) => {
                let function = json!({"name":name,"arguments":""});
                out.push(json!({"tool_calls":[{"index":calls,"id":id,"type":"function","function":function}]}));
                let more = |piece| json!({"tool_calls":[{"index":calls,"function":{"arguments":piece}}]});
                out.extend(pieces.iter().map(more));
                calls += 1;
            }
        }
    }
    out
}

pub fn chat_stream(deltas: &[Value], finish: &str) -> String {
    let chunk = |choices: Value, usage: Value| {
        let chunk = json!({"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"up","choices":choices,"usage":usage});
        format!("data: {chunk}\n\n")
    };
    let choice = |delta: &Value, finish: Value| json!([{"index":0,"delta":delta,"finish_reason":finish}]);
    let mut out: String = deltas.iter().map(|delta| chunk(choice(delta, Value::Null), Value::Null)).collect();
    out += &chunk(choice(&json!({}), json!(finish)), Value::Null);
    out += &chunk(json!([]), chat_usage());
    out + "data: [DONE]\n\n"
}

fn chat_usage() -> Value {
    json!({"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":2},"completion_tokens_details":{"reasoning_tokens":3}})
}

fn grow(field: &mut Value, more: &str) {
    *field = json!(field.as_str().unwrap_or_default().to_owned() + more);
}

fn chat_whole(says: &[Say], finish: &str) -> Value {
    let mut message = json!({"role":"assistant","content":null});
    for say in says {
        match say {
            Say::Think(text, _) => grow(&mut message["reasoning_content"], text),
            Say::Text(pieces) => grow(&mut message["content"], &pieces.concat()),
            Say::Refuse(text) => grow(&mut message["refusal"], text),
            Say::Call(id, name, pieces) => {
                if message["tool_calls"].is_null() {
                    message["tool_calls"] = json!([]);
                }
                let function = json!({"name":name,"arguments":pieces.concat()});
                let call = json!({"id":id,"type":"function","function":function});
                message["tool_calls"].as_array_mut().unwrap().push(call);
            }
        }
    }
    json!({"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"up","choices":[{"index":0,"message":message,"finish_reason":finish}],"usage":chat_usage()})
}

// Messages.

fn messages_block(say: &Say) -> Value {
    match say {
        Say::Think(text, proof) => json!({"type":"thinking","thinking":text,"signature":proof}),
        Say::Text(pieces) => json!({"type":"text","text":pieces.concat()}),
        Say::Refuse(text) => json!({"type":"text","text":text}),
        Say::Call(id, name, pieces) => {
            let input: Value = serde_json::from_str(&pieces.concat()).unwrap_or_else(|_| json!({}));
            json!({"type":"tool_use","id":id,"name":name,"input":input})
        }
    }
}

fn messages_events(says: &[Say]) -> Vec<Value> {
    let mut out = Vec::new();
    for (index, say) in says.iter().enumerate() {
        let mut block = messages_block(say);
        let deltas: Vec<Value> = match say {
            Say::Think(text, proof) => {
                block = json!({"type":"thinking","thinking":"","signature":""});
                vec![
                    json!({"type":"thinking_delta","thinking":text}),
                    json!({"type":"signature_delta","signature":proof}),
                ]
            }
            Say::Text(pieces) => {
                block["text"] = json!("");
                pieces.iter().map(|piece| json!({"type":"text_delta","text":piece})).collect()
            }
            Say::Refuse(text) => {
                block["text"] = json!("");
                vec![json!({"type":"text_delta","text":text})]
            }
            Say::Call(_, _, pieces) => {
                block["input"] = json!({});
                pieces.iter().map(|piece| json!({"type":"input_json_delta","partial_json":piece})).collect()
            }
        };
        out.push(json!({"type":"content_block_start","index":index,"content_block":block}));
        let wrap = |delta| json!({"type":"content_block_delta","index":index,"delta":delta});
        out.extend(deltas.into_iter().map(wrap));
        out.push(json!({"type":"content_block_stop","index":index}));
    }
    out
}

pub fn messages_stream(events: &[Value], reason: &str) -> String {
    let start = json!({"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"up","content":[],
        "stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":8,"cache_read_input_tokens":2,"output_tokens":1}}});
    let end = json!({"type":"message_delta","delta":{"stop_reason":reason,"stop_sequence":null},
        "usage":{"output_tokens":5,"output_tokens_details":{"thinking_tokens":3}}});
    let all = [start].into_iter().chain(events.iter().cloned()).chain([end, json!({"type":"message_stop"})]);
    all.map(|data| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap())).collect()
}

fn messages_whole(says: &[Say], reason: &str) -> Value {
    let content: Vec<_> = says.iter().map(messages_block).collect();
    json!({"id":"msg_1","type":"message","role":"assistant","model":"up","content":content,"stop_reason":reason,"stop_sequence":null,
        "usage":{"input_tokens":8,"cache_read_input_tokens":2,"output_tokens":5,"output_tokens_details":{"thinking_tokens":3}}})
}

// Gemini.

/// A proof stands on the call that the thought led to.
fn gemini_parts(says: &[Say]) -> Vec<Value> {
    let mut out = Vec::new();
    let mut proof: Option<&str> = None;
    for say in says {
        let mut part = match say {
            Say::Think(text, state) => {
                proof = (!state.is_empty()).then_some(state);
                out.push(json!({"text":text,"thought":true}));
                continue;
            }
            Say::Text(pieces) => json!({"text":pieces.concat()}),
            Say::Refuse(text) => json!({"text":text}),
            Say::Call(id, name, pieces) => {
                let args: Value = serde_json::from_str(&pieces.concat()).unwrap_or_else(|_| json!({}));
                json!({"functionCall":{"id":id,"name":name,"args":args}})
            }
        };
        if matches!(say, Say::Call(..))
            && let Some(proof) = proof.take()
        {
            part["thoughtSignature"] = json!(proof);
        }
        out.push(part);
    }
    out
}

fn gemini_chunk(parts: Value, reason: Option<&str>) -> Value {
    let mut candidate = json!({"content":{"parts":parts,"role":"model"},"index":0});
    if let Some(reason) = reason {
        candidate["finishReason"] = json!(reason);
    }
    json!({"candidates":[candidate],"modelVersion":"up","responseId":"r1",
        "usageMetadata":{"promptTokenCount":10,"cachedContentTokenCount":2,"candidatesTokenCount":2,"thoughtsTokenCount":3,"totalTokenCount":15}})
}

pub fn gemini_stream(parts: &[Value], reason: &str) -> String {
    let last = gemini_chunk(json!([{"text":""}]), Some(reason));
    let chunks = parts.iter().map(|part| gemini_chunk(json!([part]), None)).chain([last]);
    chunks.map(|chunk| format!("data: {chunk}\r\n\r\n")).collect()
}

// Responses.

fn item((at, say): (usize, &Say)) -> Value {
    match say {
        Say::Think(text, proof) => {
            json!({"type":"reasoning","id":format!("rs_{at}"),"summary":[{"type":"summary_text","text":text}],"encrypted_content":proof})
        }
        Say::Text(pieces) => {
            let part = json!({"type":"output_text","text":pieces.concat(),"annotations":[],"logprobs":[]});
            json!({"type":"message","id":format!("msg_{at}"),"status":"completed","role":"assistant","content":[part]})
        }
        Say::Refuse(text) => {
            let part = json!({"type":"refusal","refusal":text});
            json!({"type":"message","id":format!("msg_{at}"),"status":"completed","role":"assistant","content":[part]})
        }
        Say::Call(id, name, pieces) => {
            json!({"type":"function_call","id":format!("fc_{at}"),"call_id":id,"name":name,"arguments":pieces.concat(),"status":"completed"})
        }
    }
}

pub fn response(output: &[Value], reason: &str) -> Value {
    let complete = reason == "completed";
    let details = if complete { Value::Null } else { json!({"reason":reason}) };
    json!({"id":"resp_1","object":"response","created_at":1,"model":"up","output":output,
        "status":if complete { "completed" } else { "incomplete" },"incomplete_details":details,"error":null,
        "background":false,"completed_at":complete.then_some(2),"instructions":null,"max_output_tokens":null,"max_tool_calls":null,"metadata":{},
        "parallel_tool_calls":true,"previous_response_id":null,"prompt_cache_key":null,"reasoning":{"effort":null,"summary":null},
        "safety_identifier":null,"service_tier":"default","store":false,"temperature":1.0,"text":{"format":{"type":"text"}},
        "tool_choice":"auto","tools":[],"top_logprobs":0,"top_p":1.0,"truncation":"disabled","user":null,
        "usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":2,"cache_write_tokens":0},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":3},"total_tokens":15}})
}

/// A response that has just begun.
pub fn begun() -> Value {
    let mut begun = response(&[], "completed");
    for (field, value) in [("status", json!("in_progress")), ("usage", Value::Null), ("completed_at", Value::Null)] {
        begun[field] = value;
    }
    begun
}

fn responses_stream(says: &[Say], reason: &str) -> String {
    let mut events = Vec::new();
    events.push(json!({"type":"response.created","response":begun()}));
    events.push(json!({"type":"response.in_progress","response":begun()}));
    let items: Vec<Value> = says.iter().enumerate().map(item).collect();
    for (at, (say, item)) in says.iter().zip(&items).enumerate() {
        let id = item["id"].clone();
        let event = |kind: &str, more: Value| {
            let mut event = json!({"type":format!("response.{kind}"),"item_id":id,"output_index":at});
            event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            event
        };
        let mut opened = item.clone();
        for (field, empty) in [("content", json!([])), ("summary", json!([])), ("arguments", json!(""))] {
            if opened.get(field).is_some() {
                opened[field] = empty;
            }
        }
        if opened.get("status").is_some() {
            opened["status"] = json!("in_progress");
        }
        if opened.get("encrypted_content").is_some() {
            opened["encrypted_content"] = json!("");
        }
        events.push(json!({"type":"response.output_item.added","output_index":at,"item":opened}));
        match say {
            Say::Think(text, _) => {
                let part = json!({"type":"summary_text","text":text});
                events.push(event(
                    "reasoning_summary_part.added",
                    json!({"summary_index":0,"part":{"type":"summary_text","text":""}}),
                ));
                events.push(event("reasoning_summary_text.delta", json!({"summary_index":0,"delta":text})));
                events.push(event("reasoning_summary_text.done", json!({"summary_index":0,"text":text})));
                events.push(event("reasoning_summary_part.done", json!({"summary_index":0,"part":part})));
            }
            Say::Text(pieces) => {
                let empty = json!({"type":"output_text","text":"","annotations":[],"logprobs":[]});
                events.push(event("content_part.added", json!({"content_index":0,"part":empty})));
                let delta = |piece| event("output_text.delta", json!({"content_index":0,"delta":piece,"logprobs":[]}));
                events.extend(pieces.iter().map(delta));
                let done = json!({"content_index":0,"text":pieces.concat(),"logprobs":[]});
                events.push(event("output_text.done", done));
                events.push(event("content_part.done", json!({"content_index":0,"part":item["content"][0]})));
            }
            Say::Refuse(text) => {
                let empty = json!({"type":"refusal","refusal":""});
                events.push(event("content_part.added", json!({"content_index":0,"part":empty})));
                events.push(event("refusal.delta", json!({"content_index":0,"delta":text})));
                events.push(event("refusal.done", json!({"content_index":0,"refusal":text})));
                events.push(event("content_part.done", json!({"content_index":0,"part":item["content"][0]})));
            }
            Say::Call(_, name, pieces) => {
                events
                    .extend(pieces.iter().map(|piece| event("function_call_arguments.delta", json!({"delta":piece}))));
                let done = json!({"name":name,"arguments":pieces.concat()});
                events.push(event("function_call_arguments.done", done));
            }
        }
        events.push(json!({"type":"response.output_item.done","output_index":at,"item":item}));
    }
    let complete = reason == "completed";
    let last = if complete { "response.completed" } else { "response.incomplete" };
    events.push(json!({"type":last,"response":response(&items, reason)}));
    numbered(events)
}

/// Events of Responses, with their sequence numbers.
pub fn numbered(events: Vec<Value>) -> String {
    let mut out = String::new();
    for (number, mut event) in events.into_iter().enumerate() {
        event["sequence_number"] = json!(number);
        out += &format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    }
    out
}
