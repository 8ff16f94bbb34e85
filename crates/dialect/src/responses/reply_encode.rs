//! Canonical events as a Responses answer.

use crate::event::{Class, Event};
use crate::reply::ReplyOptions;

/// Writes one streamed answer.
#[derive(Debug)]
pub struct StreamEncoder {}

impl StreamEncoder {
    /// For one answer.
    pub fn new(_options: &ReplyOptions) -> Self {
        StreamEncoder {}
    }

    /// For one answer that was in this dialect already: ids and proofs stay as they are.
    pub fn again(options: &ReplyOptions) -> Self {
        Self::new(options)
    }

    /// Appends what the event becomes (nothing, for some) and tells how far it commits the answer.
    pub fn event(&mut self, _event: &Event, _out: &mut Vec<u8>) -> Class {
        todo!()
    }
}

/// Writes a whole answer that was in this dialect already.
pub fn plain_again(events: &[Event], options: &ReplyOptions) -> Vec<u8> {
    plain(events, options)
}

/// Writes a whole answer.
pub fn plain(_events: &[Event], _options: &ReplyOptions) -> Vec<u8> {
    todo!()
}
