//! `countTokens`: its answer as an upstream gives it, and as we give it.

use crate::json::{Invalid, Object, Reader};
use bytes::Bytes;

/// The number of tokens in an upstream's answer; `None` if it is no such answer. An answer without the field counts
/// nothing: a zero may be left out.
pub fn count_reply(body: &[u8]) -> Option<u64> {
    let (mut count, mut failed) = (None, false);
    let mut r = Reader::new(body).ok()?;
    r.object::<Invalid>(|r, key| {
        match key {
            "totalTokens" | "total_tokens" => {
                count = Some(r.u64()?);
                return Ok(());
            }
            "error" => failed = true,
            _ => {}
        }
        r.skip().map(drop)
    })
    .ok()?;
    r.end().ok()?;
    if failed { None } else { Some(count.unwrap_or(0)) }
}

/// Our own answer.
pub fn count_body(tokens: u64) -> Bytes {
    let mut out = Vec::new();
    Object::open(&mut out).number("totalTokens", tokens);
    out.into()
}
