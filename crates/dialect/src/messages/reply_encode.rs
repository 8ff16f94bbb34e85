//! stub
use crate::event::{Class, Event};
use crate::reply::ReplyOptions;
/// stub
#[derive(Debug)]
pub struct StreamEncoder {}
impl StreamEncoder {
    /// stub
    pub fn new(_options: &ReplyOptions) -> Self {
        todo!()
    }
    /// Appends what the event becomes (nothing, for some) and tells how far it commits the answer.
    pub fn event(&mut self, _event: &Event, _out: &mut Vec<u8>) -> Class {
        todo!()
    }
}
/// stub
pub fn plain(_events: &[Event], _options: &ReplyOptions) -> Vec<u8> {
    todo!()
}
