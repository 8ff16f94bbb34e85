//! stub
use crate::json::Invalid;
use crate::request::Encoded;
use crate::turn::Turn;
/// stub
pub fn encode(_turn: &Turn<'_>, _upstream_model: &str) -> Result<Encoded, Invalid> {
    todo!()
}
