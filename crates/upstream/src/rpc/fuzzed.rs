//! The ends of calls by themselves; see [`crate::fuzzed`].

use super::{RpcFault, ending};
use http::HeaderMap;

/// Reads the end of a Connect stream: its metadata, or its error.
///
/// # Errors
/// It is an error, or no end.
pub fn end_of_stream(payload: &[u8], begun: bool, continued: bool) -> Result<HeaderMap, RpcFault> {
    ending::end_of_stream(payload, begun, continued)
}

/// Reads gRPC's status. `None`: there is none.
pub fn grpc_status(trailers: &HeaderMap, begun: bool, continued: bool) -> Option<Result<(), RpcFault>> {
    ending::grpc_status(trailers, begun, continued)
}

/// Reads a reply with an error status.
pub fn error_reply(status: u16, headers: &HeaderMap, body: &[u8], whole: bool, continued: bool) -> RpcFault {
    ending::by_status(status, headers, body, whole, continued)
}
