//! A Gemini answer on its way to a Gemini client.

use crate::reply::{Facts, Passed, Piece, ReplyFault, ReplyOptions};
use bytes::Bytes;
use turnkeep_wire::sse::Frame;

/// Reads one streamed answer in passing.
#[derive(Debug)]
pub struct Tap {}

impl Tap {
    /// For one answer.
    pub fn new(_options: &ReplyOptions) -> Self {
        Tap {}
    }

    /// Reads a frame.
    pub fn frame(&mut self, _frame: &Frame, _facts: &mut Facts) -> Result<Passed, ReplyFault> {
        todo!()
    }

    /// The bytes of a frame that has been read, in the form that the client asked for.
    pub fn bytes(&mut self, frame: Frame) -> Bytes {
        frame.raw
    }

    /// The answer is complete: what the client's form still needs.
    pub fn settle(&mut self, _out: &mut Vec<Piece>) {
        todo!()
    }
}

/// Reads a whole answer in passing.
pub fn plain(_body: &[u8], _facts: &mut Facts) -> Result<(), ReplyFault> {
    todo!()
}
