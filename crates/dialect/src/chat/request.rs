//! stub
use crate::json::Invalid;
use crate::request::ClientRequest;
use crate::turn::Turn;
use bytes::Bytes;
/// stub
pub fn read(_body: Bytes) -> Result<ClientRequest, Invalid> {
    todo!()
}
/// stub
pub fn decode(_body: &[u8]) -> Result<Turn<'_>, Invalid> {
    todo!()
}
/// The edits that make a streamed answer carry usage.
pub fn usage_edit(_request: &ClientRequest) -> Vec<crate::request::Edit> {
    todo!()
}
