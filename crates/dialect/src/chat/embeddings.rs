//! OpenAI's embeddings: texts as vectors.

use crate::json::Invalid;
use crate::request::ClientRequest;
use bytes::Bytes;

/// Reads and checks a request.
pub fn read(_body: Bytes) -> Result<ClientRequest, Invalid> {
    todo!()
}
