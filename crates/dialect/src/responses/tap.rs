//! A Responses answer on its way to a Responses client.

use crate::reply::{Facts, Passed, ReplyFault, ReplyOptions};
use turnkeep_wire::sse::Frame;

/// Reads one streamed answer in passing.
#[derive(Debug)]
pub struct Tap {}

impl Tap {
    /// For one answer.
    pub fn new(_options: &ReplyOptions) -> Self {
        Tap {}
    }

    /// The answer's first event lacks what the official clients need (`sequence_number`, the whole response), so that it
    /// has to be written anew. Asked with each frame until one has passed.
    pub fn is_off_spec(&self, _frame: &Frame) -> bool {
        todo!()
    }

    /// Reads a frame.
    pub fn frame(&mut self, _frame: &Frame, _facts: &mut Facts) -> Result<Passed, ReplyFault> {
        todo!()
    }
}

/// A whole answer lacks what the official clients need.
pub fn is_off_spec(_body: &[u8]) -> bool {
    todo!()
}

/// Reads a whole answer in passing.
pub fn plain(_body: &[u8], _facts: &mut Facts) -> Result<(), ReplyFault> {
    todo!()
}
