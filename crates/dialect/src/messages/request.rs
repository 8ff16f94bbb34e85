//! stub
use crate::json::Invalid;
use crate::request::ClientRequest;
use crate::turn::Turn;
use bytes::Bytes;
/// stub
pub fn read(_operation: crate::request::Operation, _body: Bytes) -> Result<ClientRequest, Invalid> {
    todo!()
}
/// stub
pub fn decode(_body: &[u8]) -> Result<Turn<'_>, Invalid> {
    todo!()
}
