//! A Responses answer as canonical events.

use crate::event::Event;
use crate::reply::{Progress, ReplyFault, ReplyOptions};
use turnkeep_wire::sse::Frame;

/// Reads one streamed answer.
#[derive(Debug)]
pub struct StreamDecoder {}

impl StreamDecoder {
    /// For one answer.
    pub fn new(_options: &ReplyOptions) -> Self {
        StreamDecoder {}
    }

    /// For one answer of our own record: nothing of it is passed over.
    pub fn strict(options: &ReplyOptions) -> Self {
        Self::new(options)
    }

    /// Reads a frame.
    pub fn frame(&mut self, _frame: &Frame, _events: &mut Vec<Event>) -> Result<Progress, ReplyFault> {
        todo!()
    }

    /// The transport's end, or the end of the wait for usage: closes what is open, then usage, finish and end, once.
    pub fn settle(&mut self, _events: &mut Vec<Event>) {
        todo!()
    }
}

/// Decodes a whole answer of which nothing is passed over.
pub fn plain_strict(body: &[u8], options: &ReplyOptions) -> Result<Vec<Event>, ReplyFault> {
    plain(body, options)
}

/// Decodes a whole answer.
pub fn plain(_body: &[u8], _options: &ReplyOptions) -> Result<Vec<Event>, ReplyFault> {
    todo!()
}
