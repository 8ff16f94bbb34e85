//! Gemini's generateContent as an upstream speaks it: the shapes of replies, chunks and errors.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use serde_json::{Value, json};

use crate::answer::{Answer, Finish, Usage};
use crate::ask::Ask;
use crate::frame::{Mark, Piece};
use crate::script::ErrorSpec;

fn finish(finish: &Finish) -> &str {
    match finish {
        // Tool calls have no reason of their own here.
        Finish::Stop | Finish::StopSequence(_) | Finish::ToolCalls => "STOP",
        Finish::Length => "MAX_TOKENS",
        Finish::Refusal => "SAFETY",
        Finish::Other(word) => word,
    }
}

fn usage(usage: &Usage) -> Value {
    let mut counts = json!({
        "promptTokenCount": usage.prompt,
        "candidatesTokenCount": usage.completion - usage.reasoning,
        "totalTokenCount": usage.prompt + usage.completion,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": usage.prompt}],
    });
    if usage.cached > 0 {
        counts["cachedContentTokenCount"] = json!(usage.cached);
    }
    if usage.reasoning > 0 {
        counts["thoughtsTokenCount"] = json!(usage.reasoning);
    }
    counts
}

fn id(answer: &Answer) -> String {
    format!("lab{:06}", answer.id)
}

/// The parts, each with what a stream calls it.
fn parts(answer: &Answer) -> Vec<Value> {
    let mut parts = Vec::new();
    let mut signature = None;
    if let Some(thought) = &answer.thought {
        parts.extend(thought.words.iter().map(|word| json!({"text": word, "thought": true})));
        signature = Some(&thought.signature);
    }
    let refused = answer.refusal.iter().flat_map(|text| crate::answer::words(text));
    parts.extend(answer.words.iter().cloned().chain(refused).map(|word| json!({"text": word})));
    for call in &answer.calls {
        let args: Value = serde_json::from_str(&call.arguments()).unwrap_or_else(|_| json!({}));
        let mut part = json!({"functionCall": {"id": call.id, "name": call.name, "args": args}});
        // Of several calls only the first carries it.
        if let Some(signature) = signature.take() {
            part["thoughtSignature"] = json!(signature);
        }
        parts.push(part);
    }
    if let (Some(signature), Some(last)) = (signature, parts.last_mut())
        && last.get("thought").is_none()
    {
        last["thoughtSignature"] = json!(signature);
    }
    parts
}

fn chunk(answer: &Answer, parts: &[Value], reason: Option<&str>, counts: &Usage) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    if let Some(reason) = reason {
        candidate["finishReason"] = json!(reason);
    }
    json!({"candidates": [candidate], "usageMetadata": usage(counts), "modelVersion": answer.model, "responseId": id(answer)})
}

/// Neighbouring texts of one kind as one part.
fn joined(parts: Vec<Value>) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    for part in parts {
        match (out.last_mut(), part["text"].as_str()) {
            (Some(last), Some(text)) if last["text"].is_string() && last.get("thought") == part.get("thought") => {
                last["text"] = json!(format!("{}{text}", last["text"].as_str().unwrap_or_default()));
                if let Some(signature) = part.get("thoughtSignature") {
                    last["thoughtSignature"] = signature.clone();
                }
            }
            (Some(_) | None, _) => out.push(part),
        }
    }
    out
}

/// The reply in one body.
pub(crate) fn whole(answer: &Answer) -> Vec<u8> {
    chunk(answer, &joined(parts(answer)), Some(finish(&answer.finish)), &answer.usage).to_string().into_bytes()
}

/// The reply as a stream: server-sent events, or without `alt=sse` one JSON array.
pub(crate) fn stream(ask: &Ask, answer: &Answer) -> Vec<Piece> {
    let parts = parts(answer);
    // The counts of each chunk are those of what has come so far; the last one's are those of the whole.
    let whole = answer.usage;
    let (mut thoughts, mut said) = (0, 0);
    let mut chunks: Vec<(Mark, Value)> = Vec::with_capacity(parts.len() + 1);
    for part in &parts {
        *if part.get("thought").is_some() { &mut thoughts } else { &mut said } += 1;
        let reasoning = whole.reasoning.min(thoughts);
        let completion = reasoning + whole.completion.saturating_sub(whole.reasoning).min(said);
        let counts = Usage { reasoning, completion, ..whole };
        chunks.push((Mark::Word, chunk(answer, std::slice::from_ref(part), None, &counts)));
    }
    // The chunk with the reason carries an empty text, so that a script can hold the end apart from the last words.
    let reason = Some(finish(&answer.finish));
    chunks.push((Mark::Terminal, chunk(answer, &[json!({"text": ""})], reason, &answer.usage)));
    let count = chunks.len();
    let framed = |(at, (mark, chunk)): (usize, (Mark, Value))| {
        let text = if ask.array {
            let open = if at == 0 { "[" } else { ",\r\n" };
            let close = if at + 1 == count { "]" } else { "" };
            format!("{open}{chunk}{close}")
        } else {
            format!("data: {chunk}\n\n")
        };
        Piece::new(mark, text)
    };
    chunks.into_iter().enumerate().map(framed).collect()
}

/// An error body.
pub(crate) fn error(status: u16, spec: &ErrorSpec) -> Value {
    let usual = match status {
        400 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        409 => "ABORTED",
        429 => "RESOURCE_EXHAUSTED",
        499 => "CANCELLED",
        503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        500.. => "INTERNAL",
        _ => "FAILED_PRECONDITION",
    };
    let mut details = Vec::new();
    if let Some(code) = &spec.code {
        details.push(json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": code.to_uppercase(), "domain": "googleapis.com"}));
    }
    if let Some(param) = &spec.param {
        details
            .push(json!({"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [{"field": param}]}));
    }
    if let Some(seconds) = spec.retry_after {
        details.push(json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": format!("{seconds}s")}));
    }
    json!({"error": {
        "code": status,
        "message": spec.message.as_deref().unwrap_or("The lab answers with an error."),
        "status": spec.kind.as_deref().unwrap_or(usual),
        "details": details,
    }})
}

/// Bytes as they stand in JSON: base 64 in either alphabet, padded or not. Gives them in the one that signatures are known
/// by.
pub(crate) fn standard_base64(text: &str) -> Option<String> {
    let standard = |letter| match letter {
        '-' => '+',
        '_' => '/',
        other => other,
    };
    let plain: String = text.trim_end_matches('=').chars().map(standard).collect();
    STANDARD_NO_PAD.decode(plain).ok().map(|bytes| STANDARD.encode(bytes))
}
