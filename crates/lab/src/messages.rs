//! Messages as an upstream speaks it: the shapes of replies, events and errors.

use serde_json::{Value, json};

use crate::answer::{Answer, Finish, Usage};
use crate::frame::{Mark, Piece};
use crate::script::ErrorSpec;

fn id(answer: &Answer) -> String {
    format!("msg_lab{:06}", answer.id)
}

fn stop_reason(finish: &Finish) -> &str {
    match finish {
        Finish::Stop => "end_turn",
        Finish::Length => "max_tokens",
        Finish::StopSequence(_) => "stop_sequence",
        Finish::ToolCalls => "tool_use",
        Finish::Refusal => "refusal",
        Finish::Other(word) => word,
    }
}

fn stop_fields(answer: &Answer) -> (Value, Value) {
    let sequence = match &answer.finish {
        Finish::StopSequence(stop) => json!(stop),
        Finish::Stop | Finish::Length | Finish::ToolCalls | Finish::Refusal | Finish::Other(_) => Value::Null,
    };
    let details = match answer.finish == Finish::Refusal {
        true => json!({"type": "refusal", "category": null, "explanation": answer.refusal}),
        false => Value::Null,
    };
    (sequence, details)
}

fn usage(usage: &Usage, output: u64) -> Value {
    json!({
        // The three input counts are disjoint here.
        "input_tokens": usage.prompt.saturating_sub(usage.cached + usage.cache_write),
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cached,
        "cache_creation": {"ephemeral_5m_input_tokens": usage.cache_write, "ephemeral_1h_input_tokens": 0},
        "output_tokens": output,
        "service_tier": "standard",
    })
}

fn final_usage(counts: &Usage) -> Value {
    let mut value = usage(counts, counts.completion);
    if counts.reasoning > 0 {
        value["output_tokens_details"] = json!({"thinking_tokens": counts.reasoning});
    }
    value
}

/// The reply in one body.
pub(crate) fn whole(answer: &Answer) -> Vec<u8> {
    let mut content = Vec::new();
    if let Some(thought) = &answer.thought {
        content.push(json!({"type": "thinking", "thinking": thought.words.concat(), "signature": thought.signature}));
    }
    if !answer.words.is_empty() {
        content.push(json!({"type": "text", "text": answer.words.concat()}));
    }
    for call in &answer.calls {
        let input: Value = serde_json::from_str(&call.arguments()).unwrap_or_else(|_| json!({}));
        content.push(json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input}));
    }
    let (sequence, details) = stop_fields(answer);
    let body = json!({
        "id": id(answer), "type": "message", "role": "assistant", "model": answer.model, "content": content,
        "stop_reason": stop_reason(&answer.finish), "stop_sequence": sequence, "stop_details": details,
        "usage": final_usage(&answer.usage),
    });
    body.to_string().into_bytes()
}

fn event(data: &Value) -> String {
    let name = data["type"].as_str().unwrap_or("error");
    format!("event: {name}\ndata: {data}\n\n")
}

/// The reply as a stream.
pub(crate) fn stream(answer: &Answer) -> Vec<Piece> {
    let mut out = Vec::new();
    let start = json!({"type": "message_start", "message": {
        "id": id(answer), "type": "message", "role": "assistant", "model": answer.model, "content": [],
        "stop_reason": null, "stop_sequence": null, "stop_details": null, "usage": usage(&answer.usage, 1),
    }});
    out.push(Piece::new(Mark::Preamble, event(&start)));
    out.push(Piece::new(Mark::Preamble, event(&json!({"type": "ping"}))));
    let mut blocks = Blocks { out, index: 0 };
    if let Some(thought) = &answer.thought {
        blocks.open(&json!({"type": "thinking", "thinking": "", "signature": ""}));
        for word in &thought.words {
            blocks.delta(Mark::Word, &json!({"type": "thinking_delta", "thinking": word}));
        }
        blocks.delta(Mark::Between, &json!({"type": "signature_delta", "signature": thought.signature}));
        blocks.close();
    }
    if !answer.words.is_empty() {
        blocks.open(&json!({"type": "text", "text": ""}));
        for word in &answer.words {
            blocks.delta(Mark::Word, &json!({"type": "text_delta", "text": word}));
        }
        blocks.close();
    }
    for call in &answer.calls {
        blocks.open(&json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}}));
        for fragment in &call.fragments {
            blocks.delta(Mark::Word, &json!({"type": "input_json_delta", "partial_json": fragment}));
        }
        blocks.close();
    }
    let mut out = blocks.out;
    let (sequence, details) = stop_fields(answer);
    let end = json!({"type": "message_delta",
        "delta": {"stop_reason": stop_reason(&answer.finish), "stop_sequence": sequence, "stop_details": details},
        "usage": final_usage(&answer.usage)});
    out.push(Piece::new(Mark::Finish, event(&end)));
    out.push(Piece::new(Mark::Terminal, event(&json!({"type": "message_stop"}))));
    out
}

struct Blocks {
    out: Vec<Piece>,
    index: usize,
}

impl Blocks {
    fn open(&mut self, block: &Value) {
        let data = json!({"type": "content_block_start", "index": self.index, "content_block": block});
        self.out.push(Piece::new(Mark::Between, event(&data)));
    }

    fn delta(&mut self, mark: Mark, delta: &Value) {
        let data = json!({"type": "content_block_delta", "index": self.index, "delta": delta});
        self.out.push(Piece::new(mark, event(&data)));
    }

    fn close(&mut self) {
        let data = json!({"type": "content_block_stop", "index": self.index});
        self.out.push(Piece::new(Mark::Between, event(&data)));
        self.index += 1;
    }
}

/// An error body.
pub(crate) fn error(status: u16, spec: &ErrorSpec, request_id: &str) -> Value {
    let mut body = error_event(status, spec);
    body["request_id"] = json!(request_id);
    body
}

/// The data of an error event.
pub(crate) fn error_event(status: u16, spec: &ErrorSpec) -> Value {
    let usual = match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        409 => "conflict_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    };
    let mut error = json!({
        "type": spec.kind.as_deref().unwrap_or(usual),
        "message": spec.message.as_deref().unwrap_or("The lab answers with an error."),
    });
    if let Some(code) = &spec.code {
        error["details"] = json!({"error_code": code});
    }
    json!({"type": "error", "error": error})
}
