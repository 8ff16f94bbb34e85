//! Chat Completions as an upstream speaks it: the shapes of replies, chunks and errors.

use serde_json::{Value, json};

use crate::answer::{Answer, Call, Finish, Usage};
use crate::ask::Ask;
use crate::frame::{Mark, Piece};
use crate::script::ErrorSpec;

/// When every reply was made, in Unix seconds: fixed, so that replies are the same in every run.
const CREATED: u64 = 1_793_000_000;

fn finish(finish: &Finish) -> &str {
    match finish {
        Finish::Stop | Finish::StopSequence(_) | Finish::Refusal => "stop",
        Finish::Length => "length",
        Finish::ToolCalls => "tool_calls",
        Finish::Other(word) => word,
    }
}

fn usage(usage: &Usage) -> Value {
    json!({
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_write, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning, "audio_tokens": 0,
            "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
        },
    })
}

fn id(answer: &Answer) -> String {
    format!("chatcmpl-lab{:06}", answer.id)
}

/// The reply in one body.
pub(crate) fn whole(ask: &Ask, answer: &Answer) -> Vec<u8> {
    let content = match answer.words.is_empty() {
        true => Value::Null,
        false => Value::String(answer.words.concat()),
    };
    let mut message = json!({"role": "assistant", "content": content, "refusal": answer.refusal, "annotations": []});
    if let Some(thought) = &answer.thought {
        message["reasoning_content"] = json!(thought.words.concat());
    }
    if !answer.calls.is_empty() {
        let call = |call: &Call| {
            json!({"id": call.id, "type": "function",
                "function": {"name": call.name, "arguments": call.arguments()}})
        };
        message["tool_calls"] = answer.calls.iter().map(call).collect();
    }
    let choice = |index: u32| json!({"index": index, "message": message, "logprobs": null, "finish_reason": finish(&answer.finish)});
    let choices: Vec<Value> = (0..ask.replies).map(choice).collect();
    let body = json!({
        "id": id(answer), "object": "chat.completion", "created": CREATED, "model": answer.model,
        "choices": choices, "usage": usage(&answer.usage), "service_tier": "default", "system_fingerprint": "fp_lab",
    });
    body.to_string().into_bytes()
}

/// Makes the chunks of one stream.
struct Chunks<'a> {
    ask: &'a Ask,
    answer: &'a Answer,
    pieces: Vec<Piece>,
}

impl Chunks<'_> {
    fn chunk(&self, choices: &Value, counts: &Value) -> String {
        let mut chunk = json!({
            "id": id(self.answer), "object": "chat.completion.chunk", "created": CREATED, "model": self.answer.model,
            "service_tier": "default", "system_fingerprint": "fp_lab", "choices": choices,
        });
        if self.ask.include_usage {
            chunk["usage"] = counts.clone();
        }
        format!("data: {chunk}\n\n")
    }

    fn push(&mut self, mark: Mark, delta: &Value, reason: Option<&str>) {
        for index in 0..self.ask.replies {
            let choice = json!([{"index": index, "delta": delta, "logprobs": null, "finish_reason": reason}]);
            let bytes = self.chunk(&choice, &Value::Null);
            // One word of n replies is one place: only its last chunk counts.
            let last = index + 1 == self.ask.replies;
            let mark = if mark == Mark::Word && !last { Mark::Between } else { mark };
            self.pieces.push(Piece::new(mark, bytes));
        }
    }
}

/// The reply as a stream.
pub(crate) fn stream(ask: &Ask, answer: &Answer) -> Vec<Piece> {
    let mut out = Chunks { ask, answer, pieces: Vec::new() };
    out.push(Mark::Preamble, &json!({"role": "assistant", "content": "", "refusal": null}), None);
    for word in answer.thought.iter().flat_map(|thought| &thought.words) {
        out.push(Mark::Word, &json!({"reasoning_content": word}), None);
    }
    for word in &answer.words {
        out.push(Mark::Word, &json!({"content": word}), None);
    }
    for word in answer.refusal.iter().flat_map(|text| crate::answer::words(text)) {
        out.push(Mark::Word, &json!({"refusal": word}), None);
    }
    calls(&mut out);
    out.push(Mark::Finish, &json!({}), Some(finish(&answer.finish)));
    if ask.include_usage {
        let last = out.chunk(&json!([]), &usage(&answer.usage));
        out.pieces.push(Piece::new(Mark::Finish, last));
    }
    out.pieces.push(Piece::new(Mark::Terminal, "data: [DONE]\n\n"));
    out.pieces
}

fn calls(out: &mut Chunks<'_>) {
    let answer = out.answer;
    let open = |at: usize, call: &Call| {
        json!({"tool_calls": [{"index": at, "id": call.id, "type": "function",
            "function": {"name": call.name, "arguments": ""}}]})
    };
    let more = |at: usize, fragment: &str| json!({"tool_calls": [{"index": at, "function": {"arguments": fragment}}]});
    if answer.interleave {
        for (at, call) in answer.calls.iter().enumerate() {
            out.push(Mark::Between, &open(at, call), None);
        }
        let rounds = answer.calls.iter().map(|call| call.fragments.len()).max().unwrap_or(0);
        for round in 0..rounds {
            for (at, call) in answer.calls.iter().enumerate() {
                if let Some(fragment) = call.fragments.get(round) {
                    out.push(Mark::Word, &more(at, fragment), None);
                }
            }
        }
        return;
    }
    for (at, call) in answer.calls.iter().enumerate() {
        out.push(Mark::Between, &open(at, call), None);
        for fragment in &call.fragments {
            out.push(Mark::Word, &more(at, fragment), None);
        }
    }
}

/// An error body (of a response, or after `data: ` of a stream).
pub(crate) fn error(status: u16, spec: &ErrorSpec) -> Value {
    let usual = match status {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        503 => "service_unavailable_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    };
    json!({"error": {
        "message": spec.message.as_deref().unwrap_or("The lab answers with an error."),
        "type": spec.kind.as_deref().unwrap_or(usual), "param": spec.param, "code": spec.code,
    }})
}
