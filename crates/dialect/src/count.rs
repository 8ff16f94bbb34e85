//! Counting input tokens: the requests and answers of the vendors' own endpoints, and an estimate for upstreams that have
//! none.

mod estimate;

pub use estimate::{estimate, tokens};

use crate::json::{Invalid, Object, Reader};
use crate::request::Encoded;
use bytes::Bytes;
use turnkeep_base::Dialect;

/// The count in an upstream's reply; `None` if it is no such reply.
pub fn count_reply(dialect: Dialect, body: &[u8]) -> Option<u64> {
    let wanted: &[&str] = match dialect {
        Dialect::Chat | Dialect::Responses | Dialect::Messages => &["input_tokens"],
        Dialect::Gemini => &["totalTokens", "total_tokens"],
    };
    let mut count = None;
    let mut r = Reader::new(body).ok()?;
    r.object::<Invalid>(|r, key| {
        if wanted.contains(&key) {
            count = Some(r.u64()?);
            return Ok(());
        }
        r.skip().map(drop)
    })
    .ok()?;
    r.end().ok()?;
    count
}

/// Our reply with a count. Chat has no such endpoint; it would get the words of Responses.
pub fn count_body(dialect: Dialect, tokens: u64) -> Bytes {
    let mut out = Vec::new();
    {
        let mut object = Object::open(&mut out);
        match dialect {
            Dialect::Messages => object.number("input_tokens", tokens),
            Dialect::Chat | Dialect::Responses => {
                object.string("object", "response.input_tokens");
                object.number("input_tokens", tokens);
            }
            Dialect::Gemini => object.number("totalTokens", tokens),
        }
    }
    out.into()
}

/// What Anthropic's endpoint takes of a Messages request.
const MESSAGES: &[&str] = &["model", "messages", "system", "tools", "tool_choice", "thinking", "output_config"];

/// What OpenAI's endpoint takes of a Responses request.
const RESPONSES: &[&str] = &[
    "model",
    "input",
    "instructions",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning",
    "text",
    "truncation",
    "conversation",
    "previous_response_id",
];

/// A request for an answer, as the target's encoder wrote it, made one for the count of its input. Of what it leaves out
/// (limits, sampling) nothing is input. Chat has no such endpoint, so that its request stays as it is.
pub fn counting(target: Dialect, encoded: Encoded, upstream_model: &str) -> Result<Encoded, Invalid> {
    let body = match target {
        Dialect::Chat => encoded.body,
        Dialect::Messages => only(&encoded.body, MESSAGES)?,
        Dialect::Responses => only(&encoded.body, RESPONSES)?,
        Dialect::Gemini => {
            let mut out = Vec::with_capacity(encoded.body.len() + 96);
            {
                let mut object = Object::open(&mut out);
                let mut inner = object.object("generateContentRequest");
                inner.string("model", &format!("models/{upstream_model}"));
                members(&encoded.body, &mut inner, |key| key != "model")?;
            }
            out.into()
        }
    };
    Ok(Encoded { body, ..encoded })
}

/// The object with these members and no others.
fn only(body: &[u8], kept: &[&str]) -> Result<Bytes, Invalid> {
    let mut out = Vec::with_capacity(body.len());
    members(body, &mut Object::open(&mut out), |key| kept.contains(&key))?;
    Ok(out.into())
}

/// Copies members of an object as they are.
fn members(body: &[u8], out: &mut Object<'_>, keep: impl Fn(&str) -> bool) -> Result<(), Invalid> {
    Reader::new(body)?.object::<Invalid>(|r, key| {
        let raw = r.raw()?;
        if keep(key) {
            out.raw(key, raw);
        }
        Ok(())
    })
}
