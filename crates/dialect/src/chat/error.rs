//! stub
use bytes::Bytes;
use turnkeep_base::ClientError;
/// stub
pub fn body(_error: &ClientError, _request_id: &str) -> (u16, Bytes) {
    todo!()
}
/// stub
pub fn event(_error: &ClientError, _request_id: &str) -> Bytes {
    todo!()
}
