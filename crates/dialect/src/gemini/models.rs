//! The list of models in Gemini's shape.

use bytes::Bytes;

/// The models of these names.
pub fn list(_names: &[&str]) -> Bytes {
    todo!()
}

/// One model.
pub fn one(_name: &str) -> Bytes {
    todo!()
}
