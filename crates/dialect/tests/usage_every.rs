//! Token counts on every pair of dialects, streamed and plain: what was read from a cache, written to one, and thought is
//! told as such wherever the client's dialect has a word for it, and never counted as fresh or twice.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

#[path = "support/answers.rs"]
mod answers;
#[path = "support/pairs.rs"]
mod pairs;

use pairs::{every_pair, feed, joined, lawful, options};
use serde_json::{Value, json};
use turnkeep_base::{Dialect, Usage};
use turnkeep_dialect::reply::plain;

const USAGE: Usage = Usage { input: 30, cache_read: 60, cache_write: 10, output: 7, reasoning: 3 };

/// The same where the dialect cannot tell what was written to a cache: it counts as any other input.
const WITHOUT_WRITTEN: Usage = Usage { input: 40, cache_write: 0, ..USAGE };

/// What can be said of [`USAGE`] in each dialect.
fn sayable(dialect: Dialect) -> Usage {
    match dialect {
        Dialect::Chat | Dialect::Responses | Dialect::Messages => USAGE,
        Dialect::Gemini => WITHOUT_WRITTEN,
    }
}

/// As the vendor writes it.
fn written(upstream: Dialect) -> Value {
    match upstream {
        Dialect::Chat => json!({"prompt_tokens":100,"completion_tokens":7,"total_tokens":107,
            "prompt_tokens_details":{"cached_tokens":60,"cache_write_tokens":10},"completion_tokens_details":{"reasoning_tokens":3}}),
        Dialect::Responses => {
            json!({"input_tokens":100,"input_tokens_details":{"cached_tokens":60,"cache_write_tokens":10},
            "output_tokens":7,"output_tokens_details":{"reasoning_tokens":3},"total_tokens":107})
        }
        Dialect::Messages => json!({"input_tokens":30,"cache_read_input_tokens":60,"cache_creation_input_tokens":10,
            "output_tokens":7,"output_tokens_details":{"thinking_tokens":3}}),
        Dialect::Gemini => json!({"promptTokenCount":100,"cachedContentTokenCount":60,"candidatesTokenCount":4,
            "thoughtsTokenCount":3,"totalTokenCount":107}),
    }
}

/// Where a body or an event of the dialect holds its counts.
fn place(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Chat | Dialect::Responses | Dialect::Messages => "usage",
        Dialect::Gemini => "usageMetadata",
    }
}

/// A vendor's plain answer with these counts.
fn whole(upstream: Dialect) -> Value {
    let mut body = answers::whole(upstream, &[answers::text("ab")], "stop");
    body[place(upstream)] = written(upstream);
    body
}

/// A vendor's stream with these counts, wherever it has any.
fn stream(upstream: Dialect) -> String {
    let counted = |mut data: Value| {
        if data["response"]["usage"].is_object() {
            data["response"]["usage"] = written(upstream);
        } else if data["message"]["usage"].is_object() {
            data["message"]["usage"] = written(upstream);
            data["message"]["usage"]["output_tokens"] = json!(1);
            data["message"]["usage"].as_object_mut().unwrap().remove("output_tokens_details");
        } else if data["type"] == "message_delta" {
            data["usage"] = json!({"output_tokens":7,"output_tokens_details":{"thinking_tokens":3}});
        } else if data[place(upstream)].is_object() {
            data[place(upstream)] = written(upstream);
        }
        data
    };
    let line = |line: &str| match line.strip_prefix("data: ").and_then(|data| serde_json::from_str(data).ok()) {
        Some(data) => format!("data: {}\n", counted(data)),
        None => format!("{line}\n"),
    };
    answers::streamed(upstream, &[answers::text("ab")], "stop").lines().map(line).collect()
}

/// What a client's usage object says; totals must agree with their parts.
fn told(client: Dialect, usage: &Value) -> Usage {
    let of = |path: &str| usage.pointer(path).and_then(Value::as_u64).unwrap_or(0);
    match client {
        Dialect::Chat => {
            assert_eq!(of("/total_tokens"), of("/prompt_tokens") + of("/completion_tokens"), "{usage}");
            Usage::from_inclusive(
                of("/prompt_tokens"),
                of("/prompt_tokens_details/cached_tokens"),
                of("/prompt_tokens_details/cache_write_tokens"),
                of("/completion_tokens"),
                of("/completion_tokens_details/reasoning_tokens"),
            )
        }
        Dialect::Responses => {
            assert_eq!(of("/total_tokens"), of("/input_tokens") + of("/output_tokens"), "{usage}");
            Usage::from_inclusive(
                of("/input_tokens"),
                of("/input_tokens_details/cached_tokens"),
                of("/input_tokens_details/cache_write_tokens"),
                of("/output_tokens"),
                of("/output_tokens_details/reasoning_tokens"),
            )
        }
        Dialect::Messages => Usage {
            input: of("/input_tokens"),
            cache_read: of("/cache_read_input_tokens"),
            cache_write: of("/cache_creation_input_tokens"),
            output: of("/output_tokens"),
            reasoning: of("/output_tokens_details/thinking_tokens"),
        },
        Dialect::Gemini => {
            let output = of("/candidatesTokenCount") + of("/thoughtsTokenCount");
            assert_eq!(of("/totalTokenCount"), of("/promptTokenCount") + output, "{usage}");
            let (input, cached) = (of("/promptTokenCount"), of("/cachedContentTokenCount"));
            Usage::from_inclusive(input, cached, 0, output, of("/thoughtsTokenCount"))
        }
    }
}

/// What a client of a stream holds in the end: of Messages later counts over earlier ones, of the others the last.
fn told_in_stream(client: Dialect, datas: &[Value]) -> Usage {
    let last = |place: fn(&Value) -> &Value| datas.iter().map(place).rfind(|usage| usage.is_object()).unwrap();
    match client {
        Dialect::Chat => told(client, last(|data| &data["usage"])),
        Dialect::Responses => told(client, last(|data| &data["response"]["usage"])),
        Dialect::Gemini => told(client, last(|data| &data["usageMetadata"])),
        Dialect::Messages => {
            let mut all = json!({});
            for usage in datas.iter().flat_map(|data| [&data["message"]["usage"], &data["usage"]]) {
                for (key, value) in usage.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
                    all[key] = value.clone();
                }
            }
            told(client, &all)
        }
    }
}

#[test]
fn field_fault_e10_cached_tokens_are_told_as_cached_on_every_pair() {
    for (client, upstream) in every_pair() {
        let what = format!("{upstream} to {client}");
        let counted = sayable(upstream);
        let shown = if client == Dialect::Gemini { sayable(client) } else { counted };
        let options = options(client, upstream);

        let (body, facts) = plain(&options, whole(upstream).to_string().into()).unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((facts.usage, told(client, &body[place(client)])), (Some(counted), shown), "{what}, plain");

        let (pieces, end) = feed(&options, stream(upstream).as_bytes(), 1 << 16);
        let datas = lawful(client, &joined(&pieces));
        assert_eq!((end.unwrap().usage, told_in_stream(client, &datas)), (Some(counted), shown), "{what}, streamed");
    }
}
