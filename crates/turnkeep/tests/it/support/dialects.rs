//! The four dialects as a client and an upstream see them: requests, what a reply says, and how a failed one must end.

use super::client::Reply;
use serde_json::{Value, json};
use turnkeep_base::Dialect;

/// A way through the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    pub client: Dialect,
    pub upstream: Dialect,
    pub stream: bool,
}

/// Every client dialect, on every kind of upstream, streamed and not.
pub fn pairs() -> Vec<Pair> {
    let mut out = Vec::new();
    for client in Dialect::ALL {
        for upstream in Dialect::ALL {
            out.extend([true, false].map(|stream| Pair { client, upstream, stream }));
        }
    }
    out
}

/// Those that are streamed.
pub fn streamed() -> Vec<Pair> {
    pairs().into_iter().filter(|pair| pair.stream).collect()
}

/// A simple one, where the way does not matter.
pub const CHAT: Pair = Pair { client: Dialect::Chat, upstream: Dialect::Chat, stream: true };

/// The kind and the base URL's path of an upstream.
pub fn kind(upstream: Dialect) -> (&'static str, &'static str) {
    match upstream {
        Dialect::Chat => ("openai", "/v1"),
        Dialect::Responses => ("openai-responses", "/v1"),
        Dialect::Messages => ("anthropic", ""),
        Dialect::Gemini => ("gemini", ""),
    }
}

impl Pair {
    /// The path of a turn of the model `m`.
    pub fn path(self) -> String {
        self.path_of("m")
    }

    /// The path of a turn of this model, which all dialects but Gemini name in the body.
    pub fn path_of(self, model: &str) -> String {
        match self.client {
            Dialect::Chat => "/v1/chat/completions".into(),
            Dialect::Responses => "/v1/responses".into(),
            Dialect::Messages => "/v1/messages".into(),
            Dialect::Gemini if self.stream => format!("/v1beta/models/{model}:streamGenerateContent?alt=sse"),
            Dialect::Gemini => format!("/v1beta/models/{model}:generateContent"),
        }
    }

    /// One of two: what Messages clients are told, and what the others are.
    pub fn of<T>(self, others: T, messages: T) -> T {
        match self.client {
            Dialect::Chat | Dialect::Responses | Dialect::Gemini => others,
            Dialect::Messages => messages,
        }
    }

    /// One of four, by the client's dialect.
    pub fn each<T>(self, chat: T, responses: T, messages: T, gemini: T) -> T {
        match self.client {
            Dialect::Chat => chat,
            Dialect::Responses => responses,
            Dialect::Messages => messages,
            Dialect::Gemini => gemini,
        }
    }
}

/// Each client dialect with each kind of upstream once, streamed and plain by turns: where a case costs too much for
/// all of [`pairs`]. Every client and every upstream has both forms.
pub fn covering() -> Vec<Pair> {
    let mut out = Vec::new();
    for (row, client) in Dialect::ALL.into_iter().enumerate() {
        for (column, upstream) in Dialect::ALL.into_iter().enumerate() {
            out.push(Pair { client, upstream, stream: (row + column).is_multiple_of(2) });
        }
    }
    out
}

/// The first letter of a model's name where that decides the upstream.
pub fn letter(upstream: Dialect) -> &'static str {
    match upstream {
        Dialect::Chat => "c",
        Dialect::Responses => "r",
        Dialect::Messages => "m",
        Dialect::Gemini => "g",
    }
}

/// A turn's request that says `words`. It names the model and `stream` in every dialect; where they belong into the
/// path, [`super::client::turn_bytes`] puts them there.
pub fn saying(pair: Pair, words: &str) -> Value {
    let messages = json!([{"role": "user", "content": words}]);
    let mut body = match pair.client {
        Dialect::Chat => json!({"messages": messages}),
        Dialect::Responses => json!({"input": words, "store": false}),
        Dialect::Messages => json!({"messages": messages, "max_tokens": 100}),
        Dialect::Gemini => json!({"contents": [{"role": "user", "parts": [{"text": words}]}]}),
    };
    body["model"] = json!("m");
    body["stream"] = json!(pair.stream);
    body
}

/// The usual request.
pub fn request(pair: Pair) -> Value {
    saying(pair, "Hello there")
}

/// Adds a message to a request's conversation; `role` is `user` or `assistant`.
pub fn say(pair: Pair, body: &mut Value, role: &str, words: &str) {
    let (list, message) = match pair.client {
        Dialect::Chat | Dialect::Messages => ("messages", json!({"role": role, "content": words})),
        Dialect::Responses => ("input", json!({"role": role, "content": words})),
        Dialect::Gemini => {
            let role = if role == "assistant" { "model" } else { role };
            ("contents", json!({"role": role, "parts": [{"text": words}]}))
        }
    };
    if let Some(words) = body[list].as_str().map(str::to_owned) {
        body[list] = json!([{"role": "user", "content": words}]);
    }
    body[list].as_array_mut().unwrap().push(message);
}

/// Sets the most tokens that an answer may have.
pub fn limit_output(pair: Pair, body: &mut Value, tokens: u64) {
    match pair.client {
        Dialect::Chat => body["max_completion_tokens"] = tokens.into(),
        Dialect::Responses => body["max_output_tokens"] = tokens.into(),
        Dialect::Messages => body["max_tokens"] = tokens.into(),
        Dialect::Gemini => body["generationConfig"]["maxOutputTokens"] = tokens.into(),
    }
}

/// Sets the temperature.
pub fn warm(pair: Pair, body: &mut Value, temperature: f64) {
    match pair.client {
        Dialect::Chat | Dialect::Responses | Dialect::Messages => body["temperature"] = temperature.into(),
        Dialect::Gemini => body["generationConfig"]["temperature"] = temperature.into(),
    }
}

/// Asserts that a stream has one beginning: its first event, or in Gemini, which has none, one id.
pub fn assert_begins_once(pair: Pair, reply: &Reply) {
    let text = reply.text();
    let begin = match pair.client {
        Dialect::Chat => "\"role\":\"assistant\"",
        Dialect::Responses => "event: response.created\n",
        Dialect::Messages => "event: message_start\n",
        Dialect::Gemini => {
            let ids: std::collections::BTreeSet<String> =
                events(text).iter().map(|data| parsed(data)["responseId"].to_string()).collect();
            return assert_eq!(ids.len(), 1, "{pair:?} {text}");
        }
    };
    assert_eq!(text.matches(begin).count(), 1, "{pair:?} {text}");
}

/// A request's body as it goes out: what stands in Gemini's path is not in it.
pub fn body_of(pair: Pair, mut request: Value) -> String {
    if pair.client == Dialect::Gemini
        && let Some(fields) = request.as_object_mut()
    {
        fields.retain(|name, _| name != "model" && name != "stream");
    }
    request.to_string()
}

/// The data of a stream's events, in order; comments are left out, and the last event must be whole.
fn events(text: &str) -> Vec<String> {
    assert!(text.ends_with("\n\n"), "the last event is not whole: {text:?}");
    let data = |block: &str| block.lines().find_map(|line| line.strip_prefix("data: ").map(str::to_owned));
    text.split("\n\n").filter_map(data).collect()
}

fn parsed(data: &str) -> Value {
    serde_json::from_str(data).unwrap_or_else(|_| panic!("not JSON: {data}"))
}

/// The texts of a list's parts.
fn texts(parts: &Value) -> String {
    parts.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str()).collect()
}

/// The text that an answer has brought, whole or not.
pub fn said(pair: Pair, reply: &Reply) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if !pair.stream {
        let body = reply.json();
        return match pair.client {
            Dialect::Chat => text(&body["choices"][0]["message"]["content"]),
            Dialect::Responses => {
                body["output"].as_array().into_iter().flatten().map(|item| texts(&item["content"])).collect()
            }
            Dialect::Messages => text(&body["content"][0]["text"]),
            Dialect::Gemini => texts(&body["candidates"][0]["content"]["parts"]),
        };
    }
    let events = events(reply.text());
    let events = events.iter().filter(|data| *data != "[DONE]").map(|data| parsed(data));
    let piece = |event: Value| match pair.client {
        Dialect::Chat => text(&event["choices"][0]["delta"]["content"]),
        Dialect::Responses if event["type"] == "response.output_text.delta" => text(&event["delta"]),
        Dialect::Responses => String::new(),
        Dialect::Messages => text(&event["delta"]["text"]),
        Dialect::Gemini => texts(&event["candidates"][0]["content"]["parts"]),
    };
    events.map(piece).collect()
}

/// What says that an answer is complete, in the last event of a stream or in a whole answer.
fn assert_complete(pair: Pair, last: &Value) {
    let (found, wanted) = match (pair.client, pair.stream) {
        (Dialect::Chat, _) => (&last["choices"][0]["finish_reason"], "stop"),
        (Dialect::Responses, true) => (&last["type"], "response.completed"),
        (Dialect::Responses, false) => (&last["status"], "completed"),
        (Dialect::Messages, true) => (&last["type"], "message_stop"),
        (Dialect::Messages, false) => (&last["stop_reason"], "end_turn"),
        (Dialect::Gemini, _) => (&last["candidates"][0]["finishReason"], "STOP"),
    };
    assert_eq!(found, wanted, "{pair:?} {last}");
}

/// Asserts that this is a whole, successful answer that says `words`.
pub fn assert_said(pair: Pair, reply: &Reply, words: &str) {
    assert_eq!(reply.status, 200, "{pair:?} {}", reply.text());
    assert_eq!(said(pair, reply), words, "{pair:?} {}", reply.text());
    if !pair.stream {
        assert_complete(pair, &reply.json());
    } else {
        let events = events(reply.text());
        if pair.client == Dialect::Chat {
            assert_eq!(events.last().unwrap(), "[DONE]", "{pair:?}");
            assert!(reply.text().contains("\"finish_reason\":\"stop\""), "{pair:?} {}", reply.text());
        } else {
            assert_complete(pair, &parsed(events.last().unwrap()));
        }
    }
    let none = reply.text().replace("\"error\":null", "");
    assert!(!none.contains("\"error\""), "{pair:?} {none}");
}

/// The message of an error in the client's dialect.
fn error_of(pair: Pair, body: &Value) -> String {
    let error = match (pair.client, body["type"].as_str()) {
        // The end of a stream; its body is Chat's.
        (Dialect::Responses, Some("error")) => body,
        (Dialect::Responses, Some("response.failed")) => &body["response"]["error"],
        (Dialect::Chat | Dialect::Responses | Dialect::Messages | Dialect::Gemini, _) => &body["error"],
    };
    match pair.client {
        Dialect::Chat => assert!(error["type"].is_string(), "{body}"),
        Dialect::Responses => assert!(error["code"].is_string(), "{body}"),
        Dialect::Messages => {
            assert_eq!(body["type"], "error", "{body}");
            assert!(error["type"].is_string(), "{body}");
        }
        Dialect::Gemini => assert!(error["status"].is_string() && error["code"].is_u64(), "{body}"),
    }
    error["message"].as_str().unwrap().to_owned()
}

/// Asserts that this is an error of this status in the client's dialect, and gives its message.
pub fn assert_refused(pair: Pair, reply: &Reply, status: u16) -> String {
    assert_eq!(reply.status, status, "{pair:?} {}", reply.text());
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert!(reply.header("x-turnkeep-turn").is_some(), "{reply:?}");
    let message = error_of(pair, &reply.json());
    // An exhausted pool tells the wait whatever its status is.
    let tells = matches!(status, 429 | 503 | 529) || (status == 502 && message.contains("account queue exhausted"));
    assert_eq!(tells, reply.header("retry-after").is_some(), "{reply:?}");
    message
}

/// Asserts that a stream began with `words` and ended in the dialect's error form, without a sign of success.
pub fn assert_broke_off(pair: Pair, reply: &Reply, words: &str) -> String {
    assert_eq!(reply.status, 200, "{pair:?} {}", reply.text());
    let text = reply.text();
    assert!(said(pair, reply).starts_with(words), "{pair:?} {text}");
    let events = events(text);
    let message = error_of(pair, &parsed(events.last().unwrap()));
    let successes = [
        "[DONE]",
        "message_stop",
        "\"finish_reason\":\"",
        "\"stop_reason\":\"",
        "response.completed",
        "response.incomplete",
        "\"finishReason\"",
    ];
    for success in successes {
        assert!(!text.contains(success), "{pair:?} has {success}: {text}");
    }
    if pair.client == Dialect::Messages {
        assert!(text.rsplit("\n\n").nth(1).unwrap().starts_with("event: error\n"), "{text}");
    }
    message
}
