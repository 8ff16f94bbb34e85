//! OpenAI's legacy completions: a prompt that is continued. Same-dialect routes keep the bytes; others get a turn with
//! the prompt as the user's message.

use crate::json::Invalid;
use crate::request::ClientRequest;
use bytes::Bytes;

/// Reads and checks a request.
pub fn read(_body: Bytes) -> Result<ClientRequest, Invalid> {
    todo!()
}
