//! What the stub upstream says: one fixed small answer and one fixed stream of 100 content events per dialect, rendered
//! once with their HTTP framing so that serving them costs one write each. Every word of content starts with
//! [`MARK`], which is how the load generator knows first content from preamble in any dialect.

use bytes::Bytes;
use std::fmt::Write as _;

/// Appears in content and nowhere else: not in a role chunk, a usage block or a header.
pub const MARK: &[u8] = b"zq";
/// Content events in one stream.
pub const EVENTS: usize = 100;

/// The client protocol of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Dialect {
    /// `POST /v1/chat/completions`.
    Chat,
    /// `POST /v1/messages`.
    Messages,
}

/// One dialect's answers, ready to write.
pub struct Answers {
    /// Head and body of the plain JSON answer.
    pub whole: Bytes,
    /// Head of a stream with what comes before content.
    pub opening: Bytes,
    /// One content event as one HTTP chunk.
    pub content: Bytes,
    /// Everything after content, and the empty chunk; the second form carries Chat's usage event.
    pub closing: Bytes,
    /// As `closing`, when the client asked a Chat stream for its usage.
    pub closing_with_usage: Bytes,
}

const STREAM_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\
    cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n";

/// The answers of `dialect`.
pub fn answers(dialect: Dialect) -> Answers {
    match dialect {
        Dialect::Chat => chat(),
        Dialect::Messages => messages(),
    }
}

/// A small JSON body with its head.
pub fn json(status: &str, body: &str) -> Bytes {
    Bytes::from(format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    ))
}

fn chunk(out: &mut String, event: &str) {
    // Writing to a String cannot fail.
    let _ = write!(out, "{:x}\r\n{event}\r\n", event.len());
}

fn framed(events: &[String], tail: &str) -> Bytes {
    let mut out = String::new();
    for event in events {
        chunk(&mut out, event);
    }
    out.push_str(tail);
    Bytes::from(out)
}

fn chat() -> Answers {
    let event = |choices: &str, usage: &str| {
        format!(
            "data: {{\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion.chunk\",\"created\":1760000000,\
             \"model\":\"instant\",\"choices\":[{choices}]{usage}}}\n\n"
        )
    };
    let delta = |delta: &str, finish: &str| {
        event(&format!("{{\"index\":0,\"delta\":{{{delta}}},\"logprobs\":null,\"finish_reason\":{finish}}}"), "")
    };
    let usage = r#"{"prompt_tokens":12,"completion_tokens":100,"total_tokens":112}"#;
    let opening = delta(r#""role":"assistant","content":"","refusal":null"#, "null");
    let finish = delta("", r#""stop""#);
    let done = "data: [DONE]\n\n".to_owned();
    Answers {
        whole: json(
            "200 OK",
            &format!(
                r#"{{"id":"chatcmpl-bench","object":"chat.completion","created":1760000000,"model":"instant","choices":[{{"index":0,"message":{{"role":"assistant","content":"zqHello from the bench.","refusal":null}},"logprobs":null,"finish_reason":"stop"}}],"usage":{usage}}}"#
            ),
        ),
        opening: framed(&[opening], "").prefixed(STREAM_HEAD),
        content: framed(&[delta(r#""content":"zqword ""#, "null")], ""),
        closing: framed(&[finish.clone(), done.clone()], "0\r\n\r\n"),
        closing_with_usage: framed(&[finish, event("", &format!(",\"usage\":{usage}")), done], "0\r\n\r\n"),
    }
}

fn messages() -> Answers {
    let event = |name: &str, rest: &str| format!("event: {name}\ndata: {{\"type\":\"{name}\"{rest}}}\n\n");
    let start = event(
        "message_start",
        r#","message":{"id":"msg_bench","type":"message","role":"assistant","model":"instant","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":12,"output_tokens":1}}"#,
    );
    let block = event("content_block_start", r#","index":0,"content_block":{"type":"text","text":""}"#);
    let closing = framed(
        &[
            event("content_block_stop", r#","index":0"#),
            event(
                "message_delta",
                r#","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":100}"#,
            ),
            event("message_stop", ""),
        ],
        "0\r\n\r\n",
    );
    Answers {
        whole: json(
            "200 OK",
            r#"{"id":"msg_bench","type":"message","role":"assistant","model":"instant","content":[{"type":"text","text":"zqHello from the bench."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":12,"output_tokens":100}}"#,
        ),
        opening: framed(&[start, block], "").prefixed(STREAM_HEAD),
        content: framed(
            &[event("content_block_delta", r#","index":0,"delta":{"type":"text_delta","text":"zqword "}"#)],
            "",
        ),
        closing: closing.clone(),
        closing_with_usage: closing,
    }
}

trait Prefixed {
    fn prefixed(self, head: &str) -> Bytes;
}

impl Prefixed for Bytes {
    fn prefixed(self, head: &str) -> Bytes {
        Bytes::from([head.as_bytes(), &self].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes chunk framing and SSE framing off, and checks that every event but `[DONE]` is JSON.
    fn events(raw: &[u8]) -> Vec<String> {
        let text = std::str::from_utf8(raw).unwrap();
        text.lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .inspect(|data| {
                assert!(*data == "[DONE]" || serde_json::from_str::<serde_json::Value>(data).is_ok(), "{data}");
            })
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn every_event_is_json_and_only_content_carries_the_mark() {
        for dialect in [Dialect::Chat, Dialect::Messages] {
            let a = answers(dialect);
            for quiet in [&a.opening, &a.closing, &a.closing_with_usage] {
                assert!(!events(quiet).is_empty());
                assert!(memchr::memmem::find(quiet, MARK).is_none());
            }
            assert_eq!(events(&a.content).len(), 1);
            assert!(memchr::memmem::find(&a.content, MARK).is_some());
            let body = memchr::memmem::find(&a.whole, b"\r\n\r\n").unwrap() + 4;
            serde_json::from_slice::<serde_json::Value>(&a.whole[body..]).unwrap();
        }
        assert_eq!(events(&answers(Dialect::Chat).closing_with_usage).len(), 3);
    }
}
