//! The two dialects as a client and an upstream see them: requests, what a reply says, and how a failed one must end.

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

/// Both client dialects, on both kinds of upstream, streamed and not.
pub fn pairs() -> Vec<Pair> {
    let both = [Dialect::Chat, Dialect::Messages];
    let mut out = Vec::new();
    for client in both {
        for upstream in both {
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

impl Pair {
    pub fn path(self) -> &'static str {
        match self.client {
            Dialect::Chat => "/v1/chat/completions",
            Dialect::Messages => "/v1/messages",
        }
    }

    /// One of two, by the client's dialect.
    pub fn of<T>(self, chat: T, messages: T) -> T {
        match self.client {
            Dialect::Chat => chat,
            Dialect::Messages => messages,
        }
    }
}

/// A turn's request that says `words`.
pub fn saying(pair: Pair, words: &str) -> Value {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": words}], "stream": pair.stream});
    if pair.client == Dialect::Messages {
        body["max_tokens"] = json!(100);
    }
    body
}

/// The usual request.
pub fn request(pair: Pair) -> Value {
    saying(pair, "Hello there")
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

/// The text that an answer has brought, whole or not.
pub fn said(pair: Pair, reply: &Reply) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if !pair.stream {
        let body = reply.json();
        return pair.of(text(&body["choices"][0]["message"]["content"]), text(&body["content"][0]["text"]));
    }
    let events = events(reply.text());
    let events = events.iter().filter(|data| *data != "[DONE]").map(|data| parsed(data));
    events.map(|event| pair.of(text(&event["choices"][0]["delta"]["content"]), text(&event["delta"]["text"]))).collect()
}

/// Asserts that this is a whole, successful answer that says `words`.
pub fn assert_said(pair: Pair, reply: &Reply, words: &str) {
    assert_eq!(reply.status, 200, "{pair:?} {}", reply.text());
    assert_eq!(said(pair, reply), words, "{pair:?} {}", reply.text());
    if pair.stream {
        let events = events(reply.text());
        match pair.client {
            Dialect::Chat => {
                assert_eq!(events.last().unwrap(), "[DONE]", "{pair:?}");
                assert!(reply.text().contains("\"finish_reason\":\"stop\""), "{pair:?} {}", reply.text());
            }
            Dialect::Messages => assert_eq!(parsed(events.last().unwrap())["type"], "message_stop", "{pair:?}"),
        }
    } else {
        let body = reply.json();
        assert_eq!(pair.of(&body["choices"][0]["finish_reason"], &body["stop_reason"]), pair.of("stop", "end_turn"));
    }
    assert!(!reply.text().contains("\"error\""), "{pair:?} {}", reply.text());
}

/// The message of an error in the client's dialect.
fn error_of(pair: Pair, body: &Value) -> String {
    if pair.client == Dialect::Messages {
        assert_eq!(body["type"], "error", "{body}");
    }
    let error = &body["error"];
    assert!(error["type"].is_string(), "{body}");
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
    for success in ["[DONE]", "message_stop", "\"finish_reason\":\"", "\"stop_reason\":\""] {
        assert!(!text.contains(success), "{pair:?} has {success}: {text}");
    }
    if pair.client == Dialect::Messages {
        assert!(text.rsplit("\n\n").nth(1).unwrap().starts_with("event: error\n"), "{text}");
    }
    message
}
