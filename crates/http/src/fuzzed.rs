//! The decoders of this crate by themselves, for the fuzz targets and nobody else (the layer check looks).

pub use crate::responses::fuzzed::{stored_conversation, stored_response};
