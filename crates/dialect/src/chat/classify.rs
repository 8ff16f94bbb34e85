//! stub
use crate::classify::Classified;
/// stub
pub fn reply(_status: u16, _body: &[u8]) -> Classified {
    todo!()
}
