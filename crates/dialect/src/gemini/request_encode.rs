//! A canonical turn as a Gemini request.

use crate::json::Invalid;
use crate::request::Encoded;
use crate::turn::Turn;

/// Writes the request for the upstream's name of the model.
pub fn encode(_turn: &Turn<'_>, _upstream_model: &str) -> Result<Encoded, Invalid> {
    todo!()
}
