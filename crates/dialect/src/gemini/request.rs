//! A Gemini request as a client sends it: checked without being built ([`read`]), or read into a canonical turn
//! ([`decode`]).

use crate::json::Invalid;
use crate::request::{ClientRequest, Edit, InPath, Operation};
use crate::turn::Turn;
use bytes::Bytes;

/// Reads and checks a request.
pub fn read(_operation: Operation, _path: InPath, _body: Bytes) -> Result<ClientRequest, Invalid> {
    todo!()
}

/// The edits of a same-dialect route.
pub fn edits(_request: &ClientRequest) -> Vec<Edit> {
    todo!()
}

/// Reads a request, which [`read`] has accepted, into a turn.
pub fn decode(_request: &ClientRequest) -> Result<Turn<'_>, Invalid> {
    todo!()
}
