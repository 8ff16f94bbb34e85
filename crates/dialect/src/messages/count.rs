//! Counting input tokens: what `POST /v1/messages/count_tokens` answers, and an estimate for upstreams that have no such
//! endpoint.

use crate::json::{Object, Reader};
use crate::turn::{Body, Output, Part, ToolKind, Turn};
use bytes::Bytes;

/// Bytes of text that are taken for one token.
const BYTES_PER_TOKEN: u64 = 4;
/// Tokens of one image, about that of a picture of 1092 by 1092 pixels.
const IMAGE_TOKENS: u64 = 1600;
/// Tokens that mark a message's or a tool's beginning and end.
const FRAME_TOKENS: u64 = 4;

/// The count in an upstream's reply.
pub fn count_reply(body: &[u8]) -> Option<u64> {
    let mut count = None;
    let mut r = Reader::new(body).ok()?;
    r.object::<crate::json::Invalid>(|r, key| {
        if key == "input_tokens" {
            count = Some(r.u64()?);
            return Ok(());
        }
        r.skip().map(drop)
    })
    .ok()?;
    r.end().ok()?;
    count
}

/// The reply with a count.
pub fn count_body(tokens: u64) -> Bytes {
    let mut out = Vec::new();
    Object::open(&mut out).number("input_tokens", tokens);
    out.into()
}

/// A guess at the input tokens of a turn: a token for every 4 bytes of text, arguments and schemas (rounded up for each
/// piece), 1600 for an image, 4 for each message and tool. Good to about a third for English and code; too low
/// where there are documents, which a turn does not keep.
pub fn estimate(turn: &Turn<'_>) -> u64 {
    let messages: u64 = turn.messages.iter().map(|message| FRAME_TOKENS + parts(&message.parts)).sum();
    let tools: u64 = turn
        .tools
        .iter()
        .map(|tool| match &tool.kind {
            ToolKind::Function { name, description, schema, strict: _ } => {
                let description = description.as_deref().unwrap_or_default();
                FRAME_TOKENS + text(name) + text(description) + text(schema.unwrap_or_default())
            }
            ToolKind::Custom { name, description, format } => {
                let description = description.as_deref().unwrap_or_default();
                FRAME_TOKENS + text(name) + text(description) + text(format.as_deref().unwrap_or_default())
            }
            ToolKind::Hosted(kind) => FRAME_TOKENS + text(kind),
        })
        .sum();
    let output = match &turn.output {
        Output::Text | Output::Json => 0,
        Output::Schema { schema, .. } => text(schema),
    };
    messages + tools + output
}

fn parts(parts: &[Part<'_>]) -> u64 {
    parts
        .iter()
        .map(|part| match &part.body {
            Body::Text(said) | Body::Refusal(said) | Body::RedactedThinking(said) => text(said),
            Body::Image(_) => IMAGE_TOKENS,
            Body::File(_) => IMAGE_TOKENS,
            Body::ToolCall { id: _, name, arguments } => FRAME_TOKENS + text(name) + text(arguments),
            Body::ToolResult { id: _, content, is_error: _ } => FRAME_TOKENS + self::parts(content),
            Body::Thinking { text: said, signature: _ } => text(said),
            Body::Other(_) => 0,
        })
        .sum()
}

fn text(text: &str) -> u64 {
    (text.len() as u64).div_ceil(BYTES_PER_TOKEN)
}
