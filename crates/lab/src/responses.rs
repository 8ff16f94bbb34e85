//! Responses as an upstream speaks it: the shapes of replies and events. Errors are Chat's.

use serde_json::{Map, Value, json};

use crate::answer::{Answer, Call, Finish, Usage};
use crate::ask::{Ask, Tool};
use crate::frame::{Mark, Piece};
use crate::script::ErrorSpec;

/// When every reply was made, in Unix seconds: fixed, so that replies are the same in every run.
const CREATED: u64 = 1_793_000_000;

/// Fields of a request that the reply repeats, with what stands there when the request has none.
fn echo(body: &Value) -> Map<String, Value> {
    let usual = [
        ("background", json!(false)),
        ("instructions", Value::Null),
        ("max_output_tokens", Value::Null),
        ("max_tool_calls", Value::Null),
        ("metadata", json!({})),
        ("parallel_tool_calls", json!(true)),
        ("previous_response_id", Value::Null),
        ("prompt_cache_key", Value::Null),
        ("reasoning", json!({"effort": null, "summary": null})),
        ("safety_identifier", Value::Null),
        ("service_tier", json!("default")),
        ("store", json!(true)),
        ("temperature", json!(1.0)),
        ("text", json!({"format": {"type": "text"}, "verbosity": "medium"})),
        ("tool_choice", json!("auto")),
        ("tools", json!([])),
        ("top_logprobs", json!(0)),
        ("top_p", json!(1.0)),
        ("truncation", json!("disabled")),
        ("user", Value::Null),
    ];
    let field = |(name, usual): (&str, Value)| {
        let given = body.get(name).filter(|value| !value.is_null()).cloned();
        (name.to_owned(), given.unwrap_or(usual))
    };
    usual.into_iter().map(field).collect()
}

fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.completion,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.prompt + usage.completion,
    })
}

/// The id of an answer.
pub(crate) fn id(answer: &Answer) -> String {
    format!("resp_lab{:06}", answer.id)
}

/// The response at one moment of its life.
fn response(ask: &Ask, answer: &Answer, status: &str, output: &[Value]) -> Value {
    let mut object = echo(&ask.body);
    let ended = !matches!(status, "in_progress" | "queued");
    let reason = match &answer.finish {
        Finish::Length => json!({"reason": "max_output_tokens"}),
        Finish::Other(reason) => json!({"reason": reason}),
        Finish::Refusal if answer.refusal.is_none() => json!({"reason": "content_filter"}),
        Finish::Stop | Finish::StopSequence(_) | Finish::ToolCalls | Finish::Refusal => Value::Null,
    };
    let details = if status == "incomplete" { reason } else { Value::Null };
    for (name, value) in [
        ("id", json!(id(answer))),
        ("object", json!("response")),
        ("created_at", json!(CREATED)),
        ("status", json!(status)),
        ("completed_at", if status == "completed" { json!(CREATED + 1) } else { Value::Null }),
        ("error", Value::Null),
        ("incomplete_details", details),
        ("model", json!(answer.model)),
        ("output", json!(output)),
        ("usage", if ended { usage(&answer.usage) } else { Value::Null }),
    ] {
        object.insert(name.to_owned(), value);
    }
    Value::Object(object)
}

fn ending(answer: &Answer) -> &'static str {
    match &answer.finish {
        Finish::Length | Finish::Other(_) => "incomplete",
        Finish::Refusal if answer.refusal.is_none() => "incomplete",
        Finish::Stop | Finish::StopSequence(_) | Finish::ToolCalls | Finish::Refusal => "completed",
    }
}

/// One item of the output, with what a stream says between its beginning and its end.
struct Item {
    /// As it is when it begins.
    opened: Value,
    /// As it is at its end.
    done: Value,
    /// Events between, without their common fields.
    between: Vec<(Mark, Value)>,
}

fn items(ask: &Ask, answer: &Answer) -> Vec<Item> {
    let mut items = Vec::new();
    let number = answer.id;
    if ask.compacts {
        let item = json!({"id": format!("cmp_lab{number:06}"), "type": "compaction", "encrypted_content": format!("compacted {number}")});
        return vec![Item { opened: item.clone(), done: item, between: Vec::new() }];
    }
    if let Some(thought) = &answer.thought {
        let item = |summary: Value, proof: Value| json!({"id": format!("rs_lab{number:06}"), "type": "reasoning", "summary": summary, "encrypted_content": proof});
        let text = thought.words.concat();
        let part = json!({"type": "summary_text", "text": text});
        let mut between = Vec::new();
        if !thought.words.is_empty() {
            let empty = json!({"type": "summary_text", "text": ""});
            between.push((
                Mark::Between,
                json!({"type": "response.reasoning_summary_part.added", "summary_index": 0, "part": empty}),
            ));
            for word in &thought.words {
                let event = json!({"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": word});
                between.push((Mark::Word, event));
            }
            between.push((
                Mark::Between,
                json!({"type": "response.reasoning_summary_text.done", "summary_index": 0, "text": text}),
            ));
            between.push((
                Mark::Between,
                json!({"type": "response.reasoning_summary_part.done", "summary_index": 0, "part": part}),
            ));
        }
        let summary = if thought.words.is_empty() { json!([]) } else { json!([part]) };
        items.push(Item { opened: item(json!([]), json!("")), done: item(summary, json!(thought.signature)), between });
    }
    if !answer.words.is_empty() {
        items.push(message(number, answer.words.iter().map(String::as_str), "output_text"));
    }
    if let Some(refusal) = &answer.refusal {
        let words = crate::answer::words(refusal);
        items.push(message(number + 500_000, words.iter().map(String::as_str), "refusal"));
    }
    items.extend(answer.calls.iter().enumerate().map(|(at, call)| called(ask, number, at, call)));
    items
}

fn message<'a>(number: u64, words: impl Iterator<Item = &'a str>, kind: &str) -> Item {
    let words: Vec<&str> = words.collect();
    let text = words.concat();
    let item = |status: &str, content: Value| json!({"id": format!("msg_lab{number:06}"), "type": "message", "role": "assistant", "status": status, "content": content});
    let part = |text: &str| match kind {
        "refusal" => json!({"type": "refusal", "refusal": text}),
        _ => json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []}),
    };
    let mut between =
        vec![(Mark::Between, json!({"type": "response.content_part.added", "content_index": 0, "part": part("")}))];
    for word in words {
        let mut event = json!({"type": format!("response.{kind}.delta"), "content_index": 0, "delta": word});
        if kind == "output_text" {
            event["logprobs"] = json!([]);
        }
        between.push((Mark::Word, event));
    }
    between.push((
        Mark::Between,
        match kind {
            "refusal" => json!({"type": "response.refusal.done", "content_index": 0, "refusal": text}),
            _ => json!({"type": "response.output_text.done", "content_index": 0, "text": text, "logprobs": []}),
        },
    ));
    between
        .push((Mark::Between, json!({"type": "response.content_part.done", "content_index": 0, "part": part(&text)})));
    Item { opened: item("in_progress", json!([])), done: item("completed", json!([part(&text)])), between }
}

fn called(ask: &Ask, number: u64, at: usize, call: &Call) -> Item {
    let tool = ask.tools.iter().find(|tool| tool.name == call.name);
    let custom = tool.is_some_and(|tool| tool.custom);
    let (kind, field, prefix) =
        if custom { ("custom_tool_call", "input", "ctc") } else { ("function_call", "arguments", "fc") };
    let item = |status: &str, input: &str| {
        let mut item = json!({"id": format!("{prefix}_lab{number:06}n{at}"), "type": kind, "status": status,
            "call_id": call.id, "name": call.name, field: input});
        if let Some(Tool { namespace: Some(namespace), .. }) = tool {
            item["namespace"] = json!(namespace);
        }
        item
    };
    let event = if custom { "response.custom_tool_call_input" } else { "response.function_call_arguments" };
    let mut between: Vec<(Mark, Value)> = call
        .fragments
        .iter()
        .map(|fragment| (Mark::Word, json!({"type": format!("{event}.delta"), "delta": fragment})))
        .collect();
    between.push((Mark::Between, json!({"type": format!("{event}.done"), field: call.arguments()})));
    Item { opened: item("in_progress", ""), done: item("completed", &call.arguments()), between }
}

/// The items of an answer.
pub(crate) fn output(ask: &Ask, answer: &Answer) -> Vec<Value> {
    items(ask, answer).into_iter().map(|item| item.done).collect()
}

/// The reply in one body.
pub(crate) fn whole(ask: &Ask, answer: &Answer) -> Vec<u8> {
    let output = output(ask, answer);
    response(ask, answer, ending(answer), &output).to_string().into_bytes()
}

/// The reply as a stream.
pub(crate) fn stream(ask: &Ask, answer: &Answer) -> Vec<Piece> {
    let mut out = Events::default();
    for kind in ["response.created", "response.in_progress"] {
        out.push(Mark::Preamble, json!({"type": kind, "response": response(ask, answer, "in_progress", &[])}));
    }
    let items = items(ask, answer);
    let begin = |out: &mut Events, at: usize, item: &Item| {
        out.push(Mark::Between, json!({"type": "response.output_item.added", "output_index": at, "item": item.opened}));
    };
    let inside = |out: &mut Events, at: usize, item: &Item, (mark, event): &(Mark, Value)| {
        let mut event = event.clone();
        event["item_id"] = item.done["id"].clone();
        event["output_index"] = json!(at);
        out.push(*mark, event);
    };
    let end = |out: &mut Events, at: usize, item: &Item| {
        out.push(Mark::Between, json!({"type": "response.output_item.done", "output_index": at, "item": item.done}));
    };
    let first_call = items.iter().position(|item| item.opened["call_id"].is_string()).unwrap_or(items.len());
    let interleaved = if answer.interleave { first_call } else { items.len() };
    for (at, item) in items.iter().enumerate().take(interleaved) {
        begin(&mut out, at, item);
        item.between.iter().for_each(|event| inside(&mut out, at, item, event));
        end(&mut out, at, item);
    }
    let rest = &items[interleaved..];
    rest.iter().enumerate().for_each(|(at, item)| begin(&mut out, interleaved + at, item));
    for round in 0..rest.iter().map(|item| item.between.len()).max().unwrap_or(0) {
        for (at, item) in rest.iter().enumerate() {
            if let Some(event) = item.between.get(round) {
                inside(&mut out, interleaved + at, item, event);
            }
        }
    }
    rest.iter().enumerate().for_each(|(at, item)| end(&mut out, interleaved + at, item));
    let output: Vec<Value> = items.into_iter().map(|item| item.done).collect();
    let ending = ending(answer);
    let last = json!({"type": format!("response.{ending}"), "response": response(ask, answer, ending, &output)});
    out.push(Mark::Terminal, last);
    out.pieces
}

#[derive(Default)]
struct Events {
    pieces: Vec<Piece>,
}

impl Events {
    fn push(&mut self, mark: Mark, mut event: Value) {
        event["sequence_number"] = json!(self.pieces.len());
        let name = event["type"].as_str().unwrap_or("error").to_owned();
        self.pieces.push(Piece::new(mark, format!("event: {name}\ndata: {event}\n\n")));
    }
}

/// The event of an error in a stream: `response.failed` if the script's `type` says so, else a bare `error`.
pub(crate) fn error_event(spec: &ErrorSpec) -> String {
    let message = spec.message.as_deref().unwrap_or("The lab answers with an error.");
    let code = spec.code.as_deref().unwrap_or("server_error");
    if spec.kind.as_deref() == Some("response.failed") {
        let response = json!({"id": "resp_lab_failed", "object": "response", "created_at": CREATED, "status": "failed",
            "error": {"code": code, "message": message}, "incomplete_details": null, "model": "lab", "output": [],
            "parallel_tool_calls": true, "tool_choice": "auto", "tools": []});
        let event = json!({"type": "response.failed", "sequence_number": 99, "response": response});
        return format!("event: response.failed\ndata: {event}\n\n");
    }
    let mut event =
        json!({"type": "error", "code": code, "message": message, "param": spec.param, "sequence_number": 99});
    if let Some(kind) = &spec.kind {
        event["error"] = json!({"type": kind, "code": spec.code, "message": message});
    }
    format!("event: error\ndata: {event}\n\n")
}
