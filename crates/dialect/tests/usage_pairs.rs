//! Token counts as Chat and Messages upstreams spell them, for clients of these two: counts that come in pieces, twice, late
//! or under other names are put together. Every pair of all four dialects is in `usage_every.rs`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

use bytes::Bytes;
use serde_json::{Value, json};
use turnkeep_base::{Dialect, Usage};
use turnkeep_dialect::reply::{Facts, ReplyOptions, StreamCodec, plain};
use turnkeep_wire::sse;

fn options(client: Dialect, upstream: Dialect) -> ReplyOptions {
    ReplyOptions {
        client,
        upstream,
        model: "asked".into(),
        usage_wanted: true,
        choices: 1,
        id: "own".into(),
        created: 7,
        max_event: 1 << 20,
        asked: Default::default(),
    }
}

/// The client's bytes of a streamed answer and the facts.
fn streamed(client: Dialect, upstream: Dialect, datas: &[Value]) -> (Vec<Value>, Facts) {
    let mut text = String::new();
    for data in datas {
        if let Some(name) = data["type"].as_str().filter(|_| upstream == Dialect::Messages) {
            text += &format!("event: {name}\n");
        }
        text += &format!("data: {data}\n\n");
    }
    if upstream == Dialect::Chat {
        text += "data: [DONE]\n\n";
    }
    let (mut codec, mut pieces) = (StreamCodec::new(&options(client, upstream)), Vec::new());
    codec.feed(text.into(), &mut pieces).unwrap();
    codec.finish(&mut pieces).unwrap();
    let mut reader = sse::Reader::new(1 << 20);
    reader.push(pieces.iter().flat_map(|piece| piece.bytes.to_vec()).collect());
    let frames = std::iter::from_fn(|| reader.next_frame().unwrap());
    let datas = frames.filter_map(|frame| serde_json::from_slice(&frame.data?).ok()).collect();
    (datas, codec.facts().clone())
}

fn whole(client: Dialect, upstream: Dialect, body: &Value) -> (Value, Facts) {
    let (bytes, facts) = plain(&options(client, upstream), Bytes::from(body.to_string())).unwrap();
    (serde_json::from_slice(&bytes).unwrap(), facts)
}

fn chat_whole(usage: Value) -> Value {
    let choice = json!({"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"});
    json!({"id":"x","object":"chat.completion","created":1,"model":"m","choices":[choice],"usage":usage})
}

fn chat_stream(last: Value, own_chunk: Option<Value>) -> Vec<Value> {
    let chunk = |choices: Value, usage: Value| json!({"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":choices,"usage":usage});
    let mut datas = vec![
        chunk(json!([{"index":0,"delta":{"role":"assistant","content":"a"},"finish_reason":null}]), Value::Null),
        chunk(json!([{"index":0,"delta":{},"finish_reason":"stop"}]), last),
    ];
    datas.extend(own_chunk.map(|usage| chunk(json!([]), usage)));
    datas
}

fn messages_whole(usage: Value) -> Value {
    json!({"type":"message","id":"msg_1","role":"assistant","model":"m","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn","usage":usage})
}

fn messages_stream(start: Value, end: &[Value]) -> Vec<Value> {
    let mut datas = vec![
        json!({"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"usage":start}}),
        json!({"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}),
        json!({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}),
        json!({"type":"content_block_stop","index":0}),
    ];
    for (at, usage) in end.iter().enumerate() {
        let reason = if at + 1 == end.len() { json!("end_turn") } else { Value::Null };
        datas.push(json!({"type":"message_delta","delta":{"stop_reason":reason,"stop_sequence":null},"usage":usage}));
    }
    datas.push(json!({"type":"message_stop"}));
    datas
}

/// What a client's usage object says.
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
        Dialect::Messages => Usage {
            input: of("/input_tokens"),
            cache_read: of("/cache_read_input_tokens"),
            cache_write: of("/cache_creation_input_tokens"),
            output: of("/output_tokens"),
            reasoning: of("/output_tokens_details/thinking_tokens"),
        },
        Dialect::Responses | Dialect::Gemini => panic!("not one of the pair"),
    }
}

/// What a client of a stream holds in the end: later counts over earlier ones.
fn told_in_stream(client: Dialect, datas: &[Value]) -> Usage {
    match client {
        Dialect::Chat => {
            told(client, datas.iter().map(|data| &data["usage"]).rfind(|usage| usage.is_object()).unwrap())
        }
        Dialect::Messages => {
            let mut all = json!({});
            for usage in datas.iter().flat_map(|data| [&data["message"]["usage"], &data["usage"]]) {
                for (key, value) in usage.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
                    all[key] = value.clone();
                }
            }
            told(client, &all)
        }
        Dialect::Responses | Dialect::Gemini => panic!("not one of the pair"),
    }
}

const USAGE: Usage = Usage { input: 30, cache_read: 60, cache_write: 10, output: 7, reasoning: 3 };

fn chat_usage() -> Value {
    json!({"prompt_tokens":100,"completion_tokens":7,"total_tokens":107,
        "prompt_tokens_details":{"cached_tokens":60,"cache_write_tokens":10},"completion_tokens_details":{"reasoning_tokens":3}})
}

fn messages_usage() -> Value {
    json!({"input_tokens":30,"cache_read_input_tokens":60,"cache_creation_input_tokens":10,"output_tokens":7,
        "output_tokens_details":{"thinking_tokens":3}})
}

#[test]
fn field_fault_e22_tokens_written_to_the_cache_count_plain_and_streamed() {
    let by_life = json!({"input_tokens":3,"cache_creation":{"ephemeral_5m_input_tokens":4,"ephemeral_1h_input_tokens":5},"output_tokens":2});
    let both = json!({"input_tokens":3,"cache_creation_input_tokens":9,"cache_creation":{"ephemeral_5m_input_tokens":4,"ephemeral_1h_input_tokens":5},"output_tokens":2});
    let wanted = Usage { input: 3, cache_read: 0, cache_write: 9, output: 2, reasoning: 0 };
    for usage in [by_life, both] {
        for client in [Dialect::Chat, Dialect::Messages] {
            let (body, facts) = whole(client, Dialect::Messages, &messages_whole(usage.clone()));
            assert_eq!(facts.usage, Some(wanted), "{usage}");
            if client == Dialect::Chat {
                assert_eq!(told(client, &body["usage"]), wanted);
            }
            let (datas, facts) =
                streamed(client, Dialect::Messages, &messages_stream(usage.clone(), &[json!({"output_tokens":2})]));
            assert_eq!(facts.usage, Some(wanted), "{usage}");
            if client == Dialect::Chat {
                assert_eq!(told_in_stream(client, &datas), wanted);
            }
        }
    }
}

#[test]
fn field_fault_e23_usage_counts_wherever_a_chat_stream_carries_it() {
    for client in [Dialect::Chat, Dialect::Messages] {
        // In the chunk with the finish reason, as Mistral does it; in one of its own; in both.
        for stream in [
            chat_stream(chat_usage(), None),
            chat_stream(Value::Null, Some(chat_usage())),
            chat_stream(chat_usage(), Some(chat_usage())),
        ] {
            let (datas, facts) = streamed(client, Dialect::Chat, &stream);
            assert_eq!((facts.usage, told_in_stream(client, &datas)), (Some(USAGE), USAGE), "{client}");
        }
    }
}

#[test]
fn counts_that_repeat_or_are_left_out_at_the_end_of_a_messages_stream_are_right() {
    let start =
        || json!({"input_tokens":30,"cache_read_input_tokens":60,"cache_creation_input_tokens":10,"output_tokens":1});
    let nothing = || json!({"input_tokens":0,"output_tokens":0});
    let output = || json!({"output_tokens":7,"output_tokens_details":{"thinking_tokens":3}});
    let zeros = json!({"input_tokens":0,"cache_read_input_tokens":0,"cache_creation_input_tokens":null,"output_tokens":7,"output_tokens_details":{"thinking_tokens":3}});
    let estimate = json!({"input_tokens":100,"output_tokens":0});
    for (name, start, end) in [
        ("left out", start(), vec![output()]),
        ("repeated", start(), vec![messages_usage()]),
        ("told twice", start(), vec![messages_usage(), messages_usage()]),
        ("only at the end", nothing(), vec![messages_usage()]),
        ("no usage at the start", Value::Null, vec![messages_usage()]),
        ("zeros at the end", start(), vec![zeros]),
        ("an estimate first", estimate, vec![messages_usage()]),
    ] {
        for client in [Dialect::Chat, Dialect::Messages] {
            let (datas, facts) = streamed(client, Dialect::Messages, &messages_stream(start.clone(), &end));
            assert_eq!(facts.usage, Some(USAGE), "{name}, {client}");
            if client == Dialect::Chat {
                assert_eq!(told_in_stream(client, &datas), USAGE, "{name}");
            }
        }
    }
    // No count at all is none.
    for client in [Dialect::Chat, Dialect::Messages] {
        let (_, facts) = streamed(client, Dialect::Messages, &messages_stream(Value::Null, &[Value::Null]));
        assert_eq!(facts.usage, None);
    }
}

#[test]
fn other_names_for_cached_tokens_are_understood() {
    let wanted = Usage { input: 40, cache_read: 60, cache_write: 0, output: 7, reasoning: 0 };
    for usage in [
        json!({"prompt_tokens":100,"completion_tokens":7,"prompt_cache_hit_tokens":60,"prompt_cache_miss_tokens":40}),
        json!({"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":60,"cache_write_tokens":null}}),
        json!({"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":60},"prompt_cache_hit_tokens":60}),
    ] {
        assert_eq!(whole(Dialect::Chat, Dialect::Chat, &chat_whole(usage)).1.usage, Some(wanted));
    }
    let written = json!({"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":60,"cache_creation_tokens":10}});
    let (body, facts) = whole(Dialect::Messages, Dialect::Chat, &chat_whole(written));
    assert_eq!(facts.usage.map(|usage| (usage.input, usage.cache_write)), Some((30, 10)));
    assert_eq!(body["usage"]["cache_creation_input_tokens"], 10);
}
