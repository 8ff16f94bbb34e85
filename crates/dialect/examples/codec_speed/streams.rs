//! Streamed answers of each dialect as its provider writes them, an event a chunk.

use bytes::Bytes;
use serde_json::{Value, json};
use turnkeep_base::Dialect;

/// What an answer holds.
#[derive(Clone, Copy)]
pub enum Says {
    /// One text, in so many pieces.
    Text(usize),
    /// A short text, then so many calls at once, each with arguments in so many pieces of 16 bytes. Gemini has a call
    /// in one piece.
    Calls { calls: usize, pieces: usize },
}

const WORDS: [&str; 8] = [" the", " tests", " pass,", " and", "\n- `main`", " is \"ready\"", " to be", " merged."];
/// Pieces of text before a call.
const BEFORE: usize = 4;
/// Bytes of each piece of arguments.
pub const PIECE: usize = 16;

impl Says {
    fn words(self) -> Vec<&'static str> {
        let count = match self {
            Says::Text(count) => count,
            Says::Calls { .. } => BEFORE,
        };
        WORDS.into_iter().cycle().take(count).collect()
    }

    /// The arguments of each call, cut.
    fn calls(self) -> Vec<Vec<String>> {
        let Says::Calls { calls, pieces } = self else { return Vec::new() };
        let inside = (pieces * PIECE).saturating_sub(r#"{"command":""}"#.len());
        let command: String = "cargo test -p app; ".chars().cycle().take(inside).collect();
        let whole = format!(r#"{{"command":"{command}"}}"#);
        let cut: Vec<String> =
            whole.as_bytes().chunks(PIECE).map(|piece| String::from_utf8_lossy(piece).into_owned()).collect();
        vec![cut; calls]
    }
}

/// A client's request with a few tools, which a Responses answer repeats.
pub fn body() -> Value {
    let tool = |name: &str| {
        json!({"type":"function","name":name,"description":"Runs a command in the user's shell and gives what it printed.",
            "parameters":{"type":"object","properties":{"command":{"type":"string","description":"What to run."}},
            "required":["command"],"additionalProperties":false},"strict":true})
    };
    json!({"model":"m","instructions":"You are an agent. Follow the user's words, and answer briefly.","input":"Go on.",
        "tools":[tool("run"), tool("read"), tool("write")],"store":false,"stream":true})
}

/// The answer, event by event.
pub fn stream(dialect: Dialect, says: Says) -> Vec<Bytes> {
    match dialect {
        Dialect::Chat => chat(says),
        Dialect::Responses => responses(says),
        Dialect::Messages => messages(says),
        Dialect::Gemini => gemini(says),
    }
}

fn data(value: &Value) -> Bytes {
    format!("data: {value}\n\n").into()
}

fn named(value: &Value) -> Bytes {
    format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap_or_default()).into()
}

fn chat(says: Says) -> Vec<Bytes> {
    let chunk = |delta: Value, finish: Value| {
        data(
            &json!({"id":"chatcmpl-BxmGqXq0nYtS9pZkW2vLr7cHd4eFa","object":"chat.completion.chunk","created":1796073800,
            "model":"gpt-6-sol","service_tier":"default","system_fingerprint":"fp_44709d6fcb",
            "choices":[{"index":0,"delta":delta,"logprobs":null,"finish_reason":finish}],"obfuscation":"Qx7Lm2"}),
        )
    };
    let mut out = vec![chunk(json!({"role":"assistant","content":"","refusal":null}), Value::Null)];
    out.extend(says.words().into_iter().map(|word| chunk(json!({"content":word}), Value::Null)));
    let calls = says.calls();
    for (index, pieces) in calls.iter().enumerate() {
        let call = json!({"index":index,"id":format!("call_{index}"),"type":"function",
            "function":{"name":"run","arguments":""}});
        out.push(chunk(json!({"tool_calls":[call]}), Value::Null));
        for piece in pieces {
            let call = json!({"index":index,"function":{"arguments":piece}});
            out.push(chunk(json!({"tool_calls":[call]}), Value::Null));
        }
    }
    out.push(chunk(json!({}), json!(if calls.is_empty() { "stop" } else { "tool_calls" })));
    out.push(data(&json!({"id":"chatcmpl-BxmGqXq0nYtS9pZkW2vLr7cHd4eFa","object":"chat.completion.chunk",
        "created":1796073800,"model":"gpt-6-sol","choices":[],"usage":{"prompt_tokens":900,"completion_tokens":60,
        "total_tokens":960,"prompt_tokens_details":{"cached_tokens":512},"completion_tokens_details":{"reasoning_tokens":0}}})));
    out.push(Bytes::from_static(b"data: [DONE]\n\n"));
    out
}

fn messages(says: Says) -> Vec<Bytes> {
    let mut out = vec![
        named(&json!({"type":"message_start","message":{"id":"msg_01XFDUDYJgAACzvnptvVoYEL","type":"message",
            "role":"assistant","model":"claude-sonnet-5","content":[],"stop_reason":null,"stop_sequence":null,
            "usage":{"input_tokens":388,"cache_creation_input_tokens":0,"cache_read_input_tokens":512,"output_tokens":1}}})),
        named(&json!({"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}})),
    ];
    let delta = |index: usize, delta: Value| named(&json!({"type":"content_block_delta","index":index,"delta":delta}));
    out.extend(says.words().into_iter().map(|word| delta(0, json!({"type":"text_delta","text":word}))));
    out.push(named(&json!({"type":"content_block_stop","index":0})));
    let calls = says.calls();
    for (index, pieces) in (1..).zip(&calls) {
        out.push(named(&json!({"type":"content_block_start","index":index,"content_block":{"type":"tool_use",
            "id":format!("toolu_{index}"),"name":"run","input":{}}})));
        out.extend(pieces.iter().map(|piece| delta(index, json!({"type":"input_json_delta","partial_json":piece}))));
        out.push(named(&json!({"type":"content_block_stop","index":index})));
    }
    let reason = if calls.is_empty() { "end_turn" } else { "tool_use" };
    out.push(named(&json!({"type":"message_delta","delta":{"stop_reason":reason,"stop_sequence":null},
        "usage":{"output_tokens":60}})));
    out.push(named(&json!({"type":"message_stop"})));
    out
}

fn gemini(says: Says) -> Vec<Bytes> {
    let chunk = |parts: Value, finish: Option<&str>| {
        let mut candidate = json!({"content":{"parts":parts,"role":"model"},"index":0});
        if let Some(finish) = finish {
            candidate["finishReason"] = json!(finish);
        }
        data(&json!({"candidates":[candidate],"usageMetadata":{"promptTokenCount":900,"candidatesTokenCount":60,
            "totalTokenCount":960,"promptTokensDetails":[{"modality":"TEXT","tokenCount":900}]},
            "modelVersion":"gemini-3-pro","responseId":"tq8rab6qL5Gn1MkP2vOoyQk"}))
    };
    let mut out: Vec<Bytes> = says.words().into_iter().map(|word| chunk(json!([{"text":word}]), None)).collect();
    for pieces in says.calls() {
        let args: Value = serde_json::from_str(&pieces.concat()).unwrap_or_default();
        out.push(chunk(json!([{"functionCall":{"name":"run","args":args}}]), None));
    }
    out.push(chunk(json!([{"text":""}]), Some("STOP")));
    out
}

/// The output items and the number of the next event.
struct Output {
    events: Vec<Bytes>,
    items: Vec<Value>,
}

impl Output {
    fn event(&mut self, mut value: Value) {
        value["sequence_number"] = json!(self.events.len());
        self.events.push(named(&value));
    }

    fn response(&mut self, kind: &str, status: &str) {
        let mut response = body();
        response["object"] = json!("response");
        response["id"] = json!("resp_0a1b2c3d4e5f60718293a4b5c6d7e8f9");
        response["created_at"] = json!(1796073800);
        response["status"] = json!(status);
        response["model"] = json!("gpt-6-sol");
        response["parallel_tool_calls"] = json!(true);
        response["tool_choice"] = json!("auto");
        response["output"] = json!(self.items);
        if status == "completed" {
            response["usage"] = json!({"input_tokens":900,"input_tokens_details":{"cached_tokens":512},
                "output_tokens":60,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":960});
        }
        self.event(json!({"type":kind,"response":response}));
    }

    fn text(&mut self, words: &[&str]) {
        let (id, text) = ("msg_0a1b2c3d4e5f60718293a4b5c6d7e8f9", words.concat());
        let part = |text: &str| json!({"type":"output_text","annotations":[],"logprobs":[],"text":text});
        let item = |status: &str, content: Value| json!({"id":id,"type":"message","status":status,"role":"assistant","content":content});
        self.event(json!({"type":"response.output_item.added","output_index":0,"item":item("in_progress", json!([]))}));
        self.event(json!({"type":"response.content_part.added","item_id":id,"output_index":0,"content_index":0,
            "part":part("")}));
        for word in words {
            self.event(json!({"type":"response.output_text.delta","item_id":id,"output_index":0,"content_index":0,
                "delta":word,"logprobs":[],"obfuscation":"Qx7Lm2"}));
        }
        self.event(json!({"type":"response.output_text.done","item_id":id,"output_index":0,"content_index":0,
            "text":text,"logprobs":[]}));
        self.event(json!({"type":"response.content_part.done","item_id":id,"output_index":0,"content_index":0,
            "part":part(&text)}));
        let item = item("completed", json!([part(&text)]));
        self.event(json!({"type":"response.output_item.done","output_index":0,"item":item}));
        self.items.push(item);
    }

    fn call(&mut self, pieces: &[String]) {
        let index = self.items.len();
        let (id, arguments) = (format!("fc_0a1b2c3d4e5f60718293a4b5c6d7{index}"), pieces.concat());
        let item = |status: &str, arguments: &str| {
            json!({"id":id,"type":"function_call","status":status,"arguments":arguments,
                "call_id":format!("call_{index}"),"name":"run"})
        };
        self.event(json!({"type":"response.output_item.added","output_index":index,"item":item("in_progress", "")}));
        for piece in pieces {
            self.event(json!({"type":"response.function_call_arguments.delta","item_id":id,"output_index":index,
                "delta":piece,"obfuscation":"Qx"}));
        }
        self.event(json!({"type":"response.function_call_arguments.done","item_id":id,"output_index":index,
            "arguments":arguments}));
        let item = item("completed", &arguments);
        self.event(json!({"type":"response.output_item.done","output_index":index,"item":item}));
        self.items.push(item);
    }
}

fn responses(says: Says) -> Vec<Bytes> {
    let mut out = Output { events: Vec::new(), items: Vec::new() };
    out.response("response.created", "in_progress");
    out.response("response.in_progress", "in_progress");
    out.text(&says.words());
    for pieces in says.calls() {
        out.call(&pieces);
    }
    out.response("response.completed", "completed");
    out.events
}
