//! A Responses request as a client sends it: checked without being built ([`read`]), or read into a canonical turn
//! ([`decode`]).

use crate::json::Invalid;
use crate::request::{ClientRequest, Edit, Operation};
use crate::turn::Turn;
use bytes::Bytes;

/// Reads and checks a request.
pub fn read(_operation: Operation, _body: Bytes) -> Result<ClientRequest, Invalid> {
    todo!()
}

/// The edits of a same-dialect route, beside the model's name.
pub fn edits(_request: &ClientRequest) -> Vec<Edit> {
    todo!()
}

/// Reads a request, which [`read`] has accepted, into a turn.
pub fn decode(_body: &[u8]) -> Result<Turn<'_>, Invalid> {
    todo!()
}
