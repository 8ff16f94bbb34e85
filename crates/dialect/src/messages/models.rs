//! stub
use bytes::Bytes;
/// stub
pub fn list(_models: &[&str], _created: u64) -> Bytes {
    todo!()
}
/// stub
pub fn one(_model: &str, _created: u64) -> Bytes {
    todo!()
}
